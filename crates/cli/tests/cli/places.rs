//! Volumes in places that the user named: existing directories without root, and devices that are
//! formatted again and again, but only while they hold what the run made.

use std::{os::unix::fs::PermissionsExt, path::Path, process::Command};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{Disk, must},
    lab::{Done, Lab, SENESCE, SINGLE},
    outputs::cells,
};

/// The smaller plan in directories: `FULL` and `EMPTY` become their paths.
const IN_DIRECTORIES: &str = r#"format = "senesce-plan/1"
name = "directories"
seed = 7
[history]
synthetic = { model = "linux-like", files = 500, commits = 8 }
pulls = 4
[workload]
edition = "full-disk-code"
copies = 2
keep_free = "1MiB"
[measure]
every = 2
repeat_disturbed = 0
[volumes]
full = { directory = "FULL" }
empty = { directory = "EMPTY" }
unaged = "none"
[[file_system]]
kind = "host"
"#;

/// A user who is not root.
const NOBODY: &str = "65534";

#[test]
fn directories_are_aged_without_root() {
    if !root_or_skip("becoming somebody else") {
        return;
    }
    let lab = Lab::new();
    // One on a file system that reports the places of files (most likely), one in memory, which
    // does nothing.
    let (on_disk, in_memory) = (lab.path("scratch"), lab.memory().join("scratch"));
    for dir in [&on_disk, &in_memory] {
        std::fs::create_dir(dir).unwrap();
        std::fs::write(dir.join("precious"), "mine").unwrap();
    }
    // Not every user may go where the program under test was built.
    let program = lab.path("senesce");
    std::fs::copy(SENESCE, &program).unwrap();
    for dir in [lab.path("."), lab.path("tmp"), lab.memory().to_owned(), on_disk.clone(), in_memory.clone()] {
        let nobody = NOBODY.parse().ok();
        std::os::unix::fs::chown(&dir, nobody, nobody).unwrap();
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let text = |full: &Path, empty: &Path| {
        IN_DIRECTORIES.replace("FULL", full.to_str().unwrap()).replace("EMPTY", empty.to_str().unwrap())
    };
    let as_nobody = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]).arg(&program).args(args);
        lab.confine(&mut command);
        Done::of(command.output().unwrap())
    };
    for (out, full, empty) in [("first", &in_memory, &on_disk), ("second", &on_disk, &in_memory)] {
        lab.plan(&text(full, empty));
        as_nobody(&["run", "plan.toml", "--out", out, "--quiet"]).good();
        let found = cells(&lab, out);
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(
            found.iter().all(|cell| cell.is_valid && cell.tree_hash == same_pulls(&found, cell.pulls)),
            "{found:?}"
        );
        let export: Value = serde_json::from_str(&lab.run(["export", out, "--json"]).good().stdout).unwrap();
        for row in export["grep"].as_array().unwrap() {
            assert!(row["device_read_bytes"].is_null() && row["wall_seconds"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["cache"].as_str().unwrap().contains("metadata stays cached"), "{row}");
        }
        let memory_role = if full == &in_memory { "full" } else { "empty" };
        let layout = export["layout"].as_array().unwrap();
        assert!(layout.iter().all(|row| row["role"] != memory_role), "{layout:?}");
        let circumstances = lab.run(["export", out, "--csv", "circumstances"]).good().stdout;
        assert!(circumstances.contains(&format!("{memory_role}.host_file_system,tmpfs")), "{circumstances}");
        for dir in [full, empty] {
            let left: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["precious"]);
        }
    }
    // Half in a directory, half formatted: refused by the plan's keys.
    lab.plan(&IN_DIRECTORIES.replace("{ directory = \"FULL\" }", "\"64MiB\""));
    lab.run(["run", "plan.toml"]).refused(2, &["file_system.kind", "every volume must be"]);
}

fn same_pulls(cells: &[super::outputs::Cell], pulls: u64) -> &str {
    &cells.iter().find(|cell| cell.pulls == pulls).unwrap().tree_hash
}

