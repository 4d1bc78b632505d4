//! A dry run refuses what the run refuses before its first volume, in the same words.

use std::fs;

use senesce_testkit::root_or_skip;

use super::{
    disk::Disk,
    lab::{Lab, SINGLE, SMALL},
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
        says: &["volumes.empty, ext4: it has 8.00 MiB; "],
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
        says: &["is on tmpfs", "no measurement would be cold", "volumes.backend = \"memory\""],
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
            assert_eq!((run.code, run.stderr), (dry.code, dry.stderr), "{what}");
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
    both("a full volume without room for a copy", Some(2), &["volumes.full, ext4: it has 8.00 MiB; "]);
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
    lab.run(["run", "plan.toml", "--out", "held", "--dry-run"]).refused(2, &["held\": is not empty"]);
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
    for (disk, code, says) in [(&signed, 3, " holds an ext2, ext3 or ext4 file system"), (&small, 2, "has 9.00 MiB")] {
        lab.plan(&SINGLE.replace("empty = \"64MiB\"", &format!("empty = {{ device = {:?} }}", disk.device)));
        let dry = lab.run(["run", "plan.toml", "--out", "out", "--dry-run"]);
        dry.refused(code, &[&disk.device, says]);
        let run = lab.run(["run", "plan.toml", "--out", "out"]);
        assert_eq!((run.code, run.stderr), (dry.code, dry.stderr));
    }
}
