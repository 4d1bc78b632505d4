//! An evergreen as a user has it: made, mounted, killed, checked, shown.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    process::Stdio,
};

use senesce_testkit::{check_document, root_or_skip};
use serde_json::Value;

use super::{
    disk::must,
    garden_mount::{assert_as_copied, start, write_and_copy},
    garden_plans::{assert_measured, column, table},
    lab::{Done, Lab, SMALL},
};

fn mkfs(lab: &Lab, more: &[&str]) -> Done {
    let words = ["fs", "mkfs", "evergreen", "e.img", "--seed", "7"];
    lab.run(words.iter().chain(more).copied().collect::<Vec<_>>())
}

/// Where superblocks are, both copies of each.
const SLOTS: [u64; 4] = [0, 256 << 10, 768 << 10, 1 << 20];

fn small(lab: &Lab) {
    let made = mkfs(lab, &["--size", "64MiB", "--node-size", "64KiB", "--unit-size", "4KiB"]).good();
    assert!(made.stdout.contains("nodes of 64 KiB with 16 children"), "{}", made.stdout);
}

#[test]
fn evergreen_is_made_and_read_without_root() {
    let lab = Lab::new();
    small(&lab);
    let bytes = || fs::read(lab.path("e.img")).unwrap();
    let before = bytes();
    assert!(lab.run(["fs", "check", "e.img"]).good().stdout.starts_with("as it is: clean"));
    let told = lab.run(["fs", "stat", "evergreen:e.img"]).good().stdout;
    assert!(told.contains("keys by birth path") && told.contains("units of 4 KiB"), "{told}");
    let json = lab.run(["fs", "stat", "e.img", "--json"]).good().stdout;
    assert!(json.contains("\"format\":\"senesce-fs-stat-evergreen/1\""), "{json}");
    for (what, shown) in
        [("superblock", "SNSCevrg"), ("map", "map of nodes"), ("tree", "lower bound"), ("log", "log after")]
    {
        let told = lab.run(["fs", "dump", "e.img", what]).good().stdout;
        assert!(told.contains(shown), "{told}");
    }
    lab.run(["fs", "dump", "e.img", "volumes"]).refused(2, &["an evergreen has no such structure"]);
    lab.run(["fs", "dump", "e.img", "node", "77"]).refused(2, &["there is no node 77"]);
    assert!(bytes() == before, "it was only looked at");

    mkfs(&lab, &[]).refused(2, &["holds an evergreen of senesce; it was not touched", "--force"]);
    mkfs(&lab, &["--force", "--size", "1GiB"]).refused(2, &["--size is the size of a new file"]);
    mkfs(&lab, &["--volume", "main"]).refused(2, &["--volume is an option of a garden"]);
    lab.run(["fs", "mkfs", "garden", "g", "--fanout", "8"]).refused(2, &["options are of an evergreen"]);
    assert!(bytes() == before, "it was not touched");

    // The same seed makes the same bytes, whatever was there.
    mkfs(&lab, &["--force", "--node-size", "64KiB", "--unit-size", "4KiB"]).good();
    assert!(bytes() == before);
    fs::write(lab.path("zeros"), vec![0; 1 << 22]).unwrap();
    lab.run(["fs", "check", "evergreen:zeros"]).refused(2, &["no evergreen file system"]);
}

#[test]
fn damage_is_named_and_is_a_failure() {
    let lab = Lab::new();
    small(&lab);
    let map = lab.run(["fs", "dump", "e.img", "superblock", "--json"]).good().stdout;
    assert!(map.contains("senesce-fs-dump/1"), "{map}");
    let file = OpenOptions::new().write(true).open(lab.path("e.img")).unwrap();
    let data = 1 << 20;
    file.write_all_at(&vec![0x5a; 16 << 20], data + 4096).unwrap();
    let told = lab.run(["fs", "check", "e.img"]);
    told.refused(1, &["is damaged"]);
    assert!(told.stdout.contains("DAMAGED") && told.stdout.contains("node map: checksum"), "{}", told.stdout);
}

