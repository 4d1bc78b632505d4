//! Cold blocks of a garden in objects, as a user has them.

use std::{fs, io};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{disk::must, garden_mount::mount, lab::Lab};

const BLOCK: usize = 4096;

fn contents(blocks: usize, seed: u8) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| (at / BLOCK) as u8 ^ (at / BLOCK / 256) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

fn tier(lab: &Lab, garden: &str, objects: &str, more: &[&str]) -> Value {
    let mut words = vec!["fs", "tier", garden, "--objects", objects, "--age", "0", "--json"];
    words.extend(more);
    serde_json::from_str(&lab.run(words).good().stdout).unwrap()
}

#[test]
fn cold_files_move_to_a_directory() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    let at = |name: &str| lab.path(format!("mnt/{name}"));
    let mounted = mount(&lab, &[]);
    fs::write(at("cold"), contents(1500, 1)).unwrap();
    fs::write(at("small"), b"in its inode").unwrap();
    mounted.unmount();

    let told = tier(&lab, "g", "o", &[]);
    assert_eq!((&told["tiered_blocks"], &told["objects_put"]), (&1500.into(), &2.into()), "{told}");
    // Pointers that still name the drives, where the blocks lie until they are written over, are
    // put right.
    lab.run(["fs", "clean", "g"]).good();
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(
        told.contains("cold: 5.86 MiB in 2 objects, 5.86 MiB of which is wanted; 0 objects to be deleted"),
        "{told}"
    );
    let told = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(told.contains("1500 cold blocks in 2 objects, which were not read"), "{told}");
    let told = lab.run(["fs", "check", "g", "--objects", "o"]).good().stdout;
    assert!(told.contains("clean") && told.contains("1500 cold blocks in 2 objects\n"), "{told}");
    let told = lab.run(["fs", "dump", "g", "objects"]).good().stdout;
    assert!(told.contains("1004") && told.contains("496"), "{told}");

    let mounted = mount(&lab, &[]);
    assert_eq!(fs::read(at("small")).unwrap(), b"in its inode");
    assert_eq!(fs::metadata(at("cold")).unwrap().len() as usize, 1500 * BLOCK);
    assert_eq!(fs::read(at("cold")).unwrap_err().kind(), io::Error::from_raw_os_error(5).kind());
    mounted.unmount();
    let mounted = mount(&lab, &["--objects", "o"]);
    assert!(fs::read(at("cold")).unwrap() == contents(1500, 1));
    // Of the first object little is left, of the second nothing.
    fs::OpenOptions::new().write(true).open(at("cold")).unwrap().set_len(100 * BLOCK as u64).unwrap();
    mounted.unmount();
    let copy =
        |from: &str, to: &str| must("cp", &["-r", &lab.path(from).to_string_lossy(), &lab.path(to).to_string_lossy()]);
    copy("g", "kept");
    copy("o", "kept-objects");
    let told = tier(&lab, "kept", "kept-objects", &[]);
    assert_eq!((&told["objects_deleted"], &told["objects_written_anew"]), (&1.into(), &0.into()), "{told}");
    let told = tier(&lab, "g", "o", &["--prices", "s3"]);
    assert_eq!((&told["objects_written_anew"], &told["wanted_cold_blocks"]), (&1.into(), &100.into()), "{told}");
    assert_eq!(told["objects_deleted"], 2, "{told}");
    lab.run(["fs", "check", "g", "--objects", "o"]).good();

    lab.run(["fs", "check", "g", "--objects", "nowhere"]).refused(2, &["no directory nowhere", "fs tier"]);
    for _ in 0..2 {
        lab.run(["fs", "tier", "g", "--objects", "other"]).refused(2, &["none of their objects are in other"]);
    }
    fs::create_dir(lab.path("empty")).unwrap();
    lab.run(["fs", "tier", "g", "--objects", "empty"])
        .refused(1, &["which holds 100 cold blocks", "nothing was put or deleted"]);
    // Another garden of the same identity leaves them alone.
    lab.run(["fs", "mkfs", "garden", "twin", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    lab.run(["fs", "tier", "twin", "--objects", "o"])
        .refused(1, &["another garden of its identity", "nothing was put or deleted"]);
    lab.run(["fs", "check", "g", "--objects", "o"]).good();
    let object = fs::read_dir(lab.path("o")).unwrap().next().unwrap().unwrap().path();
    let object = fs::read_dir(object).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&object).unwrap();
    bytes[20_000] ^= 1;
    fs::write(&object, bytes).unwrap();
    lab.run(["fs", "check", "g", "--objects", "o"]).refused(1, &["is damaged"]);
}
