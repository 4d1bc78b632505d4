//! Texts and logs that an attacker made, and their effects on a terminal, a page and the machine.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    sync::Arc,
};

use senesce_core::{RelPath, Seed, is_hazard};
use senesce_image::{Description, SaveOptions, save};
use senesce_oplog::{DoneStep, LogHeader, LogWriter, Op, Outcome, Step};
use senesce_testkit::{found_or_skip, run as must};

use crate::lab::{Done, Lab};

/// A title, a bell, a cleared screen, a line of its own, a reversed text, an 8-bit control, a tag.
const NAME: &str = "a\u{1b}]0;title\u{7}\u{1b}[2J\nsenesce: done\r\u{202e}\u{9b}2J\u{e0041}";

fn assert_clean(done: &Done) {
    for text in [&done.stdout, &done.stderr] {
        let found = text.chars().find(|&character| !matches!(character, '\n' | '\t') && is_hazard(character));
        assert_eq!(found, None, "{text:?}");
        assert!(!text.lines().any(|line| line == "senesce: done"), "{text:?}");
    }
}

fn write_log(lab: &Lab, name: &str, steps: Vec<(String, Vec<Op>)>) {
    let mut writer = LogWriter::create(&lab.path(name), &LogHeader::recorded("test".into(), Seed(1))).unwrap();
    for (number, (label, ops)) in steps.into_iter().enumerate() {
        let step = Step { label, counted: true, root: RelPath::root(), ops: ops.into() };
        let (number, outcome) = (number as u64, Outcome::Done);
        writer.append(&DoneStep { number, step, outcome, contents: vec![], began: None }).unwrap();
    }
    writer.finish().unwrap();
}

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

#[test]
fn container_texts_are_escaped_except_in_json() {
    let lab = Lab::new();
    fs::write(lab.path("volume"), vec![1; 5000]).unwrap();
    let circumstances = BTreeMap::from([(NAME.to_owned(), NAME.to_owned())]);
    let description = Description { file_system: Some(NAME.to_owned()), circumstances };
    let container = lab.path(NAME);
    save(&lab.path("volume"), &container, &description, &SaveOptions::default()).unwrap();
    let listed = lab.run([OsStr::new("image"), OsStr::new("list"), lab.path(".").as_os_str()]).good();
    assert_clean(&listed);
    assert!(listed.stdout.contains(r"a\x1b]0;title\x07\x1b[2J\nsenesce: done\r\u{202e}"), "{}", listed.stdout);
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
    let listed = lab.run(["image", "list", "--json", "."]).good();
    assert_clean(&listed);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["containers"][0]["file_system"], NAME);
    assert_eq!(listed["containers"][0]["circumstances"][NAME], NAME);
    assert_clean(&lab.run([OsStr::new("image"), OsStr::new("verify"), container.as_os_str()]).good());
}

#[test]
fn errors_with_hostile_names_are_escaped() {
    let lab = Lab::new();
    let missing = lab.path(NAME);
    let bytes = OsStr::from_bytes(b"\x1b[2J\xff\x9b");
    for args in [
        vec![OsStr::new("log"), OsStr::new("show"), missing.as_os_str()],
        vec![OsStr::new("image"), OsStr::new("verify"), missing.as_os_str()],
        vec![OsStr::new("inspect"), missing.as_os_str()],
        vec![OsStr::new("inspect"), missing.as_os_str(), missing.as_os_str()],
        vec![OsStr::new("log"), OsStr::new(NAME)],
        vec![OsStr::new("inspect"), bytes],
        vec![OsStr::new("inspect"), bytes, bytes],
    ] {
        let done = lab.run(&args);
        assert!(done.code == 1 || done.code == 2, "{args:?}: {}", done.stderr);
        assert!(!done.stderr.is_empty());
        assert_clean(&done);
    }
}

