//! Reads and verifies bundles.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use sha2::{Digest, Sha256};

use crate::{
    Error, MANIFEST_FILE, Manifest, RESEARCH_FILE, Result,
    archive::{BLOCK, padding, parse},
    manifest::Sum,
    research::check_research,
    seal::{SEAL_BYTES, hex, is_sealed},
};

/// The first bytes of a zstd frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window of a frame that is read, as a power of two. It bounds the memory.
const WINDOW_LOG: u32 = 24;
/// The size of the zeros at the end of an archive.
const END_BYTES: usize = 2 * BLOCK;

/// The largest bundle that is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of files.
    pub files: usize,
    /// The sum of the sizes of all files, bytes.
    pub bytes: u64,
    /// The sum of the sizes of the files that stay in memory, bytes.
    pub kept_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 16 << 30, kept_bytes: 1 << 30 }
    }
}

/// The most bytes of the manifest, and of the description of the crate. As parsed JSON, they need
/// many times as much memory. 20,000 files with 400 bytes each are half of it.
pub(crate) const MOST_METADATA_BYTES: u64 = 16 << 20;

/// Whether a file describes the bundle. Readers keep it in memory.
pub(crate) fn is_metadata(name: &str) -> bool {
    name == MANIFEST_FILE || name == RESEARCH_FILE
}

/// A verified bundle.
#[derive(Debug)]
pub struct Bundle {
    /// Its manifest.
    pub manifest: Manifest,
    kept: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    /// The contents of a file that was kept.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.kept.get(name).map(Vec::as_slice)
    }

    /// Moves the contents of a file that was kept out of the bundle.
    pub fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.kept.remove(name)
    }
}

/// Reads the bundle in `file`, and verifies that it has exactly the files that its manifest lists.
/// `keep` selects the files whose contents stay in memory. `path` is for messages.
///
/// Errors: the file cannot be read; it is no bundle, or one of another version; it is damaged or
/// exceeds a limit.
pub fn read(file: &File, path: &Path, limits: Limits, keep: impl Fn(&str) -> bool) -> Result<Bundle> {
    let length = check_seal(file, path)?;
    let mut reader = Archive::open(file, path, length, limits)?;
    let (mut sums, mut kept) = (BTreeMap::new(), BTreeMap::new());
    while let Some((name, bytes)) = reader.next_header()? {
        let is_ours = is_metadata(&name);
        if is_ours && bytes > MOST_METADATA_BYTES {
            return Err(Error::damaged(path, format!("{name} has more than {MOST_METADATA_BYTES} bytes")));
        }
        let mut content = (is_ours || keep(&name)).then(Vec::new);
        let sum = reader.read_content(&name, bytes, content.as_mut())?;
        match sums.last_key_value() {
            Some((last, _)) if *last == name => {
                return Err(Error::damaged(path, format!("{name} appears twice")));
            }
            Some((last, _)) if *last > name => {
                return Err(Error::damaged(path, format!("{name} is after {last}, and names must be sorted")));
            }
            _ => {}
        }
        kept.extend(content.map(|content| (name.clone(), content)));
        sums.insert(name, sum);
    }
    reader.finish()?;
    let missing = |name: &str| Error::damaged(path, format!("{name} is missing"));
    let manifest = Manifest::parse(path, kept.get(MANIFEST_FILE).ok_or_else(|| missing(MANIFEST_FILE))?)?;
    manifest.check(path, sums)?;
    let research = kept.get(RESEARCH_FILE).ok_or_else(|| missing(RESEARCH_FILE))?;
    check_research(research, &manifest).map_err(|fault| Error::damaged(path, format!("{RESEARCH_FILE}: {fault}")))?;
    Ok(Bundle { manifest, kept })
}

/// Verifies the seal. Returns the length of the contents before it.
fn check_seal(mut file: &File, path: &Path) -> Result<u64> {
    let not_a_bundle = |detail: &str| Error::NotABundle { path: path.to_owned(), detail: detail.to_owned() };
    let found = file.metadata().map_err(Error::io("read", path))?;
    if !found.is_file() {
        return Err(not_a_bundle("it is not a regular file"));
    }
    let mut first = [0; 4];
    let is_zstd = file.read_exact(&mut first).is_ok() && first == MAGIC;
    if !is_zstd {
        return Err(not_a_bundle("it does not start as one"));
    }
    let length = found.len().saturating_sub(SEAL_BYTES);
    let mut seal = Vec::new();
    let io = || Error::io("read", path);
    file.seek(SeekFrom::Start(length)).map_err(io())?;
    file.take(SEAL_BYTES).read_to_end(&mut seal).map_err(io())?;
    file.rewind().map_err(io())?;
    match is_sealed(file.take(length), &seal).map_err(io())? {
        true => file.rewind().map_err(io()).map(|()| length),
        false => Err(Error::damaged(path, "its checksum is wrong: it was cut or changed, or senesce did not write it")),
    }
}

