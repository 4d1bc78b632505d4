//! Engines of our own on this host: each mount is served by a process, the running program with a verb of its own.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::FileExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};
use senesce_vdisk::Launch;
use serde::Deserialize;

use super::{EngineConfig, EngineServer, EngineWhat, ProcessId};
use crate::{Error, Result};

/// An engine that opens may have to do again what its log holds, and one that ends writes what it has in memory.
const PATIENCE: Duration = Duration::from_secs(300);
/// For one that is let go without having been unmounted.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Bytes of what it complained of that are told.
const MOST_WORDS: usize = 2048;

/// What the server says, a line each.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// It is mounted and served.
    Ready,
    /// It is not any more; why, if that was not asked for.
    Ended { problem: Option<String> },
}

/// A server that was started, as its parent has it.
#[derive(Debug)]
pub(super) struct EngineProcess {
    child: Child,
    /// Its end tells the server that nobody wants it any more.
    input: Option<ChildStdin>,
    events: Receiver<Event>,
    /// Its stderr.
    complaints: File,
    process: ProcessId,
    point: PathBuf,
}

/// The running program, as a server: the kernel's link leads to it also when its file was replaced meanwhile.
pub(super) fn default_launch() -> Launch {
    Launch { executable: "/proc/self/exe".into(), arguments: vec!["fs".into(), "serve".into()] }
}

pub(super) fn start(
    launch: &Launch,
    config: &EngineConfig,
    identify: impl FnOnce(u32) -> Result<Option<ProcessId>>,
) -> Result<Box<dyn EngineServer>> {
    let mut command = Command::new(&launch.executable);
    command.args(&launch.arguments).arg("--source").arg(&config.source);
    match &config.what {
        EngineWhat::OnDevice { device, options } => {
            command.arg(device).arg(&config.point);
            for option in options.split(',').filter(|option| !option.is_empty()) {
                let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                command.arg(format!("--{name}")).args(value);
            }
        }
        EngineWhat::Memory { size } => {
            command.arg("--in-memory").arg(size.0.to_string()).arg(&config.point);
        }
    }
    // In memory, not a pipe: the server may outlive who started it, and must not fail because nobody reads.
    let complaints = memfd_create("complaints", MemfdFlags::CLOEXEC).map(File::from);
    let complaints = complaints.map_err(|error| Error::std("make memory for", &launch.executable)(error.into()))?;
    let mut child = command
        // As with all tools: what is not recorded must not matter.
        .env_clear()
        .current_dir("/")
        // Ctrl-C is the run's matter, which unmounts in order.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(complaints.try_clone().map(Stdio::from).map_err(Error::std("share", &launch.executable))?)
        .spawn()
        .map_err(Error::std("start", &launch.executable))?;
    let (sender, events) = mpsc::channel();
    let input = child.stdin.take();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || listen(output, &sender));
    }
    let process = identify(child.id());
    let gone = ProcessId { pid: child.id(), start_ticks: 0, boot_id: String::new() };
    let (process, unknown) = match process {
        Ok(Some(process)) => (process, None),
        Ok(None) => (gone, None), // it said why, or will be silent
        Err(error) => (gone, Some(error)),
    };
    // From here on it is given back when something fails.
    let mut server = EngineProcess { child, input, events, complaints, process, point: config.point.clone() };
    if let Some(error) = unknown {
        return Err(error);
    }
    server.await_ready()?;
    Ok(Box::new(server))
}

impl EngineProcess {
    fn failed(&self, problem: impl Into<String>) -> Error {
        Error::Engine { point: self.point.clone(), problem: problem.into() }
    }

    /// What it complained of when it ended without an answer.
    fn last_words(&mut self) -> String {
        self.is_over(LAST_PATIENCE);
        let mut bytes = vec![0; MOST_WORDS];
        let read = self.complaints.read_at(&mut bytes, 0).unwrap_or(0);
        match String::from_utf8_lossy(&bytes[..read]).trim() {
            "" => "it ended without a word".to_owned(),
            words => format!("it ended: {words}"),
        }
    }

    fn await_ready(&mut self) -> Result<()> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(Event::Ready) => Ok(()),
            Ok(Event::Ended { problem }) => Err(self.failed(problem.unwrap_or_else(|| "it ended at once".to_owned()))),
            Err(RecvTimeoutError::Timeout) => Err(self.failed(format!("it said nothing for {} s", PATIENCE.as_secs()))),
            Err(RecvTimeoutError::Disconnected) => {
                let words = self.last_words();
                Err(self.failed(words))
            }
        }
    }

    fn is_over(&mut self, patience: Duration) -> bool {
        let tries = patience.as_millis() / PAUSE.as_millis();
        (0..=tries).any(|attempt| {
            if attempt > 0 {
                thread::sleep(PAUSE);
            }
            !matches!(self.child.try_wait(), Ok(None))
        })
    }
}

impl EngineServer for EngineProcess {
    fn process(&self) -> &ProcessId {
        &self.process
    }

    fn mount_again(&mut self) -> Result<()> {
        let told = self.input.as_mut().is_some_and(|input| input.write_all(b"again\n").is_ok());
        if !told {
            return Err(self.failed("it is gone"));
        }
        self.await_ready()
    }

    fn wait_end(&mut self) -> Result<()> {
        let said = self.events.recv_timeout(PATIENCE);
        if !self.is_over(PATIENCE) {
            return Err(self.failed(format!("it still runs {} s after it was unmounted", PATIENCE.as_secs())));
        }
        match said {
            Ok(Event::Ended { problem: None }) => Ok(()),
            Ok(Event::Ended { problem: Some(problem) }) => Err(self.failed(problem)),
            Ok(Event::Ready) => Err(self.failed("it said that it was ready when it was to end")),
            Err(_) => Err(self.failed("it ended without a word: what was written last may be in its log only")),
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.input = None;
        if !self.is_over(LAST_PATIENCE) {
            // It may have ended in this moment; either is as good.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Lines that are no events are not for us.
fn listen(output: ChildStdout, events: &mpsc::Sender<Event>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        if let Ok(event) = serde_json::from_str(&line)
            && events.send(event).is_err()
        {
            break;
        }
    }
}

/// The program that makes engines.
pub(super) fn program(launch: &Launch) -> &Path {
    &launch.executable
}
