//! File systems of our own, as a user has them: made, mounted, killed, checked.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    process::{Child, Stdio},
};

use senesce_testkit::root_or_skip;

use super::{
    disk::must,
    garden_mount::{abort, assert_as_copied, start, unmount, write_and_copy},
    lab::{Done, Lab, mount_points},
};

fn mkfs(lab: &Lab) {
    let told = mkfs_with(lab, &[]);
    assert!(told.contains("in 4 drives, one of them parity"), "{told}");
}

fn mkfs_with(lab: &Lab, more: &[&str]) -> String {
    let all = ["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"];
    lab.run([&all[..], more].concat()).good().stdout
}

/// Mounts `g` on `mnt` and waits until it is there.
fn mount(lab: &Lab, more: &[&str]) -> Child {
    let mut command = lab.command();
    command.args(["fs", "mount", "g", "mnt"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    start(lab, &mut command)
}

/// What the check says, if it is clean.
fn check(lab: &Lab) -> String {
    let told = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(told.starts_with("as it is: clean"), "{told}");
    told
}

#[test]
fn garden_is_made_and_read_without_root() {
    let lab = Lab::new();
    mkfs(&lab);
    check(&lab);
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains("volume main:") && told.contains("RAID group 0:"), "{told}");
    let json = lab.run(["fs", "stat", "g", "--json"]).good().stdout;
    assert!(json.contains("\"format\":\"senesce-fs-stat/1\"") && json.contains("\"name\":\"main\""), "{json}");
    let bytes = |name: &str| fs::read(lab.path(name)).unwrap();
    let before: Vec<Vec<u8>> = ["g/drive-00.img", "g/drive-03.img", "g/log.img"].map(bytes).into();
    lab.run(["fs", "mkfs", "garden", "g"]).refused(2, &["g exists already", "give another name"]);
    lab.run(["fs", "mkfs", "garden", "h", "--size", "1MiB"]).refused(2, &["too small", "8 MiB"]);
    for word in ["--force", "--zeroed"] {
        lab.run(["fs", "mkfs", "garden", "h", word]).refused(2, &[word, "makes a new directory"]);
    }
    lab.run(["fs", "check", "tmp"]).refused(2, &["holds no file system of senesce", "senesce fs mkfs garden"]);
    assert_eq!(["g/drive-00.img", "g/drive-03.img", "g/log.img"].map(bytes).to_vec(), before, "it was only looked at");

    // The same seed makes the same bytes.
    fs::rename(lab.path("g"), lab.path("first")).unwrap();
    mkfs(&lab);
    for name in ["drive-00.img", "drive-03.img", "log.img"] {
        assert!(bytes(&format!("first/{name}")) == bytes(&format!("g/{name}")), "{name}");
    }
}

#[test]
fn aborted_mount_keeps_what_was_acknowledged() {
    if !root_or_skip("mounting") {
        return;
    }
    for engine in ["garden", "evergreen"] {
        let lab = Lab::new();
        let size = if engine == "garden" { "32MiB" } else { "64MiB" };
        lab.run(["fs", "mkfs", engine, "g", "--size", size]).good();
        let child = mount(&lab, &[]);
        write_and_copy(&lab);
        abort(&lab);
        let done = Done::of(child.wait_with_output().unwrap());
        done.refused(1, &["the FUSE connection of ", "was aborted"]);
        assert!(!mount_points().contains(&lab.path("mnt").to_string_lossy().into_owned()));
        lab.run(["fs", "check", "g"]).good();
        let child = mount(&lab, &[]);
        assert_as_copied(&lab);
        unmount(&lab);
        Done::of(child.wait_with_output().unwrap()).good();
    }
}

#[test]
fn writes_before_a_kill_survive() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mut child = mount(&lab, &[]);
    lab.run(["fs", "diff", "g", "main", "monday"])
        .refused(3, &["it is open elsewhere", "hint: another program uses it"]);
    write_and_copy(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean"]).good();
    assert!(!mount_points().contains(&lab.path("mnt").to_string_lossy().into_owned()));
    assert!(check(&lab).contains("as opening makes it: clean"), "the log holds what was done");

    let mut child = mount(&lab, &["--read-only"]);
    assert_as_copied(&lab);
    assert_eq!(fs::write(lab.path("mnt/new"), "x").unwrap_err().raw_os_error(), Some(30));
    super::garden_mount::unmount(&lab);
    assert!(child.wait().unwrap().success());
    let told = check(&lab);
    assert!(told.contains("as opening makes it: clean"), "a read-only mount did what the log holds: {told}");

    let child = mount(&lab, &["--threads", "3"]);
    assert_as_copied(&lab);
    fs::remove_dir_all(lab.path("mnt/moved-0")).unwrap();
    must("kill", &["-INT", &child.id().to_string()]);
    let done = Done::of(child.wait_with_output().unwrap()).good();
    assert!(done.stderr.contains("is mounted on"), "{}", done.stderr);
    let told = check(&lab);
    assert!(told.contains(" 0 operations in the log") && !told.contains("as opening"), "{told}");
    lab.run(["fs", "mount", "g", "mnt", "--volume", "other"]).refused(2, &["no volume other", "its volumes: main"]);
}

#[test]
fn synced_writes_survive_a_kill_with_write_back() {
    if !root_or_skip("mounting") {
        return;
    }
    for who in ["--write-back", "--write-back=engine", "--write-back=direct"] {
        for parity in [&[][..], &["--no-parity"]] {
            assert_is_there_after_a_kill(who, parity);
        }
    }
}

fn assert_is_there_after_a_kill(who: &str, parity: &[&str]) {
    let lab = Lab::new();
    mkfs_with(&lab, parity);
    let mut child = mount(&lab, &[who, "--point-every", "3600"]);
    write_and_copy(&lab);
    // What was closed the engine has, in this order; one sync makes all of it durable.
    fs::File::open(lab.path("mnt/moved-4/39")).unwrap().sync_all().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean"]).good();
    assert!(check(&lab).contains("clean"));
    let mut child = mount(&lab, &[who]);
    assert_as_copied(&lab);
    super::garden_mount::unmount(&lab);
    assert!(child.wait().unwrap().success());
    assert!(check(&lab).contains(" 0 operations in the log"));
}

/// Writes over all blocks of a drive but its label and superblocks.
fn ruin(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let from = 4160 * 5;
    file.write_all_at(&vec![0x5a; 2 << 20], from).unwrap();
}

#[test]
fn parity_replaces_blocks_of_a_damaged_drive() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let child = mount(&lab, &[]);
    let content: Vec<u8> = (0..3_000_000u32).map(|at| (at / 7) as u8).collect();
    fs::write(lab.path("mnt/file"), &content).unwrap();
    super::garden_mount::unmount(&lab);
    Done::of(child.wait_with_output().unwrap()).good();
    ruin(&lab.path("g/drive-01.img"));
    let told = lab.run(["fs", "check", "g"]);
    told.refused(1, &["is damaged"]);
    assert!(told.stdout.contains("DAMAGED") && told.stdout.contains("and "), "{}", told.stdout);
    let child = mount(&lab, &[]);
    assert!(fs::read(lab.path("mnt/file")).unwrap() == content);
    super::garden_mount::unmount(&lab);
    Done::of(child.wait_with_output().unwrap()).good();
}

