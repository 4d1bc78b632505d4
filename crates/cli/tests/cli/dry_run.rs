//! A dry run refuses what the run refuses before its first volume, in the same words.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use senesce_testkit::{check_printed, root_or_skip};

use super::{
    bench::aged_image,
    disk::{Disk, volume},
    lab::{Lab, SINGLE, SMALL, without_progress},
};

/// A plan that cannot run: the fault, the text to replace in the smaller plan, its replacement, and
/// the text of the refusal.
struct Bad {
    what: &'static str,
    from: &'static str,
    to: &'static str,
    code: i32,
    says: &'static [&'static str],
}

const SOURCE: &str = "synthetic = { model = \"linux-like\", files = 500, commits = 8 }";

const BAD: &[Bad] = &[
    Bad {
        what: "a key that the edition does not use",
        from: "[volumes]",
        to: "[volumes]\nfull = \"330MiB\"",
        code: 2,
        says: &["volumes.full: has no effect: edition = \"single\""],
    },
    Bad {
        what: "an unknown device of images",
        from: "[volumes]",
        to: "[volumes]\ndevice = \"foo\"",
        code: 2,
        says: &["volumes.device: names \"foo\", which is neither built in (", "No such file"],
    },
    Bad {
        what: "an unknown device of models",
        from: "every = 4",
        to: "every = 4\ndevices = [\"foo\"]",
        code: 2,
        says: &["measure.devices: names \"foo\""],
    },
    Bad {
        what: "a description of a device that is none",
        from: "[volumes]",
        to: "[volumes]\ndevice = \"LAB/plan.toml\"",
        code: 2,
        says: &["volumes.device: ", "plan.toml"],
    },
    Bad {
        what: "a missing repository",
        from: SOURCE,
        to: "repo = \"absent\"",
        code: 2,
        says: &["no repository at absent"],
    },
    Bad { what: "a missing trace", from: SOURCE, to: "trace = \"absent.xz\"", code: 2, says: &["absent.xz"] },
    Bad {
        what: "a volume that is too small for its file system",
        from: "empty = \"64MiB\"",
        to: "empty = \"1MiB\"",
        code: 2,
        says: &["volumes.empty, ext4: "],
    },
    Bad {
        what: "a volume that is too small for the first state",
        from: "empty = \"64MiB\"",
        to: "empty = \"8MiB\"",
        code: 2,
        says: &["volumes.empty, ext4: it has 8 MiB, which is too small"],
    },
    Bad {
        what: "a missing directory for images",
        from: "dir = \"MEMORY\"",
        to: "dir = \"LAB/absent\"",
        code: 2,
        says: &["volumes.dir: names ", "No such file"],
    },
    Bad {
        what: "images in memory on a disk",
        from: "dir = \"MEMORY\"",
        to: "dir = \"LAB\"",
        code: 3,
        says: &["is not on tmpfs"],
    },
    Bad {
        what: "images of a disk in memory",
        from: "backend = \"memory\"\n",
        to: "",
        code: 3,
        says: &["is on tmpfs", "no read would be cold", "volumes.backend = \"memory\""],
    },
    Bad {
        what: "too little space",
        from: "empty = \"64MiB\"\nunaged = \"64MiB\"\nbackend = \"memory\"\ndir = \"MEMORY\"",
        to: "empty = \"64MiB\"\nunaged = \"64MiB\"\ndir = \"/proc\"",
        code: 3,
        says: &["/proc has 0 B free, and "],
    },
    Bad {
        what: "a missing block device",
        from: "empty = \"64MiB\"",
        to: "empty = { device = \"/dev/absent\" }",
        code: 2,
        says: &["volumes.empty: names \"/dev/absent\", which cannot be used"],
    },
    Bad {
        what: "a file as a block device",
        from: "empty = \"64MiB\"",
        to: "empty = { device = \"LAB/plan.toml\" }",
        code: 2,
        says: &["plan.toml is not a block device"],
    },
];

