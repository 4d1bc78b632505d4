//! The areas that the kernel swaps to.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::mountinfo::unescape;
use crate::{Error, Result};

/// The devices and files of `/proc/swaps`. Empty if the kernel has no swap. Errors: the list cannot
/// be read.
pub(super) fn list_swaps() -> Result<Vec<PathBuf>> {
    match fs::read("/proc/swaps") {
        Ok(text) => Ok(parse(&text)),
        // A kernel without swap has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::std("read", Path::new("/proc/swaps"))(error)),
    }
}

fn parse(text: &[u8]) -> Vec<PathBuf> {
    let first_field = |line: &[u8]| line.split(|byte| byte.is_ascii_whitespace()).next().map(unescape);
    let lines = text.split(|&byte| byte == b'\n').skip(1);
    lines.filter(|line| !line.is_empty()).filter_map(first_field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_are_read() {
        let text =
            b"Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition\t1\t0\t-2\n/swap\\040file file\t1\t0\t-3\n";
        assert_eq!(parse(text), [PathBuf::from("/dev/sda2"), PathBuf::from("/swap file")]);
    }
}
