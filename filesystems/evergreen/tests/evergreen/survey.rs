//! A survey has every file once, in order, with places that no other file has.

use std::sync::Arc;

use senesce_block::{MemoryDevice, OverlayDevice};
use senesce_core::{Bytes, Extent, Rng, Seed};
use senesce_evergreen::{
    Evergreen, EvergreenFs, FsOptions, Limits, MakeOptions, Survey, SurveyedFile, disk::Shape, survey,
};
use senesce_fsapi::{Caller, FileKind, FileSystem, Ino, NewNode, SetAttributes, Timestamp};

const CALLER: Caller = Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } };

fn look(device: &Arc<MemoryDevice>) -> (Survey, Vec<SurveyedFile>) {
    let mut files = Vec::new();
    let found = survey(Arc::new(OverlayDevice::new(device.clone())), &mut |file| {
        files.push(file);
        true
    });
    (found.unwrap(), files)
}

fn shape() -> Shape {
    Shape { node_bytes: 64 << 10, basement_bytes: 16 << 10, fanout: 4, ..Shape::default() }
}

#[test]
fn surveyed_files_are_ordered_and_disjoint() {
    let device = Arc::new(MemoryDevice::new("disk", Bytes(64 << 20)));
    let options = MakeOptions { shape: shape(), unit_bytes: 4096, ..MakeOptions::new([7; 16]) };
    Evergreen::make(device.clone(), &options).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    let fs = EvergreenFs::format(store, FsOptions::default()).unwrap();
    let directory =
        |parent, name: &str| fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::directory(0o755)).unwrap().ino;
    let write = |parent, name: &str, bytes: usize| {
        let ino = fs.make_node(&CALLER, parent, name.as_bytes(), &NewNode::file(0o644)).unwrap().ino;
        fs.write(&CALLER, ino, 0, &vec![name.as_bytes()[0]; bytes]).unwrap();
        ino
    };
    let (b, a) = (directory(Ino::ROOT, "b"), directory(Ino::ROOT, "a"));
    write(b, "y", 300_000);
    let cut = write(b, "x", 5000);
    write(a, "z", 10);
    let kept = write(Ino::ROOT, "c", 70_000);
    write(Ino::ROOT, "d", 1 << 20);
    fs.link(&CALLER, kept, a, b"w").unwrap();
    fs.symlink(&CALLER, a, b"l", b"to").unwrap();
    fs.set_attributes(&CALLER, cut, &SetAttributes { size: Some(4100), ..SetAttributes::default() }).unwrap();
    // Random overwrites: some values wait in inner nodes, others are in leaves.
    let mut rng = Rng::for_purpose(Seed(3), "overwrites");
    for _ in 0..300 {
        fs.write(&CALLER, kept, rng.below(17) * 4096, &[1; 4096]).unwrap();
    }
    fs.store().checkpoint().unwrap();
    let (found, files) = look(&device);
    let told: Vec<(String, FileKind, u64)> = files
        .iter()
        .map(|file| (String::from_utf8_lossy(&file.path).into_owned(), file.kind, file.content_bytes))
        .collect();
    let (dir, file) = (FileKind::Directory, FileKind::File);
    let wanted = [
        ("", dir, 0),
        ("a", dir, 0),
        ("a/l", FileKind::Symlink, 0),
        ("a/w", file, 70_000),
        ("a/z", file, 10),
        ("b", dir, 0),
        ("b/x", file, 4100),
        ("b/y", file, 300_000),
        ("d", file, 1 << 20),
    ];
    assert_eq!(told, wanted.map(|(path, kind, bytes)| (path.to_owned(), kind, bytes)));
    assert_eq!(found.further_links, 1);
    // Contents are complete. No byte of the device belongs to two files, or is free.
    let mut taken: Vec<(u64, u64)> = found.free.clone();
    for file in &files {
        assert_eq!(file.extents.iter().map(|extent| extent.length).sum::<u64>(), file.content_bytes, "{file:?}");
        taken.extend(file.extents.iter().map(|Extent { physical, length, .. }| (*physical, *length)));
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{taken:?}");
    let (first, length) = found.area;
    assert!(taken[0].0 >= first && taken.last().is_some_and(|last| last.0 + last.1 <= first + length));
    // A megabyte written in order has as few extents as nodes of 64 KiB, and not one for each
    // block.
    let large = files.last().unwrap();
    assert!((16..=64).contains(&large.extents.len()), "{} pieces", large.extents.len());
}

#[test]
fn survey_stops_when_the_sink_stops() {
    let device = Arc::new(MemoryDevice::new("disk", Bytes(64 << 20)));
    Evergreen::make(device.clone(), &MakeOptions::new([7; 16])).unwrap();
    let store = Evergreen::open(device.clone(), Limits::default()).unwrap();
    let fs = EvergreenFs::format(store, FsOptions::default()).unwrap();
    for name in [b"a", b"b"] {
        fs.make_node(&CALLER, Ino::ROOT, name, &NewNode::file(0o644)).unwrap();
    }
    fs.store().checkpoint().unwrap();
    let mut seen = 0;
    let device = Arc::new(OverlayDevice::new(device));
    survey(device, &mut |_| {
        seen += 1;
        seen < 2
    })
    .unwrap();
    assert_eq!(seen, 2);
}
