//! Writes bundles.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{
    BUNDLE_FORMAT, Error, FileEntry, Limits, MANIFEST_FILE, Manifest, PlanEntry, RESEARCH_FILE, Research, Result,
    archive::{BLOCK, LARGEST, header, padding},
    manifest::{Input, Sum, TableEntry},
    names::check_name,
    seal::{Sealing, hex},
};

/// The level of the compression. A higher level saves little: figures and tables are small.
const LEVEL: i32 = 12;

/// The content of a file.
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The bytes of a file, which is read twice.
    File(PathBuf),
}

/// Everything that a bundle contains, besides the manifest and the research metadata.
#[derive(Debug)]
pub struct Contents {
    /// The version and commit of the program that makes the bundle.
    pub senesce_version: String,
    /// The plan of the run.
    pub plan: PlanEntry,
    /// The input files of the plan that are among the files.
    pub inputs: Vec<Input>,
    /// The result tables among the files.
    pub tables: Vec<TableEntry>,
    /// The description of the run for archives.
    pub research: Research,
    /// The files by their paths.
    pub files: BTreeMap<String, Content>,
}

/// The size of a written bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of files.
    pub files: usize,
    /// The sum of their sizes, bytes.
    pub bytes: u64,
}

/// Writes a bundle to `out`. The same contents give the same bytes. Calls `goes_on` before each
/// file, and stops with an error if it returns an error. `path` is for messages.
pub fn write<W: Write>(
    contents: Contents,
    out: W,
    path: &Path,
    goes_on: &dyn Fn() -> io::Result<()>,
) -> Result<(W, Written)> {
    let Contents { senesce_version, plan, inputs, tables, research, mut files } = contents;
    let io = || Error::io("write", path);
    let mut sums = BTreeMap::new();
    for (name, content) in &files {
        goes_on().map_err(io())?;
        check_name(name).map_err(|fault| content_error(name, format!("its name {fault}")))?;
        sums.insert(name.clone(), copy(content, io::sink(), name)?);
    }
    check_limits(&sums)?;
    let listed = |sums: &BTreeMap<String, Sum>| -> Vec<FileEntry> {
        let entry = |(path, sum): (&String, &Sum)| FileEntry {
            path: path.clone(),
            bytes: sum.bytes,
            sha256: sum.sha256.clone(),
        };
        sums.iter().map(entry).collect()
    };
    let research = research.render(&listed(&sums), &tables);
    sums.insert(RESEARCH_FILE.to_owned(), sum_of(&research));
    files.insert(RESEARCH_FILE.to_owned(), Content::Bytes(research));
    let format = BUNDLE_FORMAT.to_owned();
    let manifest = Manifest { format, senesce_version, plan, inputs, tables, files: listed(&sums) }.render();
    sums.insert(MANIFEST_FILE.to_owned(), sum_of(&manifest));
    files.insert(MANIFEST_FILE.to_owned(), Content::Bytes(manifest));

    let mut encoder = zstd::stream::write::Encoder::new(Sealing::new(out), LEVEL).map_err(io())?;
    encoder.include_checksum(true).map_err(io())?;
    let mut written = Written { files: files.len(), bytes: 0 };
    for (name, content) in &files {
        goes_on().map_err(io())?;
        let expected = &sums[name];
        if expected.bytes > LARGEST {
            return Err(content_error(name, format!("it has more than {LARGEST} bytes")));
        }
        let header = header(name, expected.bytes).map_err(|error| content_error(name, error.to_string()))?;
        encoder.write_all(header.as_bytes()).map_err(io())?;
        let found = copy(content, &mut encoder, name)?;
        if found != *expected {
            return Err(content_error(name, "it changed while it was read".to_owned()));
        }
        encoder.write_all(&[0; BLOCK][..padding(found.bytes)]).map_err(io())?;
        written.bytes += found.bytes;
    }
    encoder.write_all(&[0; 2 * BLOCK]).map_err(io())?;
    let out = encoder.finish().and_then(Sealing::finish).map_err(io())?;
    Ok((out, written))
}

/// Errors: readers would refuse the bundle, because it has too many files or bytes.
fn check_limits(sums: &BTreeMap<String, Sum>) -> Result<()> {
    let limits = Limits::default();
    let bytes: u64 = sums.values().map(|sum| sum.bytes).sum();
    let refused = |problem| Err(content_error("the run", problem));
    match (sums.len() > limits.files, bytes > limits.bytes) {
        (true, _) => refused(format!("it has {} files, and a bundle has up to {}", sums.len(), limits.files)),
        (_, true) => refused(format!("it has {bytes} bytes, and a bundle has up to {}", limits.bytes)),
        _ => Ok(()),
    }
}

fn content_error(name: &str, problem: String) -> Error {
    Error::Content { name: name.to_owned(), problem }
}

fn sum_of(bytes: &[u8]) -> Sum {
    Sum { bytes: bytes.len() as u64, sha256: hex(Sha256::new_with_prefix(bytes)) }
}

/// Copies a content. Returns its size and checksum.
fn copy(content: &Content, mut out: impl Write, name: &str) -> Result<Sum> {
    let source: &mut dyn Read = match content {
        Content::Bytes(bytes) => &mut &bytes[..],
        Content::File(path) => &mut File::open(path).map_err(Error::io("read", path))?,
    };
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut piece = [0; 1 << 14];
    loop {
        let count = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read", Path::new(name))(error)),
        };
        hash.update(&piece[..count]);
        out.write_all(&piece[..count]).map_err(Error::io("write", Path::new(name)))?;
        bytes += count as u64;
    }
    Ok(Sum { bytes, sha256: hex(hash) })
}
