//! The listing order of formats that the running kernel does not mount: hashes against `debugfs`.

use senesce_core::{Rng, Seed};
use senesce_ext4::{EntryOrder, ScanOptions};

use crate::support::{Image, run};

/// Names of a directory in the order of the reader.
fn collect_names(image: &Image, order: EntryOrder) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let options = ScanOptions { threads: 1, entries: Some(order) };
    let visit = &mut |record: senesce_ext4::InodeRecord| {
        if record.inode == 2 {
            names = record.entries.unwrap().iter().map(|entry| entry.name.to_vec()).collect();
        }
    };
    image.open().collect_inodes(&options, visit).unwrap_or_else(|error| panic!("{error}"));
    names
}

/// An image whose root has files with names of all lengths, some with bytes above 127.
fn make_image(arguments: &str) -> Image {
    let mut rng = Rng::for_purpose(Seed(7), "names");
    let source = tempfile::tempdir().unwrap();
    for length in 1..120u64 {
        let letters: &[char] = if length % 3 == 0 { &['é', 'ß', '中', 'z'] } else { &['a', 'Q', '_', '7', '-'] };
        let name: String = (0..length.div_ceil(2)).map(|_| letters[rng.below(letters.len() as u64) as usize]).collect();
        std::fs::write(source.path().join(format!("{length}{name}")), b"").unwrap();
    }
    Image::new(16, &format!("-b 16384 -d {} {arguments}", source.path().display()))
}

#[test]
fn order_follows_the_hashes_of_debugfs() {
    for (function, number) in [("legacy", 0), ("half_md4", 1), ("tea", 2)] {
        for unsigned in [false, true] {
            let seed = "01234567-89ab-cdef-0123-456789abcdef";
            let image = make_image(&format!("-E hash_seed={seed}"));
            run("debugfs", &["-w", "-R", &format!("ssv def_hash_version {function}"), image.text()]);
            run("debugfs", &["-w", "-R", &format!("ssv flags {}", if unsigned { 2 } else { 1 }), image.text()]);
            let lain = collect_names(&image, EntryOrder::OnDisk);
            assert_eq!(lain.len(), 120, "and lost+found");
            let version = if unsigned { number + 3 } else { number };
            let mut expected: Vec<(u32, u32, Vec<u8>)> = lain
                .into_iter()
                .map(|name| {
                    let shown = String::from_utf8(name.clone()).unwrap();
                    let text =
                        run("debugfs", &["-R", &format!("dx_hash -h {version} -s {seed} {shown}"), image.text()]);
                    // "Hash of NAME is 0x65a05776 (minor 0x0)"
                    let mut hashes = text.rsplit("0x").map(|part| {
                        let digits: String = part.chars().take_while(char::is_ascii_hexdigit).collect();
                        u32::from_str_radix(&digits, 16).unwrap()
                    });
                    let minor = hashes.next().unwrap();
                    (hashes.next().unwrap(), minor, name)
                })
                .collect();
            expected.sort();
            let expected: Vec<Vec<u8>> = expected.into_iter().map(|(_, _, name)| name).collect();
            assert_eq!(collect_names(&image, EntryOrder::Readdir), expected, "{function}, unsigned: {unsigned}");
        }
    }
}

#[test]
fn casefolded_order_is_certain_for_ascii_only() {
    let image = Image::new(16, "-b 4096 -O casefold -E encoding=utf8");
    run("debugfs", &["-w", "-R", "mkdir folded", image.text()]);
    run("debugfs", &["-w", "-R", "sif folded flags 0x40080000", image.text()]);
    let source = tempfile::NamedTempFile::new().unwrap();
    let source = source.path().to_str().unwrap();
    for name in ["Alpha", "BETA", "gamma"] {
        run("debugfs", &["-w", "-R", &format!("write {source} folded/{name}"), image.text()]);
    }
    let report = image.open().collect_inodes(&ScanOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(report.warnings, []);
    run("debugfs", &["-w", "-R", &format!("write {source} folded/É"), image.text()]);
    let report = image.open().collect_inodes(&ScanOptions::default(), &mut |_| {}).unwrap();
    let shown: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].starts_with("the order of 1 directories that ignore case is not certain"), "{shown:?}");
}
