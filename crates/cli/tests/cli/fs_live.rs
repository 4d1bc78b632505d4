//! Commands about a garden that is mounted: the process that serves it answers them.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::must,
    garden_mount::{Mounted, hold, mount, start},
    lab::Lab,
};

fn mkfs(lab: &Lab) {
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
}

/// The output of a command that must succeed.
#[track_caller]
fn run(lab: &Lab, words: &str) -> String {
    lab.run(words.split(' ')).good().stdout
}

#[track_caller]
fn json(lab: &Lab, words: &str) -> Value {
    serde_json::from_str(&run(lab, words)).unwrap()
}

fn control_sockets(lab: &Lab) -> Vec<PathBuf> {
    let entries = |dir: &PathBuf| -> Vec<PathBuf> {
        fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let all = entries(&lab.path("registry")).iter().flat_map(entries).collect::<Vec<_>>();
    let is_control = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("control.");
    all.into_iter().filter(is_control).collect()
}

fn fill(lab: &Lab) {
    for file in 0..30u8 {
        fs::write(lab.path(format!("mnt/{file}")), vec![file / 3; 40_000]).unwrap();
    }
}

fn checked(lab: &Lab, mounted: Mounted<'_>) {
    mounted.unmount();
    assert!(control_sockets(lab).is_empty());
    let told = run(lab, "fs check g");
    assert!(told.starts_with("as it is: clean"), "{told}");
}

#[test]
fn mounted_garden_answers_by_place_and_mount() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    lab.run(["fs", "figures", "g"]).refused(2, &["g is not mounted"]);
    let mounted = mount(&lab, &[]);
    fill(&lab);
    let point = lab.path("mnt").to_string_lossy().into_owned();
    for place in ["g", "garden:g", "mnt", &point] {
        let told = run(&lab, &format!("fs stat {place}"));
        assert!(told.contains(&format!("volume main is mounted on {point}\n")), "{told}");
    }
    let drives = ["0", "1", "2", "3"].map(|number| format!("--drive g/drive-0{number}.img")).join(" ");
    let stat = json(&lab, &format!("fs stat {drives} --log g/log.img --json"));
    assert_eq!(stat["mounts"][0]["volume"], "main");
    assert_eq!(stat["format"], "senesce-fs-stat/1");
    // What is there now, not what the last consistency point has.
    let used = |stat: &Value| {
        let volume = &stat["volumes"][0];
        volume["inodes"].as_u64().unwrap() - volume["free_inodes"].as_u64().unwrap()
    };
    assert_eq!(used(&stat), 30);
    fs::remove_file(lab.path("mnt/3")).unwrap();
    assert_eq!(used(&json(&lab, "fs stat mnt --json")), 29);
    let figures = json(&lab, "fs figures mnt");
    assert!(figures["format"] == "senesce-fs-figures/1" && figures["mounts"][0]["point"] == point, "{figures}");
    // The socket is the owner's alone.
    let sockets = control_sockets(&lab);
    let [socket] = &sockets[..] else { panic!("{sockets:?}") };
    assert_eq!(fs::symlink_metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
    checked(&lab, mounted);
    let told = run(&lab, "fs stat g");
    assert!(!told.contains("is mounted"), "{told}");
}

#[test]
fn volumes_of_mounted_garden_are_snapshotted_and_cloned() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &[]);
    fill(&lab);
    must("cp", &["-a", &lab.path("mnt/.").to_string_lossy(), &lab.path("copy").to_string_lossy()]);
    let told = run(&lab, "fs snapshot create g main monday");
    assert!(told.starts_with("g: snapshot monday of volume main: "), "{told}");
    lab.run(["fs", "snapshot", "create", "mnt", "main", "monday"])
        .refused(2, &["volume main has the snapshots: monday"]);
    fs::write(lab.path("mnt/5"), "later").unwrap();
    assert!(run(&lab, "fs snapshot list mnt main").starts_with("monday  "));
    assert!(run(&lab, "fs clone g main monday try").contains("a clone of snapshot monday of volume main"));
    assert!(run(&lab, "fs volume create g home --size 8MiB").contains("volume home, 8 MiB"));
    assert_eq!(run(&lab, "fs volume list g").lines().count(), 3);
    let done = json(&lab, "fs dedup g main --json");
    assert!(done["whole"] == true && done["newly_shared_blocks"].as_u64().unwrap() > 50, "{done}");
    let done = json(&lab, "fs defrag g --json");
    // A file of five bytes has no blocks to move.
    assert!(done["files"] == 29, "{done}");
    assert!(run(&lab, "fs defrag g 7 8 --dry-run").contains("of 2 files"));
    assert!(run(&lab, "fs clean g").contains("allocation areas"));
    let done = json(&lab, "fs scrub g --json");
    assert!(done["stripes"] == done["of"] && done["lost"].as_array().unwrap().is_empty(), "{done}");
    // What is mounted stays.
    lab.run(["fs", "volume", "delete", "g", "main"])
        .refused(3, &["cannot delete volume main: it is mounted on ", "hint: unmount"]);
    lab.run(["fs", "snapshot", "restore", "g", "main", "monday"]).refused(3, &["it is mounted on "]);
    lab.run(["fs", "tier", "g", "--objects", "objects"]).refused(2, &["is open without a store of objects"]);
    assert!(run(&lab, "fs volume delete g home").starts_with("g: volume home deleted"));
    assert_eq!(fs::read(lab.path("mnt/9")).unwrap(), vec![3; 40_000]);
    mounted.unmount();

    let snapshot = mount(&lab, &["--snapshot", "monday"]);
    must("diff", &["-r", &lab.path("copy").to_string_lossy(), &lab.path("mnt").to_string_lossy()]);
    // By its mount point alone: others may look at the garden at the same time.
    assert!(run(&lab, "fs stat mnt").contains("snapshot monday of volume main is mounted on "));
    lab.run(["fs", "snapshot", "create", "mnt", "main", "tuesday"]).refused(3, &["g is open read-only"]);
    assert!(!run(&lab, "fs stat g").contains("is mounted on "));
    snapshot.unmount();
    assert!(run(&lab, "fs volume delete g try").starts_with("g: volume try deleted"));
    checked(&lab, mount(&lab, &[]));
}

