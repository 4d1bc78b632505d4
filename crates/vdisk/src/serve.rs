//! The server process: it mounts the disk, serves it, answers its parent, and exits only when no
//! process can hang on it.
//!
//! It exits when
//!
//! - the parent sends `quit` and the disk is not in use;
//! - the mount was removed, by any process, and the last user closed the file;
//! - the parent is gone, and the disk is no longer in use or the grace period is over. In the
//!   latter case later requests fail: the kernel aborts a FUSE connection without a server.

use std::{
    fs,
    io::{BufRead, Write},
    os::unix::fs::MetadataExt,
    path::Path,
    process::ExitCode,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use fuser::Session;
use senesce_core::Clock;

use crate::{
    Error, PROTOCOL_VERSION, Result, ServeConfig,
    config::{LaunchConfig, Role},
    disk::Disk,
    fuse::{DiskFs, mount_config},
    guard,
    host::{self, ProcessRef},
    protocol::{Command, Event, Question},
};

/// Implements the hidden verb of the command line: reads its charge from standard input, and works
/// as a server or a guard until that role ends. Reports on standard output; see
/// [`Server::start`](crate::Server::start).
///
/// In: `clock` is only read under a [`Pace`](crate::Pace) other than the device's. Cost: returns
/// when the process may exit; call it before any thread is started.
pub fn serve_stdio(clock: Arc<dyn Clock>) -> ExitCode {
    let mut line = String::new();
    // A separate statement: the lock must be released before the listener needs it.
    let read = std::io::stdin().lock().read_line(&mut line);
    let outcome = match read {
        Ok(_) => parse_charge(&line).and_then(|charge| match charge.role {
            Role::Serve(config) => serve(config, clock),
            Role::Guard(config) => guard::watch(&config),
        }),
        Err(error) => Err(Error::std("read", "standard input")(error)),
    };
    let problem = outcome.err().map(|error| error.to_string());
    let code = if problem.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    say(&Event::Ended { problem });
    code
}

fn parse_charge(line: &str) -> Result<LaunchConfig> {
    let bad = |problem: String| Error::Protocol { line: line.trim().to_owned(), problem };
    let charge: LaunchConfig = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
    if charge.version != PROTOCOL_VERSION {
        return Err(bad(format!("version {}; this program speaks version {PROTOCOL_VERSION}", charge.version)));
    }
    Ok(charge)
}

/// Prints a message. A failure is ignored: the parent may be gone.
pub(crate) fn say(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

/// The events that the main thread waits for.
enum ServerEvent {
    Asked(Question),
    ParentGone,
    SessionEnded(std::io::Result<()>),
}

fn serve(config: ServeConfig, clock: Arc<dyn Clock>) -> Result<()> {
    let notes = host::harden();
    if host::find_fuse_mount(&config.mount_source())?.is_some() {
        return Err(Error::Config {
            key: "name",
            value: config.name,
            problem: "a disk of that name is already mounted; choose another name",
        });
    }
    let disk = Arc::new(Disk::open(&config, clock)?);
    let session = Session::new(DiskFs::new(Arc::clone(&disk)), &config.mount_point, &mount_config(&config))
        .map_err(Error::std("mount the virtual disk on", &config.mount_point))?;
    let connection = host::find_fuse_mount(&config.mount_source())?.map(|mount| mount.connection).ok_or_else(|| {
        Error::NotStarted { role: "server", problem: "its mount is not in the list of mounts".to_owned() }
    })?;
    let (news, inbox) = mpsc::channel();
    spawn("disk", {
        let news = news.clone();
        move || {
            let _ = news.send(ServerEvent::SessionEnded(session.run()));
        }
    })?;
    spawn("parent", move || listen(&news))?;
    let process = ProcessRef::of(std::process::id())?;
    say(&Event::Ready { version: PROTOCOL_VERSION, process, connection, notes });
    let outcome = attend(&config, &disk, &inbox);
    disk.stop_log();
    // After an abort or a grace period, the dead mount must not stay.
    host::unmount(&config.mount_source(), true)?;
    outcome
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.map(drop).map_err(Error::std("start the thread", name))
}

fn listen(news: &Sender<ServerEvent>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(question) => {
                let _ = news.send(ServerEvent::Asked(question));
            }
            Err(error) => say(&Event::Refused { id: 0, problem: format!("{line:?} is not a command: {error}") }),
        }
    }
    let _ = news.send(ServerEvent::ParentGone);
}

