//! `senesce clean` after a kill that left no time to clean.

use std::{fs, os::unix::fs::symlink, process::Child, time::Duration};

use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    lab::{Done, Lab, SMALL, loops, mount_points},
};

/// The number of mounted volumes of the run `out`.
fn mounted_volumes(lab: &Lab) -> usize {
    let volumes = lab.path("out/volumes").to_string_lossy().into_owned();
    mount_points().iter().filter(|point| point.starts_with(&volumes)).count()
}

/// Starts the run `out` of a small plan, and waits until both volumes are mounted.
fn start_mounted(lab: &Lab) -> Child {
    lab.plan(SMALL);
    let mut child = lab.command().args(["--quiet", "run", "plan.toml", "--out", "out"]).spawn().unwrap();
    while mounted_volumes(lab) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before both volumes were mounted");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn killed_run_is_cleaned_without_foreign_resources() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    // Beside it: another user's image in the same directory, attached and mounted.
    let image = lab.memory().join("foreign-image");
    let disk = Disk::new(&image, 32);
    disk.format_ext4();
    let mount = Mount::new(&[&disk.device], lab.path("foreign"));
    fs::write(mount.point.join("letter"), "dear").unwrap();

    let mounted = || mounted_volumes(&lab);
    let mut child = start_mounted(&lab);
    // Alive: refused.
    lab.run(["clean", "out"]).refused(1, &["still runs"]);
    let all = lab.run(["clean"]).good();
    assert!(all.stdout.contains("still runs; left alone") && mounted() >= 2, "{}", all.stdout);
    lab.run(["clean", "nowhere"]).refused(2, &["there is no directory nowhere"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(mounted() >= 2, "kill -9 leaves the mounts");
    let images = |of: &str| loops().iter().filter(|(_, image)| image.contains(of)).count();
    assert!(images(&lab.memory().to_string_lossy()) >= 3);

    let preview = lab.run(["clean", "--dry-run"]).good();
    assert!(preview.stdout.contains("would be removed"), "{}", preview.stdout);
    assert!(mounted() >= 2, "a dry run changes nothing");

    let cleaned = lab.run(["clean"]).good();
    println!("{}", cleaned.stdout);
    assert!(cleaned.stdout.contains("mount at") && cleaned.stdout.contains("loop device of"), "{}", cleaned.stdout);
    assert_eq!(mounted(), 0);
    assert_eq!(fs::read_to_string(mount.point.join("letter")).unwrap(), "dear");
    assert_eq!(images("foreign-image"), 1);
    drop((mount, disk));
    fs::remove_file(image).unwrap();
    lab.assert_nothing_left();

    // A second time there is nothing, and the run can still continue.
    assert!(lab.run(["clean"]).good().stdout.starts_with("nothing to clean: "));
    assert!(lab.run(["clean", "out"]).good().stdout.contains("nothing left"));
    lab.run(["run", "--resume", "out", "--quiet"]).good();
    lab.assert_nothing_left();
}

#[test]
fn a_wrong_name_cleans_no_run() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let mounted = || mounted_volumes(&lab);
    let mut child = start_mounted(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    lab.run(["clean", "out", "typo"]).refused(2, &["there is no directory typo"]);
    assert!(mounted() >= 2, "nothing is removed before all names are checked");
    lab.run(["clean", "out"]).good();
    lab.assert_nothing_left();
}

#[test]
fn entry_of_a_removed_run_is_cleaned_by_name() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SMALL);
    let entries = || fs::read_dir(lab.path("registry")).unwrap().count();
    for has_name in [true, false] {
        // Killed, and then removed by hand after `clean` unmounted its volumes.
        let mut child = start_mounted(&lab);
        child.kill().unwrap();
        child.wait().unwrap();
        lab.run(["clean", "out"]).good();
        fs::remove_dir_all(lab.path("out")).unwrap();
        assert_eq!(entries(), 1);
        let clean: &[&str] = if has_name { &["clean", "out"] } else { &["clean"] };
        let said = lab.run([clean, &["--dry-run"]].concat()).good().stdout;
        assert!(said.contains("the directory is gone; its entry would be removed"), "{said}");
        let said = lab.run(clean).good().stdout;
        assert!(said.contains("the directory is gone; its entry was removed"), "{said}");
        assert!(said.contains("volumes that its plan kept elsewhere were not looked for"), "{said}");
        assert_eq!(entries(), 0);
    }
    lab.run(["clean", "out"]).refused(2, &["there is no directory out"]);
    fs::write(lab.path("aged.img"), "").unwrap();
    lab.run(["clean", "aged.img"]).refused(2, &["aged.img is a file"]);
    fs::remove_file(lab.path("aged.img")).unwrap();
    lab.assert_nothing_left();
}

#[test]
fn run_that_cannot_be_looked_up_is_not_gone() {
    let lab = Lab::new();
    // The list of runs is not needed for a directory that exists: its place may be unknown.
    lab.plan(SMALL);
    fs::create_dir(lab.path("run")).unwrap();
    fs::rename(lab.path("plan.toml"), lab.path("run/plan.toml")).unwrap();
    let mut here = lab.command();
    here.args(["clean", "run"]).env("SENESCE_REGISTRY", "/dev/null/runs");
    let here = here.output().unwrap();
    assert!(here.status.success(), "{}", String::from_utf8_lossy(&here.stderr));
    // More links than the kernel follows; permissions do not stop root.
    symlink("loop", lab.path("loop")).unwrap();
    let refused = lab.run(["clean", "loop/run"]);
    assert!(refused.code != 0 && refused.stderr.contains("cannot look up loop/run"), "{}", refused.stderr);
    assert!(!refused.stdout.contains("is gone"), "{}", refused.stdout);
}

#[test]
fn interrupted_run_prints_how_to_resume() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SMALL);
    let mut command = lab.command();
    command.args(["--quiet", "run", "plan.toml", "--out", "out"]).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let volumes = lab.path("out/volumes").to_string_lossy().into_owned();
    while !mount_points().iter().any(|point| point.starts_with(&volumes)) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before a volume was mounted");
        std::thread::sleep(Duration::from_millis(2));
    }
    must("kill", &["-TERM", &child.id().to_string()]);
    let ended = Done::of(child.wait_with_output().unwrap());
    ended.refused(143, &["interrupted by signal 15", "senesce run --resume", "out"]);
}
