//! `senesce fs mount`.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use senesce_cli::with_home;
use senesce_fsapi::FileSystem;
use senesce_fuse::Alarm;
use senesce_garden::{Accepted, DriveState, Garden, Limits, ObjectGardening, Tiering};
use senesce_service::{Passes, Request, socket::Connection};
use senesce_volume::{Custodian, install_signal_cleanup};

use super::{
    Policy,
    background_tasks::{BackgroundTasks, CheckpointNotifier},
    clients::Timed,
    control::{Control, Mounted, Wake, held_files},
    held_mounts::{POLL_INTERVAL, Served, hold},
    idle_resources::collect_headroom,
    load_sampling::{AdaptiveMaintenance, Kernel, Points},
    mounted_volumes::Wanted,
    mounts::Mounts,
    place::Place,
    sync_timing::Due,
    watch::{Watch, check_whole, log_problems, print_failure},
};
use crate::{
    args::{FsMountArgs, GardeningArg, PricesArg},
    clock::SystemClock,
    exit::usage,
};

/// Stripes of a new drive that are filled then: programs wait no longer than it takes.
const STRIPES: u64 = 64;
/// Free space shows deletes within this time, even if only a consistency point can count them.
const SHOW_REMOVALS: Duration = Duration::from_secs(1);
/// The interval at which the engine learns the time that is left.
const HEADROOM: Duration = Duration::from_secs(1);

/// Serves a volume until it is unmounted, or until a signal; then everything is in a
/// consistency point.
pub fn mount(args: &FsMountArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    with_home(|custodian| serve(custodian, args, quiet))
}

