//! The store is unavailable or an object is damaged: an operation that needs a cold block fails
//! before it changes anything, and all others succeed.

use senesce_fsapi::{FallocateMode, FileSystem, FsError, FsResult, Ino, SetAttributes};
use senesce_garden::Packing;
use senesce_objects::ObjectStore;

use crate::{
    packing::bytes,
    rig::{SMALL, VOLUME, caller},
    tier_rig::{ALL, Tiered},
};

const BLOCK: usize = 4096;
const FOLDER: &str = "garden-73656e657363652067617264656e2031";

/// Changes of a file of 40 blocks. Blocks 16 to 24 are on the drives, the others are cold.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// From, to, in bytes.
    Punch(usize, usize),
    Cut(usize),
    Write(usize, usize),
    /// The number of bytes from the start of the file without holes or with holes, and the target
    /// block.
    Clone(usize, usize),
    CloneHoles(usize, usize),
}

/// Changes, and whether each needs a cold block: without groups, and with groups of eight.
const CHANGES: [(Change, [bool; 2]); 16] = {
    use Change::{Clone, CloneHoles, Cut, Punch, Write};
    [
        // The first block of the range is in the middle of a cold group, the last on the drives.
        (Punch(12 * BLOCK, 16 * BLOCK + 100), [false, true]),
        (Punch(20 * BLOCK + 100, 28 * BLOCK), [false, true]),
        (Punch(20 * BLOCK + 100, 28 * BLOCK + 100), [true, true]),
        (Punch(10 * BLOCK + 5, 10 * BLOCK + 50), [true, true]),
        (Punch(8 * BLOCK, 16 * BLOCK + 100), [false, false]),
        // After the end there is nothing to keep.
        (Punch(32 * BLOCK, 39 * BLOCK + 4000), [false, false]),
        (Cut(12 * BLOCK), [false, true]),
        (Cut(12 * BLOCK + 5), [true, true]),
        (Cut(20 * BLOCK + 5), [false, false]),
        (Write(15 * BLOCK, 17 * BLOCK), [false, true]),
        (Write(20 * BLOCK, 24 * BLOCK + 7), [true, true]),
        // Whole blocks on the drives are shared before the part of a cold block is written.
        (Clone(2 * BLOCK + 100, 22), [true, true]),
        (Clone(2 * BLOCK + 100, 8), [true, true]),
        (Clone(2 * BLOCK + 100, 18), [false, false]),
        (CloneHoles(4 * BLOCK + 100, 20), [true, true]),
        (CloneHoles(4 * BLOCK, 12), [false, true]),
    ]
};

struct Files {
    tiered: Tiered,
    ino: Ino,
    /// The file without holes, and the one with holes, which has two blocks.
    sources: [(Ino, Vec<u8>); 2],
    data: Vec<u8>,
}

impl Files {
    fn new(packing: Packing) -> Self {
        let mut tiered = Tiered::new(&SMALL);
        tiered.garden().set_packing(VOLUME, packing).unwrap();
        let mut data = bytes(1, 40, 10);
        data.truncate(39 * BLOCK + 4000);
        let ino = tiered.make(b"cold", &data);
        tiered.garden().tier(ALL).unwrap();
        tiered.forget_drives();
        let part = bytes(2, 8, 10);
        data[16 * BLOCK..24 * BLOCK].copy_from_slice(&part);
        tiered.write(ino, 16 * BLOCK as u64, &part).unwrap();
        let [whole, mut holes] = [bytes(3, 3, 100)[..2 * BLOCK + 100].to_vec(), bytes(4, 2, 100)];
        let sources = [(&b"whole"[..], &whole), (b"holes", &holes)].map(|(name, data)| tiered.make(name, data));
        holes.resize(4 * BLOCK + 100, 0);
        let longer = SetAttributes { size: Some(holes.len() as u64), ..Default::default() };
        tiered.fs().set_attributes(&caller(2), sources[1], &longer).unwrap();
        let mut files = Self { tiered, ino, sources: [(sources[0], whole), (sources[1], holes)], data };
        files.tiered.garden().consistency_point().unwrap();
        files.tiered.open();
        files
    }

    fn change(&self, change: Change) -> FsResult<()> {
        let (fs, ino) = (self.tiered.fs(), self.ino);
        let by = caller(3);
        let cut = |size: usize| SetAttributes { size: Some(size as u64), ..Default::default() };
        let clone = |from: usize, len: usize, to: usize| {
            let done = fs.clone_range(&by, (self.sources[from].0, 0), (ino, (to * BLOCK) as u64), len as u64);
            done.map(|cloned| assert_eq!(cloned, len as u64))
        };
        match change {
            Change::Punch(from, to) => fs.allocate(&by, ino, FallocateMode::Punch, from as u64, (to - from) as u64),
            Change::Cut(size) => fs.set_attributes(&by, ino, &cut(size)).map(drop),
            Change::Write(from, to) => self.tiered.write(ino, from as u64, &vec![7; to - from]),
            Change::Clone(len, to) => clone(0, len, to),
            Change::CloneHoles(len, to) => clone(1, len, to),
        }
    }

