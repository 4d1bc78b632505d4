//! Dumps and surveys of an aggregate: they show its contents, also with a damaged or missing drive.

use senesce_block::BlockDevice;
use senesce_core::{Rng, Seed};
use senesce_fsapi::{FileKind, FileSystem, Ino, NewNode, Timestamp};
use senesce_garden::{Dump, DumpValue, DumpWhat, Limits, Packing, Survey, SurveyedFile, check, dump, survey};

use crate::{
    damage::{filled, flip, forks, used},
    forged::forge,
    rig::{Devices, FIXED_SLOTS, Rig, SEVERAL, SLOT, SMALL, TIGHT, VOLUME, caller, shared},
};

fn shown(devices: &Devices, what: &DumpWhat) -> Dump {
    let (log, drives) = devices.split_last().unwrap();
    dump(drives, log, what, 1000).unwrap()
}

fn number(dump: &Dump, word: &str) -> u64 {
    match dump.fields.iter().find(|(field, _)| *field == word) {
        Some((_, DumpValue::Number(number))) => *number,
        other => panic!("{word}: {other:?} in\n{dump}"),
    }
}

/// A column of a table, by its name; 0 for absent values.
fn column(dump: &Dump, word: &str) -> Vec<u64> {
    let Some(table) = &dump.table else { return Vec::new() };
    let at = table.columns.iter().position(|column| *column == word).unwrap();
    table.rows.iter().map(|row| if let DumpValue::Number(number) = row[at] { number } else { 0 }).collect()
}

fn file(path: &str) -> DumpWhat {
    DumpWhat::File { volume: VOLUME.to_vec(), path: path.as_bytes().to_vec() }
}

/// A directory with a file of 3 blocks and one with a tree of height 1 and a hole.
fn small() -> Rig {
    let rig = Rig::new(&SMALL, TIGHT);
    let fs = rig.fs();
    let directory = fs.make_node(&caller(5), Ino::ROOT, b"dir", &NewNode::directory(0o750)).unwrap().ino;
    let three = fs.make_node(&caller(6), directory, b"three", &NewNode::file(0o640)).unwrap().ino;
    fs.write(&caller(7), three, 0, &[3; 3 * 4096]).unwrap();
    let tree = fs.make_node(&caller(8), directory, b"tree", &NewNode::file(0o600)).unwrap().ino;
    fs.write(&caller(9), tree, 0, &[4; 4096]).unwrap();
    fs.write(&caller(9), tree, 20 * 4096, &[5; 8192]).unwrap();
    let tiny = fs.make_node(&caller(10), Ino::ROOT, b"tiny", &NewNode::file(0o600)).unwrap().ino;
    fs.write(&caller(10), tiny, 0, b"contents").unwrap();
    fs.link(&caller(11), tiny, directory, b"again").unwrap();
    rig.garden().consistency_point().unwrap();
    rig
}

#[test]
fn file_dump_uses_the_names_of_the_format() {
    let rig = small();
    let tiny = shown(&rig.devices, &file("/tiny")).to_string();
    let expected = "\
/tiny: inode 19 of volume 0 (home)
  kind                   1 (file)
  contents in the inode  1
  permissions            0600
  uid                    1000
  gid                    100
  links                  2
  size                   8
  blocks of contents     0
  read                   10.000000000
  modified               10.000000000
  changed                11.000000000
  generation             8
  height of the tree     0
  device                 0
  xattrs                 0
  parent                 0
  contents
    at  bytes
     0  63 6f 6e 74 65 6e 74 73
";
    // Later versions make more inodes before this one.
    let generation =
        |text: &str| text.lines().filter(|line| !line.contains("generation")).collect::<Vec<_>>().join("\n");
    assert_eq!(generation(&tiny), generation(expected));
    let label = shown(&rig.devices, &DumpWhat::Labels).to_string();
    for line in [
        "label of drive 3 in slot 2",
        "      own PVBN      0",
        "  label of log at byte 405504",
        "    magic                       SNSClog",
    ] {
        assert!(label.lines().any(|found| found.trim_end() == line || found.trim() == line), "{line}\n{label}");
    }
    // Columns may have any width.
    for words in [
        "magic SNSCdriv",
        "uuid 73656e65-7363-6520-6761-7264656e2031",
        "stripes of a tetris 16",
        "group data drives parity medium stripes of an area stripes",
        "0 3 1 hdd 64 256",
    ] {
        let is_found = |line: &str| line.split_whitespace().eq(words.split(' '));
        assert!(label.lines().any(is_found), "{words}\n{label}");
    }
}