/// The interval at which an orphaned server checks whether its disk is still in use.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

fn attend(config: &ServeConfig, disk: &Disk, inbox: &Receiver<ServerEvent>) -> Result<()> {
    let mut orphaned: Option<Duration> = None;
    loop {
        let news = match &mut orphaned {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(waited) => {
                let gone = Duration::from_secs(config.grace_seconds.into());
                if host::unmount(&config.mount_source(), false)? || *waited >= gone {
                    return Ok(());
                }
                *waited += POLL_INTERVAL;
                inbox.recv_timeout(POLL_INTERVAL)
            }
        };
        match news {
            Ok(ServerEvent::SessionEnded(outcome)) => return outcome.map_err(Error::std("serve", config.disk_path())),
            Ok(ServerEvent::ParentGone) => orphaned = Some(Duration::ZERO),
            Ok(ServerEvent::Asked(Question { id, command })) => {
                let quits = command == Command::Quit;
                match carry_out(config, disk, command) {
                    Ok(time) => {
                        say(&Event::Answer { id, time: Box::new(time) });
                        if quits {
                            return Ok(());
                        }
                    }
                    Err(problem) => say(&Event::Refused { id, problem }),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn carry_out(config: &ServeConfig, disk: &Disk, command: Command) -> std::result::Result<crate::TimeReport, String> {
    let text = |error: Error| error.to_string();
    match command {
        Command::Time => Ok(disk.time()),
        Command::Mark { name } => Ok(disk.mark(&name)),
        Command::Cool => Ok(disk.drop_device_cache()),
        Command::LogStart { path } => {
            refuse_own_disk(config, &path)?;
            disk.start_log(&path).map(|()| disk.time()).map_err(text)
        }
        Command::LogStop => disk.stop_log().map_or_else(|| Ok(disk.time()), Err),
        Command::Quit => match host::unmount(&config.mount_source(), false).map_err(text)? {
            true => Ok(crate::TimeReport { log_problem: disk.stop_log(), ..disk.time() }),
            false => Err("the disk is in use: unmount its file system and detach its loop device first".to_owned()),
        },
    }
}

/// Refuses a log on a file system of this disk: it would wait for the server that writes it.
fn refuse_own_disk(config: &ServeConfig, log: &Path) -> std::result::Result<(), String> {
    let dir = log.parent().filter(|dir| !dir.as_os_str().is_empty()).ok_or("a log needs a path with a directory")?;
    let number = fs::metadata(dir).map_err(|error| format!("{}: {error}", dir.display()))?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let backing = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/loop/backing_file")).unwrap_or_default();
    let point = fs::canonicalize(config.mount_point.parent().unwrap_or(Path::new("/"))).unwrap_or_default();
    let name = config.mount_point.file_name().unwrap_or_default();
    if Path::new(backing.trim()) == point.join(name).join(ServeConfig::FILE_NAME) {
        return Err(format!("{} is on the virtual disk itself; choose a file elsewhere", log.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_of_another_version_or_none_is_refused() {
        for line in ["", "{}", "{\"version\":2}", "{\"version\":2,\"dance\":{}}"] {
            assert!(matches!(parse_charge(line), Err(Error::Protocol { .. })), "{line:?}");
        }
        let guard = r#"{"version":3,"guard":{"name":"a","server":{"pid":1,"start_ticks":2},"connection":3,
            "mount_point":"/m","stall_seconds":4}}"#;
        assert!(parse_charge(guard).unwrap_err().to_string().contains("version 3"));
        parse_charge(&guard.replace("\"version\":3", "\"version\":2")).unwrap();
    }
}
