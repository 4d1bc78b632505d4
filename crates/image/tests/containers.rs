//! Containers as files: equal after a restore, the same for any number of threads, refused if
//! truncated or damaged.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use proptest::prelude::*;
use senesce_image::{CHUNK_BYTES, Container, Description, Error, RestoreOptions, SaveOptions, restore, save, verify};

fn description() -> Description {
    let circumstances = BTreeMap::from([("workload".to_owned(), "fsfb, 500 rounds".to_owned())]);
    Description { file_system: Some("xfs".into()), circumstances }
}

/// Three chunks and a half: data, a hole, little data, data to an odd end.
fn small_volume(path: &Path) -> Vec<u8> {
    let length = (3 * CHUNK_BYTES + CHUNK_BYTES / 2 + 5) as usize;
    let mut bytes = vec![0; length];
    for (number, byte) in bytes[..10_000].iter_mut().enumerate() {
        *byte = (number % 251) as u8;
    }
    bytes[2 * CHUNK_BYTES as usize + 70_000] = 1;
    bytes[length - 5..].copy_from_slice(b"last.");
    let file = fs::File::create(path).unwrap();
    file.set_len(length as u64).unwrap();
    file.write_all_at(&bytes[..10_000], 0).unwrap();
    file.write_all_at(&[1], 2 * CHUNK_BYTES + 70_000).unwrap();
    file.write_all_at(b"last.", length as u64 - 5).unwrap();
    bytes
}

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/image-v1.senesce-image");

#[test]
fn golden_container_is_restored_and_rewritten_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let bytes = small_volume(&path("volume"));
    save(&path("volume"), &path("new"), &description(), &SaveOptions::default()).unwrap();
    let opened = Container::open(Path::new(GOLDEN)).unwrap();
    assert_eq!(opened.description(), &description());
    assert_eq!(
        (opened.volume_bytes(), opened.data_bytes()),
        (bytes.len() as u64, 2 * CHUNK_BYTES + CHUNK_BYTES / 2 + 5)
    );
    assert_eq!(opened.content_hash(), "d7ec4c6e1050ef5130f96703660b79ae02ac1985a9766eee433fc045a5722f80");
    restore(Path::new(GOLDEN), &path("again"), &RestoreOptions::default()).unwrap();
    assert!(fs::read(path("again")).unwrap() == bytes);
    assert!(fs::read(path("new")).unwrap() == fs::read(GOLDEN).unwrap(), "the format changed without a new version");
}

#[test]
fn container_does_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let file = fs::File::create(path("volume")).unwrap();
    file.set_len(64 << 20).unwrap();
    for chunk in 0..40u64 {
        let byte = chunk as u8;
        file.write_all_at(&vec![byte; 5000 + 1000 * byte as usize], chunk * 1_500_000).unwrap();
    }
    for threads in [1, 2, 7] {
        let to = path(&format!("{threads}"));
        save(&path("volume"), &to, &description(), &SaveOptions { threads, level: 1, ..Default::default() }).unwrap();
        assert!(fs::read(&to).unwrap() == fs::read(path("1")).unwrap(), "{threads} threads");
        let again = path(&format!("again-{threads}"));
        let report = restore(&to, &again, &RestoreOptions { threads, ..Default::default() }).unwrap();
        assert!(fs::read(&again).unwrap() == fs::read(path("volume")).unwrap());
        assert_eq!(
            verify(&to, &RestoreOptions { threads, ..Default::default() }).unwrap().content_hash,
            report.content_hash
        );
        let occupied = fs::metadata(&again).unwrap().blocks() * 512;
        assert!(occupied <= report.written_bytes + (64 << 10), "{occupied} of {}", report.written_bytes);
        assert!(report.written_bytes < report.data_bytes);
    }
}

#[test]
fn truncated_container_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(GOLDEN).unwrap();
    let (cut, to) = (dir.path().join("cut"), dir.path().join("to"));
    for length in 0..whole.len() {
        fs::write(&cut, &whole[..length]).unwrap();
        let error = restore(&cut, &to, &RestoreOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. } | Error::NotAContainer { .. }), "{length}: {error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{length}");
    }
}

#[test]
fn any_changed_byte_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged");
    let whole = fs::read(GOLDEN).unwrap();
    let mut kinds = [0; 3];
    for at in 0..whole.len() {
        for flip in [1, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&path, &bytes).unwrap();
            match verify(&path, &RestoreOptions { threads: 2, ..Default::default() })
                .expect_err(&format!("byte {at} ^ {flip:#x}"))
            {
                Error::DamagedChunk { at_byte, .. } => {
                    assert!(at_byte <= at as u64);
                    kinds[0] += 1;
                }
                Error::Damaged { .. } => kinds[1] += 1,
                _ => kinds[2] += 1,
            }
        }
    }
    assert!(kinds.iter().all(|seen| *seen > 0), "{kinds:?}");
}

