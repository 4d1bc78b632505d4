//! `senesce record`: what programs do to a directory, as an operation log.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use senesce_core::{Bytes, Clock, Nanos, Seed};
use senesce_record::{ImportOptions, RecordOptions, Recorded, Recording, Trouble, import_strace};
use senesce_vdisk::Footprint;
use senesce_volume::{
    Custodian, LinuxHost, Outcome, Registry, Resource, ResourceId, install_signal_cleanup, interrupted,
};

use super::run::registry_dir;
use crate::{
    args::RecordArgs,
    clock::SystemClock,
    exit::{failed, usage},
};

/// How often the recording and the command are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Looks between two flushes of the log.
const LOOKS_A_FLUSH: u64 = 100;
/// Looks that an interrupted command is given to end.
const LOOKS_TO_END: u64 = 500;

/// Records through a mount, or imports a trace.
pub fn record(args: RecordArgs, quiet: bool) -> Result<()> {
    if let Some(trace) = &args.import_strace {
        return import(&args, trace);
    }
    let (Some(dir), Some(mount)) = (&args.dir, &args.mount) else {
        return Err(usage("give --dir and --mount", None));
    };
    install_signal_cleanup().context("cannot handle signals")?;
    let plain = if args.overhead { Some(run_plain(dir, &args)?) } else { None };
    let scratch = PathBuf::from(format!("/var/tmp/senesce-record-{}", std::process::id()));
    fs::create_dir(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let registry = Registry::new(&registry_dir());
    registry.add(&scratch)?;
    let result = record_in(&args, dir, mount, &scratch, quiet);
    // What would not come down is found by its journal in there.
    if result.as_ref().map_or_else(|ended| ended.is_clean, |ended| ended.is_clean) {
        registry.remove(&scratch)?;
        fs::remove_dir_all(&scratch).ok();
    }
    let ended = result.map_err(|ended| ended.error)?;
    print(&args.log, &ended, plain);
    if let Some(signal) = interrupted()
        && ended.status.is_some()
    {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    match ended.status {
        Some(status) if !status.success() => Err(failed(format!("the recorded command ended with {status}"))),
        _ => Ok(()),
    }
}

fn import(args: &RecordArgs, trace: &Path) -> Result<()> {
    let imported = import_strace(&ImportOptions {
        trace: trace.to_owned(),
        log: args.log.clone(),
        dir: args.dir.clone().unwrap_or_else(|| "/".into()),
        anonymize: args.anonymize,
        seed: Seed(args.seed),
    })?;
    println!(
        "{}: {} operations from {} lines; {} files and directories assumed to have been there",
        args.log.display(),
        imported.summary.operations,
        imported.lines,
        imported.assumed
    );
    if imported.maps > 0 {
        println!("{} writable shared memory maps: what came through them is not in the log", imported.maps);
    }
    if imported.unnamed_writes > 0 {
        println!("{} writes to files without a name are not in the log", imported.unnamed_writes);
    }
    Ok(())
}

/// A recording that came to its end.
struct Ended {
    recorded: Recorded,
    status: Option<ExitStatus>,
    took: Nanos,
    is_clean: bool,
}

/// One that did not.
struct Failed {
    error: anyhow::Error,
    is_clean: bool,
}

fn record_in(
    args: &RecordArgs,
    dir: &Path,
    mount: &Path,
    scratch: &Path,
    quiet: bool,
) -> std::result::Result<Ended, Failed> {
    let early = |error: anyhow::Error| Failed { error, is_clean: true };
    let custodian = Custodian::open(Arc::new(LinuxHost::default()), scratch).map_err(|error| early(error.into()))?;
    let clock = Arc::new(SystemClock::start());
    let (id, recording) = start(&custodian, args, dir, mount, clock.clone()).map_err(early)?;
    if !quiet && args.command.is_empty() {
        eprintln!("recording what happens in {}; Ctrl-C ends it", mount.display());
    }
    let attended = attend(args, mount, &recording, &clock);
    // Whatever became of the command, the mount goes first: what is still in memory arrives with that.
    let released = custodian.release(id);
    let is_clean = !matches!(released, Err(_) | Ok(Outcome::Failed { .. }));
    let late = |error: anyhow::Error| Failed { error, is_clean };
    if let Ok(Outcome::DetachedLazily) = released
        && !quiet
    {
        eprintln!("somebody still used {}: what they did since is not in the log", mount.display());
    }
    let recorded = recording.finish().map_err(|error| late(error.into()))?;
    released.map_err(|error| late(error.into()))?;
    let (status, took) = attended.map_err(late)?;
    Ok(Ended { recorded, status, took, is_clean })
}

/// Mounts; the mount is in the journal before it is there. It is known by its source, as that of a disk in virtual time.
fn start(
    custodian: &Custodian,
    args: &RecordArgs,
    dir: &Path,
    mount: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(ResourceId, Recording)> {
    let mount_point = fs::canonicalize(mount).with_context(|| format!("cannot look up {}", mount.display()))?;
    let name = format!("record.{}", custodian.token());
    let source = format!("senesce-vdisk:{name}");
    let footprint = Footprint { name, mount_point, backing_file: None, server: None, guard: None };
    let options = RecordOptions {
        backing: dir.to_owned(),
        mount: mount.to_owned(),
        log: args.log.clone(),
        source,
        keep_contents: args.keep_contents,
        anonymize: args.anonymize,
        seed: Seed(args.seed),
        clock,
    };
    let (id, started) = custodian.acquire(Resource::VirtualDisk { footprint }, |_| Ok(Recording::start(options)))?;
    match started {
        Ok(recording) => Ok((id, recording)),
        Err(error) => {
            custodian.release(id)?;
            Err(error.into())
        }
    }
}

/// Runs the command in the mount until it ends, or waits for the end of the recording.
fn attend(
    args: &RecordArgs,
    mount: &Path,
    recording: &Recording,
    clock: &SystemClock,
) -> Result<(Option<ExitStatus>, Nanos)> {
    let began = clock.now();
    let mut command = spawn(&args.command, mount)?;
    let mut looks = 0u64;
    let mut interrupted_at = None;
    let trouble = loop {
        if let Some(command) = &mut command
            && let Some(status) = command.try_wait().context("cannot wait for the command")?
        {
            return Ok((Some(status), Nanos(clock.now().0 - began.0)));
        }
        if let Some(trouble) = recording.trouble() {
            break trouble;
        }
        if interrupted().is_some() {
            let Some(command) = &mut command else { return Ok((None, Nanos(clock.now().0 - began.0))) };
            match interrupted_at {
                None => {
                    interrupted_at = Some(looks);
                    let _ = kill_process(Pid::from_child(command), Signal::TERM);
                }
                Some(at) if looks > at + LOOKS_TO_END => command.kill().context("cannot kill the command")?,
                Some(_) => {}
            }
        }
        looks += 1;
        if looks.is_multiple_of(LOOKS_A_FLUSH) {
            recording.flush();
        }
        thread::sleep(LOOK);
    };
    let Some(mut command) = command else {
        // Somebody unmounted it: that is one way to end it. The others show when the log is finished.
        return Ok((None, Nanos(clock.now().0 - began.0)));
    };
    let _ = command.kill();
    let status = command.wait().context("cannot wait for the command")?;
    match trouble {
        Trouble::Unmounted => Err(failed("the mount was taken away while the command ran")),
        Trouble::Vanished | Trouble::Log => Ok((Some(status), Nanos(clock.now().0 - began.0))),
    }
}

fn spawn(command: &[std::ffi::OsString], place: &Path) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).current_dir(place).stdout(std::io::stderr()).spawn();
    child.map(Some).with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

/// The same command in a copy of the directory beside it; gives how long it took.
fn run_plain(dir: &Path, args: &RecordArgs) -> Result<Nanos> {
    let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(format!(".senesce-plain-{}", std::process::id()));
    let copy = Copy(dir.with_file_name(name));
    let copied = Command::new("cp").arg("-a").arg("--").arg(&dir).arg(&copy.0).status().context("cannot run cp")?;
    if !copied.success() {
        return Err(failed(format!("cannot copy {}", dir.display())));
    }
    let clock = SystemClock::start();
    if let Some(mut command) = spawn(&args.command, &copy.0)? {
        command.wait().context("cannot wait for the command")?;
    }
    Ok(clock.now())
}

/// Removed at the end, whatever happens.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn print(log: &Path, ended: &Ended, plain: Option<Nanos>) {
    let summary = &ended.recorded.summary;
    println!(
        "{}: {} operations, {} written, {} of log",
        log.display(),
        summary.operations,
        Bytes(summary.content_bytes),
        Bytes(summary.file_bytes)
    );
    let took = ended.took.as_secs_f64();
    match plain {
        Some(plain) => {
            let plain = plain.as_secs_f64();
            println!(
                "the command took {took:.3} s recorded and {plain:.3} s without: {:.2} times as long",
                took / plain.max(1e-9)
            );
        }
        None => println!("took {took:.3} s"),
    }
    if ended.recorded.foreign_changes > 0 {
        println!(
            "{} names came or went in the backing directory itself: the log does not know of them",
            ended.recorded.foreign_changes
        );
    }
}
