//! Gardening by load: what a mount measures for it, and when.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use senesce_core::{Clock, Nanos};
use senesce_garden::{Garden, Gardening, LoadMeasurements, MaintenanceController, MaintenanceReport, ObjectGardening};
use senesce_service::Passes;

use super::clients::Timed;

/// How often it is measured.
const MEASURED: Nanos = Nanos(1_000_000_000);

/// The work of processors and drives, as far as the machine reports it.
pub trait Machine {
    /// Time of processors that were busy, and all of it, in any unit.
    fn processors(&self) -> Option<(u64, u64)>;
    /// Microseconds in which some task waited for a drive.
    fn drives(&self) -> Option<u64>;
}

/// This machine, as its kernel reports it.
pub struct Kernel;

impl Machine for Kernel {
    fn processors(&self) -> Option<(u64, u64)> {
        parse_processors(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn drives(&self) -> Option<u64> {
        parse_waited(&fs::read_to_string("/proc/pressure/io").ok()?)
    }
}

/// Of a line such as `cpu user nice system idle iowait irq softirq steal …`.
fn parse_processors(told: &str) -> Option<(u64, u64)> {
    let line = told.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
    let all: u64 = times.iter().sum();
    Some((all - times.get(3)? - times.get(4)?, all))
}

/// Of a line such as `some avg10=12.34 avg60=… total=123`.
fn parse_waited(told: &str) -> Option<u64> {
    let line = told.lines().find(|line| line.starts_with("some "))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Consistency points that the mount makes by itself.
pub struct Points<C> {
    clock: Arc<C>,
    /// Their nanoseconds since the last query.
    took: AtomicU64,
}

impl<C: Clock> Points<C> {
    pub fn new(clock: Arc<C>) -> Self {
        Self { clock, took: AtomicU64::new(0) }
    }

    /// Makes a consistency point, and notes how long it takes.
    pub fn make(&self, garden: &Garden) -> senesce_garden::Result<()> {
        let begun = self.clock.now();
        let done = garden.commit_checkpoint();
        self.took.fetch_add(self.clock.now().0.saturating_sub(begun.0), Relaxed);
        done
    }
}

/// Gardening of a mount that goes by load.
pub struct AdaptiveMaintenance<C, M> {
    controller: MaintenanceController,
    clock: Arc<C>,
    machine: M,
    clients: Arc<Timed<C>>,
    points: Arc<Points<C>>,
    processors: Option<(u64, u64)>,
    drives: Option<u64>,
    seen: Nanos,
    told: Nanos,
    tell_every: Option<Duration>,
}

impl<C: Clock, M: Machine> AdaptiveMaintenance<C, M> {
    pub fn new(
        garden: &Garden,
        wished: Gardening,
        (clients, points): (Arc<Timed<C>>, Arc<Points<C>>),
        (clock, machine): (Arc<C>, M),
        tell_every: Option<Duration>,
        objects: Option<ObjectGardening>,
    ) -> Self {
        let now = clock.now();
        Self {
            controller: MaintenanceController::new(garden, wished, now).with_objects(objects),
            processors: machine.processors(),
            drives: machine.drives(),
            clock,
            machine,
            clients,
            points,
            seen: now,
            told: now,
            tell_every,
        }
    }

    /// Does what there is time for. While a request goes through the garden, only measures.
    pub fn do_some(&mut self, garden: &Garden, passes: &Passes) -> senesce_garden::Result<()> {
        let now = self.clock.now();
        match passes.begin_turn() {
            Some(_turn) => {
                for found in self.controller.work(garden, now)? {
                    eprintln!("senesce: {found}");
                }
            }
            None => {
                self.controller.pause(garden, now);
                // The time that clients wait beside the request says nothing about gardening.
                self.clients.take();
            }
        }
        if now.0.saturating_sub(self.seen.0) >= MEASURED.0 {
            self.measure(now);
        }
        if self.tell_every.is_some_and(|every| u128::from(now.0.saturating_sub(self.told.0)) >= every.as_nanos()) {
            eprintln!("{}", line(&self.controller.report()));
            self.told = now;
        }
        Ok(())
    }

    fn measure(&mut self, now: Nanos) {
        let span = now.0.saturating_sub(self.seen.0).max(1);
        let (processors, drives) = (self.machine.processors(), self.machine.drives());
        let busy = self.processors.zip(processors).map_or(0.0, |(before, now)| {
            now.0.saturating_sub(before.0) as f64 / now.1.saturating_sub(before.1).max(1) as f64
        });
        let waited = self.drives.zip(drives).map_or(0, |(before, now)| now.saturating_sub(before));
        self.controller.observe(LoadMeasurements {
            now,
            processors: busy.min(1.0),
            drives: (waited as f64 * 1000.0 / span as f64).min(1.0),
            point: (self.points.took.swap(0, Relaxed) as f64 / span as f64).min(1.0),
            clients: self.clients.take(),
        });
        (self.processors, self.drives, self.seen) = (processors, drives, now);
    }
}

/// The report of it.
fn line(report: &MaintenanceReport) -> String {
    let MaintenanceReport { pace, used, p99, usual_p99, moved, fixed, rewritten, tiered, rewritten_in_objects, passes } =
        report;
    let used = used.map_or("an unknown part".to_owned(), |used| format!("{:.0} %", 100.0 * used));
    let wait = |p99: &Option<Nanos>| p99.map_or("unknown".to_owned(), |p99| format!("{:.1} ms", p99.0 as f64 / 1e6));
    format!(
        "gardening: {pace:.0} blocks a second, {used} in use, clients' p99 {} ({} without gardening); {moved} blocks moved, {fixed} \
         pointers put right, {rewritten} written after reading, {tiered} sent to objects, {rewritten_in_objects} \
         of objects written anew, {passes} passes ended",
        wait(p99),
        wait(usual_p99)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use senesce_block::{BlockDevice, MemoryDevice};
    use senesce_core::{Bytes, ManualClock};
    use senesce_fsapi::{Caller, FileSystem, Ino, NewNode};
    use senesce_garden::{Cleaning, FixUp, FormatOptions, Limits, VolumeOptions, WriteAfterRead};

    use super::*;

    const BLOCKS: u64 = 1600;

    /// A machine with a given load.
    #[derive(Default)]
    struct FakeMachine {
        busy: AtomicU64,
        all: AtomicU64,
        waited: AtomicU64,
        asked: Mutex<u64>,
    }

    impl Machine for Arc<FakeMachine> {
        fn processors(&self) -> Option<(u64, u64)> {
            *self.asked.lock().unwrap() += 1;
            Some((self.busy.load(Relaxed), self.all.load(Relaxed)))
        }

        fn drives(&self) -> Option<u64> {
            Some(self.waited.load(Relaxed))
        }
    }

    fn garden() -> Garden {
        let drive = |number| Arc::new(MemoryDevice::new(format!("drive {number}"), Bytes(3076 * 4160)));
        let drives: Vec<Arc<dyn BlockDevice>> = (0..5).map(|number| drive(number) as _).collect();
        let log: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new("log", Bytes(4 << 20)));
        let options = FormatOptions {
            uuid: [1; 16],
            groups: vec![(4, true)],
            media: Vec::new(),
            aa_stripes: vec![64],
            tetris_stripes: 16,
            zeroed: true,
        };
        Garden::format(&options, drives.clone(), log.clone()).unwrap();
        let garden = Garden::open(&drives, log.clone(), Limits::default()).unwrap();
        garden.create_volume(b"main", &VolumeOptions { blocks: 9000, inodes: 100, seed: 1 }).unwrap();
        // A file in pieces, and nothing of it in memory.
        let fs = garden.volume(b"main").unwrap();
        let file = fs.make_node(&Caller::default(), Ino::ROOT, b"file", &NewNode::file(0o644)).unwrap().ino;
        for round in 0..5 {
            for block in (0..BLOCKS).filter(|block| round == 0 || block % 7 == round) {
                fs.write(&Caller::default(), file, block << 12, &[block as u8; 4096]).unwrap();
            }
            garden.consistency_point().unwrap();
        }
        drop((fs, garden));
        Garden::open(&drives, log, Limits::default()).unwrap()
    }

    #[test]
    fn a_busy_machine_stops_gardening_and_an_idle_one_lets_it_go_on() {
        let garden = garden();
        let (clock, machine) = (Arc::new(ManualClock::default()), Arc::new(FakeMachine::default()));
        let timed = Arc::new(Timed::new(Arc::new(garden.volume(b"main").unwrap()), clock.clone()));
        let points = Arc::new(Points::new(clock.clone()));
        let wished = Gardening {
            cleaning: Some(Cleaning::default()),
            fix_up: FixUp::OnRead,
            demotion: None,
            write_after_read: Some(WriteAfterRead::default()),
        };
        let mut by_load = AdaptiveMaintenance::new(
            &garden,
            wished,
            (timed.clone(), points),
            (clock.clone(), machine.clone()),
            None,
            None,
        );
        let file = timed.lookup(Ino::ROOT, b"file").unwrap().ino;
        let passes = Passes::default();
        let mut seconds = |count: u64, busy: u64, waited: u64, reads: bool| {
            for second in 0..count {
                for _ in 0..10 {
                    clock.set(Nanos(clock.now().0 + 100_000_000));
                    by_load.do_some(&garden, &passes).unwrap();
                }
                machine.busy.fetch_add(busy, Relaxed);
                machine.all.fetch_add(100, Relaxed);
                machine.waited.fetch_add(waited, Relaxed);
                let mut data = [0; 4 << 12];
                for block in (0..BLOCKS).step_by(4).filter(|_| reads && second == count - 1) {
                    timed.read(file, block << 12, &mut data).unwrap();
                    assert!((block..).zip(data.chunks_exact(4096)).all(|(block, data)| data == [block as u8; 4096]));
                }
            }
            by_load.controller.report()
        };
        // Each of them is enough: processors, or drives.
        for (busy, waited) in [(95, 0), (5, 950_000)] {
            let report = seconds(30, busy, waited, true);
            assert!(report.rewritten == 0 && report.pace == 0.0 && report.used.unwrap() > 0.9, "{report:?}");
        }
        let report = seconds(60, 5, 0, true);
        assert!(report.pace > 0.0, "{report:?}");
        let report = seconds(2, 5, 0, false);
        assert!(report.rewritten > 200, "{report:?}, {:?}", garden.report().counts);
        assert!(*machine.asked.lock().unwrap() > 100);
        assert!(line(&report).starts_with("gardening: "), "{}", line(&report));
        let told = line(&MaintenanceReport::default());
        assert!(told.contains("an unknown part in use, clients' p99 unknown"), "{told}");
    }

    #[test]
    fn what_the_kernel_tells_is_understood() {
        let stat = "cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(parse_processors(stat), Some((81, 531)));
        assert_eq!(parse_processors("cpu  1 2\n"), None);
        let pressure = "some avg10=1.00 avg60=1.00 avg300=0.50 total=123\nfull avg10=90.00 total=7\n";
        assert_eq!(parse_waited(pressure), Some(123));
        assert_eq!(parse_waited(""), None);
    }
}