/// Workloads whose parameters are checked when they are opened.
const BAD_WORKLOADS: &[(&str, &str, &str)] = &[
    ("an unknown profile", "kind = \"profile\"\n[workload.profile]\nprofile = \"nobody\"", "nobody"),
    ("a parameter out of its range", "kind = \"fsfb\"\n[workload.fsfb]\nfill_percent = 100", "fill_percent"),
    ("a missing log", "kind = \"replay\"\n[workload.replay]\nlog = \"absent.oplog\"", "absent.oplog"),
];

#[test]
fn dry_run_and_run_refuse_the_same_plans() {
    let lab = Lab::new();
    let root = root_or_skip("runs, not their previews");
    let both = |what: &str, code: Option<i32>, says: &[&str]| {
        let dry = lab.run(["run", "plan.toml", "--out", "out", "--dry-run"]);
        println!("{what}: {}", dry.stderr);
        dry.refused(code.unwrap_or(dry.code), says);
        assert!(dry.code != 0 && dry.stdout.is_empty(), "{what}: {}", dry.stdout);
        if root {
            let run = lab.run(["run", "plan.toml", "--out", "out"]);
            assert_eq!((run.code, without_progress(&run.stderr)), (dry.code, dry.stderr), "{what}");
            assert!(!lab.path("out").exists(), "{what}: what cannot begin leaves nothing");
        }
        lab.assert_nothing_left();
    };
    for bad in BAD {
        assert!(SINGLE.contains(bad.from), "{}", bad.what);
        lab.plan(&SINGLE.replacen(bad.from, bad.to, 1));
        both(bad.what, Some(bad.code), bad.says);
    }
    for (what, workload, says) in BAD_WORKLOADS {
        let history = SINGLE.find("[history]").unwrap()..SINGLE.find("[workload]").unwrap();
        let text = SINGLE.replace(&SINGLE[history], "").replace("edition = \"single\"", workload);
        lab.plan(&text);
        both(what, None, &[says]);
    }
    lab.plan(&SMALL.replace("34MiB", "8MiB"));
    both("a full volume without room for a copy", Some(2), &["volumes.full, ext4: it has 8 MiB, which is too small"]);
}

#[test]
fn both_refuse_an_unknown_device_option() {
    let lab = Lab::new();
    lab.plan(SINGLE);
    let says = ["volumes.device: names \"foo\", which is neither built in ("];
    lab.run(["run", "plan.toml", "--device", "foo", "--dry-run"]).refused(2, &says);
    if root_or_skip("a run, not its preview") {
        lab.run(["run", "plan.toml", "--device", "foo", "--out", "out"]).refused(2, &says);
    }
    fs::create_dir(lab.path("held")).unwrap();
    fs::write(lab.path("held/file"), "x").unwrap();
    lab.run(["run", "plan.toml", "--out", "held", "--dry-run"]).refused(2, &["held is not empty"]);
    lab.run(["run", "plan.toml", "--dry-run"]).good();
}

#[test]
fn both_refuse_devices_that_hold_data() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    let (signed, small) = (Disk::new(&lab.path("signed"), 64), Disk::new(&lab.path("small"), 9));
    signed.format_ext4();
    for (disk, code, says) in [(&signed, 3, " holds an ext2, ext3 or ext4 file system"), (&small, 2, "has 9 MiB")] {
        lab.plan(&SINGLE.replace("empty = \"64MiB\"", &format!("empty = {{ device = {:?} }}", disk.device)));
        let dry = lab.run(["run", "plan.toml", "--out", "out", "--dry-run"]);
        dry.refused(code, &[&disk.device, says]);
        let run = lab.run(["run", "plan.toml", "--out", "out"]);
        assert_eq!((run.code, without_progress(&run.stderr)), (dry.code, dry.stderr));
    }
}

/// All names below a directory, with the contents of files.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().is_dir() {
            true => {
                found.extend(contents(&path));
                found.insert(path, None);
            }
            false => {
                let bytes = fs::read(&path).unwrap();
                found.insert(path, Some(bytes));
            }
        }
    }
    found
}

/// Runs a preview, which must write nothing, and returns its stdout.
#[track_caller]
pub(super) fn preview(lab: &Lab, words: &[&str]) -> String {
    let before = contents(&lab.path("."));
    let done = lab.run(words).good();
    assert!(contents(&lab.path(".")) == before, "{words:?} wrote something");
    done.stdout
}

