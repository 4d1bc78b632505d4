//! `senesce record`: what programs do to a directory, as an operation log.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Child, Command, ExitStatus},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use senesce_core::{Bytes, Clock, Nanos, Printable, Seed};
use senesce_record::{ImportOptions, RecordOptions, Recorded, Recording, Trouble, import_strace};
use senesce_volume::{
    Custodian, MountSource, Outcome, Resource, ResourceId, check_interrupted, check_place, install_signal_cleanup,
    interrupted,
};

use super::{
    home::with_home,
    place::{check_directory, check_new_files, check_program},
};
use crate::{
    args::RecordArgs,
    clock::SystemClock,
    exit::{failed, failed_with, usage},
};

/// The interval at which the recording and the command are polled.
const LOOK: Duration = Duration::from_millis(10);
/// Looks between two flushes of the log.
const LOOKS_A_FLUSH: u64 = 100;
/// Looks that an interrupted command is given to end.
const LOOKS_TO_END: u32 = 500;

/// Records through a mount, or imports a trace.
pub fn record(args: RecordArgs, quiet: bool) -> Result<()> {
    if let Some(trace) = &args.import_strace {
        return import(&args, trace);
    }
    let (Some(dir), Some(mount)) = (&args.dir, &args.mount) else {
        return Err(usage("--on and --mount are needed", None));
    };
    install_signal_cleanup().context("cannot handle signals")?;
    check_new_files([&Some(args.log.clone())])?;
    check_mount_point(mount)?;
    if let Some(program) = args.command.first()
        && !is_below(Path::new(program), mount)
    {
        // Before the mount and the log exist.
        check_program(program, Some(dir))?;
    }
    if args.dry_run {
        return preview(&args, dir, mount);
    }
    let (plain, ended) = with_home(|custodian| {
        let plain = if args.overhead { Some(run_plain(custodian, dir, &args)?) } else { None };
        Ok((plain, record_in(custodian, &args, dir, mount, quiet)?))
    })?;
    let has_failed = ended.status.is_some_and(|status| !status.success());
    let is_void = has_failed && changed_nothing(&ended.recorded);
    if !is_void {
        print_log(&args.log, &ended.recorded);
    }
    if !is_void || plain.is_some() {
        print_time(ended.took, plain);
    }
    if ended.recorded.foreign_changes > 0 {
        println!(
            "{} names came or went in the backing directory itself: the log does not know of them",
            ended.recorded.foreign_changes
        );
    }
    if is_void {
        remove_log(&args.log);
    }
    if let Some(signal) = interrupted()
        && ended.status.is_some()
    {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    match ended.status {
        Some(status) if is_void => Err(failed_with(
            format!("the recorded command ended with {status}, and changed nothing: no log was kept"),
            Some("the command runs in POINT (--mount): use absolute paths, or paths relative to POINT"),
        )),
        Some(status) if has_failed => Err(failed(format!("the recorded command ended with {status}"))),
        _ => Ok(()),
    }
}

/// Whether a path is below a mount point. Before the mount no program is there.
fn is_below(program: &Path, mount: &Path) -> bool {
    let points = [std::path::absolute(mount), fs::canonicalize(mount)];
    points.iter().flatten().any(|point| program.starts_with(point))
}

/// Whether neither the command nor another program changed the directory.
fn changed_nothing(recorded: &Recorded) -> bool {
    recorded.changes == 0 && recorded.foreign_changes == 0
}

/// Removes the log of a command that changed nothing, so that the user can run `record` again. If
/// that fails, the next `record` names the log.
fn remove_log(log: &Path) {
    let _ = fs::remove_file(log);
}

/// Errors: the mount point does not exist, or is a file.
fn check_mount_point(mount: &Path) -> Result<()> {
    if mount.is_dir() {
        return Ok(());
    }
    let shown = Printable::new(&mount);
    match mount.symlink_metadata() {
        Ok(_) => Err(usage(format!("--mount: {shown} is no directory"), Some("name an empty directory"))),
        Err(_) => {
            let hint = format!("make the mount point first: mkdir {shown}");
            Err(usage(format!("--mount: {shown} does not exist"), Some(&hint)))
        }
    }
}

/// Checks the directories and the log, and prints what would be recorded.
fn preview(args: &RecordArgs, dir: &Path, mount: &Path) -> Result<()> {
    if args.overhead {
        let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
        let beside = parent_of(&dir)?;
        check_place(beside)?;
        check_directory(&beside.join("senesce-plain"))?;
    }
    let options = options(args, dir, mount, "senesce-record".to_owned(), Arc::new(SystemClock::start()));
    let operations = Recording::check(&options)?;
    println!("{}: would start with {operations} operations for the existing tree", Printable::new(&args.log));
    println!("{} would be recorded at {}; nothing was written", Printable::new(&dir), Printable::new(&mount));
    Ok(())
}

fn import(args: &RecordArgs, trace: &Path) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    check_new_files([&Some(args.log.clone())])?;
    let imported = import_strace(&ImportOptions {
        trace: trace.to_owned(),
        log: (!args.dry_run).then(|| args.log.clone()),
        dir: args.dir.clone().unwrap_or_else(|| "/".into()),
        anonymize: args.anonymize,
        seed: Seed(args.seed),
        stop: || interrupted().is_some(),
    });
    let imported = match imported {
        Err(senesce_record::Error::Stopped) => {
            check_interrupted("the import of a trace")?;
            return Err(senesce_record::Error::Stopped.into());
        }
        Err(error @ senesce_record::Error::Trace { .. }) => {
            let hint = "write the trace with: strace -f -y -ttt -o FILE COMMAND";
            return Err(usage(format!("{}: {error}", trace.display()), Some(hint)));
        }
        imported => imported?,
    };
    let would = if args.dry_run { "would have " } else { "" };
    println!(
        "{}: {would}{} operations from {} lines; {} files and directories assumed to have been there",
        args.log.display(),
        imported.summary.operations,
        imported.lines,
        imported.assumed
    );
    if imported.maps > 0 {
        println!("{} writable shared memory maps: writes through them are not in the log", imported.maps);
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
}

fn record_in(custodian: &Custodian, args: &RecordArgs, dir: &Path, mount: &Path, quiet: bool) -> Result<Ended> {
    let clock = Arc::new(SystemClock::start());
    let (id, recording) = start(custodian, args, dir, mount, clock.clone())?;
    if !quiet && args.command.is_empty() {
        eprintln!("recording what happens in {}; Ctrl-C stops the recording", Printable::new(&mount));
    }
    let attended = attend(args, mount, &recording, &clock);
    // Whatever became of the command, the mount goes first: what is still in memory arrives with
    // that.
    let released = custodian.release(id);
    if let Ok(Outcome::DetachedLazily) = released
        && !quiet
    {
        eprintln!("a process still uses {}: its later operations are not in the log", Printable::new(&mount));
    }
    let recorded = recording.finish()?;
    released?;
    if attended.is_err() && changed_nothing(&recorded) {
        remove_log(&args.log);
    }
    let (status, took) = attended?;
    Ok(Ended { recorded, status, took })
}

fn options(args: &RecordArgs, dir: &Path, mount: &Path, source: String, clock: Arc<dyn Clock>) -> RecordOptions {
    RecordOptions {
        backing: dir.to_owned(),
        mount: mount.to_owned(),
        log: args.log.clone(),
        source,
        keep_contents: args.keep_contents,
        anonymize: args.anonymize,
        seed: Seed(args.seed),
        clock,
    }
}

/// Mounts; the mount is in the journal before it is there.
fn start(
    custodian: &Custodian,
    args: &RecordArgs,
    dir: &Path,
    mount: &Path,
    clock: Arc<dyn Clock>,
) -> Result<(ResourceId, Recording)> {
    let point = fs::canonicalize(mount).with_context(|| format!("cannot look up {}", mount.display()))?;
    let name = format!("senesce-record:{}", custodian.token());
    let options = options(args, dir, mount, name.clone(), clock);
    let resource = Resource::Mount { point, source: MountSource::Recording { name } };
    let (id, started) = custodian.acquire(resource, |_| Ok(Recording::start(options)))?;
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
    let mut look = || {
        looks += 1;
        if looks.is_multiple_of(LOOKS_A_FLUSH) {
            recording.flush();
        }
        recording.trouble()
    };
    let (status, trouble) = wait(command.as_mut(), &mut look)?;
    match trouble {
        Some(Trouble::Unmounted) if status.is_some() => {
            Err(failed("the mount point was unmounted while the command ran"))
        }
        // Also without a command: no user stops a recording in this way, and open calls failed.
        Some(Trouble::Aborted) => Err(failed(format!(
            "the FUSE connection of {} was aborted (umount --force, or its abort file); the log is good up to that moment",
            Printable::new(&mount)
        ))),
        // Without a command that is one way to end it. The others show when the log is finished.
        _ => Ok((status, Nanos(clock.now().0 - began.0))),
    }
}

/// Waits for the end of a command, or without one for a signal, and looks now and then; a signal
/// asks the command to end, trouble makes it.
fn wait(
    mut command: Option<&mut Child>,
    look: &mut dyn FnMut() -> Option<Trouble>,
) -> Result<(Option<ExitStatus>, Option<Trouble>)> {
    let mut looks_since_signal = 0;
    loop {
        if let Some(command) = &mut command
            && let Some(status) = command.try_wait().context("cannot wait for the command")?
        {
            return Ok((Some(status), None));
        }
        if let Some(trouble) = look() {
            let Some(command) = command else { return Ok((None, Some(trouble))) };
            let _ = command.kill();
            return Ok((Some(command.wait().context("cannot wait for the command")?), Some(trouble)));
        }
        if interrupted().is_some() {
            let Some(command) = &mut command else { return Ok((None, None)) };
            match looks_since_signal {
                0 => {
                    let _ = kill_process(Pid::from_child(command), Signal::TERM);
                }
                LOOKS_TO_END => command.kill().context("cannot kill the command")?,
                _ => {}
            }
            looks_since_signal += 1;
        }
        thread::sleep(LOOK);
    }
}

fn spawn(command: &[OsString], place: &Path) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).current_dir(place).stdout(std::io::stderr()).spawn();
    child.map(Some).with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

