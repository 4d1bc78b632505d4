//! What ends or limits `defrag`: budgets, lists, signals, quotas, full volumes, and what is
//! refused.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use senesce_testkit::{root_or_skip, unmount_patiently};
use serde_json::Value;

use super::{
    defrag::{Aged, DIRECTORIES, FILES, check, content, defrag, name, state},
    disk::{Disk, Mount, must, volume},
    lab::{Lab, SENESCE},
};

#[test]
fn budget_moves_the_best_batches_first() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("btrfs", &[], 320));
    let tree = aged.tree();
    let whole = defrag(&lab, &tree, &["--dry-run"]);
    // A small part saves little, and the whole decides.
    let small = defrag(&lab, &tree, &["--dry-run", "--budget", "64KiB"]);
    assert_eq!((&whole["worth"], &small["worth"]), (&"yes".into(), &"yes".into()), "{small}");
    let first = defrag(&lab, &tree, &["--force", "--budget", "6MiB"]);
    assert!(first["moved_bytes"].as_u64().unwrap() <= 6 << 20, "{first}");
    assert!(first["applied"]["files"].as_u64().unwrap() > 0, "{first}");
    assert!(first["applied"]["files"].as_u64() < whole["files"].as_u64(), "{first}");
    let stopped = defrag(&lab, &tree, &["--force", "--max-seconds", "0"]);
    assert_eq!((&stopped["applied"]["files"], &stopped["applied"]["is_stopped"]), (&0.into(), &true.into()));
    defrag(&lab, &tree, &["--force"]);
    let rest = defrag(&lab, &tree, &["--dry-run"]);
    assert!(rest["pieces_now"].as_u64().unwrap() < whole["pieces_now"].as_u64().unwrap() / 8, "{rest}");
}

#[test]
fn a_list_of_files_is_their_order() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("ext4", &[], 256));
    let tree = aged.tree();
    // One file of each directory in turn: no other order has it.
    let list: String = (0..FILES)
        .flat_map(|file| (0..DIRECTORIES).map(move |directory| format!("./{}\n", name(directory, file))))
        .collect();
    fs::write(lab.path("list"), &list).unwrap();
    let order = format!("list:{}", lab.path("list").display());
    let report = defrag(&lab, &tree, &["--force", "--order", &order]);
    let (now, after) = (&report["gains"][0]["now_seconds"], &report["applied"]["after"][0]["now_seconds"]);
    assert!(after.as_f64().unwrap() < 0.8 * now.as_f64().unwrap(), "the cost is that of reading by the list: {report}");
    let pieces = |order: &str| defrag(&lab, &tree, &["--dry-run", "--order", order])["pieces_now"].as_u64().unwrap();
    assert!(pieces(&order) <= 4, "{}", pieces(&order));
    assert!(pieces("sorted") > 300);

    let run = |order: &str| {
        let args: Vec<OsString> = ["defrag".into(), tree.clone().into(), "--dry-run".into(), "--order".into()].into();
        lab.run(args.into_iter().chain([order.into()]))
    };
    fs::write(lab.path("bad"), "d00/f000\n../etc/passwd\n").unwrap();
    run(&format!("list:{}", lab.path("bad").display())).refused(2, &["bad: line 2: it is not a relative path"]);
    fs::write(lab.path("long"), vec![b'x'; 10_000]).unwrap();
    run(&format!("list:{}", lab.path("long").display()))
        .refused(2, &["line 1: it is longer than a path can be (4,096 bytes)"]);
    run("alphabet").refused(2, &["readdir, sorted, inode or list:FILE"]);
}

#[test]
fn what_cannot_be_moved_is_refused() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("ext4", &[], 256));
    let tree = aged.tree();
    let before = state(&tree);
    let run = |args: &[&str]| lab.run([&["defrag"], args].concat());
    let text = tree.to_string_lossy().into_owned();
    let idle = run(&[&text, "--device", "nvme"]).good().stdout;
    assert!(idle.contains(": not worth it\n"), "{idle}");
    assert!(idle.ends_with("nothing was moved; --force moves the files anyway\n"), "{idle}");
    let advice: Value = serde_json::from_str(&run(&[&text, "--device", "nvme", "--json"]).good().stdout).unwrap();
    assert_eq!((&advice["worth"], &advice["applied"]), (&"no".into(), &Value::Null));
    run(&["/dev/shm"]).refused(2, &["cannot move files on /dev/shm", "defrag works on ext4, XFS and Btrfs"]);
    run(&["/proc/self"]).refused(2, &["cannot move files on /proc/self"]);
    run(&["none"]).refused(2, &["none", "No such file"]);
    run(&[&tree.join(name(0, 0)).to_string_lossy()]).refused(2, &["it is a file, and a directory is needed"]);
    run(&[&text, "--dry-run", "--force"]).refused(2, &["cannot be used with"]);
    let point = aged.mount.as_ref().unwrap().point.to_string_lossy().into_owned();
    must("mount", &["-o", "remount,ro", &point]);
    run(&[&text, "--force"]).refused(2, &["it is mounted read-only"]);
    must("mount", &["-o", "remount,rw", &point]);
    assert_eq!(state(&tree), before);
    must("mount", &["-o", "remount,ro", &point]);
    drop(aged);
    let made: [(&str, &[&str], &[&str]); 3] = [
        ("no-journal", &["-O", "^has_journal"], &["this ext4 has no journal", "tune2fs -j DEVICE"]),
        ("bigalloc", &["-O", "bigalloc"], &["this ext4 moves no blocks"]),
        ("ext3", &["-O", "^extents,^64bit"], &["this ext4 moves no blocks"]),
    ];
    for (name, mkfs, says) in made {
        let (_disk, mount) = volume("ext4", mkfs, &lab.path(name), 64, lab.path(format!("mnt-{name}")));
        (0..40).for_each(|file| fs::write(mount.point.join(format!("{}", file * 37 % 40)), content(0, file)).unwrap());
        must("sync", &["-f", &mount.point.to_string_lossy()]);
        let point = mount.point.to_string_lossy().into_owned();
        run(&[&point, "--force", "--order", "inode"]).refused(2, &[&["cannot move files on"], says].concat());
    }
    let (_disk, mount) = volume("xfs", &["-m", "reflink=0"], &lab.path("other"), 320, lab.path("xfs"));
    run(&[&mount.point.to_string_lossy()]).refused(2, &["cannot move files on", "made with reflink=0"]);
}

