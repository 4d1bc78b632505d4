//! A step applied by several threads: different directories at the same time, each directory in the
//! step's order.
//!
//! For workloads whose files have one name each, and whose steps allow any order that keeps the
//! order within each directory. The record has such an order. It does not depend on the threads,
//! unless space runs out.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use senesce_oplog::{ContentSource, DoneStep, Op, Outcome, Step};

use crate::{
    ExecError, OpFailure, Target,
    apply::{content_error, operation_error, stopped_or},
    apply_step,
    content::make_ready_until,
};

/// If fewer operations are between two that all others wait for, one thread does them.
const LEAST_SHARED: usize = 16;

/// Applies a step until it is complete or the space runs out, with one thread for each target. All
/// targets must have the same directory.
///
/// Out: the record, like that of [`apply_step`]. If an operation runs out of space, the threads
/// stop at their current operations. The record then has the operations that were done, in the
/// step's order, and the failed operation last. Errors: those of [`apply_step`]; other threads may
/// have done operations after the failed one. Cost: starts threads for every step.
pub fn apply_step_parallel<T: Target>(
    targets: &mut [T],
    number: u64,
    step: Step,
    source: &dyn ContentSource,
) -> Result<DoneStep, ExecError> {
    if let [target] = targets {
        return apply_step(target, number, step, source);
    }
    let mut results: Vec<Option<OpResult>> = step.ops.iter().map(|_| None).collect();
    let mut from = 0;
    while from < step.ops.len() {
        // Operations that concern one directory, up to the next operation that concerns more.
        let shared = step.ops[from..].iter().take_while(|op| directory(op).is_some()).count();
        let to = from + shared.max(1);
        let queues = if shared == 0 { vec![vec![from]] } else { queues(&step.ops, from, to) };
        let helpers = if shared < LEAST_SHARED { 1 } else { targets.len().min(queues.len()) };
        let work =
            Work { number, step: &step, source, queues, next: AtomicUsize::new(0), stop: AtomicBool::new(false) };
        for (index, result) in work.run(&mut targets[..helpers]) {
            results[index] = Some(result);
        }
        if shared == 0 {
            targets[1..].iter_mut().for_each(|target| target.forget_directories());
        }
        from = if work.stop.into_inner() { step.ops.len() } else { to };
    }
    record(targets, number, step, results)
}

/// The result of an operation. `content` is length and hash.
enum OpResult {
    Done { content: Option<(u64, u64)> },
    NoSpace { written: Option<u64>, content: Option<(u64, u64)> },
    Failed(ExecError),
}

/// The directory of an operation that concerns the entries of one directory only.
fn directory(op: &Op) -> Option<&[u8]> {
    let (Op::Create { path, .. } | Op::Allocate { path, .. } | Op::Unlink { path } | Op::SetModified { path, .. }) = op
    else {
        return None;
    };
    let path = path.as_bytes();
    Some(path.iter().rposition(|&byte| byte == b'/').map_or(b"", |end| &path[..end]))
}

/// The indices of operations by directory, the longest queue first.
fn queues(ops: &[Op], from: usize, to: usize) -> Vec<Vec<usize>> {
    let mut places: HashMap<Option<&[u8]>, usize> = HashMap::new();
    let mut queues: Vec<Vec<usize>> = Vec::new();
    for (index, op) in ops.iter().enumerate().take(to).skip(from) {
        let place = *places.entry(directory(op)).or_insert(queues.len());
        if place == queues.len() {
            queues.push(Vec::new());
        }
        queues[place].push(index);
    }
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.len()));
    queues
}

/// Queues that the threads process, one after the other.
struct Work<'a> {
    number: u64,
    step: &'a Step,
    source: &'a dyn ContentSource,
    queues: Vec<Vec<usize>>,
    next: AtomicUsize,
    stop: AtomicBool,
}

impl Work<'_> {
    fn run<T: Target>(&self, targets: &mut [T]) -> Vec<(usize, OpResult)> {
        let Some((own, others)) = targets.split_first_mut() else { return Vec::new() };
        thread::scope(|scope| {
            let started: Vec<_> = others.iter_mut().map(|target| scope.spawn(|| self.take_queues(target))).collect();
            let mut results = self.take_queues(own);
            for thread in started {
                results.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            results
        })
    }

    fn take_queues(&self, target: &mut dyn Target) -> Vec<(usize, OpResult)> {
        let (mut results, mut buffer) = (Vec::new(), Vec::new());
        while let Some(queue) = self.queues.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            for &index in queue {
                if self.stop.load(Ordering::Relaxed) {
                    return results;
                }
                let result = self.apply(target, index, &mut buffer);
                if !matches!(result, OpResult::Done { .. }) {
                    self.stop.store(true, Ordering::Relaxed);
                }
                results.push((index, result));
            }
        }
        results
    }

    fn apply(&self, target: &mut dyn Target, index: usize, buffer: &mut Vec<u8>) -> OpResult {
        let op = &self.step.ops[index];
        let stop = target.stop();
        let make = |content| make_ready_until(content, self.source, buffer, stop);
        let ready = match op.content().map(make).transpose() {
            Ok(ready) => ready,
            Err(source) => {
                return OpResult::Failed(stopped_or(stop, content_error(self.number, self.step, index, source)));
            }
        };
        let content = ready.as_ref().map(|ready| (ready.payload.len(), ready.hash));
        match target.apply(&self.step.root, op, ready.as_ref().map(|ready| &ready.payload)) {
            Ok(()) => OpResult::Done { content },
            Err(OpFailure::NoSpace { written }) => OpResult::NoSpace { written, content },
            Err(OpFailure::Io(source)) => OpResult::Failed(operation_error(self.number, self.step, index, source)),
        }
    }
}

/// The record: the operations that were done, in the step's order, then the first one that ran out
/// of space.
fn record<T: Target>(
    targets: &mut [T],
    number: u64,
    mut step: Step,
    results: Vec<Option<OpResult>>,
) -> Result<DoneStep, ExecError> {
    let mut contents = Vec::new();
    let mut done = Vec::new();
    let mut refused = None;
    for (index, result) in results.into_iter().enumerate() {
        match result {
            None => {}
            Some(OpResult::Failed(error)) => return Err(error),
            Some(OpResult::Done { content }) => {
                done.push(index);
                contents.extend(content);
            }
            Some(OpResult::NoSpace { written, content }) if refused.is_none() => {
                refused = Some((index, written, content))
            }
            // A record may have only one partly done operation, so this one is undone.
            Some(OpResult::NoSpace { written: Some(_), .. }) => {
                if let Op::Create { path, .. } = &step.ops[index] {
                    let undo = Op::Unlink { path: path.clone() };
                    targets[0].apply(&step.root, &undo, None).map_err(|failure| {
                        operation_error(number, &step, index, std::io::Error::other(failure.to_string()))
                    })?;
                }
            }
            Some(OpResult::NoSpace { written: None, .. }) => {}
        }
    }
    let Some((index, written, content)) = refused else {
        return Ok(DoneStep { number, step, outcome: Outcome::Done, contents, began: None });
    };
    let failed_op = done.len();
    done.push(index);
    contents.extend(content);
    step.ops = done.into_iter().map(|index| step.ops[index].clone()).collect::<Arc<[Op]>>();
    Ok(DoneStep { number, step, outcome: Outcome::NoSpace { failed_op, written }, contents, began: None })
}