/// How often the command runs without the recorder: the first time it may be cold.
const PLAIN_RUNS: usize = 3;

/// The same command in copies of the directory beside it, which are gone afterwards; gives how long
/// it took each time, rising.
fn run_plain(custodian: &Custodian, dir: &Path, args: &RecordArgs) -> Result<Vec<Nanos>> {
    let mut took = (0..PLAIN_RUNS).map(|_| run_plain_once(custodian, dir, args)).collect::<Result<Vec<_>>>()?;
    took.sort_unstable();
    Ok(took)
}

/// The directory for copies of `dir`.
fn parent_of(dir: &Path) -> Result<&Path> {
    dir.parent().ok_or_else(|| usage("--overhead copies the directory, and / cannot be copied", None))
}

fn run_plain_once(custodian: &Custodian, dir: &Path, args: &RecordArgs) -> Result<Nanos> {
    let dir = fs::canonicalize(dir).with_context(|| format!("cannot look up {}", dir.display()))?;
    let beside = parent_of(&dir)?;
    let (id, place) = custodian.acquire_tree(beside, "senesce-plain")?;
    let copy = place.join("copy");
    let run = |command: &[OsString], place: &Path| -> Result<ExitStatus> {
        let mut child = spawn(command, place)?;
        let (status, _) = wait(child.as_mut(), &mut || None)?;
        check_interrupted("the command without the recorder")?;
        status.ok_or_else(|| failed("there is no command"))
    };
    let copying: Vec<OsString> = vec!["cp".into(), "-a".into(), "--".into(), dir.clone().into(), copy.clone().into()];
    if !run(&copying, &place)?.success() {
        return Err(failed(format!("cannot copy {}", dir.display())));
    }
    let clock = SystemClock::start();
    let status = run(&args.command, &copy)?;
    let took = clock.now();
    custodian.release(id)?;
    if !status.success() {
        return Err(failed(format!("the command fails without the recorder, too: it ended with {status}")));
    }
    Ok(took)
}

