//! Foreign objects: an older copy of a garden with the same store, and a wrong store.

use std::sync::Arc;

use senesce_core::Nanos;
use senesce_fsapi::Ino;
use senesce_garden::{Error, FixUp, Gardening, Limits, LoadMeasurements, MaintenanceController, ObjectGardening};
use senesce_objects::{FaultObjects, MemoryObjects, ObjectStore, S3_STANDARD};

use crate::{
    rig::{Devices, SMALL, shared},
    tier_rig::{ALL, Store, Tiered, bytes},
};

const FOLDER: &str = "garden-73656e657363652067617264656e2031";
const BLOCKS: usize = 30;
const WISHED: Gardening = Gardening { cleaning: None, fix_up: FixUp::Never, demotion: None, write_after_read: None };

fn copy(devices: &Devices) -> Devices {
    let copies = shared(SMALL.devices());
    for (from, to) in devices.iter().zip(&copies) {
        let mut all = vec![0; from.size().0 as usize];
        from.read_at(0, &mut all).unwrap();
        to.write_at(0, &all).unwrap();
    }
    copies
}

/// A garden with a cold file, and a copy of its drives.
fn two() -> (Tiered, Devices) {
    let mut one = Tiered::new(&SMALL);
    one.make(b"first", &bytes(BLOCKS, 1));
    one.garden().tier(ALL).unwrap();
    one.garden().consistency_point().unwrap();
    let copies = copy(&one.devices);
    one.open();
    (one, copies)
}

/// The messages of gardening by load with unlimited time.
fn garden_by_load(tiered: &Tiered) -> Vec<String> {
    let objects = ObjectGardening { tiering: ALL, prices: Some(S3_STANDARD) };
    let mut maintenance = MaintenanceController::new(tiered.garden(), WISHED, Nanos(0)).with_objects(Some(objects));
    let mut told = Vec::new();
    for turn in 1..10_000u64 {
        let now = Nanos(turn * 100_000_000);
        told.extend(maintenance.work(tiered.garden(), now).unwrap());
        if turn % 50 == 0 {
            tiered.garden().consistency_point().unwrap();
        }
        if turn % 10 == 0 {
            maintenance.observe(LoadMeasurements {
                now,
                processors: 0.05,
                drives: 0.0,
                point: 0.0,
                clients: Vec::new(),
            });
        }
    }
    assert!(maintenance.report().passes > 0, "all other tasks continue: {:?}", maintenance.report());
    told
}

fn assert_file(tiered: &mut Tiered, ino: Ino, seed: u8) {
    assert_eq!(tiered.findings(), [""; 0]);
    tiered.open();
    assert!(tiered.read(ino, 0, BLOCKS * 4096).unwrap() == bytes(BLOCKS, seed));
}

#[test]
fn older_copy_overwrites_no_object() {
    let (mut one, copies) = two();
    let second = one.make(b"second", &bytes(BLOCKS, 2));
    one.garden().tier(ALL).unwrap();
    one.forget_drives();
    let (keys, changes) = (one.store.list(FOLDER).unwrap(), one.store.calls().len());
    let mut two = Tiered::of(copies, one.store.clone(), Limits::default());
    let other = two.make(b"other", &bytes(BLOCKS, 3));
    let told = garden_by_load(&two);
    // Reported once, and not tried again.
    assert!(told.len() == 1 && told[0].contains("another garden of its identity"), "{told:?}");
    assert_eq!((one.store.list(FOLDER).unwrap(), one.store.calls().len()), (keys, changes));
    two.garden().tier(ALL).unwrap_err();
    assert_file(&mut one, second, 2);
    assert_file(&mut two, other, 3);
}

#[test]
fn one_of_two_open_gardens_puts_an_object() {
    let (mut one, copies) = two();
    let mut two = Tiered::of(copies, one.store.clone(), Limits::default());
    // Both list the store before either puts an object.
    one.garden().reclaim_objects().unwrap();
    two.garden().reclaim_objects().unwrap();
    let (second, other) = (one.make(b"second", &bytes(BLOCKS, 2)), two.make(b"other", &bytes(BLOCKS, 3)));
    one.garden().tier(ALL).unwrap();
    one.forget_drives();
    for _ in 0..2 {
        match two.garden().tier(ALL).unwrap_err() {
            Error::ForeignObjects { what } => assert!(what.contains("another object of that name"), "{what}"),
            error => panic!("{error}"),
        }
    }
    assert_file(&mut one, second, 2);
    assert_file(&mut two, other, 3);
}

#[test]
fn wrong_store_receives_and_loses_nothing() {
    let (mut one, _) = two();
    // A deletable object, a live one, and a file to be tiered.
    let second = one.make(b"second", &bytes(BLOCKS, 2));
    one.garden().tier(ALL).unwrap();
    one.write(second, 0, &bytes(BLOCKS, 4)).unwrap();
    one.garden().consistency_point().unwrap();
    let before = one.garden().cold();
    assert_eq!((before.objects, before.deletable), (2, 1));
    let empty: Store = Arc::new(FaultObjects::new(MemoryObjects::default()));
    let away = Tiered::of(one.devices.clone(), empty.clone(), Limits::default());
    let told = garden_by_load(&away);
    assert!(told.len() == 1 && told[0].contains("this is not the store they were put into"), "{told:?}");
    let error = away.garden().delete_objects().unwrap_err();
    assert!(matches!(error, Error::ForeignObjects { .. }), "{error}");
    assert_eq!((empty.calls(), away.garden().cold()), (Vec::new(), before));
    drop(away);
    // With the right store, tiering and deletion work again.
    one.open();
    one.garden().tier(ALL).unwrap();
    assert_eq!(one.garden().cold().deletable, 0);
    assert_file(&mut one, second, 4);
}

#[test]
fn lost_object_does_not_stop_defragmentation_of_others() {
    let mut one = Tiered::new(&SMALL);
    let files: Vec<Ino> = (0..3u8)
        .map(|seed| {
            let ino = one.make(&[b'a' + seed], &bytes(BLOCKS, seed));
            one.garden().tier(ALL).unwrap();
            ino
        })
        .collect();
    // The lost object has the fewest live blocks.
    for (kept, &ino) in files.iter().enumerate() {
        one.write(ino, 0, &bytes(BLOCKS - 1 - kept, 9)).unwrap();
    }
    one.garden().consistency_point().unwrap();
    one.forget_drives();
    let lost = one.store.list(FOLDER).unwrap().remove(0);
    one.garden().reclaim_objects().unwrap();
    one.store.inner().delete(&lost).unwrap();
    let done = one.garden().defrag_objects(&crate::tier_crash::FREE).unwrap();
    assert_eq!((done.objects, done.unread, done.emptied, done.blocks), (3, 1, 2, 5), "{done:?}");
}
