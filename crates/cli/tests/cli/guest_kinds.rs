//! File systems that only a guest kernel has: layout, costs, free space, trees, requests.

use std::path::Path;

use senesce_testkit::found_or_skip;

use super::guest::Guests;

/// Runs a plan of one copy in memory on `kind`. Out: the lab, if mkfs is installed.
fn measured(kind: &str, device: &str) -> Option<Guests> {
    let mkfs = format!("/usr/sbin/mkfs.{kind}");
    found_or_skip(Path::new(&mkfs).is_file().then_some(()), &mkfs)?;
    let guests = Guests::set_up()?;
    guests.plan(&format!("kind = \"{kind}\""), device);
    guests.run(&["run", "plan.toml", "--out", "run", "--guest", "uml"]).good();
    Some(guests)
}

/// Checks the tables of a run that every file system has.
fn check_tables(guests: &Guests, kind: &str) {
    let rows = |table: &str| {
        let text = guests.run(&["export", "run", "--csv", table]).good().stdout;
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for table in ["layout", "modelled", "maps", "grep", "cells"] {
        assert!(rows(table).len() >= 2, "{kind} {table}: {:?}", rows(table));
    }
    assert!(rows("free_space").is_empty(), "{kind} lists no free extents");
    let circumstances = rows("circumstances").join("\n");
    assert!(circumstances.contains(kind) && circumstances.contains("guest_kind,uml"), "{circumstances}");
    guests.assert_nothing_left();
}

#[test]
fn nilfs2_is_measured_in_a_guest() {
    let Some(guests) = measured("nilfs2", "backend = \"memory\"\n") else { return };
    check_tables(&guests, "nilfs2");
}

#[test]
fn jfs_is_measured_in_a_guest() {
    let Some(guests) = measured("jfs", "backend = \"memory\"\n") else { return };
    check_tables(&guests, "jfs");
}

#[test]
fn reiserfs_is_measured_in_a_guest() {
    let Some(guests) = measured("reiserfs", "backend = \"memory\"\n") else { return };
    check_tables(&guests, "reiserfs");
}

#[test]
fn jfs_on_a_virtual_disk_has_its_requests() {
    let Some(guests) = measured("jfs", "device = \"hdd-7200\"\n") else { return };
    let circumstances = guests.run(&["export", "run", "--csv", "circumstances"]).good().stdout;
    assert!(circumstances.contains("backend,virtual disk"), "{circumstances}");
    check_tables(&guests, "jfs");
}
