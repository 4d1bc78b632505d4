//! Bad input of `defrag`: it refuses some file systems. It skips, counts and names some files.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command},
};

use senesce_testkit::root_or_skip;
use serde_json::{Value, json};

use super::{
    defrag::{Aged, DIRECTORIES, FILES, defrag, name, state},
    disk::{Mount, must, volume},
    lab::Lab,
};

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn other_file_systems_are_named() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("ext4", &[], 256));
    let below = aged.mount.as_ref().unwrap().point.clone();
    for directory in ["upper", "work"] {
        fs::create_dir(below.join(directory)).unwrap();
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        text(&aged.tree()),
        text(&below.join("upper")),
        text(&below.join("work"))
    );
    let overlay = Mount::new(&["-t", "overlay", "overlay", "-o", &layers], lab.path("overlay"));
    let before = state(&aged.tree());
    for more in [&["--force"][..], &["--free-space"], &["--dry-run"]] {
        lab.run([&["defrag", &text(&overlay.point)], more].concat())
            .refused(2, &["this is an overlay", "name a directory of the file system below it"]);
    }
    lab.run(["defrag", "/dev/shm", "--force"]).refused(2, &["this is tmpfs, which is in memory"]);
    assert_eq!(state(&aged.tree()), before);
    drop(overlay);
    aged.check();
}

#[test]
fn journalled_data_is_refused() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (disk, mount) = volume("ext4", &[], &lab.path("volume"), 64, lab.path("mnt"));
    drop(mount);
    let mount = Mount::new(&["-o", "data=journal", &disk.device], lab.path("mnt"));
    lab.run(["defrag", &text(&mount.point), "--force"]).refused(2, &["mounted with data=journal"]);
    drop(mount);
}

/// A program of the tree that runs until it is dropped.
struct Running(Child);

impl Running {
    fn start(program: &Path) -> Self {
        // A copy by this process could be open for writing in a child of another test.
        must("cp", &["/bin/sleep", &text(program)]);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        Self(Command::new(program).arg("1000").spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each of these files stays, is counted with its reason, and is named. All others move.
#[test]
fn files_that_cannot_move_are_counted_and_named() {
    if !root_or_skip("mounting") {
        return;
    }
    let cases: [(&str, u64, &[&str]); 3] = [
        ("ext4", 256, &["busy", "refused"]),
        ("xfs", 320, &["refused"]),
        ("btrfs", 320, &["not-supported", "refused"]),
    ];
    for (kind, mib, reasons) in cases {
        let lab = Lab::new();
        let aged = Aged::new(&lab, (kind, &[], mib));
        let tree = aged.tree();
        let immutable = text(&tree.join(name(9, 10)));
        // A file without checksums on Btrfs. The flag needs an empty file.
        let other = text(&tree.join("d05/other"));
        fs::write(&other, "").unwrap();
        if kind == "btrfs" {
            must("chattr", &["+C", &other]);
        }
        fs::write(&other, vec![7; 30_000]).unwrap();
        // In the order of reading, it is not adjacent to its neighbours. So the plan moves it.
        let running = (kind == "ext4").then(|| Running::start(&tree.join("d08/running")));
        must("sync", &["-f", &text(&tree)]);
        must("chattr", &["+i", &immutable]);
        let before = state(&tree);
        let report = defrag(&lab, &tree, &["--force", "--programs"]);
        let after = state(&tree);
        must("chattr", &["-i", &immutable]);
        drop(running);
        assert_eq!(after, before, "{kind}");
        let skipped = &report["applied"]["skipped"];
        let one = |example: &str| json!({"files": 1, "examples": [example]});
        for reason in reasons {
            let example = match *reason {
                "busy" => "d08/running".to_owned(),
                "refused" => name(9, 10),
                _ => "d05/other".to_owned(),
            };
            assert_eq!(skipped[reason], one(&example), "{kind} {reason}: {report}");
        }
        assert_eq!(skipped.as_object().unwrap().len(), reasons.len(), "{kind}: {skipped}");
        let files = report["applied"]["files"].as_u64().unwrap();
        assert!(files >= (DIRECTORIES * FILES) as u64 - 1, "{kind}: {report}");
        aged.check();
    }
}

/// A volume without space: every file of the plan is counted, with a reason.
#[test]
fn files_without_space_are_counted() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mib) in [("ext4", 64), ("xfs", 320), ("btrfs", 128)] {
        let lab = Lab::new();
        let aged = Aged::new(&lab, (kind, &[], mib));
        let tree = aged.tree();
        // Root may use reserved blocks. So only a failed write shows that no space is left.
        let mut filler = fs::File::create(aged.mount.as_ref().unwrap().point.join("filler")).unwrap();
        let error = io::copy(&mut io::repeat(1), &mut filler).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{kind}");
        // The error of a full volume came already.
        let _ = filler.sync_all();
        drop(filler);
        let before = state(&tree);
        let report = defrag(&lab, &tree, &["--force"]);
        assert_eq!(state(&tree), before, "{kind}");
        let sum =
            |part: &Value| part.as_object().map_or(0, |all| all.values().filter_map(|of| of["files"].as_u64()).sum());
        let (moved, skipped): (u64, u64) =
            (report["applied"]["files"].as_u64().unwrap_or(0), sum(&report["applied"]["skipped"]));
        let left: u64 = sum(&report["left"]);
        assert!(moved + skipped + left >= (DIRECTORIES * FILES) as u64, "{kind}: {report}");
        assert!(skipped > 0, "{kind}: {report}");
        let is_space = |why: &String| ["no-space", "no-better-space", "sharers"].contains(&why.as_str());
        assert!(report["applied"]["skipped"].as_object().unwrap().keys().all(is_space), "{kind}: {report}");
        aged.check();
    }
}

/// `--resume` continues a stopped run, even if the remaining moves alone are not worth it.
#[test]
fn resume_moves_the_rest() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("ext4", &[], 256));
    let tree = aged.tree();
    let before = state(&tree);
    let part = defrag(&lab, &tree, &["--force", "--budget", "4MiB"]);
    assert!(part["applied"]["files"].as_u64() > Some(0), "{part}");
    // On this disk the moves are not worth it, so a repeated run moves nothing.
    let on_nvme = |more: &[&str]| -> Value {
        let path = text(&tree);
        let args = [&["-q", "defrag", &path, "--json", "--device", "nvme"], more].concat();
        serde_json::from_str(&lab.run(args).good().stdout).unwrap()
    };
    let refused = on_nvme(&[]);
    assert_eq!((&refused["worth"], &refused["applied"]), (&"no".into(), &Value::Null));
    let rest = on_nvme(&["--resume"]);
    assert!(rest["applied"]["files"].as_u64() > part["applied"]["files"].as_u64(), "{rest}");
    assert_eq!(state(&tree), before);
    let stopped =
        lab.run(["-q", "defrag", &text(&tree), "--force", "--order", "inode", "--max-seconds", "0"]).good().stdout;
    assert!(stopped.contains("stopped early, --resume continues"), "{stopped}");
    lab.run(["defrag", &text(&tree), "--resume", "--dry-run"]).refused(2, &["cannot be used with"]);
    aged.check();
}