fn serve(custodian: &Custodian, args: &FsMountArgs, quiet: bool) -> Result<()> {
    let wanted = Wanted::all(args)?;
    let place = Place::of(&args.place)?;
    if args.by_load && args.how.gardening == GardeningArg::Off {
        return Err(usage(
            "--adaptive goes with a kind of gardening, and --gardening is off",
            Some("write --gardening all for all of them"),
        ));
    }
    if args.figures.is_some() {
        return Err(usage("--figures has an effect on an evergreen only, and this is a garden", None));
    }
    // Opening may do again what the log holds; a read-only mount keeps even that in memory.
    let read_only = args.read_only || args.snapshot.is_some();
    if args.without_log && !read_only {
        place.check_logs(args.force)?;
    }
    let (devices, freezable) = if read_only { place.look()? } else { place.open()? }.freezable();
    let limits = Limits { cache_bytes: args.how.cache.0, ..Limits::default() };
    let objects = args.objects.open_telling()?;
    let accepted = match (args.previous_checkpoint, args.without_log) {
        (true, _) => Accepted::LATER_POINT,
        (false, true) => Accepted::OPERATIONS,
        (false, false) => Accepted::NOTHING,
    };
    let garden = place.garden_with(&devices, limits, objects.clone(), accepted)?;
    drop(devices);
    if !read_only {
        garden.set_gardening(args.how.gardening.policy(&garden));
        garden.set_acknowledge(args.how.acknowledge())?;
    }
    let by_load = args.by_load && !read_only;
    let control = Control::bind(custodian)?;
    for (number, drive) in garden.report().drives.iter().enumerate() {
        if let DriveState::Missing { why } = &drive.state {
            eprintln!("senesce: drive {number} is MISSING: {why}; parity replaces its blocks");
        }
    }
    let watch = Watch::start(&garden, print_failure);
    for (_, problem) in log_problems(&garden) {
        eprintln!("senesce: {problem}");
    }
    if !quiet {
        warn(&garden);
        let cold = garden.cold().live;
        if args.objects.objects.is_none() && cold > 0 {
            eprintln!("senesce: {cold} blocks are in objects and cannot be read: name their store with --objects");
        }
    }
    let clock = Arc::new(SystemClock::start());
    let volumes = wanted.iter().map(|wanted| wanted.find(&garden)).collect::<Result<Vec<_>>>()?;
    let timed = volumes.first().filter(|_| by_load).map(|first| Arc::new(Timed::new(first.clone(), clock.clone())));
    let served = |fs: Arc<dyn FileSystem>| -> Arc<dyn FileSystem> {
        match &timed {
            Some(timed) => Arc::new(timed.beside(fs)),
            None => fs,
        }
    };
    let volumes: Vec<_> = volumes.into_iter().map(served).collect();
    let points = Arc::new(Points::new(clock.clone()));
    let deletes = (args.objects.objects.is_some() && !read_only).then(Instant::now);
    let by_load = timed.map(|timed| {
        let tell_every = args.tell_every.map(Duration::from_secs);
        let objects = args.objects.objects.is_some().then(|| ObjectGardening {
            tiering: Tiering { age: args.tier_age, with_cached: false },
            prices: args.prices.map(PricesArg::list),
        });
        AdaptiveMaintenance::new(
            &garden,
            garden.gardening(),
            (timed, points.clone()),
            (clock, Kernel),
            tell_every,
            objects,
        )
    });
    let beside = BackgroundTasks { deletes, by_load };
    let close = || garden.close().with_context(|| format!("cannot close {place}"));
    let mounted = Mounted {
        garden: &garden,
        place: place.to_string(),
        files: held_files(place.files(), read_only),
        mounts: Mounts::of_this_thread(wanted.iter().map(|wanted| wanted.stat(read_only))),
        passes: Passes::default(),
        read_only,
        objects: args.objects.objects.as_ref().map(ToString::to_string),
        store: objects,
        devices: freezable,
        wake: Wake::of_this_thread(),
    };
    let served = Served {
        mounts: volumes.into_iter().zip(&wanted).map(|(fs, wanted)| wanted.begin(fs, read_only)).collect(),
        record: &mounted.mounts,
        place: &place,
        threads: args.how.threads,
        pages: args.how.pages(),
        allows: args.how.allows(),
        quiet,
    };
    let answer = |request: Request, connection: &mut Connection| mounted.answer(&request, connection);
    let served = thread::scope(|scope| {
        let serving = control.serve(scope, &answer);
        let mut chores = Chores::new(&garden, args.how.checkpoint_interval, quiet);
        chores.points = beside.by_load.is_some().then_some(points);
        chores.beside = beside.begin(scope, &garden, &mounted.passes);
        let held = hold(custodian, served, &mut |alarm| {
            mounted.wake.pass_on(alarm);
            if read_only { None } else { chores.do_some(&garden, alarm) }
        });
        drop(serving);
        // Before what is done beside it, which may wait for an object store, has come to its end.
        let closed = close();
        held.and(closed)
    })
    .and_then(|()| close());
    let failures = watch.end(&garden);
    served?;
    check_whole(&garden, &failures, &place)
}

/// Says what is not as it should be.
fn warn(garden: &Garden) {
    let report = garden.report();
    for left_out in &report.opening.left_out {
        eprintln!("senesce: not used: {left_out}");
    }
    for unread in &report.opening.unread_superblocks {
        eprintln!(
            "senesce: cannot be read: {unread}; another superblock is used, and its operations in the log are replayed"
        );
    }
}

/// What is done beside serving.
pub(super) struct Chores {
    /// The engine has no clock: a change waits so long at most for a sync, and for a consistency
    /// point.
    due: Due,
    /// The last consistency point that was made here, and when.
    point: u64,
    last: Instant,
    /// When the engine last learned the headroom, if gardening depends on it.
    told: Option<Instant>,
    /// A drive is being filled.
    filling: bool,
    failed: bool,
    quiet: bool,
    /// Who wants to know how long consistency points take: gardening that goes by load, and
    /// measures that itself.
    points: Option<Arc<Points<SystemClock>>>,
    /// Who wants to know of consistency points.
    beside: Option<CheckpointNotifier>,
}