/// The kernel keeps dirty pages of the mount for half a minute: it allows FUSE as good as none
/// otherwise.
fn keep_pages(lab: &Lab) {
    let device = fs::metadata(lab.path("mnt")).unwrap().dev();
    let knobs = format!("/sys/class/bdi/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    fs::write(format!("{knobs}/max_ratio"), "100").unwrap();
    fs::write(format!("{knobs}/strict_limit"), "0").unwrap();
}

#[test]
fn snapshot_holds_dirty_pages_of_the_kernel() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &["--write-back"]);
    keep_pages(&lab);
    // In another process, which starts none and closes nothing: either makes the kernel hand its
    // pages over.
    let bytes = "7".repeat(40_000);
    let script = "exec >mnt/file; printf %s \"$0\"; read line; printf later";
    let mut writer = Command::new("sh")
        .args(["-c", script, &bytes])
        .current_dir(lab.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    while fs::metadata(lab.path("mnt/file")).map_or(0, |found| found.len()) < 40_000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run(&lab, "fs snapshot create g main monday");
    writer.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(writer.wait().unwrap().success());
    assert!(fs::read_to_string(lab.path("mnt/file")).unwrap() == bytes.clone() + "later");
    mounted.unmount();
    let snapshot = mount(&lab, &["--snapshot", "monday"]);
    let found = fs::read_to_string(lab.path("mnt/file")).unwrap();
    assert!(found == bytes, "{} bytes of what was written before the snapshot are in it", found.len());
    checked(&lab, snapshot);
}

#[test]
fn sockets_of_killed_mounts_are_cleaned() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &[]);
    fs::write(lab.path("mnt/file"), "content").unwrap();
    drop(mounted); // kill -9
    assert_eq!(control_sockets(&lab).len(), 1);
    assert!(run(&lab, "fs stat g").contains("volume main: "));
    // The next one has a socket of its own beside it.
    let mounted = mount(&lab, &[]);
    assert_eq!(control_sockets(&lab).len(), 2);
    assert!(run(&lab, "fs stat g").contains("is mounted on "));
    let told = run(&lab, "clean");
    assert!(told.contains(": removed"), "{told}");
    assert_eq!(control_sockets(&lab).len(), 1);
    assert_eq!(fs::read_to_string(lab.path("mnt/file")).unwrap(), "content");
    checked(&lab, mounted);
}

#[test]
fn a_stranger_on_the_socket_harms_no_mount() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    let mounted = mount(&lab, &[]);
    let socket = control_sockets(&lab).remove(0);
    let long = vec![b'a'; 1 << 20];
    for bytes in [&b"\xff\xff\n"[..], b"{}\n", b"{\"request\":\"scrub\",\"from\":99999999}\n", &long] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let _ = stream.write_all(bytes); // the server may close it before it read all
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply); // what was not read resets the connection
        assert!(reply.is_empty() || reply.contains("failed"), "{reply}");
    }
    fs::write(lab.path("mnt/file"), "content").unwrap();
    checked(&lab, mounted);
}

