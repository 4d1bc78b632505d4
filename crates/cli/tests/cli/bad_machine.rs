//! A machine that lacks something, and devices that must not be touched: exit code 3, and nothing
//! is done.
//!
//! Tools and file systems are hidden in a mount name space of the test's own, so the machine itself
//! is not changed.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use senesce_core::{Rng, Seed};
use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    lab::{Lab, SENESCE, SINGLE, SMALL},
    repositories::Repository,
};

const TWO: &str = "kind = \"ext4\"\n[[file_system]]\nkind = \"xfs\"";

/// The single plan on volumes that XFS takes too.
fn on_xfs(kinds: &str) -> String {
    SINGLE.replace("64MiB", "320MiB").replace("kind = \"ext4\"", kinds)
}

#[test]
fn missing_root_is_reported_with_a_hint() {
    if !root_or_skip("becoming somebody else") {
        return;
    }
    let lab = Lab::new();
    let plan = lab.plan(SINGLE);
    // The other user must be able to reach the program and the lab.
    let program = lab.path("senesce");
    fs::copy(SENESCE, &program).unwrap();
    for path in [lab.path(""), lab.path("tmp"), plan, program.clone()] {
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.args(["run", "plan.toml", "--out", "out"]);
    lab.confine(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("not root: cannot make and mount") && said.contains("hint: run as root (sudo)"), "{said}");
    assert!(!lab.path("out").exists(), "nothing was begun");
    lab.assert_nothing_left();
}

#[test]
fn directory_without_space_for_images_is_refused() {
    if !root_or_skip("a small tmpfs") {
        return;
    }
    let lab = Lab::new();
    let mount = Mount::new(&["-t", "tmpfs", "-o", "size=8m", "none"], lab.path("narrow"));
    for kinds in ["kind = \"ext4\"", TWO] {
        lab.plan(
            &on_xfs(kinds).replace("dir = \"MEMORY\"", "dir = \"LAB/narrow\"").replace("files = 500", "files = 900"),
        );
        let done = lab.run(["run", "plan.toml", "--out", "out"]);
        println!("{}", done.stderr);
        done.refused(3, &["narrow has 8 MiB free, and ", " are needed", "hint: name a directory with "]);
        assert!(fs::read_dir(&mount.point).unwrap().next().is_none() && !lab.path("out").exists());
    }
    drop(mount);
    lab.plan(&SINGLE.replace("dir = \"MEMORY\"", "dir = \"LAB\""));
    lab.run(["run", "plan.toml", "--out", "out"]).refused(3, &["is not on tmpfs", "hint: use /dev/shm"]);
    lab.assert_nothing_left();
}

#[test]
fn repository_larger_than_spool_is_not_copied() {
    if !root_or_skip("a small tmpfs") {
        return;
    }
    let lab = Lab::new();
    let repository = Repository::with_commits(&lab.path("repo"), 3);
    let mut bytes = vec![0; 12 << 20];
    Rng::for_purpose(Seed(1), "a large file").fill(&mut bytes);
    fs::write(lab.path("repo/large"), bytes).unwrap();
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--message", "large"]);
    let mount = Mount::new(&["-t", "tmpfs", "-o", "size=8m", "none"], lab.path("narrow"));
    lab.plan(SINGLE);
    let done = lab.run(["run", "plan.toml", "--out", "narrow/out", "--repo", "repo"]);
    println!("{}", done.stderr);
    done.refused(3, &["cannot copy ", "/repo/.git/objects/", " bytes are free", "hint: free space there"]);
    let space = rustix::fs::statvfs(&mount.point).unwrap();
    assert!(space.f_bavail * space.f_frsize > 6 << 20, "the large file was not copied");
    drop(mount);
    lab.assert_nothing_left();
}

#[test]
fn missing_tool_fails_its_arm_or_the_run() {
    if !root_or_skip("a mount name space") {
        return;
    }
    let lab = Lab::new();
    let hide = "mount --bind /dev/null \"$(readlink -f \"$(command -v mkfs.xfs || echo /usr/sbin/mkfs.xfs)\")\"";
    let run = format!("{hide}\nexec \"$SENESCE\" run plan.toml --out out");
    lab.plan(&on_xfs("kind = \"xfs\""));
    let says = ["mkfs.xfs is not installed", "apt-get install xfsprogs"];
    lab.run_apart(&run).refused(3, &says);
    lab.assert_nothing_left();

    lab.plan(&on_xfs(TWO));
    let done = lab.run_apart(&run);
    println!("{}", done.stderr);
    done.refused(1, &says);
    done.refused(1, &["1 arm(s) failed", "xfs: ", "ext4: done"]);
    let cells = super::outputs::cells(&lab, "out");
    let valid = |arm: &str| cells.iter().filter(|cell| cell.key.starts_with(arm) && cell.is_valid).count();
    assert_eq!((cells.len(), valid("ext4"), valid("xfs")), (8, 4, 0));
    lab.assert_nothing_left();
    done.refused(1, &["hint: remove the cause, then repeat the failed arms with `senesce run --resume "]);
    let shown = lab.run(["show", "out"]).good().stdout;
    let first = "unfinished: 1 of 2 arms failed (xfs); remove the cause, then repeat with `senesce run --resume out`\n";
    assert!(shown.starts_with(first), "{shown}");
    assert_eq!(shown.matches("mkfs.xfs is not installed").count(), 1, "{shown}");
    assert!(shown.contains("    xfs empty at 0 and 4\n") && !shown.contains("    ext4 empty"), "{shown}");

    // With the tool, the arm that failed is repeated, and only that one.
    let done = lab.run(["run", "--resume", "out"]).good();
    assert!(done.stderr.contains("xfs (2/2): ") && !done.stderr.contains("ext4 (1/2): "), "{}", done.stderr);
    let again = super::outputs::cells(&lab, "out");
    assert!(again.len() == 8 && again.iter().all(|cell| cell.is_valid), "{again:?}");
    assert_eq!(
        again.iter().filter(|cell| cell.key.starts_with("ext4")).collect::<Vec<_>>(),
        cells.iter().filter(|cell| cell.key.starts_with("ext4")).collect::<Vec<_>>()
    );
    assert!(!lab.run(["show", "out"]).good().stdout.contains("unfinished"));
    lab.assert_nothing_left();
}

#[test]
fn file_system_missing_in_kernel_is_named() {
    if !root_or_skip("a mount name space") {
        return;
    }
    let lab = Lab::new();
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    let without: Vec<&str> = known.lines().filter(|line| line.split_whitespace().last() != Some("xfs")).collect();
    fs::write(lab.path("filesystems"), without.join("\n") + "\n").unwrap();
    lab.plan(&on_xfs("kind = \"xfs\""));
    let hide = "mount --bind filesystems /proc/filesystems\n[ ! -d /lib/modules ] || mount -t tmpfs none /lib/modules";
    let done = lab.run_apart(&format!("{hide}\nexec \"$SENESCE\" run plan.toml --out out"));
    done.refused(3, &["this kernel does not know the file system xfs", "hint: load its module (modprobe xfs)"]);
    lab.assert_nothing_left();
}

#[test]
fn devices_in_use_are_refused_signed_need_force() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    let disk = Disk::new(&lab.path("somebodys-disk"), 64);
    disk.format_ext4();
    lab.plan(&SINGLE.replace("empty = \"64MiB\"", &format!("empty = {{ device = {:?} }}", disk.device)));
    let run = ["run", "plan.toml", "--out", "out"];
    let forced = ["run", "plan.toml", "--out", "out", "--force"];

    let mount = Mount::new(&[&disk.device], lab.path("precious"));
    fs::write(mount.point.join("letter"), "dear").unwrap();
    for args in [&run[..], &forced] {
        let done = lab.run(args);
        println!("{}", done.stderr);
        done.refused(
            3,
            &[&disk.device, "is in use and was not touched", "is mounted on", "precious", "hint: stop that use"],
        );
        assert!(!lab.path("out").exists());
    }
    assert_eq!(fs::read_to_string(mount.point.join("letter")).unwrap(), "dear");
    drop(mount);

    lab.run(run).refused(3, &[&disk.device, "holds", "ext4", "it was not touched", "--force"]);
    let mount = Mount::new(&[&disk.device], lab.path("precious"));
    assert_eq!(fs::read_to_string(mount.point.join("letter")).unwrap(), "dear");
    drop(mount);

    lab.run(forced).good();
    assert!(super::outputs::cells(&lab, "out").iter().all(|cell| cell.is_valid));
    drop(disk);
    fs::remove_file(lab.path("somebodys-disk")).unwrap();
    lab.assert_nothing_left();

    lab.plan(&SINGLE.replace("empty = \"64MiB\"", "empty = { device = \"LAB/plan.toml\" }"));
    let done = lab.run(["run", "plan.toml", "--out", "no-device"]);
    done.refused(2, &["plan.toml is not a block device"]);
}

