//! The areas that the kernel swaps to.

use std::{fs, path::PathBuf};

use super::mountinfo::unescape;

/// The devices and files of `/proc/swaps`; none if it cannot be read.
pub(super) fn list_swaps() -> Vec<PathBuf> {
    parse(&fs::read("/proc/swaps").unwrap_or_default())
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
