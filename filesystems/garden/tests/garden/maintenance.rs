//! Gardening by load, with simulated time: busy clients stop it, idle ones allow it, and it stops
//! when nothing is left to do.

use senesce_core::Nanos;
use senesce_fsapi::{FileSystem, Ino, NewNode};
use senesce_garden::{FixUp, Gardening, Limits, MaintenanceReport};

use crate::{
    damage::flip,
    maintenance_rig::{Clients, IDLE, SECOND, Told, WISHED},
    rig::{LARGE, Rig, SLOT, caller},
};

const BLOCKS: u64 = 1600;
const BLOCK: u64 = 4096;
fn contents(block: u64, round: u64) -> Vec<u8> {
    (0..512).flat_map(|word: u64| (word * 7 + block + (round << 32)).to_le_bytes()).collect()
}

/// A garden with fragmented files, in areas that are partly free.
struct Garden {
    rig: Rig,
    file: Ino,
    told: Told,
}

const CALM: Clients = Clients { processors: 0.1, operations: 200, wait: 1_000_000 };
const BUSY: Clients = Clients { processors: 0.9, ..CALM };

impl Garden {
    fn new() -> Self {
        let mut rig = Rig::new(&LARGE, Limits::default());
        let file = rig.fs().make_node(&caller(1), Ino::ROOT, b"file", &NewNode::file(0o644)).unwrap().ino;
        for round in 0..5 {
            for block in (0..BLOCKS).filter(|block| round == 0 || block % 7 == round) {
                rig.fs().write(&caller(1), file, block * BLOCK, &contents(block, round)).unwrap();
            }
            rig.garden().consistency_point().unwrap();
        }
        rig.open().unwrap();
        let told = Told::new(rig.garden(), None);
        Self { rig, file, told }
    }

    fn seconds(&mut self, seconds: u64, clients: Clients) -> Vec<String> {
        self.told.seconds(self.rig.garden(), seconds, clients)
    }

    fn done(&self) -> [u64; 3] {
        let MaintenanceReport { moved, fixed, rewritten, .. } = self.told.maintenance.report();
        [moved, fixed, rewritten]
    }

    /// Reads the file in order, and checks its contents.
    fn read(&self) {
        let mut data = vec![0; 8 * BLOCK as usize];
        for first in (0..BLOCKS).step_by(8) {
            self.rig.fs().read(self.file, first * BLOCK, &mut data).unwrap();
            for (block, data) in (first..).zip(data.chunks_exact(BLOCK as usize)) {
                let round = if block % 7 < 5 { block % 7 } else { 0 };
                assert_eq!(data, contents(block, round), "block {block}");
            }
        }
    }
}

#[test]
fn gardening_runs_only_while_clients_are_idle() {
    let mut garden = Garden::new();
    garden.seconds(100, BUSY);
    garden.read();
    assert_eq!(garden.done(), [0; 3], "clients leave no time for it");
    assert_eq!(garden.rig.garden().report().counts.fake_dirty, 0);
    assert_eq!(garden.told.maintenance.report().pace, 0.0);

    garden.rig.open().unwrap();
    garden.told.begin_anew(garden.rig.garden(), WISHED);
    garden.seconds(30, IDLE);
    garden.read();
    garden.seconds(60, IDLE);
    let [moved, fixed, rewritten] = garden.done();
    assert!(moved > 300 && fixed > 100 && rewritten > 300, "{moved} moved, {fixed} fixed, {rewritten} rewritten");

    // It stops again at once, including the work that the engine does by itself.
    garden.seconds(2, BUSY);
    let before = garden.done();
    for round in 0..4 {
        for block in (0..BLOCKS).filter(|block| block % 7 == round) {
            garden.rig.fs().write(&caller(2), garden.file, block * BLOCK, &contents(block, round)).unwrap();
        }
        garden.seconds(20, BUSY);
    }
    garden.read();
    assert_eq!(garden.done(), before);
    // It continues later.
    garden.seconds(60, IDLE);
    assert!(garden.done()[0] > before[0]);
    garden.read();
    assert_eq!(garden.rig.findings(), Vec::<String>::new());
}