#[test]
fn mounted_garden_is_checked_while_programs_write() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab);
    lab.run(["fs", "check", "g", "--online"]).refused(2, &["g is not mounted"]);
    let mounted = mount(&lab, &["--point-every", "1"]);
    fill(&lab);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0u8;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                round = round.wrapping_add(1);
                fs::write(lab.path(format!("mnt/{}", round % 30)), vec![round; 30_000]).unwrap();
                fs::rename(lab.path(format!("mnt/{}", round % 30)), lab.path("mnt/moved")).unwrap();
                fs::rename(lab.path("mnt/moved"), lab.path(format!("mnt/{}", round % 30))).unwrap();
            }
            round
        });
        let checks = (0..3).map(|_| lab.run(["fs", "check", "mnt", "--online", "--json"])).collect::<Vec<_>>();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(writer.join().unwrap() > 0);
        for done in checks {
            let told: Value = serde_json::from_str(&done.good().stdout).unwrap();
            let parts = told["checks"].as_array().unwrap();
            assert!(parts.iter().all(|part| part["clean"] == true && part["inodes"].as_u64() >= Some(29)), "{told}");
        }
    });
    let figures = json(&lab, "fs figures mnt");
    assert!(figures["since_opening"]["write_chains"]["blocks"].as_u64().unwrap() > 100, "{figures}");
    assert_eq!(figures["mounts"][0]["volume"], "main");
    // Damage that the mount has not met is found. The check before it ends with nothing left to
    // write.
    run(&lab, "fs check g --online");
    let image = fs::OpenOptions::new().write(true).open(lab.path("g/drive-01.img")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&image, &[0x5a; 4160 * 300], 4160 * 3).unwrap();
    lab.run(["fs", "check", "g", "--online"]).refused(1, &["g is damaged: "]);
    assert!(run(&lab, "fs scrub g").contains(", 0 lost"));
    assert!(run(&lab, "fs check g").starts_with("as it is: clean"));
    checked(&lab, mounted);
}

#[test]
fn a_mounted_evergreen_is_swept_while_programs_write() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "evergreen", "e.img", "--size", "64MiB", "--seed", "7"]).good();
    let aged = ["-q", "age", "renames", "--on", "evergreen:e.img", "--set", "directories=100", "--set", "rounds=1"];
    lab.run(aged).good();
    let mut command = lab.command();
    let child = start(&lab, command.args(["--quiet", "fs", "mount", "e.img", "mnt"]));
    let mounted = hold(&lab, child);
    let would = json(&lab, "-q fs defrag mnt --dry-run --json");
    let moved = |report: &Value| report["moved_objects"].as_u64().unwrap();
    assert!(moved(&would) > 300 && would["dry_run"] == true, "{would}");
    lab.run(["fs", "defrag", "mnt", "path"]).refused(2, &["a PATH is about a garden"]);
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut files = 0_u32;
            while files < 20 || !is_over.load(Relaxed) {
                fs::write(lab.path(format!("mnt/new {files}")), vec![files as u8; 30_000]).unwrap();
                files += 1;
            }
            files
        });
        let done = json(&lab, "-q fs defrag e.img --json");
        is_over.store(true, Relaxed);
        let files = writer.join().unwrap();
        for file in 0..files {
            let found = fs::read(lab.path(format!("mnt/new {file}"))).unwrap();
            assert!(found == vec![file as u8; 30_000], "file {file} of {files}");
        }
        done
    });
    // Files that were made meanwhile have the keys of where they are.
    assert_eq!(moved(&done), moved(&would), "{done}, {would}");
    assert!(done["dry_run"] == false && done["swept_leaf_bytes"].as_u64().unwrap() > 0, "{done}");
    assert!(run(&lab, "fs check mnt --online").starts_with("as it is: clean"));
    assert!(run(&lab, "fs defrag mnt").contains(" 0 of the objects"));
    mounted.unmount();
    assert!(run(&lab, "fs check e.img").starts_with("as it is: clean"));
}

#[test]
fn a_mounted_evergreen_answers() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "evergreen", "e.img", "--size", "64MiB", "--seed", "7"]).good();
    let mut command = lab.command();
    let child = start(&lab, command.args(["--quiet", "fs", "mount", "e.img", "mnt"]));
    let mounted = hold(&lab, child);
    fill(&lab);
    for place in ["e.img", "evergreen:e.img", "mnt"] {
        let stat = json(&lab, &format!("fs stat {place} --json"));
        assert_eq!(stat["format"], "senesce-fs-stat-evergreen/1");
        assert!(stat["live_bytes"].as_u64().unwrap() > 30 * 40_000, "{stat}");
        let told = run(&lab, &format!("fs check {place} --online"));
        assert!(told.starts_with("as it is: clean"), "{told}");
        assert!(json(&lab, &format!("fs figures {place}"))["checkpoints"].is_u64());
    }
    lab.run(["fs", "snapshot", "create", "mnt", "main", "a"]).refused(2, &["it has no snapshots"]);
    lab.run(["fs", "scrub", "mnt"]).refused(2, &["it has no parity"]);
    mounted.unmount();
    assert!(control_sockets(&lab).is_empty());
    assert!(run(&lab, "fs check e.img").starts_with("as it is: clean"));
}
