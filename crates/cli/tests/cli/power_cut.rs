//! Power cuts: the disk keeps what had reached it, everything else is gone.
//!
//! The run's directory is on a disk of its own, which its file system writes to only when it
//! must. At the cut the disk's bytes are copied as they are, in the middle of everything; the run
//! continues from the copy, as after a reboot. What was written and not made durable (results,
//! journal, log, snapshots) is therefore really lost.
//!
//! `SENESCE_POWER_CUTS=20` makes the long version of it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use senesce_core::{Rng, Seed};
use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    lab::{Lab, SMALL},
    resume::{End, Trial, last_journal_line, wait_or_kill},
};

/// The file systems that hold the run's directory, in turn, and what makes them write back rarely.
const HOSTS: [(&str, &[&str], &str); 3] =
    [("mkfs.ext4", &["-q"], "commit=300"), ("mkfs.xfs", &["-q"], "defaults"), ("mkfs.btrfs", &["-q"], "commit=300")];

/// Enough for the run's directory, and for XFS.
const DISK_MIB: u64 = 512;

/// A disk with a mounted file system. It is unmounted first.
struct Powered {
    mount: Mount,
    disk: Disk,
    image: PathBuf,
}

impl Powered {
    fn on(disk: Disk, image: PathBuf, lab: &Lab, options: &str) -> Self {
        let mount = Mount::new(&["-o", options, &disk.device], lab.path("host"));
        Self { mount, disk, image }
    }

    /// Cuts the power: a copy of what the disk holds now takes its place.
    fn cut(self, lab: &Lab, options: &str, next_image: PathBuf) -> Self {
        // Power is cut at one moment. What the kernel writes while the copy is made would be of
        // several.
        let (image, next) = (self.image.to_string_lossy(), next_image.to_string_lossy());
        for _ in 0..50 {
            must("cp", &["--sparse=always", &image, &next]);
            if Command::new("cmp").args(["-s", &image, &next]).status().unwrap().success() {
                break;
            }
        }
        // What the running machine holds, and no reboot would leave: volumes and loop devices.
        if lab.path("host/run/resources.ndjson").exists() {
            lab.run(["clean", "host/run"]).good();
        }
        let Self { mount, disk, image } = self;
        drop((mount, disk));
        std::fs::remove_file(image).unwrap();
        Self::on(Disk::attach(&next_image), next_image, lab, options)
    }
}

#[test]
fn run_resumes_after_a_power_cut() {
    if !root_or_skip("volumes") {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let cuts = number("SENESCE_POWER_CUTS").unwrap_or(3);
    let mut rng = Rng::for_purpose(Seed(number("SENESCE_KILL_SEED").unwrap_or(1)), "moments of power cuts");
    let lab = Lab::new();
    let plan = lab.plan(SMALL);
    let trial = Trial::new(lab, plan);
    let lab = &trial.lab;
    let mut differences = Vec::new();
    let mut done = 0;
    for (mkfs, arguments, options) in HOSTS.into_iter().cycle() {
        if done >= cuts {
            break;
        }
        let image = lab.path("host-0.disk");
        let disk = Disk::new(&image, DISK_MIB);
        must(mkfs, &[arguments, &[&*disk.device]].concat());
        let mut powered = Powered::on(disk, image, lab, options);
        // Two cuts in a run, so that what the first one lost does not hide from the second.
        for of_this_run in 0.. {
            let run = lab.path("host/run");
            let begun = run.join("journal.ndjson").metadata().is_ok_and(|file| file.len() > 0);
            if !begun && run.exists() {
                std::fs::remove_dir_all(&run).unwrap();
            }
            let millis = rng.below(trial.took.as_millis() as u64);
            let after = (of_this_run < 2 && done < cuts).then(|| Duration::from_millis(millis));
            let (status, was_killed) = wait_or_kill(&mut trial.start("host/run", begun), after, Signal::KILL);
            if !was_killed {
                assert!(status.success(), "{mkfs}: {status}: {}", trial.said());
                break;
            }
            done += 1;
            let before = last_journal_line(&run);
            powered = powered.cut(lab, options, lab.path(format!("host-{done}.disk")));
            println!("{mkfs}: cut {done} after {millis} ms; journal: {before}; after it: {}", last_journal_line(&run));
        }
        let end = End::of(lab, "host/run");
        let unlike = trial.reference.differences(lab, "reference", &end, "host/run");
        differences.extend(unlike.into_iter().map(|text| format!("{mkfs}: {text}")));
        let image = powered.image.clone();
        drop(powered);
        std::fs::remove_file(image).unwrap();
    }
    lab.assert_nothing_left();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn power_cut_loses_unsynced_writes() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let image = lab.path("host-0.disk");
    let disk = Disk::new(&image, DISK_MIB);
    must("mkfs.ext4", &["-q", &disk.device]);
    let powered = Powered::on(disk, image, &lab, "commit=300");
    let write = |name: &str| {
        let file = std::fs::File::create(lab.path(Path::new("host").join(name))).unwrap();
        std::io::Write::write_all(&mut &file, b"bytes").unwrap();
        file
    };
    write("durable").sync_all().unwrap();
    write("hoped");
    let powered = powered.cut(&lab, "commit=300", lab.path("host-1.disk"));
    assert_eq!(std::fs::read(lab.path("host/durable")).unwrap(), b"bytes");
    assert!(std::fs::read(lab.path("host/hoped")).map_or(true, |bytes| bytes.is_empty()));
    drop(powered);
}