#[test]
fn repair_fails_if_data_is_lost() {
    let lab = Lab::new();
    small(&lab);
    lab.run(["fs", "check", "e.img", "--repair"]).good();
    lab.run(["fs", "check", "e.img", "--dry-run"]).refused(2, &["--repair"]);
    // All copies of both superblocks where nothing of theirs is: their checksums are wrong, and all
    // else is there.
    let file = OpenOptions::new().write(true).open(lab.path("e.img")).unwrap();
    SLOTS.into_iter().for_each(|slot| file.write_all_at(&[0x5a; 8], slot + 220).unwrap());
    lab.run(["fs", "check", "e.img"]).refused(1, &["neither superblock can be read"]);
    lab.run(["fs", "check", "e.img", "--repair", "--dry-run"]).refused(1, &["nothing was written"]);
    lab.run(["fs", "check", "e.img"]).refused(1, &["neither superblock can be read"]);
    let told = lab.run(["fs", "check", "e.img", "--repair", "--json"]).good().stdout;
    assert!(told.contains("though its checksum is wrong") && told.contains("\"lost\":[]"), "{told}");
    lab.run(["fs", "check", "e.img"]).good();
    // Nothing but zeros from the first superblock on: it must be named, and the log is lost with
    // its identity.
    SLOTS.into_iter().for_each(|slot| file.write_all_at(&[0; 4096], slot).unwrap());
    lab.run(["fs", "check", "e.img", "--repair"]).refused(2, &["evergreen:PATH"]);
    lab.run(["fs", "check", "evergreen:e.img", "--repair"]).refused(1, &["files or parts of files are lost"]);
    lab.run(["fs", "check", "e.img"]).good();
}

