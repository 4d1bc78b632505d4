//! Drives that fail or are missing while a garden is mounted: stderr, events and the exit code say
//! so.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::Stdio,
};

use senesce_testkit::root_or_skip;

use super::{
    disk::Mount,
    garden_mount::{hold, start, unmount},
    lab::{Done, Lab},
};

/// A garden in `g` with 4 data drives and one of parity; drive 3 is on a file system that is full
/// after 6 MiB.
fn garden_with_a_drive_that_fills_up(lab: &Lab) -> Mount {
    lab.run(["fs", "mkfs", "garden", "g", "--size", "128MiB", "--seed", "7"]).good();
    let small = Mount::new(&["-t", "tmpfs", "-o", "size=6m", "small"], lab.path("small"));
    let image = small.point.join("drive.img");
    assert!(
        std::process::Command::new("cp")
            .args(["--sparse=always"])
            .arg(drive(lab))
            .arg(&image)
            .status()
            .unwrap()
            .success()
    );
    fs::remove_file(drive(lab)).unwrap();
    std::os::unix::fs::symlink(&image, drive(lab)).unwrap();
    small
}

fn drive(lab: &Lab) -> PathBuf {
    lab.path("g/drive-03.img")
}

/// Writes 48 MiB to the mount: 12 MiB for each data drive. Every write must succeed.
fn write_much(lab: &Lab) {
    let file = fs::File::create(lab.path("mnt/much")).unwrap();
    (0..48u8).for_each(|byte| (&file).write_all(&vec![byte; 1 << 20]).unwrap());
    file.sync_all().unwrap();
}

#[test]
fn failing_drive_is_reported_and_changes_exit_code() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let small = garden_with_a_drive_that_fills_up(&lab);
    let mut command = lab.command();
    command.args(["--quiet", "fs", "mount", "g", "mnt", "--point-every", "1"]).stderr(Stdio::piped());
    let mut child = start(&lab, &mut command);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mounted = hold(&lab, child);
    write_much(&lab);
    // The report comes while it is mounted, without any further request.
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("senesce: drive 3 (") && line.contains(" FAILED: "), "{line}");
    assert!(line.contains("has no redundancy until"), "{line}");
    unmount(&lab);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(mounted.wait_code(), 7, "{rest}");
    assert!(rest.contains("g is degraded; drive 3 is missing ("), "{rest}");
    assert!(!rest.contains("FAILED"), "a failure is reported once: {rest}");

    // The next mount finds it too old, says so though it is quiet, and ends with the same code.
    let mut command = lab.command();
    command.args(["--quiet", "fs", "mount", "g", "mnt"]).stderr(Stdio::piped());
    let child = start(&lab, &mut command);
    assert_eq!(fs::metadata(lab.path("mnt/much")).unwrap().len(), 48 << 20);
    unmount(&lab);
    let done = Done::of(child.wait_with_output().unwrap());
    done.refused(7, &["senesce: drive 3 is MISSING: ", "g is degraded; drive 3 is missing", "senesce fs replace"]);
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains("drive 3 is MISSING: "), "{told}");

    // With a new drive the mount ends well.
    fs::remove_file(drive(&lab)).unwrap();
    drop(small);
    lab.run(["fs", "replace", "g", "3"]).good();
    let mut command = lab.command();
    let child = start(&lab, command.args(["--quiet", "fs", "mount", "g", "mnt"]).stderr(Stdio::piped()));
    unmount(&lab);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!((done.code, &*done.stderr), (0, ""));
}