#[test]
fn pointers_lead_to_slots_with_matching_trailers() {
    let rig = small();
    let dumped = shown(&rig.devices, &file("/dir/tree"));
    assert!(dumped.is_sound(), "{dumped}");
    let (ino, levels, blocks) = (18, column(&dumped, "level"), column(&dumped, "block"));
    let runs = column(&dumped, "blocks");
    assert_eq!(levels[0], 1, "{dumped}");
    let contents: Vec<u64> = (0..levels.len())
        .filter(|&row| levels[row] == 0)
        .flat_map(|row| blocks[row]..blocks[row] + runs[row])
        .collect();
    assert_eq!(contents, [0, 20, 21]);
    let (places, names) = (column(&dumped, "PVBN in the map"), column(&dumped, "VVBN"));
    for row in 0..levels.len() {
        for within in 0..runs[row] {
            let pvbn = places[row] + within;
            let slot = shown(&rig.devices, &DumpWhat::Pvbn { pvbn, hex: true });
            assert!(slot.is_sound(), "{slot}");
            let trailer = &slot.parts[0];
            assert_eq!(number(trailer, "own PVBN"), pvbn);
            assert_eq!(number(trailer, "level"), levels[row]);
            assert_eq!(number(trailer, "block number"), names[row] + within);
            assert_eq!((number(trailer, "hint: file"), number(trailer, "hint: block")), (ino, blocks[row] + within));
            assert!(slot.to_string().contains(&format!("{pvbn}: this block")), "{slot}");
            assert!(slot.to_string().contains("1 (in use)"), "{slot}");
            let range = names[row] + within..names[row] + within + 1;
            let map = shown(&rig.devices, &DumpWhat::Vvbns { volume: VOLUME.to_vec(), range });
            assert_eq!((column(&map, "PVBN"), column(&map, "bit of file 2")), (vec![pvbn], vec![1]), "{map}");
        }
    }
}

#[test]
fn maps_bits_and_areas_agree() {
    let rig = small();
    let (log, drives) = rig.devices.split_last().unwrap();
    let report = check(drives, log).unwrap();
    let bits = shown(&rig.devices, &DumpWhat::Bitmap { volume: None, held: false, range: 0..u64::MAX });
    assert_eq!(number(&bits, "in use"), report.blocks);
    assert_eq!(column(&bits, "blocks").iter().sum::<u64>(), 3 * 256);
    let bits =
        shown(&rig.devices, &DumpWhat::Bitmap { volume: Some(VOLUME.to_vec()), held: false, range: 0..u64::MAX });
    let map = shown(&rig.devices, &DumpWhat::Vvbns { volume: VOLUME.to_vec(), range: 0..u64::MAX });
    let mapped: u64 =
        column(&map, "blocks").iter().zip(column(&map, "bit of file 2")).map(|(blocks, used)| blocks * used).sum();
    let volumes = shown(&rig.devices, &DumpWhat::Volumes);
    assert_eq!((mapped, number(&bits, "in use")), (mapped, mapped));
    assert_eq!(number(&volumes.parts[0], "VVBNs in use"), mapped);
    let areas = shown(&rig.devices, &DumpWhat::Areas);
    assert_eq!(column(&areas.parts[0], "score").iter().sum::<u64>(), 3 * 256 - report.blocks);
    let sb = shown(&rig.devices, &DumpWhat::Superblocks);
    let newest = sb.parts.iter().find(|part| part.title.contains("newest")).unwrap();
    assert_eq!(
        newest.title,
        "superblock A, the newest, of drive 0, drive 1, drive 2, drive 3".replace(" A,", &newest.title[10..13])
    );
    assert_eq!((number(newest, "CP number"), number(newest, "free PVBNs")), (report.cp, 3 * 256 - report.blocks));
    for what in (0..4).map(|file| DumpWhat::AggregateFile { file }).chain([DumpWhat::AggregateFile { file: 16 }]) {
        let file = shown(&rig.devices, &what);
        assert!(file.is_sound() && file.table.is_some(), "{file}");
    }
}

