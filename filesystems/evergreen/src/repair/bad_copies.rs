//! Reports and repairs of damaged copies.

use std::sync::{Arc, Mutex};

use senesce_block::{BlockDevice, BlockOperation, FaultDevice};
use senesce_fsapi::conformance::{collect_tree, find_difference};

use super::{
    single_block_tests::DOUBLE,
    test_support::{Bench, example_with},
};
use crate::{EvergreenFs, Limits, check};

#[test]
fn next_checkpoint_rewrites_damaged_copies() {
    let (device, moments, _) = example_with(&DOUBLE, 0);
    let want = moments.last().unwrap();
    let bench = Bench::new(&device);
    for height in 1..=bench.height() {
        for id in bench.nodes(height) {
            let bench = Bench::new(&device);
            let place = bench.map.get(id).unwrap();
            let at = bench.superblock.geometry.unit_at(place.extents[0].first);
            bench.device.write_at(at + 30, &[0xa5]).unwrap();
            assert_eq!(check(&bench.device).unwrap().copies.bad.len(), 1);
            let fs = EvergreenFs::open_on(bench.device.clone(), Limits::default()).unwrap();
            assert_eq!(find_difference(want, &collect_tree(&fs).unwrap()), None, "{id}");
            let figures = fs.store().copy_figures();
            assert!(figures.fallbacks >= 1 && figures.missing == 0, "{figures:?}");
            let news = fs.store().take_copy_news().unwrap();
            assert!(news.contains(&format!("node {id}")) && fs.store().take_copy_news().is_none(), "{news}");
            fs.store().report_copies(|news| panic!("it was taken already: {news}"));
            fs.store().checkpoint().unwrap();
            drop(fs);
            let report = check(&bench.device).unwrap();
            assert!(report.is_clean() && report.copies.single == 0, "{id}: {report:?}");
        }
    }
}

#[test]
fn damaged_copy_is_reported_once() {
    let (device, moments, _) = example_with(&DOUBLE, 0);
    let bench = Bench::new(&device);
    // Opening reads the root. A walk over the files reads most other nodes.
    let others = bench.nodes(1);
    for (id, is_at_opening) in [(bench.superblock.root, true), (others[others.len() / 2], false)] {
        let bench = Bench::new(&device);
        bench.spoil_header(id);
        let fs = EvergreenFs::open_on(bench.device.clone(), Limits::default()).unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = reports.clone();
        fs.store().report_copies(move |news| reported.lock().unwrap().push(news.to_owned()));
        assert_eq!(reports.lock().unwrap().len(), usize::from(is_at_opening));
        assert_eq!(find_difference(moments.last().unwrap(), &collect_tree(&fs).unwrap()), None);
        let reports = reports.lock().unwrap();
        assert!(reports.len() == 1 && reports[0].contains("the other copy was read"), "{reports:?}");
        assert!(fs.store().take_copy_news().is_none());
    }
}

#[test]
fn damaged_copy_stays_noted_after_failed_checkpoint() {
    let (device, ..) = example_with(&DOUBLE, 0);
    let others = Bench::new(&device).nodes(1);
    let id = others[others.len() / 2];
    // The writes of the checkpoint in order: both copies of the node, both copies of the map.
    for number in 1..=4 {
        let bench = Bench::new(&device);
        bench.spoil_header(id);
        let faulty = Arc::new(FaultDevice::new(bench.device.clone()));
        let fs = EvergreenFs::open_on(faulty.clone(), Limits::default()).unwrap();
        collect_tree(&fs).unwrap();
        faulty.inject(&format!("fail write {}", faulty.requests(BlockOperation::Write) + number)).unwrap();
        assert!(fs.store().checkpoint().is_err(), "write {number}");
        fs.store().checkpoint().unwrap();
        drop(fs);
        let report = check(&bench.device).unwrap();
        assert!(report.is_clean() && report.copies.single == 0, "write {number}: {report:?}");
    }
}
