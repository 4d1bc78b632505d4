//! A mount on a block device that fails: a loop device whose backing file has no more space returns
//! EIO for writes, at once or when the kernel writes its pages.
//!
//! After a remount of the recovered device, all contents exist that write, fsync, msync or close
//! confirmed.

use std::{
    fs,
    io::{self, Write},
};

use rustix::io::Errno;
use senesce_testkit::{FailingDisk, root_or_skip};

use super::{
    fs_full::{MODES, WAYS},
    garden_mount::{Mounted, hold, start},
    lab::Lab,
};

const LEN: usize = 700_001;
/// KiB of space below the device: with the first the device does not fail, with the second it does.
const MUCH: u64 = 200 << 10;
const LITTLE: u64 = 20 << 10;

fn mount<'a>(lab: &'a Lab, device: &str, mode: &[&str]) -> Mounted<'a> {
    hold(lab, start(lab, lab.command().args(["--quiet", "fs", "mount", device, "mnt"]).args(mode)))
}

fn is_of_device(error: &io::Error) -> bool {
    // An engine that a failure stopped is read-only.
    [Errno::IO, Errno::ROFS].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[test]
fn confirmed_contents_survive_a_failing_block_device() {
    if !root_or_skip("loop devices") {
        return;
    }
    let data: Vec<u8> = (0..LEN).map(|at| (at / 4096 + 1) as u8).collect();
    let mut refused = 0;
    for engine in ["evergreen", "garden"] {
        for mode in MODES {
            let case = format!("{engine} {mode:?}");
            let lab = Lab::new();
            let disk = FailingDisk::new(96, MUCH);
            lab.run(["fs", "mkfs", engine, &disk.device, "--zeroed", "--quiet"]).good();
            let mounted = mount(&lab, &disk.device, mode);
            let mut confirmed = Vec::new();
            fs::write(lab.path("mnt/old"), &data).unwrap();
            fs::File::open(lab.path("mnt/old")).unwrap().sync_all().unwrap();
            confirmed.push("old".to_owned());
            disk.resize(LITTLE);
            // Until the device fails, and once more.
            let mut failed = 0;
            'until: for round in 0..100 {
                for (way, put) in WAYS {
                    let name = format!("{way}-{round}");
                    let path = lab.path("mnt").join(&name);
                    match put(&path, &data) {
                        // A close alone promises nothing of a device's later error.
                        Ok(()) if way == "close" => {}
                        Ok(()) => confirmed.push(name),
                        Err(error) => {
                            assert!(is_of_device(&error), "{case}: {way}: {error}");
                            refused += 1;
                            failed += 1;
                        }
                    }
                    if failed == 2 * WAYS.len() {
                        break 'until;
                    }
                }
            }
            assert!(failed > 0, "{case}: the device did not fail");
            // The messages of the program are about data that was not synced.
            mounted.end();
            disk.resize(MUCH);
            let mounted = mount(&lab, &disk.device, &[]);
            for name in &confirmed {
                let kept =
                    fs::read(lab.path("mnt").join(name)).unwrap_or_else(|error| panic!("{case}: {name}: {error}"));
                assert!(kept == data, "{case}: {name} was confirmed, but {} other bytes are kept", kept.len());
            }
            // It works again.
            let mut file = fs::File::create(lab.path("mnt/new")).unwrap();
            file.write_all(&data).and_then(|()| file.sync_all()).unwrap();
            drop(file);
            mounted.unmount();
            lab.run(["fs", "check", &disk.device]).good();
        }
    }
    println!("{refused} calls failed");
}
