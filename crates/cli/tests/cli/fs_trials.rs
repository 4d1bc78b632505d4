//! Dry runs of changes to a garden: the checks and figures of the real command, and no change.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
};

use senesce_testkit::root_or_skip;

use super::{garden_mount::start, lab::Lab};

#[track_caller]
fn run(lab: &Lab, words: &str) -> String {
    lab.run(words.split(' ')).good().stdout
}

/// The hashes of all files in a directory.
fn contents(dir: &Path) -> BTreeMap<String, blake3::Hash> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let hash = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), blake3::hash(&fs::read(entry.path()).unwrap()))
    };
    entries.map(hash).collect()
}

/// The report of a dry run, which changes nothing.
#[track_caller]
fn try_out(lab: &Lab, words: &str) -> String {
    let before = contents(&lab.path("g"));
    let said = run(lab, &format!("-q {words} --dry-run"));
    assert!(contents(&lab.path("g")) == before, "{words} wrote something");
    said
}

/// The report of a dry run is that of the command which follows.
#[track_caller]
fn predicts(lab: &Lab, words: &str) -> String {
    let said = try_out(lab, words);
    let (first, report) = said.split_once('\n').unwrap();
    assert!(first.contains("dry run on a copy in memory, nothing was changed"), "{said}");
    assert_eq!(report, run(lab, &format!("-q {words}")), "{words}");
    report.to_owned()
}

/// A garden with the volumes `main` and `home`, and a snapshot of `main`.
fn garden() -> Lab {
    let lab = Lab::new();
    run(&lab, "fs mkfs garden g --size 64MiB --data-drives 3 --seed 7");
    run(&lab, "fs volume create g home");
    run(&lab, "fs snapshot create g main monday");
    lab
}

/// Commands, and a part of what their dry runs print.
const WOULD: &[(&str, &str)] = &[
    ("fs volume create g new --size 8MiB", "volume new would be made, 8 MiB for "),
    ("fs volume delete g home", "volume home would be deleted: "),
    ("fs snapshot create g home monday", "snapshot monday of volume home would be made: "),
    ("fs snapshot delete g main monday", "snapshot monday of volume main would be deleted: "),
    (
        "fs snapshot restore g main monday",
        "volume main would be set back to snapshot monday, and lose all later changes that no other snapshot has: ",
    ),
    ("fs clone g main monday copy", "volume copy would be made, a clone of snapshot monday of volume main; "),
];

/// Commands that are refused, and a part of the error.
const WRONG: &[(&str, &str)] = &[
    ("fs volume create g home", "a volume home exists"),
    ("fs snapshot create g home LONG", "the name of a snapshot has 300 bytes; 1 to "),
    ("fs volume create g odd --compress=5KiB", "not a unit of compression"),
    ("fs volume delete g none", "no volume none"),
    ("fs volume delete g main", "volume main has 1 snapshot(s)"),
    ("fs snapshot create g main monday", "a snapshot monday exists"),
    ("fs snapshot create g none monday", "no volume none"),
    ("fs snapshot delete g main none", "no snapshot none"),
    ("fs snapshot restore g main none", "no snapshot none"),
    ("fs clone g main none copy", "no snapshot none"),
    ("fs clone g main monday home", "a volume home exists"),
    ("fs dedup g none", "no volume none"),
    ("fs recompact g none", "no volume none"),
    ("fs clean g --from 99999", "after allocation area 99999"),
    ("fs scrub e.img", "evergreen"),
    ("fs clone e.img main monday copy", "no snapshots"),
];

#[test]
fn dry_runs_of_gardens_change_nothing() {
    let lab = Lab::new();
    let said = run(&lab, "fs mkfs garden g --size 64MiB --data-drives 3 --seed 7 --dry-run");
    assert!(said.contains("would be made; nothing was written") && !lab.path("g").exists(), "{said}");
    let said = run(&lab, "fs mkfs evergreen e.img --size 64MiB --dry-run");
    assert!(said.contains("an evergreen would be made") && !lab.path("e.img").exists(), "{said}");

    let lab = garden();
    lab.run(["fs", "mkfs", "garden", "g", "--dry-run"]).refused(2, &["exists already"]);
    run(&lab, "fs mkfs evergreen e.img --size 64MiB");
    for (words, part) in WOULD {
        let said = try_out(&lab, words);
        assert!(said.contains(part) && said.ends_with("nothing was changed\n"), "{words}: {said}");
    }
    for (words, part) in WRONG {
        let words = words.replace("LONG", &"n".repeat(300));
        let real = lab.run(format!("-q {words}").split(' '));
        assert!(real.code == 1 || real.code == 2, "{words}: {}", real.stderr);
        assert!(real.stderr.contains(part), "{words}: {}", real.stderr);
        let before = contents(&lab.path("g"));
        let dry = lab.run(format!("-q {words} --dry-run").split(' '));
        assert_eq!((dry.code, dry.stderr), (real.code, real.stderr), "{words}");
        assert!(contents(&lab.path("g")) == before, "{words} wrote something");
    }
    lab.run(["fs", "dedup", "g", "--dry-run", "--json"]).refused(2, &["cannot be used with"]);
}