fn print_log(log: &Path, recorded: &Recorded) {
    let summary = &recorded.summary;
    println!(
        "{}: {} operations, {} written, {} of log",
        log.display(),
        summary.operations,
        Bytes(summary.content_bytes),
        Bytes(summary.file_bytes)
    );
}

/// `plain` has the times without the recorder, if they were measured.
fn print_time(took: Nanos, plain: Option<Vec<Nanos>>) {
    let took = took.as_secs_f64();
    match plain {
        Some(plain) => {
            println!("{}", describe_overhead(took, &plain.iter().map(|took| took.as_secs_f64()).collect::<Vec<_>>()));
        }
        None => println!("took {took:.3} s"),
    }
}

/// What recording cost, from the seconds that the command took recorded, and without (rising); no
/// ratio where the runs without differ by more than recording makes.
fn describe_overhead(took: f64, plain: &[f64]) -> String {
    let (least, median, most) = (plain[0], plain[plain.len() / 2], plain[plain.len() - 1]);
    let times = plain.len();
    let said = format!(
        "the command took {took:.3} s recorded and {median:.3} s without ({least:.3} to {most:.3} in {times} runs)"
    );
    if (took - median).abs() <= most - least {
        return format!(
            "{said}: the runs without the recorder differ by more than the recorder costs; choose a longer command"
        );
    }
    format!("{said}: {:.2} times as long", took / median.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_told_only_where_it_is_one() {
        assert!(describe_overhead(4.0, &[1.9, 2.0, 2.5]).ends_with("2.00 times as long"));
        // The first run found nothing in memory.
        let said = describe_overhead(0.004, &[0.002, 0.003, 0.06]);
        assert!(!said.contains("times as long") && said.contains("choose a longer"), "{said}");
    }
}
