//! Scripts on a real directory: every call, the rules of semaphores, and ends.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::{Clock, Nanos, RelPath};
use senesce_oplog::{Access, Call, FlowCall, Script, ScriptFile, ScriptFlow, ScriptThread};

use super::{run::run_threads, *};
use crate::ExecError;

/// A clock that advances by a microsecond at every read.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1000, Ordering::SeqCst))
    }

    fn unix_seconds(&self) -> u64 {
        0
    }
}

fn path(text: &str) -> RelPath {
    RelPath::try_from(text).unwrap()
}

fn script(files: &[(&str, u64, bool)], threads: Vec<ScriptThread>, semaphores: Vec<u64>) -> Script {
    Script {
        directories: vec![path("d")],
        files: files
            .iter()
            .map(|(name, bytes, preallocated)| ScriptFile {
                path: path(name),
                bytes: *bytes,
                preallocated: *preallocated,
            })
            .collect(),
        flows: (0..3).map(|n| ScriptFlow { name: format!("f{n}"), op: "x".into() }).collect(),
        semaphores,
        threads,
    }
}

fn driver(slots: u32) -> ScriptThread {
    ScriptThread { is_driver: true, slots, semaphore: None }
}

fn call(flow: u32, call: Call) -> FlowCall {
    FlowCall { flow, counted: true, call }
}

fn run(root: &Path, script: &Script, calls: Vec<Vec<FlowCall>>, time: Option<Nanos>) -> Result<ScriptEnd, ExecError> {
    make_script_files(root, script, &|| false)?;
    let streams = calls.into_iter().map(Vec::into_iter).collect();
    run_script(root, script, streams, &Ticking::default(), ScriptLimits { time, stop: &|| false })
}

#[test]
fn every_call_works() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(&[("d/a", 10_000, true), ("d/b", 7, false), ("d/c", 1, true)], vec![driver(2)], vec![]);
    let open = |slot, file, create| Call::Open { slot, file, access: Access { create, ..Access::default() } };
    let calls = vec![
        call(0, open(0, 0, false)),
        call(1, Call::ReadWhole { slot: 0, piece: 4096 }),
        call(1, Call::ReadAt { slot: 0, offset: 8192, len: 4096 }),
        call(2, Call::Append { slot: 0, len: 500 }),
        call(0, open(1, 1, true)),
        call(2, Call::WriteWhole { slot: 1, len: 5000, piece: 3000 }),
        call(2, Call::WriteAt { slot: 1, offset: 6000, len: 10 }),
        call(0, Call::Fsync { slot: 1 }),
        call(0, Call::Close { slot: 1 }),
        call(0, Call::Stat { file: 1 }),
        call(0, Call::Unlink { file: 2 }),
        FlowCall { flow: 0, counted: false, call: Call::Spin { times: 100 } },
        FlowCall { flow: 0, counted: false, call: Call::Skip },
    ];
    let end = run(dir.path(), &script, vec![calls], None).unwrap();
    assert_eq!(end.operations, 11);
    assert_eq!((end.flows[1].read_bytes, end.flows[1].latency.count()), (10_000 + 1808, 2));
    assert_eq!((end.flows[2].written_bytes, end.flows[0].passed_over), (500 + 5000 + 10, 1));
    let len = |name: &str| std::fs::metadata(dir.path().join(name)).map(|found| found.len());
    assert_eq!((len("d/a").unwrap(), len("d/b").unwrap()), (10_500, 6010));
    assert!(len("d/c").is_err() && end.elapsed.0 > 0);
    // Existing files are not taken for files of the script.
    let error = make_script_files(dir.path(), &script, &|| false).unwrap_err().to_string();
    assert!(error.contains("make"), "{error}");
}

#[test]
fn failing_call_ends_all_threads_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = ScriptThread { is_driver: false, slots: 0, semaphore: Some(0) };
    let script = script(&[("d/a", 1, false)], vec![driver(1), driver(1), waiting], vec![5]);
    let forever = vec![call(1, Call::Post { first: 0, count: 1, by: 5 }); 100];
    let calls = vec![vec![call(0, Call::Stat { file: 0 })], forever, vec![call(2, Call::Wait { semaphore: 0, by: 9 })]];
    let error = run(dir.path(), &script, calls, None).unwrap_err();
    assert!(error.to_string().contains("f0 (x), Stat { file: 0 } failed"), "{error}");
}

#[test]
fn waits_match_posts_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = |semaphore| ScriptThread { is_driver: false, slots: 0, semaphore: Some(semaphore) };
    for (drivers, posts, by, highwater) in [(1, 100, 7, 3), (4, 250, 10, 20), (3, 1, 50, 1)] {
        let threads = (0..drivers).map(|_| driver(0)).chain([waiting(0), waiting(1)]).collect();
        let script = Script { directories: vec![], ..script(&[], threads, vec![highwater; 2]) };
        let post = vec![call(0, Call::Post { first: 0, count: 2, by: 1 }); posts];
        let waits = vec![call(1, Call::Wait { semaphore: 0, by }); 1000];
        let other = vec![call(2, Call::Wait { semaphore: 1, by }); 1000];
        let calls = (0..drivers).map(|_| post.clone()).chain([waits, other]).collect();
        let end = run(dir.path(), &script, calls, None).unwrap();
        let taken = (drivers * posts) as u64 / u64::from(by);
        // The last try of each had no result.
        assert_eq!((end.flows[1].latency.count(), end.flows[2].latency.count()), (taken, taken));
        assert_eq!(end.operations, (drivers * posts) as u64 + 2 * taken);
    }
}

