//! Measurements stop at once at any point, and return no figures.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::{ManualClock, Stop};
use senesce_probe::{
    Error,
    collect::{GrepOptions, Order, collect_gnu_grep, collect_grep, collect_tree_extents},
};

/// Threads of the measurements that use several.
const THREADS: usize = 3;

/// A tree with directories, small files and one that takes many reads.
fn make_tree(root: &Path) {
    for directory in 0..4 {
        let path = root.join(format!("d{directory}"));
        fs::create_dir(&path).unwrap();
        (0..10).for_each(|file| fs::write(path.join(format!("f{file}")), "text").unwrap());
    }
    fs::write(root.join("large"), vec![7; 2 << 20]).unwrap();
}

/// Calls `measure` with a signal at the first call of `stop`, at the second, and so on, until it
/// finishes before the signal. Returns the number of calls of that last run. After the signal no
/// thread calls `stop` twice.
fn stop_everywhere<T>(mut measure: impl FnMut(Stop<'_>) -> Result<T, Error>) -> u64 {
    for at in 1.. {
        let asked = AtomicU64::new(0);
        let result = measure(&|| asked.fetch_add(1, Ordering::SeqCst) + 1 >= at);
        let asked = asked.into_inner();
        if asked < at {
            return asked;
        }
        assert!(matches!(result, Err(Error::Stopped { .. })), "stopped at question {at}");
        // Each thread, the thread that gathers their results, and the caller.
        assert!(asked - at <= THREADS as u64 + 2, "{} questions after the signal", asked - at);
    }
    unreachable!()
}

#[test]
fn a_grep_test_stops_before_its_next_read() {
    let directory = tempfile::tempdir().unwrap();
    make_tree(directory.path());
    let options = GrepOptions { order: Order::Readdir, pattern: b"nowhere".to_vec() };
    let clock = ManualClock::default();
    let asked = stop_everywhere(|stop| collect_grep(directory.path(), &options, &clock, stop));
    // 45 entries, 41 ends of files, and 16 or more reads of the large file.
    assert!(asked >= 45 + 41 + 16, "{asked}");
}

#[test]
fn an_extent_map_stops_before_its_next_file() {
    let directory = tempfile::tempdir().unwrap();
    make_tree(directory.path());
    let mut visited = 0;
    let asked = stop_everywhere(|stop| {
        // If the file system does not map files, the last run returns an error instead of a map.
        let mapped = collect_tree_extents(directory.path(), THREADS, stop, &mut |_| visited += 1);
        match mapped {
            Err(Error::NotSupported { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    });
    assert!(asked >= 45 + 41, "{asked}");
    assert_eq!(visited % 41, 0, "a batch of files is handed over whole or not at all");
}

#[test]
fn gnu_grep_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    // grep blocks on a FIFO without a writer.
    let status = std::process::Command::new("mkfifo").arg(directory.path().join("pipe")).status().unwrap();
    assert!(status.success());
    let asked = AtomicU64::new(0);
    let stop = || asked.fetch_add(1, Ordering::SeqCst) >= 2;
    let error = collect_gnu_grep(&directory.path().join("pipe"), b"abc", &ManualClock::default(), &stop).unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
}
