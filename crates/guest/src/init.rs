//! Process 1 of the guest: prepares the machine, executes the command, passes output, signals and
//! the exit code.
//!
//! An adapter: it mounts, loads modules, waits in real time, and powers the guest off.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{Read, Write},
    os::{
        fd::AsRawFd,
        unix::{fs::MetadataExt, process::CommandExt},
    },
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
    process::{Pid, Signal, WaitOptions},
    system::{RebootCommand, finit_module, reboot},
};

use crate::{
    Error, GuestConfig, Result, Writable,
    frame::{Frame, MOST_BYTES},
};

/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long output is read after the command exited: a daemon of its may hold the pipe.
const DRAIN: Duration = Duration::from_secs(2);

/// The serial line to the launcher.
#[derive(Clone)]
struct Line(Arc<Mutex<File>>);

impl Line {
    /// Opens the line so that all bytes pass unchanged.
    fn open() -> Result<(Self, File)> {
        let path = "/dev/ttyS0";
        let file = File::options().read(true).write(true).open(path).map_err(Error::io("open", path))?;
        // SAFETY: the descriptor is open, and the structure is initialised by the first call before
        // it is used.
        let done = unsafe {
            let mut settings = std::mem::zeroed::<libc::termios>();
            let read = libc::tcgetattr(file.as_raw_fd(), &mut settings);
            libc::cfmakeraw(&mut settings);
            if read == 0 { libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, &settings) } else { read }
        };
        if done != 0 {
            return Err(Error::io("set up", path)(std::io::Error::last_os_error()));
        }
        let reader = file.try_clone().map_err(Error::io("open", path))?;
        Ok((Self(Arc::new(Mutex::new(file))), reader))
    }

    /// Sends a frame. Errors are ignored: without a launcher, the guard ends the guest.
    fn send(&self, frame: &Frame) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = frame.write(&mut *file);
    }

    /// Waits until the host has everything.
    fn drain(&self) {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the descriptor is open.
        unsafe { libc::tcdrain(file.as_raw_fd()) };
    }
}

/// Is process 1 of a guest whose configuration is in the file `config`. Powers the guest off at the
/// end.
///
/// Errors: this process is not process 1; the machine could not be powered off.
pub fn init(config: &Path) -> Result<()> {
    if rustix::process::getpid() != Pid::INIT {
        let source = std::io::Error::other("only a guest kernel starts this command");
        return Err(Error::Io { operation: "start a guest with", path: config.to_owned(), source });
    }
    match prepare_line() {
        Ok((line, reader)) => {
            match prepare(config).and_then(|found| with_owners(found, config)) {
                Ok(config) => line.send(&execute(&config, &line, reader)),
                Err(error) => line.send(&Frame::Failed(with_cause(&error))),
            }
            line.drain();
        }
        // The console is all there is.
        Err(error) => drop(writeln!(std::io::stderr(), "senesce: {}", with_cause(&error))),
    }
    reboot(RebootCommand::PowerOff).map_err(Error::errno("power off", "/"))
}