#[test]
fn replay_into_engine_equals_replay_into_directory() {
    let lab = Lab::new();
    fs::create_dir(lab.path("aged")).unwrap();
    let mut aging = vec!["age", "mail", "--on", "aged", "--log", "mail.senesce-log", "--set", "cycles=2"];
    aging.extend(["--set", "mailboxes=3", "--set", "messages=20", "--set", "operations=200"]);
    lab.run(&aging).good();
    fs::create_dir(lab.path("again")).unwrap();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let replay = |on: &str, threads: &str| {
        lab.run(["replay", "mail.senesce-log", "--on", on, "--threads", threads, "--dir", &dir])
    };
    let told = replay("again", "1").good().stdout;
    for threads in ["1", "3"] {
        mkfs(&lab);
        let engine = replay("garden:g", threads).good();
        assert_eq!(engine.stdout, told, "the same tree, and the model's");
        assert!(check(&lab).contains(" 0 operations in the log"));
        replay("garden:g", "1").refused(2, &["is not empty"]);
        fs::remove_dir_all(lab.path("g")).unwrap();
    }
    replay("garden:missing", "1").refused(2, &["at missing: it does not exist"]);
    lab.run(["replay", "log", "--on", "garden:g", "--keep"]).refused(2, &["a volume that senesce formats"]);
}

