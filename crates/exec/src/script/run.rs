//! Runs all threads of a script, from their common start to the end of the drivers.

use std::{
    os::fd::AsFd,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use senesce_core::{Clock, Nanos};
use senesce_oplog::{Call, FlowCall, Script, ScriptThread, seeded_bytes};

use super::{
    caller::{Caller, Failed, SPARE_BYTES, Scene},
    files::{c_path, open_root},
    semaphores::Semaphore,
};
use crate::{DIRECT_ALIGNMENT, ExecError, LatencyHistogram, direct_io::aligned};

/// Limits that end a run before its calls end.
#[derive(Clone, Copy)]
pub struct ScriptLimits<'a> {
    /// The longest run time. `None`: until the last call.
    pub time: Option<Nanos>,
    /// Returns `true` to stop. The run then fails.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// The sums of a flow operation over all threads.
#[derive(Clone, Debug, Default)]
pub struct FlowTally {
    /// The latencies, also of calls without space.
    pub latency: LatencyHistogram,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Calls that ran out of space.
    pub no_space: u64,
    /// Calls that had no file.
    pub passed_over: u64,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct ScriptEnd {
    /// Time from the common start to the end of the last driver, or of the last counted operation
    /// if that is later.
    pub elapsed: Nanos,
    /// Counted operations that were done.
    pub operations: u64,
    /// The sums by flow operation, in the order of the script.
    pub flows: Vec<FlowTally>,
}

/// Open files besides those of the script.
const SPARE_FILES: u64 = 128;

struct Stage<'a> {
    clock: &'a dyn Clock,
    limits: ScriptLimits<'a>,
    began: AtomicU64,
    /// Set when the drivers have ended.
    is_over: AtomicBool,
    /// Set when the time is over, the caller stopped the run, or a call failed. Then every thread
    /// ends, even if it waits.
    is_cut: AtomicBool,
    drivers_left: AtomicUsize,
    ended: AtomicU64,
    operations: AtomicU64,
    tallies: Vec<Mutex<FlowTally>>,
    failed: Mutex<Option<ExecError>>,
    semaphores: &'a [Semaphore],
}

/// Runs the calls of each thread's stream below `root`, all threads at the same time, and waits for
/// their end.
///
/// In: the files exist ([`make_script_files`](super::make_script_files)); there is one stream for
/// each thread of the script. Threads that are no drivers end after the drivers: where they wait,
/// or at their next call if they wait for no posts. A call without space is counted, and its thread
/// continues. Raises the limit of open files of this process if needed. Errors: any other failed
/// call; the limit of open files or of threads is too low; [`ExecError::Stopped`]. Cost: two reads
/// of the clock and one lock per call, about 0.1 µs; per thread 1 MiB for reads of 1 MiB.
pub fn run_script<S>(
    root: &Path,
    script: &Script,
    streams: Vec<S>,
    clock: &dyn Clock,
    limits: ScriptLimits<'_>,
) -> Result<ScriptEnd, ExecError>
where
    S: Iterator<Item = FlowCall> + Send,
{
    run_threads(root, script, streams, clock, limits, |_| thread::Builder::new())
}

/// Like [`run_script`]; `builder` returns the builder of each thread by its number.
pub(super) fn run_threads<S>(
    root: &Path,
    script: &Script,
    streams: Vec<S>,
    clock: &dyn Clock,
    limits: ScriptLimits<'_>,
    builder: impl Fn(usize) -> thread::Builder,
) -> Result<ScriptEnd, ExecError>
where
    S: Iterator<Item = FlowCall> + Send,
{
    assert_eq!(streams.len(), script.threads.len(), "a stream for each thread");
    raise_limit(script.threads.iter().map(|thread| u64::from(thread.slots)).sum::<u64>() + SPARE_FILES)?;
    let dir = open_root(root)?;
    let paths: Vec<_> = script.files.iter().map(|file| c_path(&file.path)).collect();
    let semaphores: Vec<Semaphore> = script.semaphores.iter().map(|highwater| Semaphore::new(*highwater)).collect();
    let mut memory = Vec::new();
    let content = aligned(&mut memory, LARGEST_WRITE + SPARE_BYTES);
    seeded_bytes(1, 0, content);
    let scene = Scene { root: dir.as_fd(), paths: &paths, semaphores: &semaphores, content };
    let drivers = script.threads.iter().filter(|thread| thread.is_driver).count();
    let stage = Stage {
        clock,
        limits,
        began: AtomicU64::new(0),
        is_over: AtomicBool::new(drivers == 0),
        is_cut: AtomicBool::new(false),
        drivers_left: AtomicUsize::new(drivers),
        ended: AtomicU64::new(0),
        operations: AtomicU64::new(0),
        tallies: script.flows.iter().map(|_| Mutex::default()).collect(),
        failed: Mutex::new(None),
        semaphores: &semaphores,
    };
    // Threads drop their sender when they are ready, and start when the gate opens.
    let (gate, (ready, all_ready)) = (RwLock::new(()), mpsc::channel::<()>());
    thread::scope(|scope| {
        let shut = gate.write().unwrap_or_else(PoisonError::into_inner);
        for (number, stream) in streams.into_iter().enumerate() {
            let (stage, scene, gate, thread) = (&stage, &scene, &gate, &script.threads[number]);
            let ready = ready.clone();
            let made = builder(number).spawn_scoped(scope, move || {
                let caller = Caller::new(scene, thread.slots, number);
                drop(ready);
                drop(gate.read());
                stage.play(script, thread, caller, stream);
                stage.leave(thread);
            });
            if let Err(source) = made {
                let all = script.threads.len();
                let what = format!("starting thread {} of {all} (is ulimit -u or pids.max too low?)", number + 1);
                stage.fail(ExecError::ScriptCall { what, source });
                break;
            }
        }
        drop(ready);
        // No message is sent. This returns an error as soon as all threads are ready.
        let _ = all_ready.recv();
        stage.began.store(clock.now().0, Ordering::SeqCst);
        drop(shut);
    });
    if let Some(error) = stage.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    if (limits.stop)() {
        return Err(ExecError::Stopped);
    }
    let tallies = stage.tallies.into_iter().map(|tally| tally.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(ScriptEnd {
        elapsed: Nanos(stage.ended.into_inner().saturating_sub(stage.began.into_inner())),
        operations: stage.operations.into_inner(),
        flows: tallies.collect(),
    })
}

/// The largest write in one piece, bytes.
const LARGEST_WRITE: usize = 64 << 20;
const _: () = assert!((LARGEST_WRITE as u64).is_multiple_of(DIRECT_ALIGNMENT));

impl Stage<'_> {
    /// Runs the calls of one thread.
    fn play(
        &self,
        script: &Script,
        thread: &ScriptThread,
        mut caller: Caller<'_>,
        stream: impl Iterator<Item = FlowCall>,
    ) {
        let deadline = self.limits.time.map(|time| self.began.load(Ordering::SeqCst).saturating_add(time.0));
        for FlowCall { flow, counted, call } in stream {
            let began = self.clock.now();
            if deadline.is_some_and(|deadline| began.0 >= deadline) || (self.limits.stop)() {
                return self.cut();
            }
            // A thread that waits for posts first uses up all posts, so that it does the same in
            // every run.
            let is_over = self.is_over.load(Ordering::Relaxed) && !thread.is_driver && thread.semaphore.is_none();
            if is_over || self.is_cut.load(Ordering::Relaxed) {
                return;
            }
            let result = caller.call(call);
            if result == Err(Failed::Over) {
                return;
            }
            let ended = self.clock.now();
            if counted && !thread.is_driver {
                // An operation after the end of the last driver counts, so its time counts, too.
                self.ended.fetch_max(ended.0, Ordering::SeqCst);
            }
            let mut tally = self.tallies[flow as usize].lock().unwrap_or_else(PoisonError::into_inner);
            // Preparations of a flow operation have no latency of their own.
            if counted || !matches!(call, Call::Open { .. } | Call::Skip) {
                tally.latency.record(ended.since(began));
            }
            match result {
                Ok(came) => {
                    tally.read_bytes += came.read_bytes;
                    tally.written_bytes += came.written_bytes;
                    self.operations.fetch_add(u64::from(counted), Ordering::Relaxed);
                }
                Err(Failed::NoSpace) => tally.no_space += 1,
                Err(Failed::NotThere) => tally.passed_over += 1,
                Err(Failed::Over) => {}
                Err(Failed::Error(errno)) => {
                    let what = &script.flows[flow as usize];
                    let what = format!("{} ({}), {call:?}", what.name, what.op);
                    let error = ExecError::ScriptCall { what, source: errno.into() };
                    return self.fail(error);
                }
            }
        }
    }

    /// Records the end of a thread.
    fn leave(&self, thread: &ScriptThread) {
        if let Some(semaphore) = thread.semaphore {
            // The thread frees no more space in this semaphore, so posts must not wait for it.
            self.semaphores[semaphore as usize].close();
        }
        if !thread.is_driver {
            return;
        }
        self.ended.fetch_max(self.clock.now().0, Ordering::SeqCst);
        if self.drivers_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.end();
        }
    }

    /// Ends all threads because of an error. Keeps an earlier error.
    fn fail(&self, error: ExecError) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.cut();
    }

    /// Ends all threads before their calls end, and wakes those that wait.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.end();
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.semaphores.iter().for_each(Semaphore::close);
    }
}

fn raise_limit(files: u64) -> Result<(), ExecError> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let wanted = Rlimit { current: Some(files), maximum: limit.maximum.map(|maximum| maximum.max(files)) };
    setrlimit(Resource::Nofile, wanted).map_err(|errno| ExecError::TooManyFiles { files, source: errno.into() })
}