#[test]
fn snapshots_and_counts_are_dumped() {
    let rig = small();
    let all = || 0..u64::MAX;
    let held = |rig: &Rig| {
        let what = DumpWhat::Bitmap { volume: Some(VOLUME.to_vec()), held: true, range: all() };
        number(&shown(&rig.devices, &what), "in use")
    };
    let used = number(&shown(&rig.devices, &DumpWhat::Volumes).parts[0], "VVBNs in use");
    assert_eq!((held(&rig), shown(&rig.devices, &DumpWhat::Snapshots).parts.len()), (0, 0));
    rig.garden().create_snapshot(VOLUME, b"first", Timestamp { seconds: 12, nanoseconds: 34 }).unwrap();
    let table = shown(&rig.devices, &DumpWhat::Snapshots);
    assert!(table.is_sound() && table.parts[0].title == "place 0, first", "{table}");
    assert!(table.to_string().contains("12.000000034"), "{table}");
    assert_eq!((number(&table.parts[0], "VVBNs"), held(&rig)), (used, used));

    let fs = rig.fs();
    let from = fs.lookup(fs.lookup(Ino::ROOT, b"dir").unwrap().ino, b"three").unwrap().ino;
    for name in [&b"one"[..], b"two"] {
        let to = fs.make_node(&caller(30), Ino::ROOT, name, &NewNode::file(0o600)).unwrap().ino;
        assert_eq!(fs.clone_range(&caller(31), (from, 0), (to, 0), 3 * 4096).unwrap(), 3 * 4096);
    }
    rig.garden().set_packing(VOLUME, Packing { group_blocks: 2, compaction: true }).unwrap();
    for name in [&b"packed"[..], b"beside"] {
        let ino = fs.make_node(&caller(32), Ino::ROOT, name, &NewNode::file(0o600)).unwrap().ino;
        fs.write(&caller(33), ino, 0, &[7; 8192]).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    let shares = shown(&rig.devices, &DumpWhat::References { volume: VOLUME.to_vec(), range: all() });
    assert_eq!((column(&shares, "pointers"), number(&shares, "VVBNs with a count")), (vec![3; 3], 3), "{shares}");
    assert_eq!(number(&shares, "pointers beyond the first of each"), rig.garden().sharing(VOLUME).unwrap().saved);
    let chunks = shown(&rig.devices, &DumpWhat::Chunks { range: all() });
    assert_eq!((column(&chunks, "chunks at first"), column(&chunks, "chunks left")), (vec![2], vec![2]), "{chunks}");
    let pvbn = column(&chunks, "PVBN")[0];
    assert_eq!(number(&shown(&rig.devices, &DumpWhat::Pvbn { pvbn, hex: false }), "chunks left"), 2);
    let beside = shown(&rig.devices, &DumpWhat::Chunks { range: pvbn + 1..u64::MAX });
    assert!(beside.is_sound() && column(&beside, "PVBN").is_empty(), "{beside}");
}

#[test]
fn directories_and_log_are_dumped_by_entry() {
    let rig = small();
    let what = DumpWhat::Directory { volume: VOLUME.to_vec(), path: b"dir".to_vec() };
    let text = shown(&rig.devices, &what).to_string();
    for name in ["three", "tree", "again"] {
        assert!(text.lines().any(|line| line.ends_with(name)), "{text}");
    }
    let fs = rig.fs();
    let ino = fs.make_node(&caller(20), Ino::ROOT, b"new\n", &NewNode::file(0o644)).unwrap().ino;
    fs.write(&caller(21), ino, 100, &[1; 50]).unwrap();
    fs.unlink(&caller(22), Ino::ROOT, b"tiny").unwrap();
    let text = shown(&rig.devices, &DumpWhat::Log).to_string();
    for line in [
        "1000:100 at 20.000000000: make 20, 1 (file), 0644, device 0, as \"new\\n\" in 1",
        "1000:100 at 21.000000000: write 50 bytes at 100 of 20",
        "1000:100 at 22.000000000: unlink \"tiny\" in 1",
    ] {
        assert!(text.lines().any(|found| found.contains("waits") && found.ends_with(line)), "{line}\n{text}");
    }
    assert!(shown(&rig.devices, &file("tiny")).is_sound(), "the last consistency point has it");
}

#[test]
fn damage_is_shown_in_dumps() {
    let at_rest = filled(&SMALL);
    // A label, a superblock, and the slot of a file's block.
    let devices = forks(&at_rest);
    flip(&devices[1], 36);
    flip(&devices[2], SLOT + 48);
    let labels = shown(&devices, &DumpWhat::Labels);
    assert!(labels.parts[2].wrong.iter().any(|wrong| wrong.contains("payload checksum")), "{labels}");
    assert_eq!(labels.parts.iter().filter(|part| !part.is_sound()).count(), 1, "{labels}");
    assert_eq!(
        (number(&labels.parts[0], "stripes of a tetris"), number(&labels.parts[2], "stripes of a tetris")),
        (16, 0)
    );
    let sb = shown(&devices, &DumpWhat::Superblocks);
    let bad: Vec<&Dump> = sb.parts.iter().filter(|part| !part.is_sound()).collect();
    assert!(bad.len() == 1 && bad[0].title.ends_with("of drive 2"), "{sb}");

    let devices = forks(&at_rest);
    let sound = shown(&devices, &file("/file 7"));
    let pvbn = column(&sound, "PVBN in the map").pop().unwrap();
    let (drive, stripe) = (column(&sound, "drive").pop().unwrap(), column(&sound, "stripe").pop().unwrap());
    flip(&devices[drive as usize], (FIXED_SLOTS + stripe) * SLOT + 4096 + 24);
    let slot = shown(&devices, &DumpWhat::Pvbn { pvbn, hex: false });
    assert!(slot.wrong.iter().any(|wrong| wrong.contains("trailer checksum")), "{slot}");
    assert_eq!(number(&slot.parts[0], "own PVBN"), pvbn, "readable fields are shown: {slot}");

    // A block on the path to the file: it is restored from parity, and the dump notes that.
    let root = shown(&devices, &DumpWhat::AggregateFile { file: 0 });
    let devices = forks(&at_rest);
    let (drive, stripe) = (column(&root, "drive")[0], column(&root, "stripe")[0]);
    flip(&devices[drive as usize], (FIXED_SLOTS + stripe) * SLOT + 300);
    let told = shown(&devices, &file("/file 7"));
    assert_eq!((&told.table, &told.fields), (&sound.table, &sound.fields));
    assert!(told.wrong.iter().any(|wrong| wrong.contains("come from the other drives")), "{told}");
    // With a second drive damaged, the block is unreadable, and the dump reports that.
    let other = (drive as usize + 1) % 4;
    flip(&devices[other], (FIXED_SLOTS + stripe) * SLOT + 300);
    let (log, drives) = devices.split_last().unwrap();
    let error = dump(drives, log, &file("/file 7"), 10).unwrap_err().to_string();
    assert!(error.contains("payload checksum"), "{error}");
    let file = shown(&devices, &DumpWhat::AggregateFile { file: 2 });
    assert!(file.wrong.iter().any(|wrong| wrong.contains("payload checksum")), "{file}");
}

/// Valid checksums over random bits in any block: every dump terminates, with contents or damage.
#[test]
fn forged_bits_stop_no_dump() {
    let at_rest = filled(&SMALL);
    let mut rng = Rng::for_purpose(Seed(5), "forged bits under dumps");
    let volume = || VOLUME.to_vec();
    let all: Vec<DumpWhat> = (0..4)
        .map(|file| DumpWhat::AggregateFile { file })
        .chain([DumpWhat::AggregateFile { file: 16 }, DumpWhat::Volumes, DumpWhat::Areas, DumpWhat::Log])
        .chain([1, 2, 3, 4, 20].map(|ino| DumpWhat::Inode { volume: volume(), ino }))
        .chain([file("/file 9"), DumpWhat::Directory { volume: volume(), path: b"/".to_vec() }])
        .chain([DumpWhat::Vvbns { volume: volume(), range: 0..u64::MAX }])
        .chain([None, Some(volume())].map(|volume| DumpWhat::Bitmap { volume, held: false, range: 0..u64::MAX }))
        .chain([DumpWhat::Bitmap { volume: Some(volume()), held: true, range: 0..u64::MAX }])
        .chain([DumpWhat::Snapshots, DumpWhat::Objects, DumpWhat::Chunks { range: 0..u64::MAX }])
        .chain([DumpWhat::References { volume: volume(), range: 0..u64::MAX }])
        .collect();
    let mut wrong = 0;
    let places = used(&forks(&at_rest));
    for place in places.iter().cycle().take(3 * places.len()) {
        let devices = forks(&at_rest);
        forge(&devices, *place, rng.below(4096) as usize, rng.below(8) as u32);
        let (log, drives) = devices.split_last().unwrap();
        for what in &all {
            // Most bits are in contents, or in structures that this dump does not show.
            wrong += u32::from(!dump(drives, log, what, 50).is_ok_and(|dump| dump.is_sound()));
        }
        let _ = survey(drives, log, None, &mut |_| true);
    }
    assert!(wrong > 5, "{wrong}");
}

fn surveyed(devices: &Devices) -> (Survey, Vec<SurveyedFile>) {
    let (log, drives) = devices.split_last().unwrap();
    let mut files = Vec::new();
    let found = survey(drives, log, None, &mut |file| {
        files.push(file);
        true
    });
    (found.unwrap(), files)
}

/// The blocks of a file that have other users, according to the survey.
fn shared_blocks(rig: &Rig, volume: &[u8], path: &[u8]) -> Vec<u64> {
    rig.garden().consistency_point().unwrap();
    let (log, drives) = rig.devices.split_last().unwrap();
    let mut all = Vec::new();
    let mut note = |file: SurveyedFile| {
        let runs = file.runs.iter().filter(|run| run.shared && file.path == path);
        all.extend(runs.flat_map(|run| run.block..run.block + run.blocks));
        true
    };
    assert_eq!(survey(drives, log, Some(volume), &mut note).unwrap().notes, Vec::<String>::new());
    all
}

#[test]
fn survey_reports_shared_blocks() {
    let rig = Rig::new(&SMALL, Limits::default());
    let make = |name: &[u8]| rig.fs().make_node(&caller(1), Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
    let (one, two) = (make(b"one"), make(b"two"));
    let data: Vec<u8> = (0..10 * 4096_u32).map(|at| (at / 4096) as u8 + 1).collect();
    rig.fs().write(&caller(1), one, 0, &data).unwrap();
    assert_eq!(shared_blocks(&rig, VOLUME, b"one"), [0; 0]);
    rig.fs().clone_range(&caller(1), (one, 4096), (two, 0), 3 * 4096).unwrap();
    assert_eq!(shared_blocks(&rig, VOLUME, b"one"), [1, 2, 3]);
    assert_eq!(shared_blocks(&rig, VOLUME, b"two"), [0, 1, 2]);
    // A formerly shared block belongs to its last user again.
    rig.fs().write(&caller(1), two, 4096, &[9; 4096]).unwrap();
    assert_eq!(shared_blocks(&rig, VOLUME, b"one"), [1, 3]);
    rig.garden().create_snapshot(VOLUME, b"monday", caller(1).now).unwrap();
    rig.fs().write(&caller(1), one, 5 * 4096, &[9; 4096]).unwrap();
    assert_eq!(shared_blocks(&rig, VOLUME, b"one"), [0, 1, 2, 3, 4, 6, 7, 8, 9]);
    rig.garden().clone_volume(VOLUME, b"monday", b"clone").unwrap();
    rig.garden().volume(b"clone").unwrap().write(&caller(1), one, 0, &[9; 8192]).unwrap();
    assert_eq!(shared_blocks(&rig, b"clone", b"one"), [2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn survey_has_every_file_and_block() {
    let rig = small();
    let (found, files) = surveyed(&rig.devices);
    let mut paths: Vec<(String, FileKind, u64)> =
        files.iter().map(|file| (String::from_utf8_lossy(&file.path).into_owned(), file.kind, file.size)).collect();
    assert_eq!(paths[0], (String::new(), FileKind::Directory, 4096));
    let place = |path: &str| paths.iter().position(|(found, ..)| found == path).unwrap();
    assert!(place("dir") < place("dir/three") && place("dir") < place("dir/tree"));
    assert_eq!((found.further_links, found.errors.len(), found.name()), (1, 0, "home".to_owned()));
    paths.retain(|(_, kind, _)| *kind == FileKind::File);
    assert_eq!(paths.iter().map(|(.., size)| size).sum::<u64>(), 3 * 4096 + 22 * 4096 + 8);
    let tree = files.iter().find(|file| file.path == b"dir/tree").unwrap();
    let dumped = shown(&rig.devices, &file("/dir/tree"));
    assert_eq!(tree.metadata.last(), column(&dumped, "PVBN in the map").first(), "its block of pointers");
    assert_eq!(tree.runs.iter().map(|run| run.blocks).sum::<u64>(), tree.blocks);
    assert_eq!(tree.runs.iter().map(|run| run.block).collect::<Vec<_>>(), [0, 20]);
    let bits = shown(&rig.devices, &DumpWhat::Bitmap { volume: None, held: false, range: 0..u64::MAX });
    let free: u64 = found.free.iter().map(|free| free.end - free.start).sum();
    assert_eq!(free, 3 * 256 - number(&bits, "in use"));
    assert_eq!(found.areas.iter().map(|area| area.free).sum::<u64>(), free);
    assert_eq!(found.areas.iter().map(|area| area.blocks).sum::<u64>(), 3 * 256);
    assert_eq!(found.drives, [0..256, 256..512, 512..768]);
    let mut seen = 0;
    let (log, drives) = rig.devices.split_last().unwrap();
    survey(drives, log, Some(VOLUME), &mut |_| {
        seen += 1;
        seen < 2
    })
    .unwrap();
    assert_eq!(seen, 2, "it stops on request");
}

#[test]
fn survey_handles_several_groups_and_a_missing_drive() {
    let rig = Rig::new(&SEVERAL, Limits::default());
    let big = rig.fs().make_node(&caller(1), Ino::ROOT, b"big", &NewNode::file(0o644)).unwrap().ino;
    for at in 0..40 {
        rig.fs().write(&caller(1), big, at << 19, &vec![at as u8; 1 << 19]).unwrap();
    }
    rig.garden().consistency_point().unwrap();
    let (found, files) = surveyed(&rig.devices);
    let file = files.iter().find(|file| file.path == b"big").unwrap();
    assert_eq!(file.runs.iter().map(|run| run.blocks).sum::<u64>(), 40 * 128);
    for run in &file.runs {
        let drive = found.drives.iter().find(|drive| drive.contains(&run.pvbn)).unwrap();
        assert!(run.pvbn + run.blocks <= drive.end, "{run:?} ends on another drive");
    }
    assert_eq!(found.drives.len(), 6);
    let drives: Vec<_> =
        rig.devices.iter().cloned().enumerate().filter(|(at, _)| *at != 1).map(|(_, drive)| drive).collect();
    let (without, same) = surveyed(&drives);
    assert_eq!((&same, &without.free), (&files, &found.free));
    assert!(without.notes.iter().any(|note| note.contains("drives [1] are missing")), "{:?}", without.notes);
}

#[test]
fn dump_writes_nothing_and_refuses_bad_requests() {
    let devices = filled(&SMALL);
    let before: Vec<Vec<u8>> = devices.iter().map(|device| device.contents()).collect();
    let all = shared(devices.iter().map(|device| device.fork()).collect());
    let (log, drives) = all.split_last().unwrap();
    for (what, said) in [
        (DumpWhat::Inode { volume: b"other".to_vec(), ino: 1 }, "no volume other; there are: home"),
        (file("/nothing"), "no nothing in directory 1"),
        (file("/link/more"), "is no directory but 3 (symbolic link)"),
    ] {
        let error = dump(drives, log, &what, 10).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let none = shown(&all, &DumpWhat::Pvbn { pvbn: 3 * 256, hex: false });
    assert!(none.wrong[0].contains("expected less than 768"), "{none}");
    let free = shown(&all, &DumpWhat::Inode { volume: VOLUME.to_vec(), ino: 4000 });
    assert!(free.to_string().contains("0 (free)"), "{free}");
    surveyed(&all);
    for (device, before) in all.iter().zip(before) {
        let mut after = vec![0; before.len()];
        device.read_at(0, &mut after).unwrap();
        assert!(after == before, "{} was written", device.name());
    }
}