#[test]
fn a_signal_ends_it_with_a_report() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("xfs", &[], 320));
    let tree = aged.tree();
    let before = state(&tree);
    let mut command = lab.command();
    command.args([OsStr::new("defrag"), tree.as_os_str(), OsStr::new("--force"), OsStr::new("--json")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // It may also be ready before the signal comes; then it reports all.
    std::thread::sleep(Duration::from_millis(400));
    must("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let code = output.status.code().unwrap();
    assert!(code == 130 || code == 0, "{code}");
    if code == 130 && !output.stdout.is_empty() {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["applied"]["is_stopped"].is_boolean(), "{report}");
    }
    assert_eq!(state(&tree), before);
    aged.check();
}

/// Other programs of a subvolume with a limit must not fail for want of the space that only the
/// work holds.
#[test]
fn quotas_are_left_to_other_programs() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("btrfs", &[], 512));
    let tree = aged.tree();
    let point = aged.mount.as_ref().unwrap().point.to_string_lossy().into_owned();
    must("btrfs", &["quota", "enable", &point]);
    must("btrfs", &["quota", "rescan", "-w", &point]);
    must("btrfs", &["qgroup", "limit", "40M", &point]);
    let before = state(&tree);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let other = aged.mount.as_ref().unwrap().point.join("other");
            while !stop.load(Ordering::Relaxed) {
                let mut file = File::create(&other).unwrap();
                file.write_all(&vec![7; 1 << 20]).unwrap();
                file.sync_all().unwrap();
            }
        });
        defrag(&lab, &tree, &["--force"]);
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    assert_eq!(state(&tree), before);
    aged.check();
}

#[test]
fn a_full_volume_keeps_all() {
    if !root_or_skip("mounting") {
        return;
    }
    for (kind, mkfs, mib) in [("ext4", &[][..], 64), ("xfs", &[], 320), ("btrfs", &[], 128)] {
        let lab = Lab::new();
        let aged = Aged::new(&lab, (kind, mkfs, mib));
        let tree = aged.tree();
        // Fill all but a little, in one file.
        let space = rustix::fs::statvfs(&tree).unwrap();
        let fill = (space.f_bavail * space.f_frsize).saturating_sub(3 << 20).to_string();
        let filler = aged.mount.as_ref().unwrap().point.join("filler").to_string_lossy().into_owned();
        must("fallocate", &["-l", &fill, &filler]);
        let before = state(&tree);
        defrag(&lab, &tree, &["--force"]);
        assert_eq!(state(&tree), before, "{kind}");
        aged.check();
    }
}

/// ext4 allocates near a directory, and the free extents there are short. So the mover must find
/// the long ones elsewhere, as the plan does.
#[test]
fn a_nearly_full_ext4_gains_as_predicted() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let until = "fullness=85%,turnover=3";
    lab.run(["age", "fsfb", "--on", "image:160MiB", "--fs", "ext4", "--until", until, "--image", "aged"]).good();
    let disk = Disk::attach(&lab.path("aged"));
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let before = state(&mount.point);
    let report = defrag(&lab, &mount.point, &["--force"]);
    let seconds = |gain: &Value, key: &str| gain[key].as_f64().unwrap();
    let (gain, after) = (&report["gains"][0], &report["applied"]["after"][0]);
    let predicted = seconds(gain, "now_seconds") - seconds(gain, "after_seconds");
    let reached = seconds(gain, "now_seconds") - seconds(after, "now_seconds");
    assert!(predicted > 0.5 * seconds(gain, "now_seconds"), "{report}");
    // It was 0.95 to 0.99 on nine images. With batches of at least 16 MiB, which left no choice
    // among the free extents, it was 0.04 to 0.76. The layout differs from run to run.
    assert!(reached > 0.85 * predicted, "{report}");
    assert_eq!(state(&mount.point), before);
    assert!(unmount_patiently(&mount.point), "it stays mounted");
    check("ext4", &disk.device);
}

/// The program in the background of another user who owns the tree moves it as root would.
#[test]
fn the_owner_needs_no_root() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let aged = Aged::new(&lab, ("ext4", &[], 256));
    let tree = aged.tree();
    must("chown", &["-R", "12345:12345", &tree.to_string_lossy()]);
    let before = state(&tree);
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    // A user who may not enter the build directory runs a copy.
    let program = lab.path("senesce");
    fs::copy(SENESCE, &program).unwrap();
    let mut command = Command::new("setpriv");
    lab.confine(&mut command);
    command.args(["--reuid=12345", "--regid=12345", "--clear-groups"]).arg(&program).arg("--quiet").arg("defrag");
    let output = command.arg(&tree).args(["--force", "--json", "--device", "hdd-7200"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["applied"]["files"], report["files"], "{report}");
    assert_eq!(state(&tree), before);
    aged.check();
}