    /// The contents of the file after the change.
    fn after(&self, change: Change) -> Vec<u8> {
        let mut data = self.data.clone();
        let mut put = |to: usize, part: &[u8]| data[to * BLOCK..to * BLOCK + part.len()].copy_from_slice(part);
        match change {
            Change::Punch(from, to) => data[from..to].fill(0),
            Change::Cut(size) => data.truncate(size),
            Change::Write(from, to) => data[from..to].fill(7),
            Change::Clone(len, to) => put(to, &self.sources[0].1[..len]),
            Change::CloneHoles(len, to) => put(to, &self.sources[1].1[..len]),
        }
        data
    }

    /// Asserts the contents of the file, and no findings of the check.
    fn assert(&mut self, contents: &[u8], told: &str) {
        assert_eq!(self.tiered.findings(), [""; 0], "{told}");
        self.tiered.open();
        let size = self.tiered.fs().attributes(self.ino).unwrap().size;
        assert!(self.tiered.read(self.ino, 0, size as usize).unwrap() == contents, "{told}");
    }
}

const WAYS: [Packing; 2] =
    [Packing { group_blocks: 0, compaction: false }, Packing { group_blocks: 8, compaction: false }];

#[test]
fn change_that_needs_cold_blocks_fails_cleanly() {
    for (way, packing) in WAYS.into_iter().enumerate() {
        for (change, wants) in CHANGES {
            let mut files = Files::new(packing);
            let told = format!("{change:?}, {packing:?}");
            files.tiered.store.fail_after(0, u64::MAX);
            match files.change(change) {
                Ok(()) => assert!(!wants[way], "{told}: done without the store"),
                Err(FsError::Io { what: "a cold block cannot be read", .. }) => assert!(wants[way], "{told}: failed"),
                Err(error) => panic!("{told}: {error}"),
            }
            files.tiered.make(b"still here", &bytes(5, 2, 50));
            files.tiered.store.heal();
            let wanted = if wants[way] { files.data.clone() } else { files.after(change) };
            files.assert(&wanted, &told);
            if wants[way] {
                files.change(change).unwrap();
                let wanted = files.after(change);
                files.assert(&wanted, &told);
            }
        }
    }
}

#[test]
fn damaged_object_fails_changes_and_is_found() {
    for (change, wants) in CHANGES {
        let mut files = Files::new(WAYS[1]);
        let store = files.tiered.store.clone();
        let key = &store.list(FOLDER).unwrap()[0];
        let whole = store.get_range(key, 0..1 << 22).unwrap();
        let slots = (whole.len() - (16 << 10)) / 4160;
        // Each block with correct checksums, but no longer a block of a volume.
        let mut forged = whole.clone();
        for slot in forged[16 << 10..].chunks_mut(4160).take(slots) {
            slot[BLOCK + 8] = 3;
            let sum = crc32c::crc32c_append(crc32c::crc32c(&slot[BLOCK..BLOCK + 4]), &slot[BLOCK + 8..]);
            slot[BLOCK + 4..BLOCK + 8].copy_from_slice(&sum.to_le_bytes());
        }
        store.inner().damage(key, &forged);
        let found = files.tiered.looked().findings;
        assert!(
            found.iter().any(|finding| finding.to_string().contains("trailer: context is (Aggregate")),
            "{found:?}"
        );
        match files.change(change) {
            Ok(()) => assert!(!wants[1], "{change:?}: done"),
            Err(FsError::Corrupt { .. }) => assert!(wants[1], "{change:?}: failed"),
            Err(error) => panic!("{change:?}: {error}"),
        }
        files.tiered.make(b"still here", &bytes(5, 2, 50));
        store.inner().damage(key, &whole);
        let wanted = if wants[1] { files.data.clone() } else { files.after(change) };
        files.assert(&wanted, &format!("{change:?}"));
    }
}

#[test]
fn check_asks_an_unavailable_store_once() {
    let mut tiered = Tiered::new(&SMALL);
    for name in 0..5 {
        tiered.make(&[b'a' + name], &bytes(u64::from(name), 20, 100));
        tiered.garden().tier(ALL).unwrap();
    }
    tiered.forget_drives();
    let all = tiered.looked();
    assert_eq!((all.objects, all.cold_blocks, all.objects_unread, all.cold_unread), (5, 100, 0, 0));
    // The store fails from the first or from a later request.
    for good in [0, 2] {
        let asked = tiered.store.counts().all();
        tiered.store.fail_after(good, u64::MAX);
        let looked = tiered.looked();
        assert_eq!(tiered.store.counts().all() - asked, good + 1);
        let findings: Vec<String> = looked.findings.iter().map(ToString::to_string).collect();
        assert!(matches!(&findings[..], [one] if one.contains("is to fail")), "{findings:?}");
        assert_eq!((looked.objects_unread, looked.cold_unread), (5 - good, 20 * (5 - good)));
        assert_eq!((looked.objects, looked.cold_blocks, looked.stripes), (all.objects, all.cold_blocks, all.stripes));
        tiered.store.heal();
    }
    // A missing object does not stop the check.
    tiered.store.inner().delete(&format!("{FOLDER}/0000000001")).unwrap();
    let looked = tiered.looked();
    assert_eq!((looked.findings.len(), looked.objects_unread, looked.cold_unread), (1, 0, 0));
}