impl Chores {
    pub(super) fn new(garden: &Garden, checkpoint_interval: u64, quiet: bool) -> Self {
        let filling = garden.report().drives.iter().any(|drive| matches!(drive.state, DriveState::Filling { .. }));
        let now = Instant::now();
        let told = garden.gardening().write_after_read.map(|_| now);
        if told.is_some() {
            garden.set_headroom(collect_headroom());
        }
        Self {
            due: Due::new(Duration::from_secs(checkpoint_interval), now),
            point: garden.last_point(),
            last: now,
            told,
            filling,
            failed: false,
            quiet,
            points: None,
            beside: None,
        }
    }

    /// Syncs, fills a drive and makes a consistency point if they are due. Returns the time until
    /// the next of them is due. Reports a failure once; the unmount reports it again.
    pub(super) fn do_some(&mut self, garden: &Garden, alarm: &Alarm) -> Option<Duration> {
        let now = Instant::now();
        self.due.observe(alarm, now);
        self.sync(garden, alarm, now);
        if !self.failed {
            if self.measures() && self.told.is_some_and(|told| told.elapsed() >= HEADROOM) {
                garden.set_headroom(collect_headroom());
                self.told = Some(Instant::now());
            }
            if let Err(error) = self.fill(garden).and_then(|()| self.checkpoint(garden, now)) {
                eprintln!("senesce: {error}");
                self.failed = true;
            }
        }
        self.left(garden, alarm)
    }

    /// How long nothing is due; `None` until something changes.
    fn left(&mut self, garden: &Garden, alarm: &Alarm) -> Option<Duration> {
        let now = Instant::now();
        let mut all = [self.due.left(alarm, now), None, None, None];
        if !self.failed {
            all[1] = self.told.filter(|_| self.measures()).map(|told| (told + HEADROOM).saturating_duration_since(now));
            all[2] = self.filling.then_some(POLL_INTERVAL);
            let shown = garden.has_uncounted_removals().then_some(self.last + SHOW_REMOVALS);
            all[3] = shown.map(|at| at.saturating_duration_since(now));
        }
        all.into_iter().flatten().min()
    }

    /// Whether gardening wants to know the headroom, and nothing else measures it.
    fn measures(&self) -> bool {
        self.points.is_none() && self.told.is_some()
    }

    /// Whatever else failed. If this fails the engine has stopped, and its callers get the error.
    fn sync(&mut self, garden: &Garden, alarm: &Alarm, now: Instant) {
        if self.due.take_sync(alarm, now)
            && let Err(error) = garden.sync()
            && !std::mem::replace(&mut self.failed, true)
        {
            eprintln!("senesce: {error}");
        }
    }

    fn checkpoint(&mut self, garden: &Garden, now: Instant) -> senesce_garden::Result<()> {
        let is_due = self.due.take_point(now);
        let shows_removals = self.last.elapsed() >= SHOW_REMOVALS && garden.has_uncounted_removals();
        if !is_due && !shows_removals {
            return Ok(());
        }
        match &self.points {
            Some(points) => points.make(garden)?,
            None => garden.commit_checkpoint()?,
        }
        self.last = Instant::now();
        // Gardening changes things, too, by itself or because of reads, and a store of objects may
        // be back. Otherwise there is another point until one finds nothing to write.
        let point = garden.last_point();
        if self.told.is_some() || self.beside.is_some() || std::mem::replace(&mut self.point, point) != point {
            self.due.point_again(Instant::now());
        }
        self.beside.iter().for_each(CheckpointNotifier::notify_checkpoint);
        Ok(())
    }

    fn fill(&mut self, garden: &Garden) -> senesce_garden::Result<()> {
        if !self.filling {
            return Ok(());
        }
        let Some(step) = garden.rebuild_step(STRIPES)? else {
            self.filling = false;
            return Ok(());
        };
        for lost in &step.lost {
            eprintln!("senesce: lost: {lost}");
        }
        if step.done == step.of && !self.quiet {
            eprintln!("drive {} holds all of its {} stripes", step.drive, step.of);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