#[test]
fn workload_ages_an_engine_in_process() {
    let lab = Lab::new();
    mkfs(&lab);
    let age = |more: &[&str]| {
        let common = ["age", "fsfb", "--on", "garden:g", "--until", "fullness=50%,turnover=1", "--dir", "tmp"];
        lab.run([&common[..], more].concat())
    };
    let told = age(&["--log", "fsfb.senesce-log"]).good().stdout;
    println!("{told}");
    let figure = |name: &str| -> f64 {
        let line = told.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {told}"));
        line[name.len()..].split_whitespace().find_map(|word| word.trim_end_matches('%').parse().ok()).unwrap()
    };
    // What was freed since the last consistency point is not free yet.
    assert!((45.0..80.0).contains(&figure("fullness")) && figure("turnover") >= 1.0, "{told}");
    // Files of it were written in different consistency points: neither whole nor without order.
    assert!((0.3..0.9999).contains(&figure("layout score")), "{told}");
    assert!(
        figure("  write ") > 1.0 && told.contains("stripes") && told.contains("chains, last consistency"),
        "{told}"
    );
    assert!(check(&lab).contains(" 0 operations in the log"));
    age(&[]).refused(2, &["g is not empty"]);
    for (more, says) in [
        (&["--save", "x"][..], "--on names a garden"),
        (&["--fs", "ext4"], "--on names a garden"),
        (&["--set", "rounds=x"], "rounds"),
    ] {
        age(more).refused(2, &[says]);
    }
    lab.run(["age", "interfile", "--on", "garden:g"]).refused(2, &["makes a new volume", "a garden"]);

    // What it logged gives the same on another one, and in JSON there are the chains.
    lab.run(["fs", "mkfs", "garden", "h", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    lab.run(["replay", "fsfb.senesce-log", "--on", "garden:h", "--dir", "tmp"]).good();
    lab.run(["fs", "mkfs", "garden", "i", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    let args = ["age", "fsfb", "--on", "garden:i", "--until", "steps=20", "--dir", "tmp", "--json"];
    let json: serde_json::Value = serde_json::from_str(&lab.run(args).good().stdout).unwrap();
    assert!(json["reached"]["layout"]["layout_score"].as_f64().unwrap() > 0.5, "{json}");
    let writes = &json["drives"]["since_opening"]["write_chains"];
    assert!(writes["blocks"].as_u64().unwrap() >= writes["requests"].as_u64().unwrap(), "{json}");
}

#[test]
fn cleaning_joins_free_space_and_moves_no_file() {
    let lab = Lab::new();
    mkfs(&lab);
    let age = |on: &str, gardening: &str| {
        let args = ["age", "fsfb", "--on", on, "--until", "fullness=60%,turnover=2", "--dir", "tmp", "--json"];
        let done = lab.run([&args[..], &["--gardening", gardening]].concat()).good();
        serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap()
    };
    let off = age("garden:g", "off");
    assert_eq!((&off["drives"]["areas_cleaned"], &off["drives"]["relocations"]), (&0.into(), &0.into()));
    let tree = |log: &str| lab.run(["fs", "stat", log, "--json"]).good().stdout;
    let before = tree("g");
    let told = lab.run(["fs", "clean", "garden:g"]).good().stdout;
    println!("{told}");
    assert!(told.contains(" allocation areas; ") && told.contains(" pointers named an old location"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&lab.run(["fs", "clean", "g", "--json"]).good().stdout).unwrap();
    assert_eq!((&json["areas"], &json["stuck_blocks"]), (&json["of"], &0.into()), "a second pass: {json}");
    let of = json["of"].as_u64().unwrap();
    let told = lab.run(["fs", "clean", "g", "--json", "--from", &format!("{}", of - 1)]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&json["from"], &json["areas"]), (&(of - 1).into(), &of.into()), "the end of one: {json}");
    lab.run(["fs", "clean", "g", "--from", &format!("{of}")]).refused(2, &["after allocation area"]);
    check(&lab);
    let volumes = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["volumes"].clone();
    let inodes = |text: &str| volumes(text)[0]["free_inodes"].clone();
    assert_eq!(inodes(&before), inodes(&tree("g")));

    lab.run(["fs", "mkfs", "garden", "h", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    let csc = age("garden:h", "csc");
    assert!(csc["reached"]["turnover"].as_f64().unwrap() >= 2.0, "{csc}");
    lab.run(["fs", "check", "h"]).good();
    lab.run(["age", "mail", "--on", "tmp", "--gardening", "csc"])
        .refused(2, &["--gardening has an effect on a garden only"]);
}