#[test]
fn evergreen_writes_before_a_kill_survive() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    small(&lab);
    let mount = |more: &[&str]| {
        let mut command = lab.command();
        command.args(["fs", "mount", "e.img", "mnt"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        start(&lab, &mut command)
    };
    let mut child = mount(&["--point-every", "3600", "--write-back"]);
    write_and_copy(&lab);
    fs::File::open(lab.path("mnt/moved-4/39")).unwrap().sync_all().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean"]).good();
    let told = lab.run(["fs", "check", "e.img"]).good().stdout;
    // Where a run of values was not logged, the sync was a checkpoint, and nothing is to be done
    // again.
    let is_done_again = told.contains("as opening makes it: clean");
    assert!(told.starts_with("as it is: clean"), "{told}");
    assert!(is_done_again || told.contains(" 0 batches in the log"), "{told}");

    let mut child = mount(&["--read-only"]);
    assert_as_copied(&lab);
    assert_eq!(fs::write(lab.path("mnt/new"), "x").unwrap_err().raw_os_error(), Some(30));
    super::garden_mount::unmount(&lab);
    assert!(child.wait().unwrap().success());

    let child = mount(&["--threads", "3", "--figures", "figures.json"]);
    assert_as_copied(&lab);
    fs::remove_dir_all(lab.path("mnt/moved-0")).unwrap();
    must("kill", &["-INT", &child.id().to_string()]);
    Done::of(child.wait_with_output().unwrap()).good();
    let told = lab.run(["fs", "check", "e.img"]).good().stdout;
    assert!(told.contains(" 0 batches in the log") && !told.contains("as opening"), "{told}");
    let figures: Value = serde_json::from_str(&fs::read_to_string(lab.path("figures.json")).unwrap()).unwrap();
    check_document(&figures);
    assert!(figures["leaf_reads"].as_u64() > Some(0) && figures["read_requests"].as_u64() > Some(0), "{figures}");
    assert!(figures["inner_writes"].as_u64() > Some(0), "{figures}");
    lab.run(["inspect", "evergreen:e.img", "--tree", "t.html", "--flushes", "figures.json"]).good();
    fs::write(lab.path("other.json"), "{}").unwrap();
    let words = ["inspect", "evergreen:e.img", "--tree", "t.html", "--figures", "other.json"];
    lab.run(words).refused(2, &["other.json is no file of figures"]);
    lab.run(["fs", "mount", "e.img", "mnt", "--snapshot", "monday"])
        .refused(2, &["--snapshot has an effect on a garden only"]);
}

#[test]
fn replay_into_evergreen_equals_replay_into_directory() {
    let lab = Lab::new();
    fs::create_dir(lab.path("aged")).unwrap();
    let mut aging = vec!["age", "mail", "--on", "aged", "--log", "mail.senesce-log", "--set", "cycles=2"];
    aging.extend(["--set", "mailboxes=3", "--set", "messages=20", "--set", "operations=200"]);
    lab.run(&aging).good();
    fs::create_dir(lab.path("again")).unwrap();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let replay = |on: &str| lab.run(["replay", "mail.senesce-log", "--on", on, "--threads", "2", "--dir", &dir]);
    let told = replay("again").good().stdout;
    for order in ["birth-path", "inode-number"] {
        mkfs(&lab, &["--size", "64MiB", "--node-size", "64KiB", "--key-order", order]).good();
        assert_eq!(replay("evergreen:e.img").good().stdout, told, "the same tree, and the model's");
        let checked = lab.run(["fs", "check", "e.img"]).good().stdout;
        assert!(checked.contains(" 0 batches in the log"), "{checked}");
        replay("evergreen:e.img").refused(2, &["is not empty"]);
        fs::remove_file(lab.path("e.img")).unwrap();
    }
    lab.run(["replay", "log", "--on", "evergreen:e.img", "--keep"]).refused(2, &["a volume that senesce formats"]);
}

#[test]
fn one_is_aged_in_process_and_inspected() {
    let lab = Lab::new();
    small(&lab);
    let aged = ["-q", "age", "synthetic", "--on", "evergreen:e.img", "--set", "files=500", "--set", "commits=12"];
    lab.run(aged).good();
    lab.run(aged).refused(2, &["e.img is not empty"]);
    let told: Value = serde_json::from_str(&lab.run(["inspect", "evergreen:e.img", "--json"]).good().stdout).unwrap();
    let tree = &told["tree"];
    assert!(tree["files"].as_u64().unwrap() > 1 && tree["content_bytes"].as_u64().unwrap() > 100_000, "{tree}");
    assert_eq!(told["target"]["file_system"], "evergreen");
    lab.run(["inspect", "evergreen:nothing"]).refused(2, &["cannot open nothing"]);
    // Its tree, as a page, as a picture, and in words.
    let told = lab.run(["inspect", "evergreen:e.img", "--tree", "tree.html"]).good().stdout;
    assert!(told.contains("leaves are") && told.contains("wait in"), "{told}");
    let page = fs::read_to_string(lab.path("tree.html")).unwrap();
    assert!(page.contains("<h1>evergreen:e.img</h1>") && page.contains(" (commit "), "{page}");
    let json = lab.run(["inspect", "evergreen:e.img", "--tree", "tree.svg", "--json"]).good().stdout;
    assert!(fs::read_to_string(lab.path("tree.svg")).unwrap().starts_with("<svg"));
    lab.run(["inspect", "e.img", "--tree", "tree.html"]).refused(2, &["write evergreen:FILE"]);
    // A leaf that cannot be read is reported; everything else is drawn.
    let tree: Value = serde_json::from_str(&json).unwrap();
    let nodes = tree["nodes"].as_array().unwrap();
    let leaf = nodes.iter().find(|node| node["height"] == 0).unwrap();
    let image = fs::File::options().write(true).open(lab.path("e.img")).unwrap();
    image.write_all_at(b"spoilt", leaf["extents"][0][0].as_u64().unwrap()).unwrap();
    let told = lab.run(["inspect", "evergreen:e.img", "--tree", "tree.html"]).good().stdout;
    assert!(told.contains(&format!("Node {}, level 0, cannot be read", leaf["id"])), "{told}");
}

#[test]
fn defrag_restores_the_order_of_paths() {
    let lab = Lab::new();
    small(&lab);
    let aged = ["-q", "age", "renames", "--on", "evergreen:e.img", "--set", "directories=400", "--set", "rounds=1"];
    lab.run(aged).good();
    let inspected =
        || -> Value { serde_json::from_str(&lab.run(["inspect", "evergreen:e.img", "--json"]).good().stdout).unwrap() };
    let tree = inspected()["tree"].clone();
    let defrag = |more: &[&str]| -> Value {
        let words = ["-q", "fs", "defrag", "e.img", "--json"];
        serde_json::from_str(&lab.run(words.iter().chain(more).copied().collect::<Vec<_>>()).good().stdout).unwrap()
    };
    let image = || fs::read(lab.path("e.img")).unwrap();
    let before = image();
    let would = defrag(&["--dry-run"]);
    assert!(image() == before, "a dry run writes nothing");
    let done = defrag(&[]);
    for report in [&would, &done] {
        assert_eq!(report["format"], "senesce-fs-defrag-evergreen/1");
        let moved = report["moved_objects"].as_u64().unwrap();
        assert!((1500..=1600).contains(&moved), "nearly all of 400 directories with 3 files each: {report}");
        assert_eq!((&report["too_large_objects"], &report["objects_without_space"]), (&0.into(), &0.into()));
    }
    assert!(done["swept_leaf_bytes"].as_u64().unwrap() > 0, "{done}");
    let again = defrag(&[]);
    assert_eq!(again["moved_objects"], 0, "{again}");
    let shown = lab.run(["fs", "defrag", "e.img"]).good().stdout;
    assert!(shown.contains("0 of the objects of 1601 names got the keys of where they are"), "{shown}");
    assert!(lab.run(["fs", "check", "e.img"]).good().stdout.starts_with("as it is: clean"));
    let after = inspected()["tree"].clone();
    for figure in ["files", "directories", "content_bytes"] {
        assert_eq!(after[figure], tree[figure], "{figure}");
    }
    for (words, why) in [
        (&["scrub", "e.img"][..], "it has no parity"),
        (&["clean", "e.img"], "checkpoints clean it"),
        (&["dedup", "e.img", "main"], "it shares no blocks"),
        (&["volume", "list", "e.img"], "it has no volumes"),
        (&["snapshot", "list", "e.img", "main"], "it has no snapshots"),
    ] {
        let words: Vec<_> = ["fs"].iter().chain(words).copied().collect();
        lab.run(words).refused(2, &["e.img is an evergreen", why]);
    }
    lab.run(["fs", "defrag", "e.img", "path"]).refused(2, &["a PATH is about a garden"]);
    lab.run(["fs", "defrag", "e.img", "--volume", "other"]).refused(2, &["--volume is about a garden"]);
    lab.run(["fs", "defrag", "e.img", "--traditional"]).refused(2, &["--traditional is about a garden"]);
}

#[test]
fn a_plan_renames_directories_of_an_evergreen() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/evergreen-renames.toml");
    let text = fs::read_to_string(shipped).unwrap();
    let (head, _) = text.split_once("[[file_system]]").unwrap();
    let text = head.replace("2_000", "60").replace("rounds = 4", "rounds = 2").replace("512MiB", "160MiB");
    let plan = lab.plan(&format!("{text}[[file_system]]\nkind = \"evergreen\"\n"));
    lab.run(["-q", "run", "--out", "out", &plan.to_string_lossy()]).good();
    lab.assert_nothing_left();
    let cells = table(&lab, "cells");
    let valid = column(&cells, "evergreen", "valid");
    assert!(valid.len() >= 4 && valid.iter().all(|cell| cell == "true"), "{:?}", column(&cells, "evergreen", "reason"));
}