/// A preview refuses in the words of the command itself, and writes nothing.
#[track_caller]
pub(super) fn both_refuse(lab: &Lab, words: &[&str], code: i32, says: &[&str]) {
    let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let quiet = |more: &[&str]| lab.run([&words[..at], &["--quiet"], more, &words[at..]].concat());
    let real = quiet(&[]);
    real.refused(code, says);
    // The command itself may have made the list of runs.
    let before = contents(&lab.path("."));
    let dry = quiet(&["--dry-run"]);
    assert_eq!((dry.code, dry.stderr), (real.code, without_progress(&real.stderr)), "{words:?}");
    assert!(contents(&lab.path(".")) == before, "{words:?} wrote something");
}

#[test]
fn previews_of_files_write_nothing() {
    let lab = Lab::new();
    fs::create_dir(lab.path("tree")).unwrap();
    fs::write(lab.path("tree/file"), "x").unwrap();
    fs::write(lab.path("zeros"), vec![0; 1 << 20]).unwrap();
    fs::File::create(lab.path("holes")).unwrap().set_len(2 << 20).unwrap();
    fs::write(lab.path("trace"), "7 mkdir(\"d\", 0777) = 0\n7 mkdir(\"d/e\", 0777) = 0\n").unwrap();
    fs::write(lab.path("cut"), "7 mkdir(\"d\", 0777) = 0\n7 mkdir(\n").unwrap();

    let said = preview(&lab, &["synth", "h.git", "--files", "500", "--commits", "3", "--dry-run"]);
    assert!(said.contains("500 files and 3 more would be written"), "{said}");
    both_refuse(&lab, &["synth", "tree"], 2, &["tree exists already"]);
    both_refuse(&lab, &["synth", "nowhere/h.git"], 2, &["cannot make nowhere/h.git"]);

    let said = preview(&lab, &["image", "save", "zeros", "c", "--dry-run"]);
    assert!(said.contains("1 MiB would be saved in c"), "{said}");
    both_refuse(&lab, &["image", "save", "zeros", "tree/file"], 2, &["exists already"]);
    both_refuse(&lab, &["image", "save", "tree", "c"], 2, &["neither an image nor a device"]);
    both_refuse(&lab, &["image", "save", "nowhere.img", "c"], 2, &["nowhere.img"]);

    let said = preview(&lab, &["profile", "capture", "tree", "--out", "p.toml", "--dry-run"]);
    assert!(said.contains("the files of tree would be counted, and their profile written to p.toml"), "{said}");
    both_refuse(&lab, &["profile", "capture", "nowhere", "--out", "p.toml"], 2, &["nowhere"]);
    both_refuse(&lab, &["profile", "capture", "tree", "--like", "missing"], 2, &["no profile and no file \"missing\""]);
    both_refuse(&lab, &["profile", "capture", "tree", "--out", "tree/file"], 2, &["exists already"]);
    let said = preview(&lab, &["profile", "merge", "agrawal", "agrawal", "--out", "p.toml", "--dry-run"]);
    assert!(said.contains("profile merged of 2 profiles would be written to p.toml"), "{said}");
    both_refuse(&lab, &["profile", "merge", "agrawal", "missing", "--out", "p.toml"], 2, &["\"missing\""]);
    both_refuse(&lab, &["profile", "merge", "agrawal", "agrawal", "--out", "tree/file"], 2, &["exists already"]);

    let calibrate = ["device", "calibrate", "zeros", "--out", "d.toml", "--base", "nvme"];
    let said = preview(&lab, &[&calibrate[..], &["--dry-run"]].concat());
    assert!(said.contains("zeros would be read, and its description written to d.toml"), "{said}");
    for (path, out, base, says) in [
        ("nowhere", "d.toml", "nvme", "nowhere"),
        ("zeros", "tree/file", "nvme", "exists already"),
        ("zeros", "d.toml", "missing", "missing"),
        ("tree", "d.toml", "nvme", "tree"),
        ("tree/file", "d.toml", "nvme", "a calibration needs at least 1 MiB"),
        ("holes", "d.toml", "nvme", "holes"),
    ] {
        both_refuse(&lab, &["device", "calibrate", path, "--out", out, "--base", base], 2, &[says]);
    }

    let import = |trace| ["record", "--import-strace", trace, "--on", "/work", "--log", "l", "--dry-run"];
    let said = preview(&lab, &import("trace"));
    assert!(said.contains("would have 2 operations from 2 lines"), "{said}");
    both_refuse(&lab, &import("cut")[..7], 2, &["line 2 of the trace is malformed"]);
    both_refuse(&lab, &import("nowhere")[..7], 2, &["nowhere"]);
    lab.assert_nothing_left();
}