#[test]
fn time_limit_ends_endless_threads() {
    let dir = tempfile::tempdir().unwrap();
    let idle = ScriptThread { is_driver: false, slots: 0, semaphore: None };
    let script = script(&[("d/a", 5, true)], vec![driver(1), idle], vec![]);
    make_script_files(dir.path(), &script, &|| false).unwrap();
    let endless = |flow, it| Box::new(std::iter::repeat(call(flow, it))) as Box<dyn Iterator<Item = _> + Send>;
    let streams = vec![endless(0, Call::Stat { file: 0 }), endless(1, Call::Spin { times: 10 })];
    let limits = ScriptLimits { time: Some(Nanos(2_000_000)), stop: &|| false };
    let end = run_script(dir.path(), &script, streams, &Ticking::default(), limits).unwrap();
    assert!(end.operations > 0 && end.elapsed.0 >= 2_000_000);
    let streams = vec![endless(0, Call::Stat { file: 0 }), endless(1, Call::Spin { times: 10 })];
    let limits = ScriptLimits { time: None, stop: &|| true };
    let error = run_script(dir.path(), &script, streams, &Ticking::default(), limits).unwrap_err();
    assert!(matches!(error, ExecError::Stopped));
}

#[test]
fn time_limit_and_stop_end_a_blocked_driver() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = ScriptThread { is_driver: false, slots: 0, semaphore: Some(0) };
    let script = Script { directories: vec![], ..script(&[], vec![driver(0), waiting], vec![0]) };
    let looks = AtomicU64::new(0);
    let stop_late = || looks.fetch_add(1, Ordering::SeqCst) > 2000;
    for (time, stop) in [
        (Some(Nanos(2_000_000)), &(|| false) as &(dyn Fn() -> bool + Sync)),
        (None, &stop_late as &(dyn Fn() -> bool + Sync)),
    ] {
        // The thread that would raise the mark starts when the driver has requested its call, and
        // never reaches its semaphore.
        let (asked, was_asked) = std::sync::mpsc::channel();
        let driver = std::iter::repeat_with(move || {
            let _ = asked.send(());
            call(0, Call::Post { first: 0, count: 1, by: 1 })
        });
        let mut has_begun = false;
        let busy = std::iter::repeat_with(move || {
            has_begun = has_begun || was_asked.recv().is_ok();
            call(1, Call::Spin { times: 10 })
        });
        let streams = vec![Box::new(driver) as Box<dyn Iterator<Item = _> + Send>, Box::new(busy)];
        let end = run_script(dir.path(), &script, streams, &Ticking::default(), ScriptLimits { time, stop });
        match time {
            Some(time) => assert!(end.unwrap().elapsed >= time),
            None => assert!(matches!(end, Err(ExecError::Stopped))),
        }
    }
}

#[test]
fn ended_thread_unblocks_its_posters() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = ScriptThread { is_driver: false, slots: 0, semaphore: Some(0) };
    let script = Script { directories: vec![], ..script(&[], vec![driver(0), waiting], vec![1]) };
    let posts = vec![call(0, Call::Post { first: 0, count: 1, by: 1 }); 50];
    let end = run(dir.path(), &script, vec![posts, vec![call(1, Call::Wait { semaphore: 0, by: 3 })]], None).unwrap();
    assert_eq!((end.operations, end.flows[0].latency.count()), (51, 50));
}

#[test]
fn elapsed_time_covers_all_counted_operations() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = ScriptThread { is_driver: false, slots: 0, semaphore: Some(0) };
    let script = Script { directories: vec![], ..script(&[], vec![driver(0), waiting], vec![1]) };
    // Everything is posted, and the driver has ended, before the other thread works.
    let (is_done, was_done) = std::sync::mpsc::channel::<()>();
    let mut posts = vec![call(0, Call::Post { first: 0, count: 1, by: 1 })].into_iter();
    let posting = std::iter::from_fn(move || {
        let _kept = &is_done;
        posts.next()
    });
    let wait = FlowCall { flow: 1, counted: false, call: Call::Wait { semaphore: 0, by: 1 } };
    let mut work = std::iter::once(wait).chain(vec![call(2, Call::Spin { times: 1 }); 500]);
    let working = std::iter::from_fn(move || {
        // The stream of the driver ends when its thread has done all of it.
        let _ = was_done.recv();
        work.next()
    });
    let streams = vec![Box::new(posting) as Box<dyn Iterator<Item = _> + Send>, Box::new(working)];
    let limits = ScriptLimits { time: None, stop: &|| false };
    let end = run_script(dir.path(), &script, streams, &Ticking::default(), limits).unwrap();
    // Each operation reads the clock twice.
    assert_eq!(end.operations, 501);
    assert!(end.elapsed >= Nanos(999_000), "{:?}", end.elapsed);
}

#[test]
fn failed_thread_start_ends_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(&[("a", 5, false)], vec![driver(1); 4], vec![]);
    let make = Call::Open { slot: 0, file: 0, access: Access { create: true, ..Access::default() } };
    let streams = vec![std::iter::repeat(call(0, make)); 4];
    let limits = ScriptLimits { time: None, stop: &|| false };
    // No machine has memory for this stack.
    let builder = |number| match number {
        2 => std::thread::Builder::new().stack_size(1 << 60),
        _ => std::thread::Builder::new(),
    };
    let error = run_threads(dir.path(), &script, streams, &Ticking::default(), limits, builder).unwrap_err();
    assert!(error.to_string().contains("thread 3 of 4"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