#[test]
fn unexpectedly_full_volume_fails_only_its_arm() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    // The first arm has too few inodes for the clone.
    let two = "kind = \"ext4\"\nname = \"tight\"\nmkfs = [\"-N\", \"96\"]\n[[file_system]]\nkind = \"ext4\"";
    lab.plan(&SINGLE.replace("kind = \"ext4\"", two));
    let done = lab.run(["run", "plan.toml", "--out", "out"]);
    println!("{}", done.stderr);
    done.refused(1, &["1 arm(s) failed", "tight: ", "ext4: done", "clone"]);
    let cells = super::outputs::cells(&lab, "out");
    assert_eq!(cells.len(), 8);
    for cell in &cells {
        let is_tight = cell.key.starts_with("tight");
        assert_eq!(cell.is_valid, !is_tight, "{cell:?}");
        assert_eq!(cell.reason.contains("does not fit"), is_tight, "{cell:?}");
    }
    assert!(done.stdout.contains("report: ") && lab.path("out/report.html").exists());
    lab.assert_nothing_left();

    // A full-disk plan on a volume that does not hold one copy.
    lab.plan(&SMALL.replace("34MiB", "8MiB"));
    for args in [vec![], vec!["--dry-run"]] {
        let done = lab.run([vec!["run", "plan.toml", "--out", "tiny"], args].concat());
        println!("{}", done.stderr);
        done.refused(
            2,
            &["volumes.full, ext4: it has 8 MiB, which is too small", "hint: make the volume larger than "],
        );
    }
    // One that a file system of the plan cannot be made on.
    lab.plan(&SMALL.replace("34MiB", "100MiB").replace("\"ext4\"", "\"ext4\"\n[[file_system]]\nkind = \"btrfs\""));
    let done = lab.run(["run", "plan.toml", "--out", "tiny"]);
    done.refused(2, &["volumes.full, btrfs: 100 MiB is too small for btrfs: at least 109 MiB"]);
    // A device's size is known only by asking.
    let disk = Disk::new(&lab.path("small-disk"), 9);
    lab.plan(&SINGLE.replace("empty = \"64MiB\"", &format!("empty = {{ device = {:?} }}", disk.device)));
    lab.run(["run", "plan.toml", "--out", "tiny"]).refused(2, &["volumes.empty, ext4: ", &disk.device, "has 9 MiB"]);
    assert!(!lab.path("tiny").exists());
    must("cmp", &["-n", "9437184", &disk.device, "/dev/zero"]);
    drop(disk);
    lab.assert_nothing_left();
}

