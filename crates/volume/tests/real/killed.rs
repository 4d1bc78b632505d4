//! After a kill, cleaning removes everything of the run, and nothing else.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use senesce_core::Bytes;
use senesce_testkit::root_or_skip;
use senesce_volume::{
    CleanMode, Custodian, Error, FileSystemKind, Host, LinuxHost, Outcome, Registry, Volume, clean,
    install_signal_cleanup, interrupted,
};

use crate::bench::{slot_in, spec_in, traces_of};

const DIR: &str = "SENESCE_TEST_CHILD_DIR";
const KIND: &str = "SENESCE_TEST_CHILD_KIND";

/// A helper, not a test: the process that the tests below start and kill.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn child_that_holds_volumes() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let kind: FileSystemKind = std::env::var(KIND).unwrap().parse().unwrap();
    install_signal_cleanup().unwrap();
    let custodian = Custodian::open(Arc::new(LinuxHost::default()), &dir).unwrap();
    let volume = Volume::create(&custodian, &spec_in(&dir, kind), &slot_in(&dir, "killed")).unwrap();
    fs::write(volume.root().join("file"), vec![1; 1 << 20]).unwrap();
    println!("\nready {}", volume.root().display());
    let mut reported = false;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
        if let (Some(signal), false) = (interrupted(), reported) {
            reported = true;
            println!("\ninterrupted {signal}");
        }
    }
}

/// The child process. Its drop removes the child's resources, also after a panic.
struct Holder {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    dir: PathBuf,
}

impl Holder {
    fn start(dir: &Path, kind: FileSystemKind) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child_that_holds_volumes", "--ignored", "--nocapture"])
            .env(DIR, dir)
            .env(KIND, kind.name())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut holder = Self { child, lines, dir: dir.to_owned() };
        holder.wait_for("ready");
        holder
    }

    fn wait_for(&mut self, word: &str) {
        for line in self.lines.by_ref() {
            if line.unwrap().starts_with(word) {
                return;
            }
        }
        panic!("the child exited before it was {word}");
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A failure must not hide the panic of the test.
        let _ = clean(&LinuxHost::default(), &self.dir, CleanMode::Act);
    }
}

fn killed_and_cleaned(kind: FileSystemKind) {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let host = LinuxHost::default();
    let temp = tempfile::Builder::new().prefix("senesce-volume-kill-").tempdir_in("/tmp").unwrap();
    let (dir, other) = (temp.path().join("run"), temp.path().join("other"));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&other).unwrap();
    let registry = Registry::new(&temp.path().join("runs"));
    registry.add(&dir).unwrap();

    // A foreign loop device and mount, made in the same way.
    let custodian = Custodian::open(Arc::new(LinuxHost::default()), &other).unwrap();
    let theirs = Volume::create(&custodian, &spec_in(&other, FileSystemKind::Ext4), &slot_in(&other, "o")).unwrap();
    fs::write(theirs.root().join("precious"), "x").unwrap();
    fs::write(dir.join("notes.txt"), "theirs too").unwrap();

    let mut holder = Holder::start(&dir, kind);
    assert!(matches!(clean(&host, &dir, CleanMode::Act), Err(Error::OwnerAlive { .. })), "a living run is left alone");
    let opened = Custodian::open(Arc::new(LinuxHost::default()), &dir);
    assert!(matches!(opened, Err(Error::OwnerAlive { .. })));
    holder.kill();
    assert_eq!(traces_of(&dir).len(), 2, "the kill leaves a mount and a loop device");
    let opened = Custodian::open(Arc::new(LinuxHost::default()), &dir);
    assert!(matches!(opened, Err(Error::LeftOvers { count: 4, .. })), "{opened:?}");

    // The kill also interrupted the write of a line.
    let journal = dir.join(senesce_volume::JOURNAL_FILE_NAME);
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, [whole.as_slice(), b"{\"event\":\"acq"].concat()).unwrap();

    let cleaned = registry.clean_all(&host, CleanMode::Act).unwrap();
    let actions = cleaned[0].result.as_ref().unwrap();
    assert_eq!(actions.len(), 4);
    assert!(actions.iter().all(|action| action.outcome == Outcome::Removed), "{actions:#?}");
    assert!(traces_of(&dir).is_empty());
    let mut left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["notes.txt", "resources.ndjson"]);

    // A second pass finds nothing, and the run can continue.
    assert_eq!(clean(&host, &dir, CleanMode::Act).unwrap(), []);
    assert!(registry.runs().unwrap().is_empty());
    drop(Custodian::open(Arc::new(LinuxHost::default()), &dir).unwrap());

    assert_eq!(fs::read_to_string(theirs.root().join("precious")).unwrap(), "x");
    assert_eq!(traces_of(&other).len(), 2);
}

