//! A log applied by several threads, in the recorded order for every file and every directory.
//!
//! The calling thread reads the steps in order and finds the accesses of each operation
//! ([`crate::conflicts`]). An operation starts when all conflicting earlier ones are complete.
//! Space is not guaranteed: on a nearly full volume, operations in another order may fail where the
//! recorded ones did not.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use senesce_oplog::{Content, ContentSource, DoneStep, Op};

use crate::{
    ExecError, Target,
    apply::{Replay, apply_one, check_paths},
    conflicts::{ConflictTracker, ResourceKey},
};

/// Bytes that waiting operations may hold.
const BUDGET_BYTES: u64 = 64 << 20;
/// Bytes that an operation counts besides its content.
const JOB_BYTES: u64 = 16 << 10;
/// The number of keys after which the caller waits for all operations and forgets the keys.
const MOST_THINGS: usize = 1 << 17;

/// An operation of a step.
struct Work {
    done: Arc<DoneStep>,
    index: usize,
    content_index: usize,
    bytes: u64,
}

#[derive(Default)]
struct Job {
    waits_for: usize,
    then: Vec<u64>,
    work: Option<Work>,
}

#[derive(Default)]
struct Board {
    jobs: HashMap<u64, Job>,
    ready: VecDeque<u64>,
    held_bytes: u64,
    is_closed: bool,
    /// The number of threads that wait for work.
    idle: usize,
    failed: Option<ExecError>,
}

#[derive(Default)]
struct Shared {
    board: Mutex<Board>,
    /// Signals a ready operation, or the end.
    ready: Condvar,
    /// Signals the dispatching thread that it may continue, or the end.
    room: Condvar,
    /// Grows with every operation that may change what a directory path names.
    moves: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_all(&self) {
        self.ready.notify_all();
        self.room.notify_all();
    }
}

/// The last operations that accessed a key.
#[derive(Default)]
struct Last {
    exclusive: Option<u64>,
    common: Vec<u64>,
}

/// Applies the steps that `next` returns, with one thread for each target. All targets must have
/// the same directory.
///
/// Out: the number of steps. Errors: those of `next`, and the first operation that failed.
/// Operations that do not depend on the failed one may have been done or not. Contents are checked
/// as in [`apply_done`](crate::apply_done).
pub fn apply_parallel<E: From<ExecError>>(
    targets: Vec<Box<dyn Target>>,
    source: &dyn ContentSource,
    how: impl Into<Replay>,
    mut next: impl FnMut() -> Result<Option<DoneStep>, E>,
) -> Result<u64, E> {
    let how = how.into();
    let shared = Shared::default();
    thread::scope(|scope| {
        for mut target in targets {
            let shared = &shared;
            scope.spawn(move || {
                // A panic of one thread must not leave the others waiting.
                let _closer = CloseOnPanic(shared);
                work(&mut *target, shared, source, how);
            });
        }
        let _closer = CloseOnPanic(&shared);
        let given = give(&shared, how, &mut next);
        let mut board = shared.lock();
        board.is_closed = true;
        if given.is_err() {
            board.ready.clear();
            board.jobs.clear();
        }
        shared.tell_all();
        while board.failed.is_none() && !board.jobs.is_empty() {
            board = wait(&shared.room, board);
        }
        // The failure is no longer set. Without the clearing, a thread that wakes up only now would
        // wait for operations that no thread applies.
        let failed = board.failed.take();
        board.ready.clear();
        board.jobs.clear();
        shared.tell_all();
        match failed {
            Some(error) => Err(error.into()),
            None => given,
        }
    })
}

struct CloseOnPanic<'a>(&'a Shared);

impl Drop for CloseOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut board = self.0.lock();
            board.is_closed = true;
            board.jobs.clear();
            board.ready.clear();
            self.0.tell_all();
        }
    }
}

