//! Memory pressure: a writer whose control group is smaller than the data that it writes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};
use senesce_testkit::found_or_skip;
use senesce_vdisk::Pace;

use crate::{
    bench::{Attached, Disk, Place, assert_nothing_left, eventually, run},
    killed::start_parent,
};

const LIMIT_BYTES: u64 = 48 << 20;

/// A group with a limit, below this process's own group.
struct Group(PathBuf);

impl Group {
    /// `None` if groups cannot be made.
    fn new() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = groups.lines().find_map(|line| line.split_once(":memory:"));
        let (parent, limit) = match own {
            Some((_, path)) => (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"),
            None => {
                let (_, path) = groups.lines().find_map(|line| line.split_once("0::"))?;
                (format!("/sys/fs/cgroup{path}"), "memory.max")
            }
        };
        let dir = Path::new(&parent).join(format!("senesce-vdisk-test-{}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        let group = Self(dir);
        fs::write(group.0.join(limit), LIMIT_BYTES.to_string()).ok()?;
        Some(group)
    }

    /// The number of processes that its limit has killed.
    fn kills(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).unwrap_or_default();
        let texts = read("memory.oom_control") + &read("memory.events");
        texts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
    }

    fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        eprintln!("NOT REMOVED: {}", self.0.display());
    }
}

pub fn limited_writer() {
    let Some(group) = found_or_skip(Group::new(), "a memory control group that it may make") else { return };
    for kind in ["ext4", "xfs", "btrfs"] {
        writes_past_its_limit(&group, kind);
    }
    a_server_born_in_the_group_leaves_it(&group);
    a_server_killed_under_pressure_hangs_nobody(&group);
}

/// The writer waits for write-back of its own pages when their server dies.
fn a_server_killed_under_pressure_hangs_nobody(group: &Group) {
    let mut disk = Disk::new(400, "hdd-7200", Pace::Device);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    let script = format!(
        "echo $$ > {}; exec dd if=/dev/zero of={}/big bs=1M count=300 conv=fsync",
        group.procs().display(),
        disk.attached.root.display()
    );
    let mut writer = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap();
    eventually("the writer is past its limit", || {
        disk.server.time().unwrap().totals.write.bytes > LIMIT_BYTES || writer.try_wait().unwrap().is_some()
    });
    let begin = Instant::now();
    let server = disk.server.footprint().server.unwrap();
    kill_process(Pid::from_raw(server.pid as i32).unwrap(), Signal::KILL).unwrap();
    eventually("the writer has ended", || writer.try_wait().unwrap().is_some());
    disk.attached.unmount();
    disk.attached.detach();
    eprintln!("killed under pressure: all released after {:.2} s", begin.elapsed().as_secs_f64());
    let footprint = disk.server.footprint().clone();
    drop(disk);
    for process in [footprint.server, footprint.guard] {
        assert!(!process.unwrap().is_alive());
    }
}

/// Writes four times the limit through the page cache, from within the group; `options` are for dd.
/// Returns whether it finished; otherwise the group's limit killed it.
fn write_in_group(group: &Group, root: &Path, options: &str) -> bool {
    let megabytes = (4 * LIMIT_BYTES) >> 20;
    let script = format!(
        "echo $$ > {}; exec dd if=/dev/zero of={}/big bs=1M count={megabytes} {options}",
        group.procs().display(),
        root.display()
    );
    let kills = group.kills();
    let output = Command::new("timeout").args(["-k", "5", "100", "sh", "-c", &script]).output().unwrap();
    let is_killed_by_limit = group.kills() > kills;
    let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    assert!(output.status.success() || is_killed_by_limit, "{}: {said}", output.status);
    eprintln!("  {options}: {}", if output.status.success() { said.as_str() } else { "killed by its group's limit" });
    output.status.success()
}

fn writes_past_its_limit(group: &Group, kind: &str) {
    let mut disk = Disk::new(400, "hdd-7200", Pace::Device);
    disk.attached.mkfs(kind);
    disk.attached.mount(kind);
    eprintln!("{kind}, a writer in {} MiB:", LIMIT_BYTES >> 20);
    // Version 1 groups do not slow a writer down to the speed of its disk. If all memory of the
    // group is in write-back, an allocation inside XFS or ext4 may not wait for it, and the writer
    // is killed. The test only requires that it ends.
    write_in_group(group, &disk.attached.root, "conv=fsync");
    assert!(write_in_group(group, &disk.attached.root, "oflag=dsync"), "it never has more on its way than 1 MiB");
    assert!(disk.server.time().unwrap().totals.write.bytes >= 4 * LIMIT_BYTES);
    disk.end();
}

/// Starts parent and server inside the limited group, the worst case.
fn a_server_born_in_the_group_leaves_it(group: &Group) {
    let place = Place::new();
    let shell = format!("echo $$ > {} && exec \"$@\"", group.procs().display());
    let (mut parent, footprint, notes) = start_parent(&place.config(400, "hdd-7200"), &shell);
    let mut attached = Attached::new(&footprint, place.root());
    let procs = fs::read_to_string(group.procs()).unwrap();
    let is_inside = |pid: u32| procs.lines().any(|line| line == pid.to_string());
    assert!(is_inside(parent.id()), "the parent stays where it was put");
    for process in [footprint.server, footprint.guard] {
        assert!(!is_inside(process.unwrap().pid), "in the group: {procs}");
    }
    assert!(notes.iter().any(|note| note.starts_with("moved from memory-limited group")), "{notes:?}");
    attached.mkfs("ext4");
    attached.mount("ext4");
    assert!(write_in_group(group, &attached.root, "oflag=dsync"));
    attached.unmount();
    run(&format!("e2fsck -fn {}", attached.loop_device.display()));
    attached.detach();
    parent.kill().unwrap();
    parent.wait().unwrap();
    drop(attached);
    assert_nothing_left(&footprint);
}
