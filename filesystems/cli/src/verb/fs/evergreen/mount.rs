//! Mounting an evergreen.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use senesce_cli::with_home;
use senesce_evergreen::{Evergreen, EvergreenFs, KeyValue, Limits};
use senesce_fuse::Alarm;
use senesce_garden::LogDevices;
use senesce_service::{Devices, MountStat, Passes, Request, Response, Serves, evergreen::Service, socket::Connection};
use senesce_volume::{Custodian, install_signal_cleanup};

use super::{
    super::{
        control::{Control, held_files},
        held_mounts::{Begin, Served, hold},
        mounts::Mounts,
        send_request::fault,
        sync_timing::Due,
    },
    Opened, Place,
    tree_picture::write_figures,
};
use crate::{
    args::{FsMountArgs, FsServedArgs, GardeningArg},
    exit::{refusal_of, usage},
};

/// Bytes of renamed objects that get the keys of where they are after each sync: about as much a
/// second.
const TENDED: u64 = 8 << 20;

/// Serves it until it is unmounted, or until a signal; then everything is in a checkpoint.
pub fn mount(place: &Place, args: &FsMountArgs, quiet: bool) -> Result<()> {
    check_words(args)?;
    install_signal_cleanup().context("cannot handle signals")?;
    with_home(|custodian| serve(custodian, place, args, quiet))
}

/// How much memory serving takes.
pub fn limits(how: &FsServedArgs) -> Limits {
    Limits { cache_bytes: how.cache.0 as usize, ..Limits::default() }
}

/// Errors: words about a garden.
fn check_words(args: &FsMountArgs) -> Result<()> {
    let of_garden = [
        ("--volume", args.volume.is_some()),
        ("--snapshot", args.snapshot.is_some()),
        ("--also", !args.also.is_empty()),
        ("--adaptive", args.by_load),
        ("--previous-checkpoint", args.previous_checkpoint),
        ("--without-log", args.without_log),
        ("--objects", args.objects.objects.is_some()),
        ("--gardening", !matches!(args.how.gardening, GardeningArg::Auto | GardeningArg::Off)),
    ];
    match of_garden.iter().find(|(_, is_given)| *is_given) {
        Some((word, _)) => Err(usage(format!("{word} has an effect on a garden only, and this is an evergreen"), None)),
        None => Ok(()),
    }
}

fn serve(custodian: &Custodian, place: &Place, args: &FsMountArgs, quiet: bool) -> Result<()> {
    let point = fs::canonicalize(&args.point).with_context(|| format!("cannot look up {}", args.point.display()))?;
    // Opening may do again what the log holds; a read-only mount keeps even that in memory.
    let device = if args.read_only { place.look()? } else { place.open()? };
    let devices = Devices::new(vec![device], LogDevices::none());
    let device = devices.drives().swap_remove(0);
    let Opened { store, fs } = place.evergreen(device.clone(), limits(&args.how))?;
    tell_torn(place, &store);
    let (threads, pages, read_only) = (args.how.threads, args.how.pages(), args.read_only);
    let mut chores = Chores::new(args.how.checkpoint_interval);
    let control = Control::bind(custodian)?;
    let files = held_files(vec![place.path().to_owned()], read_only);
    // An evergreen has one volume, without a name.
    let point_name = point.as_os_str().as_bytes().into();
    let stat = MountStat { point: point_name, volume: String::new(), snapshot: None, read_only, device: None };
    let mounts = Mounts::of_this_thread([stat]);
    let (name, passes) = (place.to_string(), Passes::default());
    let answer = |request: Request, connection: &mut Connection| {
        let service = Service {
            fs: &fs,
            place: &name,
            device: &device,
            devices: &devices,
            passes: &passes,
            read_only,
            mounts: &mounts,
        };
        match service.answer(&request, connection).map_err(|error| refusal_of(&fault(error)))? {
            Response::Serves(serves) => Ok(Response::Serves(Serves { files: files.clone(), ..serves })),
            response => Ok(response),
        }
    };
    let held = thread::scope(|scope| {
        let _serving = control.serve(scope, &answer);
        let _background = (!read_only).then(|| {
            store.start_background();
            scope.spawn(|| work(&store));
            Attended(&store)
        });
        let allows = args.how.allows();
        let served = Served {
            mounts: vec![Begin { fs: fs.clone(), point: &point, read_only }],
            record: &mounts,
            place,
            threads,
            pages,
            allows,
            quiet,
        };
        hold(custodian, served, &mut |alarm| if read_only { None } else { chores.do_some(&store, &fs, alarm) })
    });
    let closed = store.checkpoint().with_context(|| format!("cannot close {place}"));
    held.and(closed)?;
    args.figures.as_ref().map_or(Ok(()), |path| write_figures(&store.figures(), path))
}