/// An archive that is read from its start to its end.
struct Archive<'a> {
    decoder: zstd::stream::read::Decoder<'static, BufReader<io::Take<&'a File>>>,
    path: &'a Path,
    limits: Limits,
    /// The numbers of files and bytes so far.
    files: usize,
    bytes: u64,
    kept_bytes: u64,
}

impl<'a> Archive<'a> {
    fn open(file: &'a File, path: &'a Path, length: u64, limits: Limits) -> Result<Self> {
        let io = || Error::io("read", path);
        let input = BufReader::new(file.take(length));
        let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(io())?.single_frame();
        decoder.window_log_max(WINDOW_LOG).map_err(io())?;
        Ok(Self { decoder, path, limits, files: 0, bytes: 0, kept_bytes: 0 })
    }

    fn damaged<T>(&self, detail: impl ToString) -> Result<T> {
        Err(Error::damaged(self.path, detail))
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.decoder.read_exact(bytes).or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged("the archive in it is cut"),
            _ => self.damaged(format!("it cannot be decompressed: {error}")),
        })
    }

    /// The name and the size of the next file. `None` at the end of the archive.
    fn next_header(&mut self) -> Result<Option<(String, u64)>> {
        let mut block = [0; BLOCK];
        self.read_exact(&mut block)?;
        if block == [0; BLOCK] {
            return Ok(None);
        }
        let (name, bytes) = parse(&block).or_else(|fault| self.damaged(fault))?;
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let Limits { files, bytes: most, .. } = self.limits;
        match () {
            () if self.files > files => self.damaged(format!("it has more than {files} files")),
            () if self.bytes > most => self.damaged(format!("its files have more than {most} bytes")),
            () => Ok(Some((name, bytes))),
        }
    }

    /// Reads the contents of a file in pieces, and appends them to `kept`.
    fn read_content(&mut self, name: &str, bytes: u64, mut kept: Option<&mut Vec<u8>>) -> Result<Sum> {
        if kept.is_some() {
            self.kept_bytes += bytes;
            if self.kept_bytes > self.limits.kept_bytes {
                let most = self.limits.kept_bytes;
                return self.damaged(format!("{name} and the tables before it have more than {most} bytes"));
            }
        }
        let mut hash = Sha256::new();
        let mut piece = [0; 1 << 14];
        let mut left = bytes;
        while left > 0 {
            let count = left.min(piece.len() as u64) as usize;
            self.read_exact(&mut piece[..count])?;
            hash.update(&piece[..count]);
            if let Some(kept) = &mut kept {
                kept.extend(&piece[..count]);
            }
            left -= count as u64;
        }
        let mut zeros = [0; BLOCK];
        let zeros = &mut zeros[..padding(bytes)];
        self.read_exact(zeros)?;
        match zeros.iter().all(|byte| *byte == 0) {
            true => Ok(Sum { bytes, sha256: hex(hash) }),
            false => self.damaged(format!("there is data between {name} and the file after it")),
        }
    }

    /// Reads the end of the archive. Nothing may follow it.
    fn finish(mut self) -> Result<()> {
        let mut rest = Vec::new();
        let most = END_BYTES as u64;
        let answer = (&mut self.decoder).take(most).read_to_end(&mut rest);
        if let Err(error) = answer {
            return self.damaged(format!("it cannot be decompressed: {error}"));
        }
        if rest != [0; END_BYTES - BLOCK] {
            return self.damaged("there is data after the end of the archive, or the end is cut");
        }
        let path = self.path;
        let mut after = Vec::new();
        self.decoder.finish().take(1).read_to_end(&mut after).map_err(Error::io("read", path))?;
        match after.is_empty() {
            true => Ok(()),
            false => Err(Error::damaged(path, "there is data after the end of the archive")),
        }
    }
}
