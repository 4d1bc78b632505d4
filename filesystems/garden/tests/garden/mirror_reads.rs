//! Read errors of the log: another copy serves, and a block that no copy has is refused unless the
//! caller accepts the loss.

use senesce_fsapi::conformance::find_difference;
use senesce_garden::{Accepted, Garden};

use crate::{
    mirror::{BLOCK, End, LIMITS, SHAPE, leave, tree},
    mirror_faults::fallible,
    rig::{findings, open, split},
};

/// Bytes of a copy.
const COPY: u64 = SHAPE.log_bytes;

#[test]
fn unreadable_copy_is_a_lost_copy() {
    for failing in [5, 6] {
        let left = leave(SHAPE.mirrored(), End::Killed);
        let (faulty, devices) = fallible(left.devices);
        faulty[failing].inject("fail read 1..").unwrap();
        assert!(!findings(&devices).is_empty(), "device {failing}");
        let garden = open(&devices, LIMITS).unwrap_or_else(|error| panic!("device {failing}: {error}"));
        assert_eq!(find_difference(&left.all, &tree(&garden)), None, "device {failing}");
        let log = garden.report().log;
        assert_eq!((log.whole, log.lost.len()), (1, 1), "{:?}", log.lost);
    }
}

#[test]
fn unreadable_block_of_the_only_copy_is_refused() {
    read_fails_in_each_block(false);
}

#[test]
fn block_lost_in_both_copies_is_refused() {
    read_fails_in_each_block(true);
}

/// Each block of the log is either unused, or opening refuses and names the operations.
fn read_fails_in_each_block(is_damaged: bool) {
    let left = leave(SHAPE.mirrored(), End::Killed);
    let (mut refused, mut partial, mut whole) = (0, 0, 0);
    for block in 1..COPY / BLOCK - 1 {
        let (faulty, mut devices) = fallible(left.devices.iter().map(|device| device.fork()).collect());
        faulty[5].inject(&format!("fail read at {}+4096", block * BLOCK)).unwrap();
        match is_damaged {
            true => devices[6].write_at(block * BLOCK, &[0x5a; BLOCK as usize]).unwrap(),
            false => drop(devices.remove(6)),
        }
        assert!(!findings(&devices).is_empty(), "block {block}");
        let (drives, log) = split(&devices);
        let opened = Garden::open(drives, &log, LIMITS);
        let garden = match opened {
            Ok(garden) => {
                assert_eq!(find_difference(&left.all, &tree(&garden)), None, "block {block}");
                assert!(!garden.report().opening.repaired.is_empty(), "block {block}");
                whole += 1;
                garden
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("answer is ") || error.contains("damaged ("), "block {block}: {error}");
                refused += 1;
                let garden = Garden::open_with(drives, &log, LIMITS, None, Accepted::OPERATIONS).unwrap();
                let loss = garden.log_loss().unwrap();
                let now = tree(&garden);
                assert!(now.len() >= left.point.len() && now.len() <= left.all.len(), "block {block}: {loss}");
                partial += u32::from(loss.kept > 0);
                garden
            }
        };
        drop(garden);
        faulty[5].heal();
        let after = findings(&devices);
        assert!(after.iter().all(|finding| finding.contains("log copy 1")), "block {block}: {after:?}");
    }
    assert!(refused > 4 && partial > 3 && whole > 50, "{refused} refused, {partial} partial, {whole} whole");
}

#[test]
fn two_unreadable_copies_are_replaced_on_request() {
    for end in [End::Closed, End::Killed] {
        let left = leave(SHAPE.mirrored(), end);
        let (faulty, devices) = fallible(left.devices);
        for log in [5, 6] {
            // Both labels can be read, or no part of the copy.
            let place = if end == End::Closed { "1..".to_owned() } else { format!("at 4096+{}", COPY - 8192) };
            faulty[log].inject(&format!("fail read {place}")).unwrap();
        }
        assert!(!findings(&devices).is_empty(), "{end:?}");
        let (drives, log) = split(&devices);
        if end == End::Killed {
            let error = Garden::open(drives, &log, LIMITS).err().unwrap().to_string();
            assert!(error.contains("answer is "), "{error}");
        }
        let garden = Garden::open_with(drives, log.spare(), LIMITS, None, Accepted::OPERATIONS).unwrap();
        assert_eq!(find_difference(&left.point, &tree(&garden)), None, "{end:?}");
        assert_eq!(garden.log_loss().unwrap().was_closed, end == End::Closed);
        assert_eq!(garden.log_loss().unwrap().lost, None);
        drop(garden);
        faulty[5..].iter().for_each(|device| device.heal());
        assert_eq!(findings(&devices), [""; 0], "{end:?}");
    }
}