#[test]
fn previews_of_mounts_write_nothing() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    for dir in ["tree", "point", "full"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    fs::write(lab.path("tree/file"), "x").unwrap();
    fs::write(lab.path("full/file"), "x").unwrap();
    let record = ["record", "--on", "tree", "--mount", "point", "--log", "l"];
    let said = preview(&lab, &[&record[..], &["--overhead", "--dry-run", "--", "touch", "never"]].concat());
    assert!(said.contains("tree would be recorded at point; nothing was written"), "{said}");
    let full = ["record", "--on", "tree", "--mount", "full", "--log", "l"];
    both_refuse(&lab, &full, 2, &["full is not empty"]);
    both_refuse(&lab, &["record", "--on", "tree", "--mount", "point", "--log", "tree/l"], 2, &["inside the recorded"]);

    let image = aged_image(&lab, "ext4", 64);
    lab.run(["image", "save", &image, "aged.si"]).good();
    let bench = ["bench", "--aged", "aged.si", "--aged", &image, "--unaged", "--dir", "."];
    let said = preview(&lab, &[&bench[..], &["--dry-run", "--", "touch", "never"]].concat());
    assert!(said.contains("ext4 aged.si (aged, unaged): aged.si, 64 MiB"), "{said}");
    both_refuse(&lab, &[&bench[..], &["--keep-state", "--", "true"]].concat(), 2, &["the same UUID"]);
    both_refuse(&lab, &[&bench[..], &["--", "no-such-program"]].concat(), 2, &["cannot run no-such-program"]);
    fs::write(lab.path("zeros"), vec![0; 1 << 20]).unwrap();
    both_refuse(&lab, &["bench", "--aged", "zeros", "--dir", ".", "--", "true"], 2, &["no known file system"]);
    let trim = ["image", "save", "zeros", "c", "--trim"];
    both_refuse(&lab, &trim, 2, &["only those are trimmed"]);

    lab.plan(SINGLE);
    lab.run(["run", "plan.toml", "--out", "out", "--quiet"]).good();
    let said = preview(&lab, &["report", "out", "--figures", "figures", "--dry-run"]);
    assert!(said.contains("out/report.html would be replaced") && said.contains("into figures"), "{said}");
    let out = &["bundle", "out", "--out", "b"];
    let said = preview(&lab, &[&out[..], &["--dry-run"]].concat());
    assert!(said.contains(" files of out, ") && said.ends_with(" would be written to b\n"), "{said}");
    both_refuse(&lab, &["bundle", "out", "--out", "tree/file"], 2, &["exists already"]);
    both_refuse(&lab, &["bundle", "tree", "--out", "b"], 2, &["no plan.toml"]);
    lab.run(out).good();
    let said = preview(&lab, &["rerun", "b", "--out", "again", "--dry-run"]);
    assert!(said.contains("plan single") && said.contains("steps of an arm:"), "{said}");
    both_refuse(&lab, &["rerun", "b", "--out", "tree"], 2, &["tree is not empty"]);
    both_refuse(&lab, &["rerun", "b", "--out", "again", "--repo", "tree"], 2, &["replays no repository"]);
    let said = preview(&lab, &["run", "plan.toml", "--dry-run"]);
    let took = said.split_once("an earlier run of this plan took ").and_then(|(_, rest)| rest.strip_suffix(": out\n"));
    assert!(took.is_some_and(|took| [" s", " min", " h"].iter().any(|unit| took.ends_with(unit))), "{said}");
    let said = preview(&lab, &["run", "plan.toml", "--seed", "8", "--dry-run"]);
    assert!(!said.contains("an earlier run"), "another plan has another duration: {said}");
    lab.run(["report", "out", "--figures", "figures"]).good();
    check_printed(&fs::read_to_string(lab.path("figures/figures.json")).unwrap());
    lab.run(["report", "out", "--figures", "figures"]).good();
    lab.run(["run", "plan.toml", "--out", "second", "--quiet"]).good();
    let said = preview(&lab, &["run", "plan.toml", "--dry-run"]);
    assert!(said.ends_with(": second\n"), "the latest run, not the first name: {said}");
    both_refuse(&lab, &["report", "second", "--figures", "figures"], 2, &["the figures of another run"]);
    for foreign in ["out", "tmp-notes"] {
        fs::create_dir_all(lab.path("tmp-notes")).unwrap();
        fs::write(lab.path("tmp-notes/maps.csv"), "mine").unwrap();
        both_refuse(&lab, &["report", "out", "--figures", foreign], 2, &["has files of another kind"]);
    }
    assert_eq!(fs::read_dir(lab.path("tmp-notes")).unwrap().count(), 1);
    let fsfb =
        "format = \"senesce-plan/1\"\nname = \"b\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n";
    fs::write(lab.path("second/plan.toml"), fsfb).unwrap();
    let said = lab.run(["compare", "out", "second"]).good().stdout;
    assert!(said.starts_with("A was aged by history and B by fsfb: "), "{said}");
    both_refuse(&lab, &["report", "tree"], 2, &["no results"]);
    both_refuse(&lab, &["report", "out", "--baseline", "tree"], 2, &["no results"]);
    both_refuse(&lab, &["report", "out", "--out", "tree"], 2, &["is a directory"]);
    let said = preview(&lab, &["export", "out", "--csv", "all", "--out", "tables", "--dry-run"]);
    assert!(said.starts_with("tables/cells.csv would be written\n"), "{said}");
    both_refuse(&lab, &["export", "out", "--csv", "all", "--out", "tree"], 2, &["has files of another kind"]);
    both_refuse(&lab, &["export", "tree", "--csv", "all", "--out", "tables"], 2, &["no results"]);
    lab.assert_nothing_left();
}