#[test]
fn tools_of_the_tests_are_there() {
    if !root_or_skip("mounting") {
        return;
    }
    for tool in ["unshare", "setpriv", "losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"] {
        assert!(Path::new(&must("sh", &["-c", &format!("command -v {tool}")])).is_absolute());
    }
}

/// Shell: starts a run in `out`, and stops it when both volumes of [`SINGLE`] are mounted. The run
/// is `$RUN`, and [`FINISH`] continues it.
const BEGIN: &str = r#"
    "$SENESCE" --quiet run plan.toml --out "$OUT" & RUN=$!
    until [ "$(grep -c "$OUT/volumes/.* ext4 " /proc/self/mountinfo)" -ge 2 ]; do kill -0 $RUN; sleep 0.01; done
    kill -STOP $RUN
"#;

/// Shell: continues the run of [`BEGIN`] and waits for its exit code, which is `$code`.
const FINISH: &str = "kill -CONT $RUN; code=0; wait $RUN || code=$?";

#[test]
fn a_full_host_stops_a_resumable_run() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    // The images are on another file system: only the results are on the full one.
    lab.plan(SINGLE);
    let script = format!(
        r#"mkdir small; mount -t tmpfs -o size=192m none small; OUT=$PWD/small/out
        {BEGIN}
        cat /dev/zero > small/filler 2>/dev/null || true
        {FINISH}
        rm small/filler
        [ $code -eq 3 ] || exit $code
        "$SENESCE" --quiet run --resume "$OUT""#
    );
    let done = lab.run_apart(&script);
    done.refused(
        0,
        &["is full: ", "No space left on device", "hint: free some space, then continue: senesce run --resume"],
    );
    lab.assert_nothing_left();
}