#[test]
fn plans_age_evergreens_on_full_and_empty_volumes() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let engines = "kind = \"evergreen\"\n[[file_system]]\nkind = \"evergreen\"\nname = \"without\"\n\
                   mkfs = [\"--node-size\", \"64KiB\", \"--unit-size\", \"4KiB\", \"--key-order\", \"inode-number\"]\n";
    let text = SMALL.replace("34MiB", "72MiB").replace("96MiB", "160MiB").replace("kind = \"ext4\"\n", engines);
    let plan = lab.plan(&text);
    lab.run(["-q", "run", "--out", "out", &plan.to_string_lossy()]).good();
    lab.assert_nothing_left();
    for arm in ["evergreen", "without"] {
        assert_measured(&lab, arm, true);
    }
}

#[test]
fn unreadable_superblock_is_reported_by_the_server() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    small(&lab);
    let image = || OpenOptions::new().write(true).open(lab.path("e.img")).unwrap();
    for words in [&["fs", "mount", "e.img", "mnt"][..], &["fs", "serve", "e.img", "mnt", "--source", "test"]] {
        // Opening rewrites both.
        [0, 768 << 10].into_iter().for_each(|copy| image().write_all_at(&[0x5a; 4096], copy).unwrap());
        let mut command = lab.command();
        // What is served for a run is unmounted when the run closes its input.
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = start(&lab, &mut command);
        if words[1] == "mount" {
            super::garden_mount::unmount(&lab);
        }
        let done = Done::of(child.wait_with_output().unwrap()).good();
        let told = "e.img: superblock at 0 could not be read, superblock";
        assert!(done.stderr.contains(told) && done.stderr.contains("magic is"), "{}: {}", words[1], done.stderr);
    }
}

