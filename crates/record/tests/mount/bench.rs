//! A directory, a recording mount of it, and the results of both.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{io::Errno, mount::UnmountFlags};
use senesce_core::{ManualClock, Seed};
use senesce_exec::{
    CheckContents, ModelTarget, PosixTarget, apply_done,
    tree::{Tree, collect_tree, compare_trees},
};
use senesce_oplog::{LogReader, Op};
use senesce_record::{Error, RecordOptions, Recorded, Recording};

/// A backing directory and a mount of it, which is always unmounted.
pub struct Bench {
    pub dir: tempfile::TempDir,
    pub recording: Option<Recording>,
}

impl Bench {
    pub fn new(prepare: impl FnOnce(&Path), change: impl FnOnce(&mut RecordOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["backing", "mount"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        prepare(&dir.path().join("backing"));
        let mut options = RecordOptions {
            backing: dir.path().join("backing"),
            mount: dir.path().join("mount"),
            log: dir.path().join("log"),
            source: "senesce-record-test".into(),
            keep_contents: true,
            anonymize: false,
            seed: Seed(1),
            clock: Arc::new(ManualClock::default()),
        };
        change(&mut options);
        let recording = Some(Recording::start(options).unwrap());
        Self { dir, recording }
    }

    pub fn plain() -> Self {
        Self::new(|_| {}, |_| {})
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn mounted(&self, name: &str) -> PathBuf {
        self.at("mount").join(name)
    }

    pub fn finish(&mut self) -> Result<Recorded, Error> {
        // A program that another test is starting holds a copy of this process's open files until
        // its exec.
        let unmount = || rustix::mount::unmount(self.at("mount"), UnmountFlags::empty());
        let mut tried = std::iter::repeat_with(unmount).take(100_000).inspect(|_| std::thread::yield_now());
        tried.find(|result| *result != Err(Errno::BUSY)).expect("the mount stays busy").unwrap();
        self.recording.take().unwrap().finish()
    }

    /// Ends the recording. Returns the trees of the backing directory and of the log's replay.
    pub fn trees(&mut self) -> (Tree, Tree) {
        self.finish().unwrap();
        (collect_tree(&self.at("backing"), 1).unwrap(), replay(&self.at("log")))
    }

    pub fn assert_replays(&mut self) -> Tree {
        let (backing, replayed) = self.trees();
        assert_eq!(compare_trees(&backing, &replayed, 9), []);
        backing
    }

    pub fn ops(&self) -> Vec<Op> {
        let log = LogReader::open(&self.at("log")).unwrap();
        log.flat_map(|done| done.unwrap().step.ops.to_vec()).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.at("mount"), UnmountFlags::DETACH);
    }
}

/// Returns the tree of a log's replay into a new directory, which must equal the model's.
pub fn replay(log: &Path) -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(dir.path()).unwrap();
    let mut model = ModelTarget::default();
    for done in LogReader::open(log).unwrap() {
        let done = done.unwrap();
        apply_done(&mut target, &done, &(), CheckContents::Yes).unwrap();
        apply_done(&mut model, &done, &(), CheckContents::Yes).unwrap();
    }
    let tree = collect_tree(dir.path(), 1).unwrap();
    assert_eq!(compare_trees(&model.tree(), &tree, 9), []);
    tree
}

pub fn can_mount() -> bool {
    senesce_testkit::root_or_skip("a recording mount")
}
