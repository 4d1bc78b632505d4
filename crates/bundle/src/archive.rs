//! The tar archive: headers of one form only.

use tar::{EntryType, Header};

use crate::names::check_name;

/// The size of a header, and of the unit that contents are padded to.
pub(crate) const BLOCK: usize = 512;
/// The directory that all names of the archive start with, so that an unpacked bundle is one
/// directory.
const DIRECTORY: &str = "bundle/";
/// The modification time of every file, seconds since 1970: 1980-01-01, which all archivers accept.
const TIME: u64 = 315_532_800;
/// The largest file that the octal digits of a header can state.
pub(crate) const LARGEST: u64 = (1 << 33) - 1;

/// The header of a regular file. Owner, mode and time are always the same.
pub(crate) fn header(name: &str, bytes: u64) -> std::io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(format!("{DIRECTORY}{name}"))?;
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(TIME);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// The number of zeros after contents of this size.
pub(crate) fn padding(bytes: u64) -> usize {
    (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK
}

/// Reads a header. Accepts only the bytes that [`header`] makes.
///
/// Errors: the fault, as a sentence.
pub(crate) fn parse(block: &[u8; BLOCK]) -> Result<(String, u64), String> {
    let found = Header::from_byte_slice(block);
    let path = String::from_utf8_lossy(&found.path_bytes()).into_owned();
    let kind = match found.entry_type() {
        EntryType::Regular => None,
        EntryType::Symlink => Some("a symbolic link"),
        EntryType::Link => Some("a hard link"),
        EntryType::Char | EntryType::Block => Some("a device"),
        EntryType::Fifo => Some("a pipe"),
        EntryType::Directory => Some("a directory"),
        _ => Some("an entry of another kind"),
    };
    if let Some(kind) = kind {
        return Err(format!("{path} is {kind}, and a bundle has only regular files"));
    }
    let Some(name) = path.strip_prefix(DIRECTORY) else {
        let fault = check_name(&path).err().unwrap_or_else(|| format!("is not below {DIRECTORY}"));
        return Err(format!("the name {path} {fault}"));
    };
    check_name(name).map_err(|fault| format!("the name {path} {fault}"))?;
    let bytes = found.entry_size().map_err(|_| format!("{path} has a size that is no number"))?;
    let expected = header(name, bytes).map_err(|error| format!("{path}: {error}"))?;
    match expected.as_bytes() == block {
        true => Ok((name.to_owned(), bytes)),
        false => Err(format!("the header of {path} is not one that senesce writes")),
    }
}