fn with_cause(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

fn mount_on(kind: &str, point: &Path, data: &str) -> Result<()> {
    let data = CString::new(data).map_err(|_| Error::Path { path: point.to_owned(), why: "it holds a NUL byte" })?;
    let flags = MountFlags::NOSUID | if kind == "devtmpfs" { MountFlags::empty() } else { MountFlags::NODEV };
    match mount(kind, point, kind, flags, Some(data.as_c_str())) {
        // The kernel has mounted it itself.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(errno) => Err(Error::errno("mount", format!("{kind} on {}", point.display()))(errno)),
    }
}

fn prepare_line() -> Result<(Line, File)> {
    mount_on("proc", Path::new("/proc"), "")?;
    mount_on("sysfs", Path::new("/sys"), "")?;
    if !Path::new("/dev/ttyS0").exists() || fs::metadata("/dev/null").is_err() {
        mount_on("devtmpfs", Path::new("/dev"), "")?;
    }
    Line::open()
}

fn prepare(config: &Path) -> Result<GuestConfig> {
    let bytes = fs::read(config).map_err(Error::io("read", config))?;
    let wrong = |error: serde_json::Error| Error::io("read", config)(error.into());
    let mut config: GuestConfig = serde_json::from_slice(&bytes).map_err(wrong)?;
    // Parents first: a mount on a directory hides what is mounted below it.
    config.writable.sort_by_key(|writable| writable.path().components().count());
    let shared = Path::new("/dev/shm");
    fs::create_dir_all(shared).map_err(Error::io("create", shared))?;
    mount_on("tmpfs", shared, "mode=1777,size=80%")?;
    for writable in &config.writable {
        match writable {
            Writable::Host { path } => {
                // Below /dev, the host's directories are hidden.
                if !path.exists() {
                    fs::create_dir_all(path).map_err(Error::io("create", path))?;
                }
                mount_on("hostfs", path, &path.to_string_lossy())?;
            }
            Writable::Memory { path } => {
                fs::create_dir_all(path).map_err(Error::io("create", path))?;
                // Below the file system in memory, the directory is enough.
                if !path.starts_with(shared) {
                    mount_on("tmpfs", path, "mode=700,size=80%")?;
                }
            }
        }
    }
    for module in &config.modules {
        let file = File::open(module).map_err(Error::io("open", module))?;
        match finit_module(&file, c"", 0) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::errno("load", module)(errno)),
        }
    }
    Ok(config)
}

/// Adds the variables of owners. The caller owns the file at `path`, and the host's root owns `/`.
/// A user namespace shows both with other numbers than the host.
fn with_owners(mut config: GuestConfig, path: &Path) -> Result<GuestConfig> {
    let owner = |of: &Path| Ok(fs::metadata(of).map_err(Error::io("look up", of))?.uid().to_string());
    let (caller, system) = (owner(path)?, owner(Path::new("/"))?);
    let mut variables = Vec::new();
    variables.extend(config.caller_variables.drain(..).map(|name| (name, caller.clone())));
    variables.extend(config.system_variables.drain(..).map(|name| (name, system.clone())));
    config.environment.extend(variables);
    Ok(config)
}

/// Executes the command. Out: its exit, or why it could not be started.
fn execute(config: &GuestConfig, line: &Line, reader: File) -> Frame {
    let heart = line.clone();
    thread::spawn(move || {
        loop {
            heart.send(&Frame::Heartbeat);
            thread::sleep(HEARTBEAT);
        }
    });
    line.send(&Frame::Ready(rustix::system::uname().release().to_string_lossy().into_owned()));
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(config.umask & 0o777));
    let spawned = Command::new(&config.command[0])
        .args(&config.command[1..])
        .env_clear()
        .envs(config.environment.iter().map(|(key, value)| (key, value)))
        .current_dir(&config.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => return Frame::Failed(format!("cannot start {}: {error}", config.command[0])),
    };
    let pid = Pid::from_child(&child);
    let (done, is_done) = mpsc::channel();
    let stdout = child.stdout.take().expect("it is piped");
    let stderr = child.stderr.take().expect("it is piped");
    copy(stdout, Frame::Stdout, line.clone(), done.clone());
    copy(stderr, Frame::Stderr, line.clone(), done);
    thread::spawn(move || {
        while let Ok(Some(frame)) = Frame::read(&reader) {
            if let Frame::Signal(number) = frame
                && let Some(signal) = Signal::from_named_raw(i32::from(number))
            {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    });
    let code = wait_for(pid);
    for _ in 0..2 {
        let _ = is_done.recv_timeout(DRAIN);
    }
    // What the guest wrote is in its memory only.
    rustix::fs::sync();
    Frame::Exit(code)
}

fn copy(mut from: impl Read + Send + 'static, frame: fn(Vec<u8>) -> Frame, line: Line, done: mpsc::Sender<()>) {
    thread::spawn(move || {
        let mut buffer = vec![0; MOST_BYTES];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            line.send(&frame(buffer[..length].to_vec()));
        }
        let _ = done.send(());
    });
}

/// Waits for the command, and reaps every orphan meanwhile. Out: its exit code, as a shell has it.
fn wait_for(pid: Pid) -> u8 {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((found, status))) if found == pid => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                return signal.or_else(|| status.exit_status()).unwrap_or(1) as u8;
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}