#[test]
fn labels_and_paths_of_logs_are_escaped() {
    let lab = Lab::new();
    write_log(&lab, "log", vec![(NAME.to_owned(), vec![Op::Rmdir { path: path(NAME) }])]);
    assert_clean(&lab.run(["log", "show", "log"]).good());
    fs::create_dir(lab.path("to")).unwrap();
    let failed = lab.run(["replay", "log", "--on", "to", "--dir", "."]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert_clean(&failed);
}

#[test]
fn names_of_an_inspected_image_are_escaped() {
    let mkfs = ["/sbin/mkfs.ext4", "/usr/sbin/mkfs.ext4"].into_iter().find(|path| fs::exists(path).unwrap_or(false));
    let Some(mkfs) = found_or_skip(mkfs, "mkfs.ext4") else { return };
    let lab = Lab::new();
    fs::create_dir_all(lab.path("src").join(NAME)).unwrap();
    for number in 0..20 {
        fs::write(lab.path("src").join(NAME).join(format!("{number}{NAME}")), vec![number; 100_000]).unwrap();
    }
    let image = lab.path("image").to_string_lossy().into_owned();
    must(mkfs, &["-q", "-F", "-d", &lab.path("src").to_string_lossy(), &image, "24M"]);
    let args = ["inspect", "--offline", "image", "--html", "page.html", "--map", "map.svg"];
    assert_clean(&lab.run(args).good());
    for file in ["page.html", "map.svg"] {
        let text = fs::read_to_string(lab.path(file)).unwrap();
        let found = text.chars().find(|&character| !matches!(character, '\n' | '\t') && is_hazard(character));
        assert_eq!(found, None, "{file}");
    }
    let json = lab.run(["inspect", "--offline", "image", "--json"]).good();
    assert_clean(&json);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["tree"]["files"].as_u64().is_some_and(|files| files >= 20), "{json}");
}

#[test]
fn a_replay_withholds_rights_and_reports_it() {
    let lab = Lab::new();
    let capability = Op::SetXattr {
        path: path("tool"),
        name: Arc::from(&b"security.capability"[..]),
        value: Arc::from(&[1, 0, 0, 2][..]),
    };
    let ops = vec![
        Op::Allocate { path: path("tool"), mode: 0o755, len: 100 },
        Op::Chmod { path: path("tool"), mode: 0o6755 },
        capability,
        Op::Mknod { path: path("disk"), mode: 0o060_666, device: 254 << 8 },
    ];
    write_log(&lab, "log", vec![("hostile".to_owned(), ops)]);
    for threads in ["1", "3"] {
        let to = format!("to-{threads}");
        fs::create_dir(lab.path(&to)).unwrap();
        let done = lab.run(["replay", "log", "--on", &to, "--dir", ".", "--threads", threads]).good();
        let said = "not replayed as recorded: 1 setuid or setgid mode(s) cleared, 1 operation(s) on security.* or \
                    trusted.* attributes left out, 1 device node(s) replaced by empty files (--trust-log replays them)";
        assert!(done.stdout.contains(said), "{}", done.stdout);
        assert!(done.stdout.contains("the tree equals the one that the log describes"), "{}", done.stdout);
        let stat = |name: &str| lab.path(&to).join(name).symlink_metadata().unwrap();
        assert_eq!(stat("tool").permissions().mode() & 0o7777, 0o755);
        assert!(stat("disk").is_file());
    }
    // Aging with such a log has no model, but the same rule.
    fs::create_dir(lab.path("aged")).unwrap();
    let args = ["age", "replay:log", "--on", "aged", "--dir", ".", "--set", "repeat=1"];
    let done = lab.run(args).good();
    assert!(done.stdout.contains("1 device node(s) replaced by empty files"), "{}", done.stdout);

    let bit = Op::Chmod { path: path("tool"), mode: 0o4755 };
    let made = Op::Allocate { path: path("tool"), mode: 0o755, len: 100 };
    write_log(&lab, "own", vec![("own".to_owned(), vec![made, bit])]);
    fs::create_dir(lab.path("trusted")).unwrap();
    let done = lab.run(["replay", "own", "--on", "trusted", "--dir", ".", "--trust-log"]).good();
    assert!(!done.stdout.contains("not replayed"), "{}", done.stdout);
    assert_eq!(lab.path("trusted/tool").symlink_metadata().unwrap().permissions().mode() & 0o7777, 0o4755);
}