#[test]
fn dry_runs_predict_passes() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    run(&lab, "fs mkfs garden g --size 64MiB --data-drives 3 --seed 7 --compress");
    let mut child = start(&lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]));
    for number in 0..40u8 {
        // Two files have the same contents.
        fs::write(lab.path(format!("mnt/{number}")), vec![number / 2 + 1; 30_000]).unwrap();
    }
    let mut random = vec![0; 400_000];
    blake3::Hasher::new().finalize_xof().fill(&mut random);
    fs::write(lab.path("mnt/random"), random).unwrap();
    (0..40).step_by(3).for_each(|number| fs::remove_file(lab.path(format!("mnt/{number}"))).unwrap());
    senesce_testkit::unmount(&lab.path("mnt"));
    assert!(child.wait().unwrap().success());
    predicts(&lab, "fs recompact g --below 100");
    predicts(&lab, "fs dedup g");
    predicts(&lab, "fs clean g");

    // One block is damaged. Both passes of the dry run find it.
    let image = OpenOptions::new().write(true).open(lab.path("g/drive-01.img")).unwrap();
    let size = image.metadata().unwrap().len();
    (0..64).for_each(|part| image.write_all_at(&[0xa5; 64], size / 128 * part + 65_536).unwrap());
    let scrub = predicts(&lab, "fs scrub g");
    assert!(!scrub.contains(" 0 block(s) and the parity of 0 stripe(s) put right"), "{scrub}");

    let tier = try_out(&lab, "fs tier g --objects cold --age 0");
    assert!(!lab.path("cold").exists(), "{tier}");
    assert_eq!(predicts(&lab, "fs tier g --objects cold --age 0"), tier.split_once('\n').unwrap().1);
    assert!(!tier.contains(": 0 of "), "{tier}");
    // Its blocks are cold now.
    lab.run(["fs", "tier", "g", "--objects", "other", "--dry-run"]).refused(2, &["none of their objects are in other"]);
    lab.run(["fs", "tier", "g", "--objects", "other"]).refused(2, &["none of their objects are in other"]);
    assert!(!lab.path("other").exists());
    assert!(run(&lab, "fs check g --objects cold").contains("clean"));
}

#[test]
fn dry_runs_of_a_mount_work_on_a_copy() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = garden();
    let mut child = start(&lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]));
    fs::write(lab.path("mnt/file"), vec![7; 300_000]).unwrap();
    fs::write(lab.path("mnt/same"), vec![7; 300_000]).unwrap();
    run(&lab, "fs sync mnt");
    // Names and contents only: a consistency point of the mount may change the free space.
    let state = || {
        let lists =
            ["fs volume list g", "fs snapshot list g main", "fs snapshot list g home"].map(|words| run(&lab, words));
        let name = |line: &str| line.split([':', ',', ' ']).take(2).collect::<Vec<_>>().join(" ");
        (lists.concat().lines().map(name).collect::<Vec<_>>(), contents(&lab.path("mnt")))
    };
    let before = state();
    for (words, part) in WOULD.iter().filter(|(words, _)| !words.contains("restore")) {
        let said = run(&lab, &format!("{words} --dry-run"));
        assert!(said.contains(part), "{words}: {said}");
        assert_eq!(state(), before, "{words}");
    }
    for words in ["fs dedup mnt", "fs clean mnt", "fs scrub mnt"] {
        let said = run(&lab, &format!("-q {words} --dry-run"));
        assert!(said.contains("nothing was changed"), "{words}: {said}");
        assert_eq!(state(), before, "{words}");
    }
    let shared = |said: &str| said.split(" blocks shared").next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let would = shared(&run(&lab, "-q fs dedup mnt --dry-run"));
    assert!(would != "0" && would == shared(&run(&lab, "-q fs dedup mnt")), "{would}");
    for words in ["fs volume delete g main", "fs snapshot restore g main monday"] {
        let refused = |more: &str| {
            let done = lab.run(format!("{words}{more}").split(' '));
            done.refused(3, &["it is mounted on "]);
            done.stderr
        };
        assert!(refused(" --dry-run").contains(refused("").trim()), "{words}");
    }
    lab.run("fs tier mnt --objects cold --dry-run".split(' ')).refused(2, &["without a store of objects"]);
    assert_eq!(fs::read(lab.path("mnt/same")).unwrap(), vec![7; 300_000]);
    senesce_testkit::unmount(&lab.path("mnt"));
    assert!(child.wait().unwrap().success());
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}

#[test]
fn dry_runs_of_drives_write_nothing() {
    let lab = garden();
    let both = |words: &str, part: &str| {
        let real = lab.run(words.split(' '));
        real.refused(2, &[part]);
        let dry = lab.run(format!("{words} --dry-run").split(' '));
        assert_eq!((dry.code, dry.stderr), (real.code, real.stderr), "{words}");
    };
    both("fs replace g 1", "drive 1 is not missing");
    both("fs replace g 9", "there is no drive 9");
    assert!(try_out(&lab, "fs rebuild g").contains("no drive is being filled"));
    fs::rename(lab.path("g/drive-01.img"), lab.path("away")).unwrap();
    fs::write(lab.path("letter"), "mine").unwrap();
    fs::write(lab.path("short"), vec![0; 8192]).unwrap();
    both("fs replace g 1 --with letter", "letter");
    both("fs replace g 1 --with g/drive-00.img", "is drive 0 of this garden");
    let short = "fs replace g 1 --with short";
    let (real, dry) = (lab.run(short.split(' ')), lab.run(format!("{short} --dry-run").split(' ')));
    assert!(real.code != 0 && (dry.code, &dry.stderr) == (real.code, &real.stderr), "{}{}", real.stderr, dry.stderr);
    let said = try_out(&lab, "fs replace g 1");
    assert!(said.contains("g/drive-01.img would become drive 1, and would be filled"), "{said}");
    let said = try_out(&lab, "fs replace g 1 --with new.img");
    assert!(said.contains("new.img would become drive 1") && !lab.path("new.img").exists(), "{said}");
    assert_eq!(fs::read(lab.path("letter")).unwrap(), b"mine");
    run(&lab, "-q fs replace g 1");
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
}
