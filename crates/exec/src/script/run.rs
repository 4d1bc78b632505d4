//! All threads of a script, from their common start to the end of those that are waited for.

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
use crate::{DIRECT_ALIGNMENT, ExecError, LatencyHistogram, direct::aligned};

/// When it ends before the calls do.
#[derive(Clone, Copy)]
pub struct ScriptLimits<'a> {
    /// After so long; none: with the last call.
    pub time: Option<Nanos>,
    /// When this says so; the run is then an error.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What a flow operation came to in all threads together.
#[derive(Clone, Debug, Default)]
pub struct FlowTally {
    /// How long each took, those without space included.
    pub latency: LatencyHistogram,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// How often there was no space.
    pub no_space: u64,
    /// How often there was no file to do it with.
    pub passed_over: u64,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct ScriptEnd {
    /// From the common start to the end of the last thread that is waited for, or of the last operation that counts.
    pub elapsed: Nanos,
    /// Operations that count and were done.
    pub operations: u64,
    /// By flow operation, in the script's order.
    pub flows: Vec<FlowTally>,
}

/// The lowest number of files open besides those of the script.
const SPARE_FILES: u64 = 128;

struct Stage<'a> {
    clock: &'a dyn Clock,
    limits: ScriptLimits<'a>,
    began: AtomicU64,
    /// The drivers ended.
    is_over: AtomicBool,
    /// Time is up, somebody asked for the end, or a call failed: every thread ends, whatever it waits for.
    is_cut: AtomicBool,
    drivers_left: AtomicUsize,
    ended: AtomicU64,
    operations: AtomicU64,
    tallies: Vec<Mutex<FlowTally>>,
    failed: Mutex<Option<ExecError>>,
    semaphores: &'a [Semaphore],
}

/// Lets each thread of a script do the calls of its stream below `root`, all at the same time, and waits for their end.
///
/// In: the files are there ([`make_script_files`](super::make_script_files)); as many streams as the script has threads.
/// The threads that are no drivers end when the drivers did: where they wait, or at the next call if they wait for nobody.
/// A call without space is counted, and its thread goes on. Raises this process' limit of open files if it must.
/// Errors: any other failing call; too low a limit of open files or of threads; `stop` said so.
/// Cost: two looks at the clock and one lock a call, about 0.1 µs; 1 MiB a thread for reads of 1 MiB.
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

/// The same; `builder` gives each thread by its number what it is made with.
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
    // Threads drop their sender when they are ready, and begin when the gate opens.
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
        // Nothing is ever sent: this is an error as soon as all are ready.
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

/// The largest write that is made in one piece, bytes.
const LARGEST_WRITE: usize = 64 << 20;
const _: () = assert!((LARGEST_WRITE as u64).is_multiple_of(DIRECT_ALIGNMENT));

impl Stage<'_> {
    /// The calls of one thread.
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
            // Who waits for posts first takes what was posted, so that it does as much in every run.
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
                // What is taken after the last driver's end counts, so its time does, too.
                self.ended.fetch_max(ended.0, Ordering::SeqCst);
            }
            let mut tally = self.tallies[flow as usize].lock().unwrap_or_else(PoisonError::into_inner);
            // What a flow operation needs first is not the operation.
            if counted || !matches!(call, Call::Open { .. } | Call::PassOver) {
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

    /// A thread is done.
    fn leave(&self, thread: &ScriptThread) {
        if let Some(semaphore) = thread.semaphore {
            // Nobody makes room there any more.
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

    /// All threads end because of this, unless there was another error before.
    fn fail(&self, error: ExecError) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.cut();
    }

    /// All threads end before their calls do; those that wait are woken.
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
