//! Makes the images that the fuzz target damages: `cargo run -p senesce-ext4 --example fuzz_bases
//! -- fuzz/bases`.
//!
//! Each image is a small file system with one of every structure, without the contents of files,
//! which the reader never reads. Format of a base: the length of the image, then runs of bytes
//! between zeros (position, length, bytes). Numbers have four bytes, little-endian. Needs
//! mkfs.ext4, e2fsck and debugfs, but not root. Not reproducible byte for byte: mkfs writes the
//! time.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use senesce_ext4::{ExtentState, FileKind, FileSystem, ScanOptions};

const BASES: [(&str, &str); 5] = [
    ("usual", "-b 1024 -N 128"),
    ("block-maps", "-b 1024 -N 128 -O ^extents,^64bit,^metadata_csum,^has_journal"),
    ("inline-data", "-b 1024 -N 128 -O inline_data,^metadata_csum,^has_journal"),
    ("clusters", "-b 1024 -N 128 -O bigalloc,^has_journal,^resize_inode -C 4096"),
    ("many-groups", "-b 1024 -N 256 -g 256 -O meta_bg,^resize_inode,^flex_bg,^metadata_csum,uninit_bg,^has_journal"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = PathBuf::from(std::env::args().nth(1).ok_or("usage: fuzz_bases DIRECTORY")?);
    for (name, arguments) in BASES {
        let directory = tempfile::tempdir()?;
        let source = directory.path().join("source");
        make_source(&source)?;
        let image = directory.path().join("image");
        fs::File::create(&image)?.set_len(2 << 20)?;
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-F", "-U", "11111111-2222-3333-4444-555555555555"]);
        mkfs.args(["-E", "hash_seed=01234567-89ab-cdef-0123-456789abcdef,lazy_itable_init=0"]);
        mkfs.arg("-d").arg(&source).args(arguments.split(' ')).arg(&image);
        assert!(mkfs.status()?.success(), "mkfs of {name}");
        // Makes an index for the large directory.
        Command::new("e2fsck").args(["-fyD"]).arg(&image).output()?;
        let bytes = drop_contents(fs::read(&image)?)?;
        fs::write(target.join(name), encode(&bytes))?;
    }
    Ok(())
}

fn make_source(source: &Path) -> std::io::Result<()> {
    fs::create_dir_all(source.join("many/deep/er"))?;
    for n in 0..60 {
        fs::write(source.join(format!("many/a-name-of-some-length-{n}")), vec![1; n * 3])?;
    }
    // Every second block is a hole, so that each of the others is an extent.
    let pieces: Vec<u8> = (0..600u32).flat_map(|n| vec![(n % 2) as u8; 1024]).collect();
    fs::write(source.join("pieces"), &pieces)?;
    fs::hard_link(source.join("pieces"), source.join("many/also pieces"))?;
    std::os::unix::fs::symlink("pieces", source.join("short"))?;
    std::os::unix::fs::symlink("p".repeat(100), source.join("long"))
}

/// Zeroes the contents of regular files, which hold no structure.
fn drop_contents(mut bytes: Vec<u8>) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut contents = Vec::new();
    let fs = FileSystem::open(bytes.clone())?;
    fs.collect_inodes(&ScanOptions::default(), &mut |record| {
        let written = record.extents.iter().filter(|mapped| mapped.state == ExtentState::Written);
        if record.kind == FileKind::Regular {
            contents.extend(written.map(|mapped| mapped.extent));
        }
    })?;
    for extent in contents {
        bytes[extent.physical as usize..extent.end() as usize].fill(0);
    }
    Ok(bytes)
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    /// The number of zeros that ends a run.
    const GAP: usize = 24;
    let mut encoded = (bytes.len() as u32).to_le_bytes().to_vec();
    let mut at = 0;
    while let Some(skipped) = bytes[at..].iter().position(|&byte| byte != 0) {
        let start = at + skipped;
        let mut end = start + 1;
        while let Some(zeros) = bytes[end..].iter().take(GAP).position(|&byte| byte != 0) {
            end += zeros + 1;
        }
        encoded.extend((start as u32).to_le_bytes());
        encoded.extend(((end - start) as u32).to_le_bytes());
        encoded.extend(&bytes[start..end]);
        at = end;
    }
    encoded
}
