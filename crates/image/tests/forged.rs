//! Containers with right hashes and forged sizes are refused before memory is allocated, or data
//! read, for them.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_image::{CHUNK_BYTES, Container, Error, RestoreOptions, restore, verify};

/// One entry of an index.
#[derive(Clone, Copy)]
struct Entry {
    chunk: u64,
    at_byte: u64,
    stored_bytes: u32,
}

/// A container that an attacker computes: every hash matches.
struct Forged {
    volume_bytes: u64,
    /// Relative to the end of the header.
    entries: Vec<Entry>,
    /// Bytes between the header and the index: a hole.
    frames_bytes: u64,
    /// Bytes of the index; entries that are not listed are a hole.
    index_bytes: u64,
}

impl Forged {
    fn write(&self, path: &Path) {
        let text = format!(
            r#"{{"format":"senesce-image/1","senesce":"x","volume_bytes":{},"chunk_bytes":{CHUNK_BYTES},"circumstances":{{}}}}"#,
            self.volume_bytes
        );
        let mut header = b"SNSC-IMG".to_vec();
        header.extend(1_u32.to_le_bytes());
        header.extend((text.len() as u32).to_le_bytes());
        header.extend(text.as_bytes());
        let hash = blake3::hash(&header);
        header.extend(hash.as_bytes());
        let header_end = header.len() as u64;

        let mut index = Vec::new();
        let mut content = blake3::Hasher::new();
        content.update(b"senesce-image content 1").update(&self.volume_bytes.to_le_bytes());
        for entry in &self.entries {
            index.extend(entry.chunk.to_le_bytes());
            index.extend((header_end + entry.at_byte).to_le_bytes());
            index.extend(entry.stored_bytes.to_le_bytes());
            index.extend([0; 32]);
            content.update(&entry.chunk.to_le_bytes()).update(&[0; 32]);
        }
        let index_at = header_end + self.frames_bytes;
        let mut end = index_at.to_le_bytes().to_vec();
        end.extend(self.index_bytes.to_le_bytes());
        end.extend(blake3::hash(&index).as_bytes());
        end.extend(content.finalize().as_bytes());
        end.extend(b"GMI-CSNS");

        let file = File::create(path).unwrap();
        file.write_all_at(&header, 0).unwrap();
        file.write_all_at(&index, index_at).unwrap();
        file.write_all_at(&end, index_at + self.index_bytes).unwrap();
    }
}

static PIECES: AtomicU64 = AtomicU64::new(0);

/// Counts the pieces of an index that are read. The limit stops an endless read.
fn count_piece() -> bool {
    PIECES.fetch_add(1, Ordering::SeqCst) > 100
}

#[test]
fn forged_sizes_are_refused_before_use() {
    let dir = tempfile::tempdir().unwrap();
    let (path, to) = (dir.path().join("c"), dir.path().join("to"));
    let entry = |chunk, at_byte, stored_bytes| Entry { chunk, at_byte, stored_bytes };
    let cases = [
        // One frame of 4 GiB - 1 for a chunk of 1 MiB, in a sparse file.
        (1 << 20, vec![entry(0, 0, u32::MAX)], u64::from(u32::MAX), 52, "stores 4294967295 bytes"),
        // The last chunk is short, and so is its frame.
        (1000, vec![entry(0, 0, 1 << 20)], 1 << 20, 52, "stores 1048576 bytes"),
        // Entries without a frame would cost a forger nothing.
        (2 << 20, vec![entry(0, 0, 0), entry(1, 0, 0)], 0, 104, "stores 0 bytes"),
        // More entries than the volume has chunks, in a sparse file of 3 GiB.
        (1 << 20, vec![], 0, 52 * 62_000_000, "for a volume of 1 chunks"),
        // As many chunks as entries: all but the first entry are a hole.
        (1 << 60, vec![entry(0, 0, 100)], 100, 52 * 62_000_000, "entry 1 puts chunk 0 at byte 0"),
        // A frame that extends into the index.
        (2 << 20, vec![entry(0, 0, 1000)], 100, 52, "ends after the index begins"),
        (u64::MAX, vec![], 0, 0, "larger than any file"),
    ];
    for (volume_bytes, entries, frames_bytes, index_bytes, expected) in cases {
        Forged { volume_bytes, entries, frames_bytes, index_bytes }.write(&path);
        PIECES.store(0, Ordering::SeqCst);
        let error = Container::open_until(&path, count_piece).unwrap_err();
        assert!(matches!(&error, Error::Damaged { .. }), "{expected}: {error}");
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(PIECES.load(Ordering::SeqCst) <= 1, "{expected}: {PIECES:?} pieces were read");
        assert!(verify(&path, &RestoreOptions::default()).is_err(), "{expected}");
        assert!(restore(&path, &to, &RestoreOptions::default()).is_err(), "{expected}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{expected}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn stop_ends_the_read_of_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c");
    let entries = vec![Entry { chunk: 0, at_byte: 0, stored_bytes: 100 }];
    Forged { volume_bytes: 1 << 20, entries, frames_bytes: 100, index_bytes: 52 }.write(&path);
    assert!(Container::open(&path).is_ok());
    assert!(matches!(Container::open_until(&path, || true), Err(Error::Stopped { .. })));
}

#[test]
fn only_regular_files_are_containers() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for path in [pipe.as_path(), dir.path(), Path::new("/dev/zero")] {
        assert!(matches!(Container::open(path), Err(Error::NotAContainer { .. })), "{}", path.display());
    }
}
