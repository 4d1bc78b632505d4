//! `senesce fs serve`, hidden: a mount that a run began, holds in its journal, and talks to by
//! lines.
//!
//! It says `{"event":"ready"}` when the mount is there, and `{"event":"ended","problem":...}` last.
//! It ends when it is unmounted, and unmounts when its input ends: then its run is gone. A file
//! system in memory is unmounted and mounted again by the line `again`.
//! `{"event":"drive_missing",...}` comes before `ready` for each drive that a garden lacks, and
//! `{"event":"drive_failed",...}` when one fails; `{"event":"log_failed",...}` when a copy of the
//! log does. What was wrong with labels and the log comes before `ready`, too: `repaired`,
//! `log_copy_lost`, `log_copy_missing`, `log_lost`. A garden that lacks a drive or a copy of the
//! log at the end makes the exit code 7.

use std::{
    io::{BufRead, Write},
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use senesce_fsapi::{FileSystem, ModelFs};
use senesce_fuse::{MountOptions, Mounted};
use senesce_garden::{Garden, Limits};
use senesce_volume::{Host, LinuxHost};
use serde_json::json;

use super::{
    Policy,
    evergreen::{self, Opened},
    held_mounts::Allows,
    mount::Chores,
    place::Place,
    watch::{Watch, check_whole, failure_event, log_events, missing_events},
};
use crate::{args::FsServeArgs, clock::SystemClock};

/// Tries to unmount what a run that is gone has left, before it is left to its last user.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until the mount is gone.
pub fn serve(args: &FsServeArgs) -> Result<()> {
    let done = serve_to_end(args);
    let problem = done.as_ref().err().map(|error| format!("{error:#}"));
    // The process that started it may be gone, and with it the reader.
    let _ = say(&json!({ "event": "ended", "problem": problem }));
    done?
}

fn say(event: &serde_json::Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    out.flush()
}

/// What the run says.
enum Said {
    Again,
    Gone,
}

/// Serves until the mount is gone. Returns whether the garden has all of its drives then.
fn serve_to_end(args: &FsServeArgs) -> Result<Result<()>> {
    let said = listen();
    let (fs, mut engine) = open(args)?;
    let watch = match &engine {
        Engine::Garden(garden, _) => {
            missing_events(garden).iter().chain(&log_events(garden)).try_for_each(say).context("the run is gone")?;
            // The end of its input says that the run is gone.
            Some(Watch::start(garden, |failure| drop(say(&failure_event(failure)))))
        }
        _ => None,
    };
    let mut mounted = start(args, fs.clone())?;
    say(&json!({ "event": "ready" })).context("the run is gone")?;
    while !mounted.is_over() {
        match said.try_recv() {
            Ok(Said::Again) if matches!(engine, Engine::Memory) => {
                unmount(args)?;
                mounted.join()?;
                mounted = start(args, fs.clone())?;
                say(&json!({ "event": "ready" })).context("the run is gone")?;
                continue;
            }
            Ok(Said::Again) => bail!("only a file system in memory can be mounted a second time"),
            Ok(Said::Gone) | Err(mpsc::TryRecvError::Disconnected) => {
                unmount(args)?;
                break;
            }
            Err(mpsc::TryRecvError::Empty) => {}
        }
        let longest = match &mut engine {
            Engine::Memory => None,
            Engine::Garden(garden, chores) => chores.do_some(garden, mounted.alarm()),
            Engine::Evergreen(opened, chores) => chores.do_some(&opened.store, &opened.fs, mounted.alarm()),
        };
        if !mounted.is_over() {
            mounted.alarm().wait(longest);
        }
    }
    mounted.join()?;
    match engine {
        Engine::Memory => Ok(Ok(())),
        Engine::Garden(garden, _) => {
            garden.close().context("cannot make the last consistency point")?;
            let failures = watch.map(|watch| watch.end(&garden)).unwrap_or_default();
            let device = args.device.as_deref().unwrap_or(Path::new("the garden"));
            Ok(check_whole(&garden, &failures, &device.display()))
        }
        Engine::Evergreen(opened, _) => {
            opened.store.checkpoint().context("cannot make the last checkpoint")?;
            Ok(Ok(()))
        }
    }
}

/// What the run says; each line, and the end of the input, wakes the calling thread.
fn listen() -> mpsc::Receiver<Said> {
    let (sender, said) = mpsc::channel();
    let holder = thread::current();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                // Sending fails once serving has ended: then there is nothing left to do.
                Ok(line) if line == "again" => sender.send(Said::Again).ok(),
                Ok(_) => continue,
                // An input that cannot be read is as good as one that ended.
                Err(_) => break,
            };
            holder.unpark();
        }
        sender.send(Said::Gone).ok();
        holder.unpark();
    });
    said
}

/// What is served, and what is done for it beside.
enum Engine {
    Memory,
    Garden(Garden, Box<Chores>),
    Evergreen(Opened, evergreen::Chores),
}

fn open(args: &FsServeArgs) -> Result<(Arc<dyn FileSystem>, Engine)> {
    let Some(device) = &args.device else {
        return Ok((Arc::new(ModelFs::new(args.in_memory.unwrap_or_default())), Engine::Memory));
    };
    if let Some(place) = evergreen::Place::find_at(device) {
        let opened = place.evergreen(place.open()?, evergreen::limits(&args.how))?;
        evergreen::tell_torn(&place, &opened.store);
        return Ok((
            opened.fs.clone(),
            Engine::Evergreen(opened, evergreen::Chores::new(args.how.checkpoint_interval)),
        ));
    }
    let place = Place::at(device);
    let devices = place.open()?;
    let limits = Limits { cache_bytes: args.how.cache.0, ..Limits::default() };
    let garden = place.garden_within(&devices, limits)?;
    garden.set_gardening(args.how.gardening.policy(&garden));
    garden.set_acknowledge(args.how.acknowledge())?;
    let name = garden.volumes().into_iter().next().context("the garden has no volume")?;
    let (fs, chores) = (garden.volume(&name)?, Chores::new(&garden, args.how.checkpoint_interval, true));
    Ok((Arc::new(fs), Engine::Garden(garden, Box::new(chores))))
}

fn start(args: &FsServeArgs, fs: Arc<dyn FileSystem>) -> Result<Mounted> {
    let now = Arc::new(SystemClock::unix_time);
    let (threads, pages) = (args.how.threads, args.how.pages());
    let Allows { suid, dev } = args.how.allows();
    let options = MountOptions { source: args.source.clone(), threads, now, read_only: false, pages, suid, dev };
    Ok(Mounted::start(fs, &args.point, options)?)
}

/// Unmounts. A process that uses the mount keeps it, and this process, until it closes its files. A
/// mount that is already gone is unmounted.
fn unmount(args: &FsServeArgs) -> Result<()> {
    let (host, point, source) = (LinuxHost::default(), &args.point, Path::new(&args.source));
    let is_gone = || Ok::<bool, anyhow::Error>(host.mounts()?.iter().all(|mount| mount.source != source));
    for _ in 1..TRIES {
        if is_gone()? || host.unmount(point, false).is_ok() {
            return Ok(());
        }
        host.pause(PAUSE);
    }
    match host.unmount(point, true) {
        // It was unmounted between the two calls.
        Err(_) if is_gone()? => Ok(()),
        done => Ok(done?),
    }
}
