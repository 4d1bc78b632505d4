//! Deaths of the server and of the parent, and a server without progress.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_vdisk::{DiskMount, Footprint, Pace, ProcessRef, ServeConfig, Server, release};

use crate::bench::{
    Attached, Disk, Place, assert_nothing_left, eventually, launch, pattern, run, try_run, write_synced,
};

fn signal(process: Option<ProcessRef>, signal: Signal) {
    let pid = Pid::from_raw(process.unwrap().pid as i32).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Stops all threads of a process, and waits for it: the signal is asynchronous.
fn stop(process: Option<ProcessRef>) {
    signal(process, Signal::STOP);
    let tasks = format!("/proc/{}/task", process.unwrap().pid);
    eventually("every thread has stopped", || {
        fs::read_dir(&tasks).unwrap().flatten().all(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    });
}

/// Writes endlessly into the page cache.
fn writer(root: &Path) -> Child {
    let script =
        format!("i=0; while dd if=/dev/zero of={}/w$i bs=1M count=64 2>&1; do i=$((i+1)); done", root.display());
    Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Longer than any step here needs on a busy machine, and far below a hang.
const SOON: Duration = Duration::from_secs(20);

pub fn server() {
    let mut disk = Disk::new(512, "hdd-7200", Pace::Device);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    let mut writing = writer(&disk.attached.root);
    eventually("dirty pages are on their way to the disk", || {
        disk.server.time().unwrap().totals.write.bytes > 48 << 20 || {
            let _ = try_run(&format!("sync -f {}", disk.attached.root.display()));
            false
        }
    });
    let footprint = disk.server.footprint().clone();
    let begin = Instant::now();
    signal(footprint.server, Signal::KILL);
    let synced = try_run(&format!("sync -f {}", disk.attached.root.display()));
    let durable = write_synced(&disk.attached.root.join("after"), &pattern(1, 100_000));
    // It may continue to fill the cache of a broken file system, which is not under test.
    let _ = writing.kill();
    writing.wait().unwrap();
    disk.attached.unmount();
    assert!(synced.is_err() || durable.is_err(), "a disk without a server keeps nothing");
    disk.attached.detach();
    eprintln!("from the kill to a detached loop device: {:.2} s", begin.elapsed().as_secs_f64());
    assert!(begin.elapsed() < SOON, "it hung for {:?}", begin.elapsed());
    assert!(disk.server.time().unwrap_err().to_string().contains("gone"));
    eventually("the guard has cleaned up and ended", || !footprint.guard.unwrap().is_alive());
    assert_eq!(release(&footprint).unwrap().mount, DiskMount::AlreadyGone);
    assert_nothing_left(&footprint);
}

pub fn stopped_server() {
    let place = Place::new();
    let config = ServeConfig { stall_seconds: 2, ..place.config(256, "hdd-7200") };
    let mut disk = Disk::with(config, place);
    let footprint = disk.server.footprint().clone();
    // Without requests a stopped server harms no process, and is not aborted.
    stop(footprint.server);
    std::thread::sleep(Duration::from_secs(4));
    assert!(disk.server.is_alive());
    signal(footprint.server, Signal::CONT);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    stop(footprint.server);
    let begin = Instant::now();
    assert!(write_synced(&disk.attached.root.join("file"), &pattern(1, 100_000)).is_err());
    eprintln!("a write to a stopped server failed after {:.2} s (stall time 2 s)", begin.elapsed().as_secs_f64());
    disk.attached.unmount();
    disk.attached.detach();
    assert!(begin.elapsed() < SOON, "it hung for {:?}", begin.elapsed());
    eventually("the guard has killed it", || !footprint.server.unwrap().is_alive());
    drop(disk.attached);
    drop(disk.server);
    assert_nothing_left(&footprint);
}

/// A process that starts a disk, prints its resources, and waits to be killed.
pub fn be_a_parent() -> ExitCode {
    let config: ServeConfig = serde_json::from_str(&std::env::args().nth(2).unwrap()).unwrap();
    let server = Server::start(&launch(), config).unwrap();
    let said = serde_json::to_string(&(server.footprint(), server.notes())).unwrap();
    println!("{said}");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::FAILURE
}

/// Starts such a process through `shell` (`$@` is its command).
pub fn start_parent(config: &ServeConfig, shell: &str) -> (Child, Footprint, Vec<String>) {
    let mut parent = Command::new("sh")
        .args(["-c", shell, "sh"])
        .arg(std::env::current_exe().unwrap())
        .arg("parent")
        .arg(serde_json::to_string(config).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (footprint, notes) = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    (parent, footprint, notes)
}

pub fn parent() {
    let place = Place::new();
    let (mut parent, footprint, _) = start_parent(&place.config(256, "hdd-7200"), "exec \"$@\"");
    let mut attached = Attached::new(&footprint, place.root());
    attached.mkfs("ext4");
    attached.mount("ext4");
    parent.kill().unwrap();
    parent.wait().unwrap();
    for n in 0..20 {
        write_synced(&attached.root.join(format!("{n}")), &pattern(n, 200_000)).unwrap();
    }
    attached.remount("ext4");
    for n in 0..20 {
        assert!(fs::read(attached.root.join(format!("{n}"))).unwrap() == pattern(n, 200_000), "file {n}");
    }
    attached.unmount();
    run(&format!("e2fsck -fn {}", attached.loop_device.display()));
    assert!(footprint.server.unwrap().is_alive() && footprint.guard.unwrap().is_alive());
    attached.detach();
    // Nothing stops it: it detects that its disk is no longer in use.
    eventually("the server has ended by itself", || !footprint.server.unwrap().is_alive());
    assert_nothing_left(&footprint);
}

pub fn parent_beyond_grace() {
    let place = Place::new();
    let config = ServeConfig { grace_seconds: 1, ..place.config(256, "hdd-7200") };
    let (mut parent, footprint, _) = start_parent(&config, "exec \"$@\"");
    let mut attached = Attached::new(&footprint, place.root());
    attached.mkfs("ext4");
    attached.mount("ext4");
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the server has ended after its grace period", || !footprint.server.unwrap().is_alive());
    let begin = Instant::now();
    assert!(write_synced(&attached.root.join("file"), &pattern(1, 100_000)).is_err());
    attached.unmount();
    attached.detach();
    assert!(begin.elapsed() < SOON, "it hung for {:?}", begin.elapsed());
    assert_nothing_left(&footprint);
}