/// Says that a superblock could not be read when it was opened, if one could not, and from then on
/// that a copy is bad, once.
pub fn tell_torn(place: &Place, store: &Evergreen) {
    if let Some(torn) = store.torn() {
        eprintln!("senesce: {place}: {torn}");
    }
    store.report_copies(|news| eprintln!("senesce: {news}"));
}

/// A store for which a thread works, until this goes.
struct Attended<'a>(&'a Evergreen);

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        self.0.stop_background();
    }
}

/// Brings down what waits, and makes checkpoints, so that programs wait for neither.
fn work(store: &Evergreen) {
    let mut told = None;
    while store.wait_for_work() {
        let failed = loop {
            match store.work() {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        tell(&mut told, failed);
    }
}

/// Reports a failure, unless it is the one that was reported last.
fn tell(told: &mut Option<String>, failed: Option<String>) {
    if let Some(why) = failed.as_ref().filter(|_| failed != *told) {
        eprintln!("senesce: {why}");
    }
    *told = failed;
}

/// What is done beside serving: the engine has no clock.
pub(in super::super) struct Chores {
    due: Due,
    /// Checkpoints that were made when the last one was due.
    checkpoints: u64,
    /// The last failure, so that the same is not reported every second.
    told: Option<String>,
}

impl Chores {
    pub fn new(checkpoint_interval: u64) -> Self {
        Self { due: Due::new(Duration::from_secs(checkpoint_interval), Instant::now()), checkpoints: 0, told: None }
    }

    /// Syncs and makes a checkpoint if they are due. Returns the time until the next of them is
    /// due. Retries a failure, because programs continue, and their changes must become durable as
    /// soon as possible.
    pub fn do_some(&mut self, store: &Evergreen, fs: &EvergreenFs<Arc<Evergreen>>, alarm: &Alarm) -> Option<Duration> {
        let now = Instant::now();
        self.due.observe(alarm, now);
        let (is_sync, is_point) = (self.due.take_sync(alarm, now), self.due.take_point(now));
        if is_sync || is_point {
            // The log first: a checkpoint takes longer, and may fail for want of space.
            let synced = store.sync();
            let done = synced.and_then(|()| if is_point { store.checkpoint() } else { Ok(()) });
            let now = Instant::now();
            if done.is_err() {
                self.due.sync_again(now);
            }
            // Leaves may be left to gather: until a checkpoint finds nothing to write, there is
            // another one.
            let checkpoints = store.figures().checkpoints;
            if is_point && (done.is_err() || checkpoints != self.checkpoints) {
                self.due.point_again(now);
            }
            if is_point {
                self.checkpoints = checkpoints;
            }
            let swept = if is_sync && done.is_ok() { self.sweep_keys(fs) } else { Ok(()) };
            let failed = done.map_err(|error| error.to_string()).and(swept);
            tell(&mut self.told, failed.err());
            if let Some(news) = fs.take_sweep_news() {
                eprintln!("senesce: a sweep of keys skipped what cannot be read: {news}; run `senesce fs check`");
            }
        }
        self.due.left(alarm, Instant::now())
    }

    /// Continues the sweep of keys that follows renames, if one is due. What it moves is durable
    /// with the next sync; until then it is where it was. Errors: in words; that sweep is over
    /// then.
    fn sweep_keys(&mut self, fs: &EvergreenFs<Arc<Evergreen>>) -> std::result::Result<(), String> {
        if !fs.needs_tending() {
            return Ok(());
        }
        let swept = fs.tend(TENDED);
        let now = Instant::now();
        self.due.sync_again(now);
        self.due.point_again(now);
        swept.map(drop).map_err(|error| format!("cannot sweep keys after renames: {error}"))
    }
}
