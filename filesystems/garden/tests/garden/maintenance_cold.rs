//! Gardening of objects by load: cold blocks leave the drives, and objects are rewritten where that
//! pays off, if clients leave time.

use senesce_fsapi::{FileSystem, Ino, NewNode};
use senesce_garden::{Limits, MaintenanceReport, ObjectGardening, Packing, Tiering, VolumeOptions};
use senesce_objects::S3_STANDARD;

use crate::{
    maintenance_rig::{Clients, IDLE, Told, WISHED},
    rig::{LARGE, caller, shared},
    tier_rig::{Tiered, bytes},
};

const BLOCK: usize = 4096;
const OBJECTS: ObjectGardening =
    ObjectGardening { tiering: Tiering { age: 8, with_cached: true }, prices: Some(S3_STANDARD) };
const BUSY: Clients = Clients { processors: 0.9, ..IDLE };

/// A garden with a store and a cold file, and its maintenance.
struct Garden {
    tiered: Tiered,
    file: Ino,
    told: Told,
    /// Small writes that advance consistency points.
    ticks: u64,
}

impl Garden {
    fn new() -> Self {
        let tiered = Tiered::on(&LARGE, shared(LARGE.devices()), Limits::default());
        let file = tiered.make(b"cold", &bytes(1500, 1));
        // Work for every other task.
        let options = VolumeOptions { blocks: 1000, inodes: 64, seed: 2 };
        tiered.garden().create_volume(b"packed", &options).unwrap();
        tiered.garden().set_packing(b"packed", Packing { group_blocks: 8, compaction: true }).unwrap();
        let packed = tiered.garden().volume(b"packed").unwrap();
        let other = packed.make_node(&caller(1), Ino::ROOT, b"other", &NewNode::file(0o600)).unwrap().ino;
        packed.write(&caller(1), other, 0, &bytes(200, 3)).unwrap();
        tiered.garden().consistency_point().unwrap();
        let told = Told::new(tiered.garden(), Some(OBJECTS));
        let mut garden = Self { tiered, file, told, ticks: 0 };
        garden.grow_old();
        garden
    }

    /// Makes consistency points, so that blocks grow old.
    fn grow_old(&mut self) {
        for _ in 0..20 {
            self.ticks += 1;
            self.tiered.make(format!("tick {}", self.ticks).as_bytes(), b"tick");
            self.tiered.garden().consistency_point().unwrap();
        }
    }

    fn seconds(&mut self, seconds: u64, clients: Clients) -> Vec<String> {
        self.told.seconds(self.tiered.garden(), seconds, clients)
    }

    fn report(&self) -> MaintenanceReport {
        self.told.maintenance.report()
    }

    /// Checks the contents of the file, in which the blocks `over` were overwritten.
    fn assert(&self, over: impl Fn(usize) -> bool) {
        let found = self.tiered.read(self.file, 0, 1500 * BLOCK).unwrap();
        let old = bytes(1500, 1);
        for (block, data) in found.chunks_exact(BLOCK).enumerate() {
            let expected = if over(block) { &[7; BLOCK][..] } else { &old[block * BLOCK..(block + 1) * BLOCK] };
            assert!(data == expected, "block {block}");
        }
        assert_eq!(self.tiered.findings(), [""; 0]);
    }
}

#[test]
fn cold_blocks_move_only_when_there_is_time() {
    let mut garden = Garden::new();
    garden.seconds(200, BUSY);
    assert_eq!((garden.report().tiered, garden.tiered.store.counts().all()), (0, 0), "clients leave no time for it");
    assert_eq!(garden.seconds(120, IDLE), [""; 0]);
    let (report, cold) = (garden.report(), garden.tiered.garden().cold());
    assert!(report.tiered > 1000 && cold.live == report.tiered, "{report:?}, {cold:?}");
    garden.assert(|_| false);

    // Most of the objects is overwritten: their live blocks move to others, and they are deleted.
    let warm = |block: usize| !block.is_multiple_of(16);
    (0..1500).filter(|&block| warm(block)).for_each(|block| {
        garden.tiered.write(garden.file, (block * BLOCK) as u64, &[7; BLOCK]).unwrap();
    });
    garden.tiered.garden().consistency_point().unwrap();
    let before = garden.tiered.garden().cold();
    let puts = garden.tiered.store.counts().puts;
    garden.seconds(700, BUSY);
    assert_eq!((garden.report().tiered, garden.tiered.store.counts().puts), (report.tiered, puts), "no time again");
    garden.seconds(200, IDLE);
    let after = garden.tiered.garden().cold();
    assert!(garden.report().rewritten_in_objects > 0, "{:?}", garden.report());
    assert!(after.blocks < before.blocks && after.deletable == 0, "{before:?}, then {after:?}");
    assert_eq!(garden.tiered.looked().orphan_objects, 0);
    garden.assert(warm);
    // The other tasks ran too, and everything stops in the end.
    assert!(garden.report().passes > 4, "{:?}", garden.report());
    garden.seconds(700, IDLE);
    let (done, calls) = (garden.report(), garden.tiered.store.counts());
    garden.seconds(700, IDLE);
    assert_eq!((garden.report(), garden.tiered.store.counts()), (done, calls));
}

#[test]
fn absent_store_is_reported_and_other_tasks_continue() {
    let mut garden = Garden::new();
    garden.tiered.store.fail_after(1, u64::MAX);
    let found = garden.seconds(700, IDLE);
    assert!(!found.is_empty() && found.len() <= 3, "{found:?}");
    assert!(found.iter().all(|told| told.contains("cannot read the cold blocks")), "{found:?}");
    assert!(garden.report().passes >= 4, "{:?}", garden.report());
    garden.tiered.store.heal();
    garden.assert(|_| false);
    garden.grow_old();
    garden.seconds(1300, IDLE);
    assert!(garden.tiered.garden().cold().live > 1000, "{:?}", garden.report());
    garden.assert(|_| false);
}

#[test]
fn nothing_moves_to_objects_without_a_policy() {
    let mut garden = Garden::new();
    garden.told.begin_anew(garden.tiered.garden(), WISHED);
    garden.seconds(300, IDLE);
    assert_eq!((garden.report().tiered, garden.tiered.store.counts().all()), (0, 0));
    assert!(garden.report().passes >= 3, "{:?}", garden.report());
}
