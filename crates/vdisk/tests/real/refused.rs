//! Refused operations, and the absence of leftovers.

use senesce_vdisk::{BackingSpec, Error, Footprint, Launch, Pace, ServeConfig, Server};

use crate::bench::{Disk, Place, assert_nothing_left, launch};

pub fn in_use_and_on_itself() {
    let mut disk = Disk::new(256, "plain", Pace::Device);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    let on_itself = disk.attached.root.join("requests.log");
    let error = disk.server.start_log(&on_itself).unwrap_err();
    assert!(error.to_string().contains("on the virtual disk itself"), "{error}");
    assert!(!on_itself.exists());
    let outside = disk.place.file("requests.log");
    disk.server.start_log(&outside).unwrap();
    assert!(disk.server.start_log(&outside).is_err(), "a log is not overwritten");
    assert_eq!(disk.server.time().unwrap().log, Some(outside), "and the current one continues");

    let twin = Server::start(&launch(), disk.server.config().clone()).unwrap_err();
    assert!(twin.to_string().contains("of that name is already mounted"), "{twin}");

    let footprint = disk.server.footprint().clone();
    let Disk { mut attached, server, place } = disk;
    let error = server.quit().unwrap_err();
    assert!(matches!(&error, Error::Refused { command: "quit", problem } if problem.contains("in use")), "{error}");
    // The refused handle was dropped while the disk was in use: it aborts the users instead of
    // leaving them hanging.
    assert!(!footprint.server.unwrap().is_alive());
    let _ = attached.try_unmount();
    attached.detach();
    drop(attached);
    assert_nothing_left(&footprint);
    drop(place);
}

pub fn what_cannot_start() {
    let place = Place::new();
    let good = place.config(64, "plain");
    let missing = BackingSpec::Unlinked { dir: place.file("missing") };
    let nowhere = place.file("nowhere");
    for (bad, says) in [
        (ServeConfig { device: "hdd-1".to_owned(), ..good.clone() }, "hdd-1"),
        (ServeConfig { backing: missing, ..good.clone() }, "missing"),
        (ServeConfig { size_bytes: 1000, ..good.clone() }, "4096"),
        (ServeConfig { mount_point: nowhere, ..good.clone() }, "nowhere"),
    ] {
        let error = Server::start(&launch(), bad).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    let wrong = Launch { executable: "/bin/true".into(), arguments: Vec::new() };
    assert!(matches!(Server::start(&wrong, good.clone()), Err(Error::NotStarted { .. } | Error::Gone { .. })));
    assert_nothing_left(&Footprint::planned(&good));
    Server::start(&launch(), good.clone()).unwrap().quit().unwrap();
    assert_nothing_left(&Footprint::planned(&good));
}
