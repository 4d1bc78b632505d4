//! Programs on ext4, Btrfs, the garden, the evergreen and a pass-through, in turns on one loop
//! device past the page cache.
//!
//! Run as root: `cargo bench -p senesce-fs --bench through_kernel [-- [mib=N] [files=N] [turns=N]
//! [only=KIND,...] [on=DIR] [senesce=PROGRAM]]`. In every turn another kind comes first, and each
//! is made again. The device's image has been written before, and nothing is discarded. The
//! pass-through (`floor`) serves a directory of ext4 through the adapter that serves the engines.
//! It shows what FUSE costs beside calls of ext4; an engine that does less than ext4 can cost less.
//! For each job and kind it prints the median seconds, and the ratio to ext4 in the same turn with
//! its range; the same for seconds of processors. Run as a test it is one small turn, which says
//! nothing of speed; without root it does nothing, and says so. A run that is killed leaves its
//! mount and loop device below the temporary directory.

mod floor;
mod jobs;
mod kinds;

use std::{path::Path, process::Command};

use jobs::{JOBS, Material, Size, Took, measure};
use kinds::{KINDS, Kind};
use senesce_core::Seed;
use senesce_probe::score::compute_spread;
use senesce_testkit::{Volume, VolumeOptions, found_or_skip, root_or_skip, run};

/// The parameters of one run.
struct Plan {
    size: Size,
    turns: usize,
    kinds: Vec<(&'static str, Kind)>,
    /// The directory of the image.
    on: Option<String>,
}

impl Plan {
    /// From the command line; the small one for a test.
    fn new(arguments: impl Iterator<Item = String>) -> Self {
        let arguments: Vec<String> = arguments.skip(1).collect();
        let is_test = arguments.iter().all(|argument| argument != "--bench");
        let value = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str, usual: usize| {
            value(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
        };
        let size = match is_test {
            true => Size { mib: number("mib", 4), files: number("files", 200) },
            false => Size { mib: number("mib", 256), files: number("files", 4000) },
        };
        let turns = number("turns", if is_test { 1 } else { 5 });
        let mut kinds = KINDS.to_vec();
        if let Some(only) = value("only") {
            kinds.retain(|(name, _)| *name == KINDS[0].0 || only.split(',').any(|wanted| wanted == *name));
        }
        Self { size, turns, kinds, on: value("on").map(str::to_owned) }
    }
}

fn main() {
    if !root_or_skip("mounts and loop devices") {
        return;
    }
    let mut plan = Plan::new(std::env::args());
    let btrfs = Command::new("mkfs.btrfs").arg("--version").output().ok();
    if found_or_skip(btrfs, "mkfs.btrfs").is_none() {
        plan.kinds.retain(|(name, _)| *name != "btrfs");
    }
    let mib = 1024 + 4 * plan.size.mib as u64 + plan.size.files as u64 / 8;
    let image_in = plan.on.as_deref().map(Path::new);
    let volume = Volume::with(&VolumeOptions { direct_io: true, image_in, ..VolumeOptions::new("ext4", mib) });
    volume.unmount();
    run("dd", &["if=/dev/zero", &format!("of={}", volume.device), "bs=1M", &format!("count={mib}"), "status=none"]);
    let material = Material::make(plan.size);

    let mut all: Vec<Vec<[Took; JOBS.len()]>> = vec![Vec::new(); plan.kinds.len()];
    for turn in 0..plan.turns {
        for place in 0..plan.kinds.len() {
            let number = (turn + place) % plan.kinds.len();
            let (name, kind) = plan.kinds[number];
            let took = measure(&volume, kind, &material);
            let line: Vec<String> =
                JOBS.iter().zip(took).map(|(job, took)| format!("{job} {:.2}", took.seconds)).collect();
            println!("turn {}: {name}: {}", turn + 1, line.join(", "));
            all[number].push(took);
        }
    }
    for (job, what) in JOBS.iter().enumerate() {
        println!("\n{what}: seconds, times ext4's (from, to); processor seconds, times ext4's (from, to)");
        for (number, (name, _)) in plan.kinds.iter().enumerate() {
            let mut line = format!("  {name:<17}");
            for side in [|took: &Took| took.seconds, |took: &Took| took.processor] {
                let of = |number: usize| all[number].iter().map(move |took| side(&took[job]));
                let spread = |figures: Vec<f64>| compute_spread(&figures, Seed(3)).expect("there are turns");
                let seconds = spread(of(number).collect());
                // The clock of the kernel counts in hundredths.
                let ratio = spread(of(number).zip(of(0)).map(|(ours, ext4)| ours / ext4.max(0.01)).collect());
                line += &format!("  {:7.2} {:6.2} ({:.2}, {:.2})", seconds.median, ratio.median, ratio.min, ratio.max);
            }
            println!("{line}");
        }
    }
}