#[test]
fn previews_of_fragmentation_write_nothing() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (_disk, mount) = volume("ext4", &["-b", "4096"], &lab.path("volume"), 64, lab.path("mnt"));
    let path = |name: &str| mount.point.join(name).to_string_lossy().into_owned();
    fs::create_dir(path("tree")).unwrap();
    for number in 0..3u8 {
        fs::write(path(&format!("tree/{number}")), vec![number + 1; 40_000]).unwrap();
    }
    fs::remove_dir(path("lost+found")).unwrap();
    rustix::fs::sync();
    let at = |words: &[&str]| {
        let before = contents(&mount.point);
        let done = lab.run(words);
        assert!(contents(&mount.point) == before, "{words:?} wrote something");
        done
    };
    let said = at(&["fragment", &path("tree/0"), "--extents", "3", "--dry-run"]).good().stdout;
    assert!(said.contains("extents       3 (now: 1)") && said.contains("would be written"), "{said}");
    let said = at(&["fragment", &path("tree"), "--extents", "2", "--dry-run"]).good().stdout;
    assert!(said.contains("3 files of 120 KiB would be written, 0 stay as they are, 0 cannot be cut"), "{said}");
    let said = at(&["fragment", &mount.point.to_string_lossy(), "--free-space", "64KiB:100%", "--dry-run"]).good();
    assert!(said.stdout.contains("would stay free"), "{}", said.stdout);
    for (words, code, says) in [
        (["fragment", &path("tree/0"), "--extents", "11"], 2, "11 extents are not possible: the file has 10 block(s)"),
        (["fragment", &path("none"), "--extents", "2"], 2, "no such file"),
    ] {
        at(&words).refused(code, &[says]);
        at(&[&words[..], &["--dry-run"]].concat()).refused(code, &[says]);
    }
    let big = ["fragment", &path("big"), "--extents", "2", "--size", "8GiB"];
    at(&big).refused(3, &["free space"]);
    at(&[&big[..], &["--dry-run"]].concat()).refused(3, &["free space"]);

    // A file in use is left, counted and named, and the others are cut.
    let user = fs::File::open(path("tree/1")).unwrap();
    rustix::fs::flock(&user, rustix::fs::FlockOperation::LockShared).unwrap();
    let busy = ["fragment", &path("tree"), "--extents", "2"];
    let dry = at(&[&busy[..], &["--dry-run"]].concat());
    dry.refused(1, &["tree/1 is in use"]);
    assert!(dry.stdout.contains("2 files of 80 KiB would be written") && dry.stdout.contains("1 cannot be cut"));
    let real = lab.run(busy);
    real.refused(1, &["not reached", "tree/1 is in use"]);
    assert!(real.stdout.contains("2 files cut, 1 left as they were"), "{}", real.stdout);
}

