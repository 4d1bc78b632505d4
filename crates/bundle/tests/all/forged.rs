//! Damaged and hostile bundles are refused, with the fault.

use std::io::Write;

use proptest::prelude::*;
use senesce_bundle::{Error, Limits};
use tar::EntryType;

use super::common::{Entry, archive, entries, forge, good, read_bytes, read_file, refit, seal};

const LIMITS: Limits = Limits { files: 16, bytes: 1 << 20, kept_bytes: 1 << 19 };

/// A change of the entries of a good bundle.
type Change = fn(&mut Vec<Entry>);

fn find<'a>(entries: &'a mut [Entry], name: &str) -> &'a mut Entry {
    entries.iter_mut().find(|entry| entry.name() == name).unwrap()
}

/// Adds an entry in front, whose header is read first.
fn add(entries: &mut Vec<Entry>, entry: Entry) {
    entries.insert(0, entry);
}

/// Changes with the faults that are reported.
const FORGED: &[(Change, &str)] = &[
    (|all| add(all, Entry::new("bundle/../../etc/cron.d/x", b"x")), "leaves the directory of the bundle"),
    (|all| add(all, Entry::new("../x", b"x")), "leaves the directory of the bundle"),
    (|all| add(all, Entry::new("/etc/cron.d/x", b"x")), "is an absolute path"),
    (|all| add(all, Entry::new("bundle//etc/x", b"x")), "is an absolute path"),
    (|all| add(all, Entry::new("other/x", b"x")), "is not below bundle/"),
    (|all| add(all, Entry::new("bundle/a\u{1b}[2J", b"x")), "character that no name of a bundle has"),
    (|all| add(all, Entry::new("bundle/a\nsenesce: done", b"x")), "character that no name of a bundle has"),
    (|all| add(all, Entry::new("bundle/.bashrc", b"x")), "starts with a dot"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Symlink)), "is a symbolic link"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Link)), "is a hard link"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Char)), "is a device"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Block)), "is a device"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Fifo)), "is a pipe"),
    (|all| add(all, Entry::new("bundle/a", b"").of_type(EntryType::Directory)), "is a directory"),
    (|all| add(all, Entry::new("bundle/a", b"x").of_type(EntryType::GNULongName)), "an entry of another kind"),
    (|all| add(all, Entry::new("bundle/a", b"x").of_type(EntryType::XHeader)), "an entry of another kind"),
    (|all| add(all, Entry::new("bundle/a", b"x").of_type(EntryType::GNUSparse)), "an entry of another kind"),
    (|all| add(all, Entry::new("bundle/a", b"x").with(|header| header.set_mode(0o4755))), "is not one that senesce"),
    (|all| add(all, Entry::new("bundle/a", b"x").with(|header| header.set_uid(7))), "is not one that senesce"),
    (|all| add(all, Entry::new("bundle/a", b"x").with(|header| header.set_mtime(7))), "is not one that senesce"),
    (|all| add(all, Entry::new("bundle/a", b"x").with(|header| header.as_mut_bytes()[511] = 1)), "is not one that"),
    (|all| add(all, Entry::new("bundle/a", b"x").with(|header| header.set_size(1 << 40))), "files have more than"),
    (
        |all| add(all, Entry::new("bundle/a", b"x").with(|header| header.as_mut_bytes()[124..136].fill(b'z'))),
        "no number",
    ),
    (|all| add(all, Entry::new("bundle/a", &[0; 600_000])), "have more than 524288 bytes"),
    (|all| add(all, Entry { filler: 7, ..Entry::new("bundle/a", b"x") }), "there is data between a and"),
    (|all| add(all, Entry::new("bundle/a", b"x")), "a is not in the list of manifest.json"),
    (|all| all.insert(1, all[0].clone()), "figures/a.svg appears twice"),
    (|all| all.swap(0, 1), "names must be sorted"),
    (|all| all.retain(|entry| entry.name() != "plan.toml"), "plan.toml is missing"),
    (|all| all.retain(|entry| entry.name() != "manifest.json"), "manifest.json is missing"),
    (|all| all.retain(|entry| entry.name() != "ro-crate-metadata.json"), "ro-crate-metadata.json is missing"),
    (|all| find(all, "plan.toml").content[0] ^= 1, "plan.toml has another SHA-256"),
    (|all| *find(all, "plan.toml") = Entry::new("bundle/plan.toml", b"longer than it was before"), "25 bytes, and"),
    (|all| find(all, "manifest.json").content.fill(b' '), "manifest.json: "),
    (
        |all| refit(all, |manifest| manifest.format = "senesce-bundle/\u{1b}2".to_owned()),
        "has format senesce-bundle/\\x1b2",
    ),
    (|all| refit(all, |manifest| manifest.files.swap(0, 1)), "are not sorted"),
    (|all| refit(all, |manifest| manifest.files.push(manifest.files[4].clone())), "appears twice"),
    (|all| all.extend((0..20).map(|number| Entry::new(&format!("bundle/z{number}"), b""))), "more than 16 files"),
];

