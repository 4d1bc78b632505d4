//! The parent's handle on a disk: it starts server and guard, talks to the server, and releases
//! everything.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use crate::{
    Error, Footprint, PROTOCOL_VERSION, Released, Result, ServeConfig, TimeReport,
    config::{GuardConfig, LaunchConfig, Role},
    footprint,
    host::ProcessRef,
    protocol::{Command, Event, Question},
};

/// The command that starts the hidden verb: the program, and the arguments that make it call
/// [`serve_stdio`](crate::serve_stdio).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program; usually the running one.
    pub executable: PathBuf,
    /// Its arguments; usually `["vdisk-serve"]`.
    pub arguments: Vec<OsString>,
}

/// The longest time for an answer. Every answer is quick, but under memory pressure the server may
/// be slow.
const ANSWER_SECONDS: u64 = 60;
const START_SECONDS: u64 = 30;

/// A running disk in virtual time. Drop releases it; a file system or loop device still on it is
/// aborted after 5 s.
#[derive(Debug)]
pub struct Server {
    config: ServeConfig,
    server: Talker,
    guard: Talker,
    footprint: Footprint,
    connection: u32,
    notes: Vec<String>,
    last_id: u64,
    is_released: bool,
}

impl Server {
    /// Starts a server and its guard as separate processes, and waits until the disk exists.
    ///
    /// The mount point must be an empty directory. Write [`Footprint::planned`] to a journal first.
    /// The processes get no environment, a process group of their own (so that Ctrl-C does not
    /// reach them), and no standard error.
    ///
    /// Errors: the configuration is not valid, the disk cannot be mounted (not root), or a process
    /// does not answer for 30 s. Then nothing is left.
    pub fn start(launch: &Launch, config: ServeConfig) -> Result<Self> {
        config.check()?;
        let mut footprint = Footprint::planned(&config);
        let started = Talker::start(launch, "server", Role::Serve(config.clone())).and_then(|(server, ready)| {
            footprint.server = Some(ready.process);
            let charge = GuardConfig {
                name: config.name.clone(),
                server: ready.process,
                connection: ready.connection,
                mount_point: config.mount_point.clone(),
                stall_seconds: config.stall_seconds,
            };
            let (guard, guarding) = Talker::start(launch, "guard", Role::Guard(charge))?;
            footprint.guard = Some(guarding.process);
            Ok((server, guard, ready))
        });
        match started {
            Ok((server, guard, Ready { connection, notes, .. })) => {
                let is_released = false;
                Ok(Self { config, server, guard, footprint, connection, notes, last_id: 0, is_released })
            }
            Err(error) => {
                // The server started, but its guard failed: no process uses the disk yet.
                if footprint.server.is_some() {
                    let _ = footprint::release(&footprint);
                }
                Err(error)
            }
        }
    }

    /// The path of the disk, for a loop device with direct I/O. Set the loop device's
    /// `max_sectors_kb` to at most [`MAX_REQUEST_KIB`](crate::MAX_REQUEST_KIB), so that requests
    /// are not split.
    pub fn disk_path(&self) -> PathBuf {
        self.config.disk_path()
    }

    /// Its configuration.
    pub fn config(&self) -> &ServeConfig {
        &self.config
    }

    /// Its resources on the machine.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Number of the FUSE connection.
    pub fn connection(&self) -> u32 {
        self.connection
    }

    /// The results of the server's steps for safety under memory pressure, for the records.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether server and guard run.
    pub fn is_alive(&self) -> bool {
        [self.footprint.server, self.footprint.guard].iter().flatten().all(ProcessRef::is_alive)
    }

    /// Reports virtual time by cause.
    pub fn time(&mut self) -> Result<TimeReport> {
        self.ask(Command::Time)
    }

    /// Starts a phase called `name`; the report's `phase` is the one that ended.
    pub fn mark(&mut self, name: &str) -> Result<TimeReport> {
        self.ask(Command::Mark { name: name.to_owned() })
    }

    /// Makes the device cold: the modelled device drops recent reads and writes from its own
    /// memory, which would otherwise serve them. Flush before, as an unmount does.
    pub fn drop_device_cache(&mut self) -> Result<TimeReport> {
        self.ask(Command::Cool)
    }

    /// Starts a request log; a current log ends.
    ///
    /// Errors: the file exists, cannot be created, or is on the disk itself.
    pub fn start_log(&mut self, path: &Path) -> Result<TimeReport> {
        // The server may have another working directory than this process.
        let path = std::path::absolute(path).map_err(Error::std("find", path))?;
        self.ask(Command::LogStart { path })
    }

    /// Ends the request log; it is complete when this returns.
    ///
    /// Errors: the log could not be written completely.
    pub fn stop_log(&mut self) -> Result<TimeReport> {
        self.ask(Command::LogStop)
    }