#[test]
fn host_read_only_mid_run_is_resumable() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let script = format!(
        r#"truncate -s 256M host.img; mkfs.ext4 -q -F host.img; mkdir small; mount -o loop host.img small
        OUT=$PWD/small/out
        {BEGIN}
        mount -o remount,abort small
        {FINISH}
        umount small; e2fsck -fy host.img > e2fsck 2>&1 || true; mount -o loop host.img small
        [ $code -eq 3 ] || exit $code
        "$SENESCE" --quiet run --resume "$OUT"
        umount small; rm host.img"#
    );
    let done = lab.run_apart(&script);
    done.refused(
        0,
        &["became read-only: ", "Read-only file system", "hint: see why (dmesg), make it writable, then continue: "],
    );
    lab.assert_nothing_left();
}

#[test]
fn a_read_only_host_is_an_environment_error() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let place = "mkdir -p ro; mount -t tmpfs -o ro none ro";
    let done = lab.run_apart(&format!("{place}; exec \"$SENESCE\" run plan.toml --out ro/out"));
    done.refused(3, &["cannot make the directory of the run", "Read-only file system"]);
    let registry = "export SENESCE_REGISTRY=$PWD/ro/registry";
    let done = lab.run_apart(&format!("{place}; {registry}; exec \"$SENESCE\" run plan.toml --out out"));
    done.refused(3, &["cannot create the directory", "ro/registry", "Read-only file system"]);
    assert!(!lab.path("out").exists(), "the same command can be given again");
    lab.assert_nothing_left();
}

#[test]
fn a_missing_loop_device_is_named() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("\"memory\"", "\"image\"").replace("MEMORY", "LAB"));
    let nodes = "mkdir dev; mount -t tmpfs none dev; cp -a /dev/null /dev/zero /dev/urandom /dev/loop-control dev/\n\
                 mount --move dev /dev";
    let done = lab.run_apart(&format!("{nodes}\nexec \"$SENESCE\" run plan.toml --out out"));
    done.refused(3, &["there is no loop device to attach", "/dev/loop", "hint: detach unused loop devices"]);
    assert!(!lab.path("out").exists());
    lab.assert_nothing_left();
}

#[test]
fn an_image_truncated_mid_run_fails_its_arm() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let memory = lab.memory().to_string_lossy().into_owned();
    let script = format!(
        "OUT=$PWD/out\n{BEGIN}\nfor image in {memory}/*empty*.img; do truncate -s 1M \"$image\"; done\n\
         {FINISH}; exit $code"
    );
    let done = lab.run_apart(&script);
    done.refused(1, &["arm(s) failed", "ext4: "]);
    // On a busy machine the first checkpoint may be over before the images are cut.
    let cells = super::outputs::cells(&lab, "out");
    assert!(cells.iter().all(|cell| cell.is_valid == cell.reason.is_empty()), "{cells:?}");
    assert!(cells.iter().all(|cell| !cell.is_valid || cell.pulls == 0), "{cells:?}");
    lab.assert_nothing_left();
}