#[test]
fn mkfs_options_are_tried() {
    let lab = Lab::new();
    let dry = |kind: &str, options: &str| {
        let kind = format!("kind = \"{kind}\"\nmkfs = {options}");
        let size = SINGLE.replace("\"64MiB\"", "\"400MiB\"").replace("kind = \"ext4\"", &kind);
        lab.plan(&size);
        lab.run(["run", "plan.toml", "--out", "out", "--dry-run"])
    };
    for (kind, good, bad, says) in [
        ("ext4", "[\"-I\", \"256\"]", "[\"-I\", \"64\"]", "inode size"),
        ("xfs", "[\"-i\", \"size=1024\"]", "[\"-i\", \"size=100\"]", "mkfs.xfs refuses `-i size=100`"),
        ("btrfs", "[\"-n\", \"16384\"]", "[\"-n\", \"12345\"]", "12345"),
    ] {
        let tool = kind.parse::<senesce_volume::FileSystemKind>().unwrap().mkfs_tool();
        if which(tool) {
            dry(kind, good).good();
            dry(kind, bad).refused(2, &["file_system.mkfs: ", " refuses `", "for the empty volume of ", says]);
        }
    }
    if which("mkfs.f2fs") {
        let said = dry("f2fs", "[\"-i\"]");
        // The kernel of the machine may not know F2FS.
        assert!(said.code != 0 || said.stdout.contains("not tried with the options of f2fs"), "{}", said.stdout);
    }
    assert!(!lab.path("out").exists());
    lab.assert_nothing_left();
}

/// The second arm fails before the first volume is made, and not after the first arm has run.
#[test]
fn a_run_tries_the_mkfs_options_of_all_arms_first() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let two = "kind = \"ext4\"\n[[file_system]]\nkind = \"ext4\"\nname = \"odd\"\nmkfs = [\"-I\", \"64\"]";
    lab.plan(&SINGLE.replace("kind = \"ext4\"", two));
    let words = ["plan.toml", "--out", "out"];
    let says = "mkfs.ext4 refuses `-I 64` for the empty volume of odd (64 MiB): ";
    let refused = lab.run([&["run"][..], &words].concat());
    refused.refused(2, &["file_system.mkfs: ", says, "inode size"]);
    assert!(!refused.stderr.contains("Usage"), "{}", refused.stderr);
    assert!(!lab.path("out/arms/ext4").exists(), "an arm has run");
    lab.assert_nothing_left();
}

#[test]
fn a_gate_changes_its_plan_as_a_run_does() {
    let lab = Lab::new();
    lab.plan(SINGLE);
    let dry = |more: &[&str]| lab.run([&["gate", "plan.toml", "-s", "b.json", "--dry-run"][..], more].concat());
    let (plain, more) = (dry(&[]).good().stdout, dry(&["--runs", "7", "--seed", "3"]).good().stdout);
    assert_ne!(plain, more);
    dry(&["--seed", "x"]).refused(2, &["--seed"]);
}

/// Whether a tool of the system is installed.
fn which(tool: &str) -> bool {
    ["/usr/sbin", "/sbin", "/usr/bin"].iter().any(|dir| std::path::Path::new(dir).join(tool).exists())
}