/// The byte at which the first extent of the newest map of nodes is.
fn map_at(lab: &Lab) -> u64 {
    let shown = lab.run(["fs", "dump", "e.img", "superblock"]).good().stdout;
    let newest = shown.split("superblock at").find(|part| part.contains("the newest")).unwrap();
    let number = |name: &str| -> u64 {
        let line = newest.lines().find(|line| line.trim().starts_with(name)).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    let extent = newest.lines().skip_while(|line| !line.contains("first unit")).nth(1).unwrap();
    let unit: u64 = extent.split_whitespace().next().unwrap().parse().unwrap();
    number("data at") + unit * number("unit bytes")
}

#[test]
fn bad_copy_is_reported_and_repaired() {
    let lab = Lab::new();
    small(&lab);
    let stat = || -> Value { serde_json::from_str(&lab.run(["fs", "stat", "e.img", "--json"]).good().stdout).unwrap() };
    let stated = stat();
    assert_eq!((&stated["metadata_copies"], &stated["copies_read_instead"]), (&2.into(), &0.into()), "{stated}");
    let image = || OpenOptions::new().write(true).open(lab.path("e.img")).unwrap();
    image().write_all_at(&[0x5a; 100], map_at(&lab) + 200).unwrap();
    assert_eq!(stat()["copies_read_instead"], 1);
    let stated = lab.run(["fs", "stat", "e.img"]).good().stdout;
    assert!(stated.contains("their map in 2 copies") && stated.contains("reads from the other copy: 1"), "{stated}");
    let checked = lab.run(["fs", "check", "e.img"]);
    checked.refused(1, &["is damaged: 1 finding(s)"]);
    assert!(
        checked.stdout.contains("nothing is lost") && checked.stdout.contains("repairable: "),
        "{}",
        checked.stdout
    );
    lab.run(["fs", "check", "e.img", "--repair"]).good();
    let checked: Value = serde_json::from_str(&lab.run(["fs", "check", "e.img", "--json"]).good().stdout).unwrap();
    assert!(!checked.to_string().contains("node map: checksum"), "{checked}");
    assert_eq!(stat()["copies_read_instead"], 0);
    // A copy of a superblock is no failure: power may have been lost while it was written.
    image().write_all_at(&[0x5a; 100], 768 << 10).unwrap();
    let checked = lab.run(["fs", "check", "e.img"]).good().stdout;
    assert!(checked.starts_with("as it is: clean") && checked.contains("the other copy is used"), "{checked}");

    mkfs(&lab, &["--metadata-copies", "3", "--force"]).refused(2, &["--metadata-copies"]);
    lab.run(["fs", "mkfs", "garden", "g", "--metadata-copies", "1"]).refused(2, &["options are of an evergreen"]);
    mkfs(&lab, &["--metadata-copies", "1", "--force"]).good();
    assert_eq!(stat()["metadata_copies"], 1);
    assert!(lab.run(["fs", "stat", "e.img"]).good().stdout.contains("their map in 1 copy"));
}
