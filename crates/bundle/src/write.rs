//! Writes bundles.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use senesce_core::Bytes;
use sha2::{Digest, Sha256};
use tar::Header;

use crate::{
    BUNDLE_FORMAT, Error, FileEntry, Limits, MANIFEST_FILE, Manifest, PlanEntry, RESEARCH_FILE, Research, Result,
    archive::{BLOCK, LARGEST, header, padding},
    manifest::{Input, Sum, TableEntry},
    names::check_name,
    read::{MOST_METADATA_BYTES, is_metadata},
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

/// A bundle that readers accept, before it is written.
#[derive(Debug)]
pub struct Prepared {
    files: BTreeMap<String, Content>,
    sums: BTreeMap<String, Sum>,
}

impl Prepared {
    /// Reads all contents, and adds the manifest and the research metadata. Calls `goes_on` before
    /// each file, and stops with an error if it returns an error. `keep` selects the files that
    /// readers keep in memory, as in [`read()`](crate::read()).
    ///
    /// Errors: a content cannot be read, a name is invalid, or the bundle exceeds a limit.
    pub fn new(
        contents: Contents,
        limits: Limits,
        keep: impl Fn(&str) -> bool,
        goes_on: &dyn Fn() -> io::Result<()>,
    ) -> Result<Self> {
        let Contents { senesce_version, plan, inputs, tables, research, mut files } = contents;
        let mut sums = BTreeMap::new();
        for (name, content) in &files {
            goes_on().map_err(Error::io("read", Path::new(name)))?;
            check_name(name).map_err(|fault| content_error(name, format!("its name {fault}")))?;
            sums.insert(name.clone(), copy(content, io::sink(), name)?);
        }
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
        check_limits(&sums, limits, keep)?;
        Ok(Self { files, sums })
    }

    /// The number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The sum of the sizes of all files.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sums.values().map(|sum| sum.bytes).sum())
    }

    /// Writes the bundle to `out`. The same contents give the same bytes. `path` is for messages;
    /// `goes_on` as in [`Self::new`].
    ///
    /// Errors: the output fails; a content was changed since it was read.
    pub fn write<W: Write>(&self, out: W, path: &Path, goes_on: &dyn Fn() -> io::Result<()>) -> Result<W> {
        let io = || Error::io("write", path);
        let mut encoder = zstd::stream::write::Encoder::new(Sealing::new(out), LEVEL).map_err(io())?;
        encoder.include_checksum(true).map_err(io())?;
        for (name, content) in &self.files {
            goes_on().map_err(io())?;
            let expected = &self.sums[name];
            encoder.write_all(header_of(name, expected)?.as_bytes()).map_err(io())?;
            let found = copy(content, &mut encoder, name)?;
            if found != *expected {
                return Err(content_error(name, "it changed while it was read".to_owned()));
            }
            encoder.write_all(&[0; BLOCK][..padding(found.bytes)]).map_err(io())?;
        }
        encoder.write_all(&[0; 2 * BLOCK]).map_err(io())?;
        encoder.finish().and_then(Sealing::finish).map_err(io())
    }
}

/// Errors: readers would refuse the bundle, because it or a file of it is too large.
fn check_limits(sums: &BTreeMap<String, Sum>, limits: Limits, keep: impl Fn(&str) -> bool) -> Result<()> {
    let refused = |problem| Err(Error::TooLarge { problem });
    let (mut bytes, mut kept) = (0, 0);
    for (name, sum) in sums {
        header_of(name, sum)?;
        let is_ours = is_metadata(name);
        if is_ours && sum.bytes > MOST_METADATA_BYTES {
            return Err(content_error(name, format!("it has more than {}", Bytes(MOST_METADATA_BYTES))));
        }
        bytes += sum.bytes;
        kept += if is_ours || keep(name) { sum.bytes } else { 0 };
    }
    let too_large =
        |what: &str, bytes, most| refused(format!("{what} {}, and a bundle has up to {}", Bytes(bytes), Bytes(most)));
    match () {
        () if sums.len() > limits.files => {
            refused(format!("it has {} files, and a bundle has up to {}", sums.len(), limits.files))
        }
        () if bytes > limits.bytes => too_large("it has", bytes, limits.bytes),
        () if kept > limits.kept_bytes => too_large("its tables and input files have", kept, limits.kept_bytes),
        () => Ok(()),
    }
}

/// Errors: a header cannot state the name or the size.
fn header_of(name: &str, sum: &Sum) -> Result<Header> {
    if sum.bytes > LARGEST {
        return Err(content_error(name, format!("it has more than {LARGEST} bytes")));
    }
    header(name, sum.bytes).map_err(|error| content_error(name, error.to_string()))
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
