//! Autonomous gardening with simulated time, and simulated clients.

use senesce_core::Nanos;
use senesce_garden::{
    Cleaning, FixUp, Garden, Gardening, LoadMeasurements, MaintenanceController, ObjectGardening, WriteAfterRead,
};

pub const SECOND: u64 = 1_000_000_000;
/// Calls of `work` in a second.
const TURNS: u64 = 10;
pub const WISHED: Gardening = Gardening {
    cleaning: Some(Cleaning { quota_percent: 200, worth_percent: 50, disks_too: false }),
    fix_up: FixUp::Scan,
    demotion: None,
    write_after_read: Some(WriteAfterRead { blocks_per_point: 4096, least_cpu_percent: 25, least_io_percent: 25 }),
};

/// One second of clients: the processors that they use, the number of their operations, and the
/// latency of each.
#[derive(Clone, Copy)]
pub struct Clients {
    pub processors: f64,
    pub operations: usize,
    pub wait: u64,
}

pub const IDLE: Clients = Clients { processors: 0.05, operations: 0, wait: 0 };

/// An maintenance, and the simulated time.
pub struct Told {
    pub maintenance: MaintenanceController,
    pub now: u64,
}

impl Told {
    pub fn new(garden: &Garden, objects: Option<ObjectGardening>) -> Self {
        Self { maintenance: MaintenanceController::new(garden, WISHED, Nanos(0)).with_objects(objects), now: 0 }
    }

    /// Replaces the maintenance by one without measurements, at the same time.
    pub fn begin_anew(&mut self, garden: &Garden, wished: Gardening) {
        self.maintenance = MaintenanceController::new(garden, wished, Nanos(self.now));
    }

    /// Simulates some seconds, and returns the reports.
    pub fn seconds(&mut self, garden: &Garden, seconds: u64, clients: Clients) -> Vec<String> {
        let mut found = Vec::new();
        for _ in 0..seconds {
            for _ in 0..TURNS {
                self.now += SECOND / TURNS;
                found.extend(self.maintenance.work(garden, Nanos(self.now)).unwrap());
            }
            // A mount makes a consistency point every ten seconds.
            if self.now.is_multiple_of(10 * SECOND) {
                garden.consistency_point().unwrap();
            }
            let Clients { processors, operations, wait } = clients;
            let clients = vec![Nanos(wait); operations];
            let seen = LoadMeasurements { now: Nanos(self.now), processors, drives: 0.0, point: 0.0, clients };
            self.maintenance.observe(seen);
        }
        found
    }
}