#[test]
fn damaged_chunk_is_named_with_its_volume_position() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("volume"), (0..3 * CHUNK_BYTES).map(|n| ((n * n) >> 7) as u8 | 1).collect::<Vec<_>>()).unwrap();
    let saved = save(&path("volume"), &path("c"), &Description::default(), &SaveOptions::default()).unwrap();
    let mut bytes = fs::read(path("c")).unwrap();
    let end_of_frames = saved.stored_bytes as usize - 88 - 3 * 52;
    bytes[end_of_frames - 1] ^= 1;
    fs::write(path("c"), bytes).unwrap();
    let text = verify(&path("c"), &RestoreOptions { threads: 1, ..Default::default() }).unwrap_err().to_string();
    assert!(text.contains("chunk 2, which holds the volume from byte 2097152 on"), "{text}");
}

#[test]
fn existing_files_and_newer_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    small_volume(&path("volume"));
    fs::write(path("there"), "mine").unwrap();
    let options = RestoreOptions::default();
    assert!(matches!(restore(Path::new(GOLDEN), &path("there"), &options), Err(Error::Exists { .. })));
    let saved = save(&path("volume"), &path("there"), &description(), &SaveOptions::default());
    assert!(matches!(saved, Err(Error::Exists { .. })));
    assert_eq!(fs::read(path("there")).unwrap(), b"mine");
    // An existing file with the name of a partial file is not replaced, either.
    fs::write(path("new.partial"), "mine").unwrap();
    assert!(restore(Path::new(GOLDEN), &path("new"), &options).unwrap_err().to_string().contains("new.partial"));
    let saved = save(&path("volume"), &path("new"), &description(), &SaveOptions::default());
    assert!(saved.unwrap_err().to_string().contains("new.partial"));
    assert_eq!(fs::read(path("new.partial")).unwrap(), b"mine");
    restore(Path::new(GOLDEN), &path("new"), &RestoreOptions { mark: "1-2-b", ..options }).unwrap();
    restore(Path::new(GOLDEN), &path("there"), &RestoreOptions { replace: true, ..options }).unwrap();
    assert!(fs::read(path("there")).unwrap() == fs::read(path("volume")).unwrap());
    let mut bytes = fs::read(GOLDEN).unwrap();
    bytes[8] = 2;
    fs::write(path("newer"), bytes).unwrap();
    let text = verify(&path("newer"), &RestoreOptions { threads: 1, ..Default::default() }).unwrap_err().to_string();
    assert!(text.contains("version 2") && text.contains("up to version 1"), "{text}");
    let text = verify(&path("volume"), &RestoreOptions { threads: 1, ..Default::default() }).unwrap_err().to_string();
    assert!(text.contains("no image container"), "{text}");
}

#[test]
fn container_has_the_permissions_of_its_volume() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    small_volume(&path("volume"));
    fs::set_permissions(path("volume"), fs::Permissions::from_mode(0o600)).unwrap();
    save(&path("volume"), &path("c"), &description(), &SaveOptions::default()).unwrap();
    restore(&path("c"), &path("again"), &RestoreOptions::default()).unwrap();
    for name in ["c", "again"] {
        assert_eq!(fs::metadata(path(name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn stopped_save_or_restore_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    small_volume(&path("volume"));
    let stopped = save(
        &path("volume"),
        &path("c"),
        &description(),
        &SaveOptions { stop: || true, threads: 3, level: 1, ..Default::default() },
    );
    assert!(matches!(stopped, Err(Error::Stopped { .. })));
    let options = RestoreOptions { stop: || true, ..Default::default() };
    assert!(matches!(restore(Path::new(GOLDEN), &path("to"), &options), Err(Error::Stopped { .. })));
    assert!(matches!(verify(Path::new(GOLDEN), &options), Err(Error::Stopped { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_sparse_volume_is_restored(
        length in 0u64..5 * CHUNK_BYTES,
        writes in prop::collection::vec((0u64..5 * CHUNK_BYTES, 1usize..200_000, 0u8..4), 0..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let file = fs::File::create(path("v")).unwrap();
        for (at, count, byte) in writes {
            file.write_all_at(&vec![byte; count], at).unwrap();
        }
        file.set_len(length).unwrap();
        let saved = save(&path("v"), &path("c"), &description(), &SaveOptions { threads: 3, level: 1, ..Default::default() }).unwrap();
        let report = restore(&path("c"), &path("w"), &RestoreOptions { threads: 3, ..Default::default() }).unwrap();
        prop_assert!(fs::read(path("v")).unwrap() == fs::read(path("w")).unwrap());
        // The hash is of the contents: without holes, and with other compression, it is the same.
        fs::write(path("dense"), fs::read(path("v")).unwrap()).unwrap();
        let dense = save(&path("dense"), &path("d"), &description(), &SaveOptions { threads: 1, level: 5, ..Default::default() }).unwrap();
        prop_assert_eq!(&dense.content_hash, &saved.content_hash);
        prop_assert_eq!(report.content_hash, saved.content_hash);
        prop_assert_eq!(dense.data_bytes, saved.data_bytes);
        let volume = fs::read(path("v")).unwrap();
        let sectors = volume.chunks(512).filter(|sector| sector.iter().any(|byte| *byte != 0));
        let nonzero_bytes: usize = sectors.map(<[u8]>::len).sum();
        prop_assert_eq!([dense.nonzero_bytes, saved.nonzero_bytes], [nonzero_bytes as u64; 2]);
    }
}