    /// Makes all later requests fail, in case a process hangs on the disk.
    pub fn abort(&self) -> Result<()> {
        footprint::abort(&self.footprint).map(drop)
    }

    /// Unmounts the disk and ends its processes.
    ///
    /// Errors: the disk is in use ([`Error::Refused`]); it is still served until this value is
    /// dropped.
    pub fn quit(mut self) -> Result<TimeReport> {
        let last = self.ask(Command::Quit)?;
        self.release()?;
        Ok(last)
    }

    fn release(&mut self) -> Result<Released> {
        self.is_released = true;
        let released = footprint::release(&self.footprint)?;
        self.server.reap();
        self.guard.reap();
        Ok(released)
    }

    fn ask(&mut self, command: Command) -> Result<TimeReport> {
        self.last_id += 1;
        let name = command.name();
        let question = Question { id: self.last_id, command };
        self.server.say(&question)?;
        loop {
            match self.server.hear(ANSWER_SECONDS) {
                Ok(Event::Answer { id, time }) if id == self.last_id => return Ok(*time),
                Ok(Event::Refused { id, problem }) if id == self.last_id => {
                    return Err(Error::Refused { command: name, problem });
                }
                Ok(Event::Ended { problem }) => {
                    return Err(Error::Gone { problem: problem.unwrap_or_else(|| "it exited".to_owned()) });
                }
                // An answer that came after its timeout.
                Ok(_) => {}
                Err(Silence::Long) => return Err(Error::Unanswered { command: name, seconds: ANSWER_SECONDS }),
                Err(Silence::ForEver) => return Err(Error::Gone { problem: "it closed its output".to_owned() }),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_released {
            let _ = self.release();
        }
    }
}

/// A child process that speaks the protocol.
#[derive(Debug)]
struct Talker {
    child: Child,
    input: Option<ChildStdin>,
    events: Receiver<Event>,
}

struct Ready {
    process: ProcessRef,
    connection: u32,
    notes: Vec<String>,
}

enum Silence {
    Long,
    ForEver,
}

impl Talker {
    fn start(launch: &Launch, role: &'static str, charge: Role) -> Result<(Self, Ready)> {
        let mut child = Process::new(&launch.executable)
            // This argument shows a later process which disk this one serves.
            .arg0(charge.mount_source())
            .args(&launch.arguments)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::std("start", &launch.executable))?;
        let input = child.stdin.take();
        let (sender, events) = mpsc::channel();
        let listener = child.stdout.take().map(|output| {
            thread::Builder::new().name(format!("vdisk {role}")).spawn(move || listen(output, &sender)).map(drop)
        });
        let mut talker = Self { child, input, events };
        let ready = match listener {
            Some(Err(error)) => Err(Error::std("start the thread", "vdisk")(error)),
            _ => talker.say(&LaunchConfig { version: PROTOCOL_VERSION, role: charge }),
        };
        match ready.and_then(|()| talker.await_ready(role)) {
            Ok(ready) => Ok((talker, ready)),
            Err(error) => {
                // Nothing is mounted yet, or the mount disappears with its server.
                let _ = talker.child.kill();
                talker.reap();
                Err(error)
            }
        }
    }

    fn await_ready(&mut self, role: &'static str) -> Result<Ready> {
        let problem = match self.hear(START_SECONDS) {
            Ok(Event::Ready { version: PROTOCOL_VERSION, process, connection, notes }) => {
                return Ok(Ready { process, connection, notes });
            }
            Ok(Event::Ready { version, .. }) => format!("it speaks version {version}, not version {PROTOCOL_VERSION}"),
            Ok(Event::Ended { problem: Some(problem) }) => problem,
            Ok(event) => format!("its first message was {event:?}"),
            Err(Silence::Long) => format!("it did not answer for {START_SECONDS} s"),
            Err(Silence::ForEver) => "it exited without a message".to_owned(),
        };
        Err(Error::NotStarted { role, problem })
    }

    fn say(&mut self, what: &impl serde::Serialize) -> Result<()> {
        let gone = |problem: String| Error::Gone { problem };
        let mut line = serde_json::to_vec(what).map_err(|error| gone(error.to_string()))?;
        line.push(b'\n');
        match &mut self.input {
            Some(input) => input.write_all(&line).map_err(|error| gone(error.to_string())),
            None => Err(gone("its input is closed".to_owned())),
        }
    }

    fn hear(&self, seconds: u64) -> std::result::Result<Event, Silence> {
        self.events.recv_timeout(Duration::from_secs(seconds)).map_err(|error| match error {
            RecvTimeoutError::Timeout => Silence::Long,
            RecvTimeoutError::Disconnected => Silence::ForEver,
        })
    }

    /// Reaps the child, whose end was seen or caused before.
    fn reap(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Lines that are no events are skipped: a test program may print a greeting.
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