#[test]
fn forged_archives_are_refused_with_their_fault() {
    let good = good();
    read_bytes(&forge(&entries(good)), LIMITS).unwrap();
    for (number, (change, fault)) in FORGED.iter().enumerate() {
        let mut all = entries(good);
        change(&mut all);
        let error = read_bytes(&forge(&all), LIMITS).map(|_| ()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(fault), "{number}: {fault:?} is not in {text:?}");
        assert!(text.starts_with("run.senesce-bundle ") && !text.chars().any(char::is_control), "{text:?}");
    }
}

#[test]
fn research_metadata_of_other_files_are_refused() {
    let good = good();
    for (from, to, fault) in [
        ("\"contentSize\": \"600\"", "\"contentSize\": \"601\"", "another size or checksum of figures/a.svg"),
        (
            "\"@id\": \"plan.toml\",\n      \"@type\"",
            "\"@id\": \"plan.txt\",\n      \"@type\"",
            "does not list plan.toml",
        ),
        ("@graph", "@grape", "no @graph"),
    ] {
        let mut all = entries(good);
        let research = find(&mut all, "ro-crate-metadata.json");
        let text = String::from_utf8(research.content.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        let changed = text.replace(from, to).into_bytes();
        *research = Entry::new("bundle/ro-crate-metadata.json", &changed);
        // The manifest states the size and checksum of the changed file.
        let sum = sha2::Sha256::default();
        let digest = sha2::Digest::finalize(sha2::Digest::chain_update(sum, &changed));
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let manifest = find(&mut all, "manifest.json");
        let mut parsed: senesce_bundle::Manifest = serde_json::from_slice(&manifest.content).unwrap();
        let entry = parsed.files.iter_mut().find(|file| file.path == "ro-crate-metadata.json").unwrap();
        (entry.bytes, entry.sha256) = (changed.len() as u64, hex);
        *manifest = Entry::new("bundle/manifest.json", &serde_json::to_vec(&parsed).unwrap());
        let text = read_bytes(&forge(&all), LIMITS).map(|_| ()).unwrap_err().to_string();
        assert!(text.contains(fault), "{fault:?} is not in {text:?}");
    }
}

#[test]
fn data_after_the_end_is_refused() {
    let all = entries(good());
    let tar = |end: &[u8]| archive(&all, end);
    let compress = |tar: &[u8]| zstd::encode_all(tar, 1).unwrap();
    let mut late = [0; 1536];
    late[1400] = 1;
    let second = Entry::new("bundle/z", b"x");
    let hidden = [&[0; 1024][..], second.header.as_bytes(), &[0; 1024]].concat();
    for (bytes, fault) in [
        (compress(&tar(&[0; 512])), "the end is cut"),
        (compress(&tar(&[])), "the archive in it is cut"),
        (compress(&tar(&late)), "there is data after the end"),
        (compress(&tar(&[0; 2048])), "there is data after the end"),
        (compress(&tar(&hidden)), "there is data after the end"),
        ([compress(&tar(&[0; 1024])), compress(b"more")].concat(), "there is data after the end"),
        ([compress(&tar(&[0; 1024])), b"more".to_vec()].concat(), "there is data after the end"),
    ] {
        let text = read_bytes(&seal(bytes), LIMITS).map(|_| ()).unwrap_err().to_string();
        assert!(text.contains(fault), "{fault:?} is not in {text:?}");
    }
}

#[test]
fn memory_is_bounded_before_it_is_used() {
    // Gigabytes of zeros in a few kilobytes.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    let entry = Entry::new("bundle/a", b"").with(|header| header.set_size(1 << 32));
    encoder.write_all(entry.header.as_bytes()).unwrap();
    for _ in 0..1 << 12 {
        encoder.write_all(&[0; 1 << 16]).unwrap();
    }
    let bomb = seal(encoder.finish().unwrap());
    assert!(bomb.len() < 1 << 17, "{}", bomb.len());
    let text = read_bytes(&bomb, LIMITS).map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("its files have more than 1048576 bytes"), "{text}");
    // A window for which a reader must reserve 128 MiB.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&archive(&entries(good()), &[0; 1024])).unwrap();
    let text = read_bytes(&seal(encoder.finish().unwrap()), LIMITS).map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("cannot be decompressed"), "{text}");
}

