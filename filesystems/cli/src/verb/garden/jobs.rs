//! Parts of experiments, some at a time.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use senesce_timed::published::{Part, Record};
use senesce_trials::Scale;
use senesce_volume::check_interrupted;

use crate::exit::failed;

/// What is heard of a part.
pub enum Ended {
    /// It has begun.
    Began(Part),
    /// It is done, with all that come from it.
    Done(Part, Vec<Record>, Took),
    /// It cannot be done, and why.
    Failed(Part, String),
}

/// What a part took. It does all on one thread.
#[derive(Clone, Copy)]
pub struct Took {
    /// How long processors worked for it.
    pub processor: Duration,
    /// How long it was from its beginning to its end.
    pub wall: Duration,
}

/// How soon a signal is seen.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs parts on as many threads, those that take longest first, and reports each on this one.
/// Errors: a signal, which leaves at once whatever runs (it holds nothing but memory); what `hear`
/// says.
pub fn run_parts(
    mut parts: Vec<Part>,
    scale: Scale,
    jobs: usize,
    hear: &mut dyn FnMut(Ended) -> Result<()>,
) -> Result<()> {
    parts.sort_by_key(|part| std::cmp::Reverse(part.weight()));
    let mut left = parts.len();
    let queue = Arc::new(Mutex::new(VecDeque::from(parts)));
    let (sender, receiver) = channel();
    for number in 0..jobs.min(left) {
        let (queue, sender) = (Arc::clone(&queue), sender.clone());
        let work = move || work(&queue, scale, &sender);
        thread::Builder::new().name(format!("experiment {number}")).spawn(work).context("cannot start a thread")?;
    }
    drop(sender);
    while left > 0 {
        check_interrupted("the experiments")?;
        match receiver.recv_timeout(PATIENCE) {
            Ok(ended) => {
                // A fault of senesce stops all parts, with its exit code; the hook has reported it.
                let ended = ended.unwrap_or_else(|fault| resume_unwind(fault));
                left -= usize::from(!matches!(ended, Ended::Began(_)));
                hear(ended)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed(format!("{left} parts were not run"))),
        }
    }
    Ok(())
}

fn work(queue: &Mutex<VecDeque<Part>>, scale: Scale, sender: &Sender<thread::Result<Ended>>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(part) = next() {
        // After a signal, no thread receives any more: this one returns as well.
        if sender.send(Ok(Ended::Began(part))).is_err() {
            return;
        }
        let (before, began) = (read_thread_time(), Instant::now());
        let ended = match catch_unwind(AssertUnwindSafe(|| part.run(scale))) {
            Ok(Ok(records)) => {
                let took = Took { processor: read_thread_time().saturating_sub(before), wall: began.elapsed() };
                Ok(Ended::Done(part, records, took))
            }
            Ok(Err(error)) => Ok(Ended::Failed(part, error.to_string())),
            Err(fault) => Err(fault),
        };
        if sender.send(ended).is_err() {
            return;
        }
    }
}

/// How long processors have worked for this thread.
fn read_thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
