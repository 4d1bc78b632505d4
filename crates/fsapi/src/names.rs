//! The rules for names.

use crate::{FsError, FsResult};

/// The longest name of a file, and of an extended attribute, in bytes.
pub const MAX_NAME_BYTES: usize = 255;
/// The longest target of a symbolic link, in bytes.
pub const MAX_SYMLINK_BYTES: usize = 4095;
/// The longest file, in bytes; an engine may have a lower limit.
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;
/// The longest value of an extended attribute, in bytes.
pub const MAX_XATTR_BYTES: usize = 65536;

/// Checks a name for creation, removal or rename: 1 to 255 bytes, without `/` and NUL, not `.` and
/// not `..`.
///
/// Errors: `TooLong`, `Invalid`.
pub fn check_name(name: &[u8]) -> FsResult<()> {
    if name.len() > MAX_NAME_BYTES {
        return Err(FsError::TooLong { what: "a name", bytes: name.len(), max: MAX_NAME_BYTES });
    }
    if name.is_empty() || name == b"." || name == b".." || name.iter().any(|&byte| byte == b'/' || byte == 0) {
        return Err(FsError::Invalid { what: "a name is 1 to 255 bytes without / and NUL, and neither . nor .." });
    }
    Ok(())
}
