//! Compares the gain of `pieces` with that of rewriting a whole file, in virtual time.

use std::{
    fs::{self, File},
    io::Write,
};

use senesce_core::Rng;
use senesce_testkit::{root_or_skip, unmount_patiently};
use senesce_vdisk::Server;
use serde_json::Value;

use super::{
    super::{
        disk::{Disk, Mount, must},
        lab::Lab,
    },
    case::sync,
    power::start_disk,
    seed,
};

const DISK_MIB: u64 = 768;
const FILE_MIB: usize = 190;
const FREE: [&str; 6] = ["--free-space", "4KiB:5%,16KiB:10%,64KiB:15%,4MiB:70%", "--free", "250MiB", "--within", "0.3"];

/// Seconds of a cold read of the large file.
fn read(lab: &Lab, disk: &Disk, server: &mut Server) -> f64 {
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    server.drop_device_cache().unwrap();
    server.mark("read").unwrap();
    std::io::copy(&mut File::open(mount.point.join("tree/large")).unwrap(), &mut std::io::sink()).unwrap();
    let phase = server.mark("after").unwrap().phase;
    assert!(unmount_patiently(&mount.point));
    phase.totals.elapsed().0 as f64 / 1e9
}

/// Cures one file on a new volume. Returns the seconds before and after, and the MiB written.
fn cure(kind: &str, strategy: &str) -> (f64, f64, f64) {
    let lab = Lab::new();
    let (mut server, disk) = start_disk(&lab, DISK_MIB, "hdd-7200", None);
    must(&format!("mkfs.{kind}"), &["-q", &disk.device]);
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let root = mount.point.clone();
    let point = root.to_string_lossy().into_owned();
    lab.run([&["--quiet", "fragment", &point][..], &FREE].concat()).good();
    fs::create_dir(root.join("tree")).unwrap();
    let mut file = File::create(root.join("tree/large")).unwrap();
    let mut rng = Rng::for_purpose(seed(), "contents");
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..FILE_MIB {
        rng.fill(&mut bytes);
        file.write_all(&bytes).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    fs::remove_file(root.join("senesce-free-space.filler")).unwrap();
    sync(&root);
    assert!(unmount_patiently(&root));
    drop(mount);
    let before = read(&lab, &disk, &mut server);
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let tree = root.join("tree").to_string_lossy().into_owned();
    let args = ["--quiet", "defrag", &tree, "--force", "--json", "--device", "hdd-7200", "--strategy", strategy];
    let report: Value = serde_json::from_str(&lab.run(args).good().stdout).unwrap();
    assert!(unmount_patiently(&root));
    drop(mount);
    let after = read(&lab, &disk, &mut server);
    drop(disk);
    server.quit().unwrap();
    (before, after, report["applied"]["written_bytes"].as_f64().unwrap() / f64::from(1 << 20))
}

#[test]
#[ignore = "takes long: .ci/nightly runs it"]
fn pieces_reach_most_of_the_gain() {
    if !root_or_skip("FUSE and mounting") {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let whole = cure(kind, "order");
        let pieces = cure(kind, "pieces");
        let share = (pieces.0 - pieces.1) / (whole.0 - whole.1);
        println!("{kind}: whole {whole:?}, pieces {pieces:?}: {:.1}% of the gain", share * 100.0);
        assert!(pieces.2 <= 0.51 * FILE_MIB as f64, "{kind}: {pieces:?}");
        assert!(share > 0.8, "{kind}: {share}");
    }
}