fn give<E: From<ExecError>>(
    shared: &Shared,
    how: Replay,
    next: &mut impl FnMut() -> Result<Option<DoneStep>, E>,
) -> Result<u64, E> {
    let mut tracker = ConflictTracker::default();
    let mut last: HashMap<ResourceKey, Last> = HashMap::new();
    let (mut number, mut steps) = (0, 0);
    while let Some(done) = next()? {
        let done = Arc::new(done);
        let mut content_index = 0;
        for (index, op) in done.step.ops.iter().enumerate() {
            if (how.stop)() {
                return Err(ExecError::Stopped.into());
            }
            check_paths(&done, index)?;
            if last.len() > MOST_THINGS {
                let Some(_board) = wait_while(shared, |_| true) else { return Ok(steps) };
                last.clear();
                tracker.forget_paths();
            }
            let keys = tracker.of(&done.step.root, op);
            let bytes =
                JOB_BYTES + if let Some(Content::Inline(bytes)) = op.content() { bytes.len() as u64 } else { 0 };
            let is_full = |board: &Board| board.held_bytes.saturating_add(bytes) > BUDGET_BYTES;
            let Some(mut board) = wait_while(shared, is_full) else { return Ok(steps) };
            number += 1;
            let mut waits_for = 0;
            for (key, exclusive) in keys {
                let seen = last.entry(key).or_default();
                let before = if exclusive { std::mem::take(&mut seen.common) } else { Vec::new() };
                for earlier in before.into_iter().chain(seen.exclusive) {
                    if let Some(job) = board.jobs.get_mut(&earlier) {
                        job.then.push(number);
                        waits_for += 1;
                    }
                }
                if exclusive {
                    seen.exclusive = Some(number);
                } else {
                    // Completed operations need no wait. Without this, the root would collect all
                    // operations.
                    if seen.common.len() >= 64 {
                        seen.common.retain(|earlier| board.jobs.contains_key(earlier));
                    }
                    seen.common.push(number);
                }
            }
            board.held_bytes += bytes;
            let work = Some(Work { done: Arc::clone(&done), index, content_index, bytes });
            board.jobs.insert(number, Job { waits_for, then: Vec::new(), work });
            if waits_for == 0 {
                board.ready.push_back(number);
                if board.idle > 0 {
                    shared.ready.notify_one();
                }
            }
            content_index += usize::from(op.content().is_some());
        }
        steps += 1;
    }
    Ok(steps)
}

/// Waits while operations are in progress and `is_full` returns true. Out: the board, or `None` if
/// no more operations may be dispatched.
fn wait_while(shared: &Shared, is_full: impl Fn(&Board) -> bool) -> Option<MutexGuard<'_, Board>> {
    let mut board = shared.lock();
    while board.failed.is_none() && !board.is_closed && !board.jobs.is_empty() && is_full(&board) {
        board = wait(&shared.room, board);
    }
    (board.failed.is_none() && !board.is_closed).then_some(board)
}

fn work(target: &mut dyn Target, shared: &Shared, source: &dyn ContentSource, how: Replay) {
    let mut buffer = Vec::new();
    let mut moves = 0;
    target.forget_directories();
    let mut board = shared.lock();
    loop {
        if board.failed.is_some() {
            return;
        }
        let Some(number) = board.ready.pop_front() else {
            if board.is_closed && board.jobs.is_empty() {
                return;
            }
            board.idle += 1;
            board = wait(&shared.ready, board);
            board.idle -= 1;
            continue;
        };
        let Some(work) = board.jobs.get_mut(&number).and_then(|job| job.work.take()) else { continue };
        drop(board);
        // The operations that this one depends on were complete, and counted, before it became
        // ready.
        let now = shared.moves.load(Ordering::Acquire);
        if now != moves {
            target.forget_directories();
            moves = now;
        }
        let outcome = apply_one(target, &work.done, work.index, work.content_index, source, how, &mut buffer);
        if let Op::Rename { .. } | Op::Exchange { .. } | Op::Rmdir { .. } | Op::RemoveTree { .. } =
            work.done.step.ops[work.index]
        {
            shared.moves.fetch_add(1, Ordering::Release);
        }
        board = shared.lock();
        board.held_bytes = board.held_bytes.saturating_sub(work.bytes);
        if let Err(error) = outcome {
            board.failed.get_or_insert(error);
            shared.tell_all();
            return;
        }
        let Some(job) = board.jobs.remove(&number) else { continue };
        let mut woken = 0;
        for later in job.then {
            let Board { jobs, ready, .. } = &mut *board;
            if let Some(job) = jobs.get_mut(&later) {
                job.waits_for -= 1;
                if job.waits_for == 0 {
                    ready.push_back(later);
                    woken += 1;
                }
            }
        }
        // This thread runs one of them itself.
        for _ in 1..woken.min(board.idle + 1) {
            shared.ready.notify_one();
        }
        // Wakes the dispatching thread only after many operations, because a wakeup for each is
        // slow.
        if board.jobs.is_empty() || board.held_bytes < BUDGET_BYTES / 2 {
            shared.room.notify_one();
        }
        if board.is_closed && board.jobs.is_empty() {
            shared.tell_all();
        }
    }
}

fn wait<'a>(condition: &Condvar, board: MutexGuard<'a, Board>) -> MutexGuard<'a, Board> {
    condition.wait(board).unwrap_or_else(PoisonError::into_inner)
}
