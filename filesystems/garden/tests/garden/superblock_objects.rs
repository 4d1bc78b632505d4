//! A superblock that is damaged on all drives, and objects that were deleted after its point. No
//! older point that needs them opens without an error.

use std::sync::Arc;

use senesce_block::MemoryDevice;
use senesce_fsapi::{FileSystem, Ino};
use senesce_garden::{Accepted, Acknowledge, Error, Garden, LOST_POINT, Limits};

use crate::{
    rig::{SMALL, VOLUME, caller, shared},
    superblocks::damage,
    tier_crash::FREE,
    tier_rig::{ALL, Tiered, bytes, read, why},
};

/// The change after the older point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// One block leaves an object that has others.
    OneBlock,
    /// All blocks leave their object, as new ones are written.
    WholeBlocks,
    /// A part of the only block of an object is written, for which the rest is read.
    PartOfABlock,
    /// Live blocks move to a new object.
    Anew,
}

const STEPS: [Step; 4] = [Step::OneBlock, Step::WholeBlocks, Step::PartOfABlock, Step::Anew];

/// How the point was made after which objects are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// The garden was closed.
    Closed,
    /// No record says that the point is durable.
    Plainly,
    /// The same, and it was opened.
    PlainlyAndOpened,
    /// Operations follow it.
    BeforeOperations,
}

const MADE: [Made; 4] = [Made::Closed, Made::Plainly, Made::PlainlyAndOpened, Made::BeforeOperations];

#[test]
fn point_that_needs_deleted_objects_is_refused() {
    for (step, made) in STEPS.into_iter().flat_map(|step| MADE.map(|made| (step, made))) {
        let told = format!("{step:?}, {made:?}");
        let devices: Vec<Arc<MemoryDevice>> = SMALL.devices().into_iter().map(Arc::new).collect();
        let on = devices.iter().map(|device| device.clone() as _).collect();
        let mut tiered = Tiered::on(&SMALL, on, Limits::default());
        let count = if step == Step::PartOfABlock { 1 } else { 40 };
        let data = bytes(count, 1);
        let ino = tiered.make(b"file", &data);
        tiered.garden().tier(ALL).unwrap();
        tiered.forget_drives();
        let mut want = data.clone();
        let mut write = |tiered: &Tiered, offset: usize, new: &[u8]| {
            tiered.write(ino, offset as u64, new).unwrap();
            want[offset..offset + new.len()].copy_from_slice(new);
        };
        if step == Step::Anew {
            write(&tiered, 0, &bytes(30, 7));
        }
        tiered.garden().commit_checkpoint().unwrap();
        tiered.open();
        let expected = match step {
            Step::OneBlock => {
                write(&tiered, 0, &bytes(1, 2));
                0
            }
            Step::WholeBlocks => {
                write(&tiered, 0, &bytes(40, 2));
                1
            }
            Step::PartOfABlock => {
                write(&tiered, 7, &[3; 10]);
                tiered.make(b"behind", &bytes(2, 4));
                1
            }
            Step::Anew => {
                assert!(tiered.garden().defrag_objects(&FREE).unwrap().blocks > 0);
                1
            }
        };
        match made {
            Made::Closed => tiered.garden().commit_checkpoint().unwrap(),
            _ => tiered.garden().consistency_point().unwrap(),
        }
        match made {
            Made::PlainlyAndOpened => tiered.open(),
            // Not durable, so only the record of the deletion mentions the point.
            Made::BeforeOperations => {
                tiered.garden().set_acknowledge(Acknowledge::Done).unwrap();
                tiered.make(b"waits", &bytes(1, 5));
            }
            Made::Closed | Made::Plainly => {}
        }
        assert_eq!(tiered.garden().delete_objects().unwrap(), expected, "{told}");

        let devices: Vec<MemoryDevice> = devices.iter().map(|device| device.fork()).collect();
        damage(&devices, true);
        tiered.devices = shared(devices);
        if expected == 0 {
            tiered.open();
            assert_eq!(tiered.read(ino, 0, data.len()).unwrap(), want, "{told}");
            assert_eq!(tiered.findings(), [""; 0], "{told}");
            continue;
        }
        let error = tiered.open_garden().err().unwrap_or_else(|| panic!("{told}: it opened"));
        let is_lost = matches!(&error, Error::Damaged { damage, .. } if damage.field == LOST_POINT);
        assert!(is_lost, "{told}: {error}");

        let (log, drives) = tiered.devices.split_last().unwrap();
        if step == Step::PartOfABlock {
            // Without the store, a point that needs it is not dropped.
            let error =
                Garden::open_with(drives, log.clone(), Limits::default(), None, Accepted::LATER_POINT).err().unwrap();
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let causes: Vec<String> = causes.map(ToString::to_string).collect();
            assert!(causes.join(": ").contains("--objects"), "{causes:?}");
        }
        // On request everything opens except the deleted objects, and reading those names the
        // object.
        let garden = Garden::open_with(
            drives,
            log.clone(),
            Limits::default(),
            Some(tiered.store.clone()),
            Accepted::LATER_POINT,
        )
        .unwrap();
        let fs = garden.volume(VOLUME).unwrap();
        let found = read(&fs, ino, 0, data.len());
        match step {
            Step::WholeBlocks => assert_eq!(found.unwrap_or_else(|error| panic!("{told}: {error:?}")), want, "{told}"),
            _ => assert!(why(found.unwrap_err()).contains("garden-"), "{told}"),
        }
        assert!(fs.lookup(Ino::ROOT, b"behind").is_err(), "{told}");
        fs.unlink(&caller(9), Ino::ROOT, b"file").unwrap();
        garden.consistency_point().unwrap();
    }
}
