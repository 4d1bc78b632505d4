//! Helpers of the benchmarks of profile-driven aging: settings, and file systems in memory.

use std::{env, path::PathBuf};

use senesce_testkit::{Volume, VolumeOptions};

/// A setting of a benchmark, or its default.
pub fn setting(name: &str, default: &str) -> String {
    env::var(format!("SENESCE_BENCH_{name}")).unwrap_or_else(|_| default.to_owned())
}

/// A numeric setting, or its default.
pub fn number<T: std::str::FromStr>(name: &str, default: &str) -> T {
    let text = setting(name, default);
    text.parse().unwrap_or_else(|_| panic!("SENESCE_BENCH_{name}={text} is no number"))
}

/// A file system in memory. The mount options are those of experiments, except for the commit
/// interval.
pub fn volume(kind: &str) -> Volume {
    let mkfs: &[&str] = if kind == "ext4" { &["-m", "0"] } else { &[] };
    let mount = if kind == "xfs" { "noatime,logbsize=256k" } else { "noatime,commit=300" };
    let dir = PathBuf::from(setting("DIR", "/dev/shm"));
    let options = VolumeOptions::new(kind, number("MIB", "1024"));
    Volume::with(&VolumeOptions { mkfs, mount, image_in: Some(&dir), ..options })
}