#[test]
fn a_served_run_has_events_of_its_drives() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let _small = garden_with_a_drive_that_fills_up(&lab);
    let serve = |lab: &Lab| {
        let mut command = lab.command();
        command.args(["fs", "serve", "g", "mnt", "--source", "senesce-test-degraded", "--point-every", "1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        start(lab, &mut command)
    };
    let child = serve(&lab);
    write_much(&lab);
    unmount(&lab);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 7, "{}", done.stderr);
    let lines: Vec<serde_json::Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["ready", "drive_failed", "ended"], "{}", done.stdout);
    assert!(lines[1]["drive"] == 3 && lines[1]["left_out"] == true && lines[1]["problem"].is_string(), "{}", lines[1]);
    assert!(lines[2]["problem"].is_null(), "{}", lines[2]);

    let child = serve(&lab);
    unmount(&lab);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 7, "{}", done.stderr);
    assert!(done.stdout.starts_with("{\"drive\":3,\"event\":\"drive_missing\""), "{}", done.stdout);
}

#[test]
fn check_reports_drive_without_parity_as_lost() {
    let lab = Lab::new();
    for (parity, code, says, never) in [
        (None, 0, "without drive(s) [1]: nothing is lost", "DAMAGED"),
        (Some("--no-parity"), 1, "RAID group 0: drives: missing is [1], expected none", "nothing is lost"),
    ] {
        let name = parity.map_or("with", |_| "bare");
        lab.run(["fs", "mkfs", "garden", name, "--size", "12MiB", "--seed", "7"].into_iter().chain(parity)).good();
        fs::remove_file(lab.path(name).join("drive-01.img")).unwrap();
        let done = lab.run(["fs", "check", name]);
        assert_eq!(done.code, code, "{}{}", done.stdout, done.stderr);
        assert!(done.stdout.contains(says) && !done.stdout.contains(never), "{}", done.stdout);
    }
}

/// A garden whose second log is on a file system that is full after 1 MiB of it.
fn garden_with_a_log_that_fills_up(lab: &Lab) -> Mount {
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--log-size", "8MiB", "--seed", "7"]).good();
    let small = Mount::new(&["-t", "tmpfs", "-o", "size=1m", "small"], lab.path("small"));
    let (log, image) = (lab.path("g/log-2.img"), small.point.join("log.img"));
    let copied = std::process::Command::new("cp").arg("--sparse=always").arg(&log).arg(&image).status().unwrap();
    assert!(copied.success());
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(&image, &log).unwrap();
    small
}

/// Each write is in the log before it returns.
fn write_synced_mebibytes(lab: &Lab, count: u8) {
    let file = fs::File::create(lab.path("mnt/synced")).unwrap();
    for byte in 0..count {
        (&file).write_all(&vec![byte; 1 << 20]).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn failing_log_is_reported_and_changes_exit_code() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let _small = garden_with_a_log_that_fills_up(&lab);
    assert!(lab.run(["fs", "stat", "g"]).good().stdout.contains("copy 1 of the log, g/log-2.img, is whole"));
    let mut command = lab.command();
    command.args(["--quiet", "fs", "mount", "g", "mnt", "--point-every", "3600"]).stderr(Stdio::piped());
    let mut child = start(&lab, &mut command);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mounted = hold(&lab, child);
    write_synced_mebibytes(&lab, 3);
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("senesce: copy 1 of the log (g/log-2.img) FAILED: "), "{line}");
    let stat = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(stat.contains("copy 0 of the log, g/log.img, is whole"), "{stat}");
    assert!(stat.contains("copy 1 of the log, g/log-2.img, is LOST"), "{stat}");
    unmount(&lab);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(mounted.wait_code(), 7, "{rest}");
    assert!(rest.contains("g is degraded; copy 1 of the log (g/log-2.img) is lost"), "{rest}");
}

#[test]
fn a_served_run_has_events_of_its_log() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--seed", "7"]).good();
    fs::remove_file(lab.path("g/log-2.img")).unwrap();
    let mut command = lab.command();
    command.args(["fs", "serve", "g", "mnt", "--source", "senesce-test-log", "--point-every", "1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = start(&lab, &mut command);
    unmount(&lab);
    let done = Done::of(child.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines: Vec<serde_json::Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["log_copy_lost", "repaired", "ready", "ended"], "{}", done.stdout);
}