#[test]
fn longer_client_waits_slow_gardening_down() {
    let mut garden = Garden::new();
    // The baseline is measured before anything is done.
    garden.seconds(1, CALM);
    let report = garden.told.maintenance.report();
    assert_eq!((report.usual_p99, report.moved), (Some(Nanos(CALM.wait)), 0));
    let first = report.pace;
    assert!(first > 0.0);
    garden.seconds(5, Clients { wait: 3 * CALM.wait, ..CALM });
    let report = garden.told.maintenance.report();
    assert!(report.pace < first / 2.0, "{first} blocks a second, then {}", report.pace);
    assert_eq!(report.p99, Some(Nanos(3 * CALM.wait)));
    assert!(report.usual_p99.unwrap().0 < CALM.wait * 11 / 10, "{report:?}");
}

#[test]
fn gardening_rests_until_the_next_write() {
    let mut garden = Garden::new();
    garden.seconds(400, IDLE);
    let (done, counts) = (garden.done(), garden.rig.garden().report().counts);
    assert!(done[0] > 300 && garden.told.maintenance.report().passes >= 4, "{:?}", garden.told.maintenance.report());
    garden.seconds(400, IDLE);
    assert_eq!((garden.done(), garden.rig.garden().report().counts), (done, counts));
    garden.rig.fs().write(&caller(2), garden.file, 0, &contents(0, 0)).unwrap();
    let passes = garden.told.maintenance.report().passes;
    garden.seconds(60, IDLE);
    assert!(garden.told.maintenance.report().passes > passes);
    assert_eq!(garden.rig.findings(), Vec::<String>::new());
}

fn turn_a_bit_and_see_it_put_right(garden: &mut Garden) {
    flip(&garden.rig.devices[1], 200 * SLOT + 77);
    let found = garden.seconds(300, IDLE);
    assert!(found.len() == 1 && found[0].starts_with("put right: "), "{found:?}");
}

#[test]
fn scrub_repairs_blocks_without_readers() {
    let mut garden = Garden::new();
    turn_a_bit_and_see_it_put_right(&mut garden);
    assert_eq!(garden.rig.findings(), Vec::<String>::new());
}

#[test]
fn scrub_finds_decayed_bits_within_a_week() {
    let mut garden = Garden::new();
    garden.seconds(300, IDLE);
    garden.told.now += 7 * 86_400 * SECOND;
    turn_a_bit_and_see_it_put_right(&mut garden);
}

#[test]
fn baseline_is_learned_from_few_clients() {
    let mut garden = Garden::new();
    let wished = Gardening { fix_up: FixUp::OnRead, ..WISHED };
    garden.rig.garden().set_gardening(wished);
    // Makes pointers stale.
    for area in 0..4 {
        let _ = garden.rig.garden().move_area(0, area);
    }
    garden.rig.garden().consistency_point().unwrap();
    garden.rig.open().unwrap();
    garden.told.begin_anew(garden.rig.garden(), wished);
    let few = Clients { processors: 0.1, operations: 1, wait: 1_000_000 };
    // One operation in three seconds, and never in the second in which p99 is computed.
    for third in 0..8 {
        for block in third * 200..(third + 1) * 200 {
            garden.rig.fs().read(garden.file, block * BLOCK, &mut [0; BLOCK as usize]).unwrap();
        }
        garden.seconds(1, few);
        garden.seconds(2, Clients { operations: 0, ..few });
    }
    let report = garden.told.maintenance.report();
    assert!(report.fixed > 0, "the engine fixed pointers by itself: {report:?}");
    assert_eq!(report.usual_p99, Some(Nanos(few.wait)));
    assert!(report.pace > 0.0, "{report:?}");
}
