//! Engines of ours on this host. A process serves each mount: the running program with a hidden
//! verb.

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

use super::{EngineConfig, EngineServer, EngineSource, ProcessId};
use crate::{Error, Result};

/// When an engine opens, it may replay its log. When it exits, it writes the data in its memory.
const PATIENCE: Duration = Duration::from_secs(300);
/// For an engine that is dropped while mounted.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// The maximum of its error output in a message, bytes.
const MOST_WORDS: usize = 2048;

/// A line of the server's output.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    /// The engine is mounted and served.
    Ready,
    /// The engine was unmounted. `problem` is set if that was not requested, or if it failed.
    Ended { problem: Option<String> },
}

/// A started server, as its parent sees it.
#[derive(Debug)]
pub(super) struct EngineProcess {
    child: Child,
    /// Closing it makes the server unmount and exit.
    input: Option<ChildStdin>,
    events: Receiver<Event>,
    /// The server's error output.
    complaints: File,
    process: ProcessId,
    point: PathBuf,
}

/// The running program as a server. The kernel's link leads to it even if its file was replaced.
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
        EngineSource::OnDevice { device, options } => {
            command.arg(device).arg(&config.point);
            for option in options.split(',').filter(|option| !option.is_empty()) {
                let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
                command.arg(format!("--{name}")).args(value);
            }
        }
        EngineSource::Memory { size } => {
            command.arg("--in-memory").arg(size.0.to_string()).arg(&config.point);
        }
    }
    // In memory, not a pipe: the server may outlive its parent, and must not fail because no
    // process reads.
    let complaints = memfd_create("complaints", MemfdFlags::CLOEXEC).map(File::from);
    let complaints = complaints.map_err(|error| Error::std("make memory for", &launch.executable)(error.into()))?;
    let mut child = command
        // As with all tools: an unrecorded environment must not matter.
        .env_clear()
        .current_dir("/")
        // On Ctrl-C the run unmounts in order. The signal must not reach the server.
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
        Ok(None) => (gone, None), // it reported why, or sends no event
        Err(error) => (gone, Some(error)),
    };
    // From here on, an error drops the server.
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

    /// The error output of a server that exited without an event.
    fn last_words(&mut self) -> String {
        self.is_over(LAST_PATIENCE);
        let mut bytes = vec![0; MOST_WORDS];
        let read = self.complaints.read_at(&mut bytes, 0).unwrap_or(0);
        match String::from_utf8_lossy(&bytes[..read]).trim() {
            "" => "it exited without a message".to_owned(),
            words => format!("it exited: {words}"),
        }
    }

    fn await_ready(&mut self) -> Result<()> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(Event::Ready) => Ok(()),
            Ok(Event::Ended { problem }) => Err(self.failed(problem.unwrap_or_else(|| "it exited at once".to_owned()))),
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(format!("it sent no event for {} s", PATIENCE.as_secs())))
            }
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
        let sent = self.input.as_mut().is_some_and(|input| input.write_all(b"again\n").is_ok());
        if !sent {
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
            Ok(Event::Ready) => Err(self.failed("it reported that it is ready, but it was to exit")),
            Err(_) => Err(self.failed("it exited without a message: the last writes may be in its log only")),
        }
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.input = None;
        if !self.is_over(LAST_PATIENCE) {
            // It may have exited in this moment, which does no harm.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Ignores lines that are no events.
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

/// The program that serves engines.
pub(super) fn program(launch: &Launch) -> &Path {
    &launch.executable
}