#[test]
fn a_killed_run_on_ext4_is_cleaned() {
    killed_and_cleaned(FileSystemKind::Ext4);
}

#[test]
fn a_killed_run_on_xfs_is_cleaned() {
    killed_and_cleaned(FileSystemKind::Xfs);
}

#[test]
fn a_killed_run_on_btrfs_is_cleaned() {
    killed_and_cleaned(FileSystemKind::Btrfs);
}

#[test]
fn foreign_replacements_of_ours_are_left_alone() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let host = LinuxHost::default();
    let temp = tempfile::Builder::new().prefix("senesce-volume-kill-").tempdir_in("/tmp").unwrap();
    let (dir, other) = (temp.path().join("run"), temp.path().join("other"));
    fs::create_dir(&dir).unwrap();
    fs::create_dir(&other).unwrap();
    let mut holder = Holder::start(&dir, FileSystemKind::Ext4);
    holder.kill();
    // A user cleaned up by hand, and then mounted another image at the same name.
    let journal = fs::read_to_string(dir.join(senesce_volume::JOURNAL_FILE_NAME)).unwrap();
    let named = |suffix: &str| {
        let path = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        path.into_iter().find(|path| path.to_string_lossy().ends_with(suffix)).unwrap_or_else(|| panic!("{journal}"))
    };
    let image = named(".img");
    let point = image.with_extension("");
    host.unmount(&point, false).unwrap();
    let id = host.file_id(&image).unwrap().unwrap();
    for device in host.loops_backed_by(id).unwrap() {
        host.detach_loop(&device).unwrap();
    }
    fs::rename(&image, other.join("moved.img")).unwrap();
    fs::write(&image, "a file of theirs").unwrap();
    let custodian = Custodian::open(Arc::new(LinuxHost::default()), &other).unwrap();
    let theirs = Volume::create(&custodian, &spec_in(&other, FileSystemKind::Ext4), &slot_in(&other, "o")).unwrap();
    // Their loop device is visible at our mount point.
    host.mount(theirs.device().unwrap(), &point, FileSystemKind::Ext4, "noatime").unwrap();

    let actions = clean(&host, &dir, CleanMode::Act);
    host.unmount(&point, false).unwrap();
    let actions = actions.unwrap();
    let outcome = |word: &str| {
        let found = actions.iter().find(|action| action.resource.to_string().starts_with(word));
        found.map(|action| action.outcome.clone()).unwrap_or_else(|| panic!("no {word} in {actions:#?}"))
    };
    assert!(matches!(outcome("mount"), Outcome::NotOurs { .. }), "{actions:#?}");
    assert_eq!(outcome("loop"), Outcome::AlreadyGone);
    assert!(matches!(outcome("file"), Outcome::NotOurs { .. }));
    assert_eq!(fs::read_to_string(&image).unwrap(), "a file of theirs");
    assert_eq!(fs::metadata(other.join("moved.img")).unwrap().len(), Bytes(64 << 20).0);
    // The mount point itself is ours. After their unmount, the next try removes it.
    assert!(matches!(outcome("directory"), Outcome::Failed { .. }), "{actions:#?}");
    let again = clean(&host, &dir, CleanMode::Act).unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].outcome, Outcome::Removed);
}

#[test]
fn the_second_signal_cleans_and_exits() {
    if !root_or_skip("loop devices and mounts") {
        return;
    }
    let temp = tempfile::Builder::new().prefix("senesce-volume-kill-").tempdir_in("/tmp").unwrap();
    let mut holder = Holder::start(temp.path(), FileSystemKind::Ext4);
    holder.signal(rustix::process::Signal::TERM);
    holder.wait_for("interrupted 15");
    assert_eq!(traces_of(temp.path()).len(), 2, "the first only requests an exit");
    holder.signal(rustix::process::Signal::INT);
    let status = holder.child.wait().unwrap();
    assert_eq!(status.code(), Some(128 + 2));
    assert!(traces_of(temp.path()).is_empty());
    assert_eq!(clean(&LinuxHost::default(), temp.path(), CleanMode::Act).unwrap(), [], "the journal records it too");
}