#[test]
fn only_own_devices_are_formatted_again() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    let [empty, unaged] = ["empty", "unaged"].map(|name| Disk::new(&lab.path(format!("{name}.disk")), 64));
    let plan = SINGLE
        .replace("empty = \"64MiB\"", &format!("empty = {{ device = {:?} }}", empty.device))
        .replace("unaged = \"64MiB\"", &format!("unaged = {{ device = {:?} }}", unaged.device))
        .replace("backend = \"memory\"\ndir = \"MEMORY\"\n", "");
    lab.plan(&plan);
    let uuid = |disk: &Disk| must("blkid", &["-p", "-s", "UUID", "-o", "value", &disk.device]);

    // The device that comes last is checked before the first is written.
    unaged.format_ext4();
    let before = uuid(&unaged);
    lab.run(["run", "plan.toml", "--out", "out"]).refused(3, &[&unaged.device, "holds", "ext4", "--force"]);
    assert_eq!(uuid(&unaged), before);
    assert!(std::fs::read(lab.path("empty.disk")).unwrap().iter().all(|&byte| byte == 0), "it was written to");
    assert!(!lab.path("out").exists());
    lab.run(["run", "plan.toml", "--out", "out", "--force", "--quiet"]).good();
    assert_ne!(uuid(&unaged), before);

    // Interrupted with two checkpoints to go: the second twin is made on the first one's device
    // without --force.
    for device in [&empty, &unaged] {
        // wipefs leaves data, which still counts.
        must("dd", &["if=/dev/zero", &format!("of={}", device.device), "bs=1M", "count=64", "status=none"]);
    }
    let mut child = lab.command().args(["run", "plan.toml", "--quiet", "--out", "killed"]).spawn().unwrap();
    let journal = || std::fs::read_to_string(lab.path("killed/journal.ndjson")).unwrap_or_default();
    while !journal().contains("checkpoint-done") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean", "killed"]).good();
    let ours = uuid(&empty);

    // Another user put something else there in the meantime.
    must("mkfs.ext4", &["-q", "-F", &empty.device]);
    let theirs = uuid(&empty);
    lab.run(["run", "--resume", "killed"]).refused(3, &[&empty.device, "holds", "ext4", "--force"]);
    assert!(uuid(&empty) == theirs && theirs != ours);
    lab.run(["run", "--resume", "killed", "--force", "--quiet"]).good();
    assert_eq!(cells(&lab, "killed").iter().filter(|cell| cell.is_valid).count(), 4);
    drop((empty, unaged));
    lab.assert_nothing_left();
}

#[test]
fn identity_of_another_device_is_refused() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("64MiB", "128MiB").replace("\"ext4\"", "\"btrfs\""));
    // The image that a run of this plan makes, still attached somewhere when the same plan is run
    // again.
    let mut child = lab.command().args(["run", "plan.toml", "--quiet", "--out", "first"]).spawn().unwrap();
    let journal = || std::fs::read_to_string(lab.path("first/journal.ndjson")).unwrap_or_default();
    while !journal().contains("checkpoint-done") {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its first checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let is_empty_volume = |path: &Path| path.to_string_lossy().contains("btrfs-empty");
    let mut images = std::fs::read_dir(lab.memory()).unwrap().map(|entry| entry.unwrap().path());
    let image = images.find(|path| is_empty_volume(path)).unwrap();
    std::fs::copy(image, lab.path("twin.disk")).unwrap();
    lab.run(["clean", "first", "--snapshots"]).good();
    let twin = Disk::attach(&lab.path("twin.disk"));
    let uuid = must("blkid", &["-p", "-s", "UUID", "-o", "value", &twin.device]);

    lab.run(["run", "plan.toml", "--quiet", "--out", "second"]).good();
    assert!(cells(&lab, "second").iter().all(|cell| cell.is_valid));
    let made = lab.run(["export", "second", "--csv", "circumstances"]).good().stdout;
    let mkfs = made.lines().find(|line| line.contains("empty.mkfs_command")).unwrap();
    assert!(mkfs.contains("-U") && !mkfs.contains(&uuid), "{mkfs}");
    drop(twin);
    lab.assert_nothing_left();
}