#[test]
fn other_files_are_no_bundles() {
    for bytes in [&b""[..], b"x", b"PK\x03\x04 a zip archive", &[0; 4096]] {
        let error = read_bytes(bytes, LIMITS).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NotABundle { .. }), "{error}");
    }
    let dir = std::fs::File::open("/").unwrap();
    assert!(matches!(senesce_bundle::read(&dir, "/".as_ref(), LIMITS, |_| true), Err(Error::NotABundle { .. })));
    // Another archive that zstd compressed.
    let plain = zstd::encode_all(&archive(&[Entry::new("a", b"x")], &[0; 1024])[..], 1).unwrap();
    assert!(read_bytes(&plain, LIMITS).unwrap_err().to_string().contains("its checksum is wrong"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_changed_byte_is_found(place in any::<prop::sample::Index>(), change in 1..=255u8) {
        let mut bytes = good().to_vec();
        let at = place.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(read_bytes(&bytes, LIMITS).is_err(), "byte {at}");
    }

    #[test]
    fn every_cut_and_every_addition_is_found(place in any::<prop::sample::Index>(), more in prop::collection::vec(any::<u8>(), 1..50)) {
        let bytes = good();
        let cut = place.index(bytes.len());
        prop_assert!(read_bytes(&bytes[..cut], LIMITS).is_err(), "cut at {cut}");
        prop_assert!(read_bytes(&[bytes, &more].concat(), LIMITS).is_err());
    }

    /// An attacker seals any change of the archive.
    #[test]
    fn a_changed_and_sealed_archive_is_refused(place in any::<prop::sample::Index>(), change in 1..=255u8) {
        let mut tar = archive(&entries(good()), &[0; 1024]);
        let at = place.index(tar.len());
        tar[at] ^= change;
        let sealed = seal(zstd::encode_all(&tar[..], 1).unwrap());
        match read_bytes(&sealed, LIMITS) {
            Err(_) => {}
            // The manifest alone has no checksum. Its free texts, such as the version, may change.
            Ok(read) => {
                let good = read_bytes(good(), LIMITS).unwrap();
                prop_assert_ne!(read.file("manifest.json"), good.file("manifest.json"), "byte {}", at);
            }
        }
    }

    /// An attacker seals any change of the compressed bytes.
    #[test]
    fn a_changed_and_sealed_frame_never_panics(place in any::<prop::sample::Index>(), change in 1..=255u8) {
        let bytes = good();
        let mut frame = bytes[..bytes.len() - 40].to_vec();
        let at = place.index(frame.len());
        frame[at] ^= change;
        if let Ok(read) = read_bytes(&seal(frame), LIMITS) {
            prop_assert_eq!(read.manifest, read_bytes(bytes, LIMITS).unwrap().manifest);
        }
    }
}

#[test]
fn every_single_byte_of_a_small_bundle_counts() {
    let bytes = good();
    let mut file = tempfile::tempfile().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at % 8);
        file.set_len(0).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        file.write_all(&changed).unwrap();
        assert!(read_file(&file, LIMITS).is_err(), "byte {at}");
    }
}
