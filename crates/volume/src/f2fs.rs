//! Refuses an F2FS with a list of further devices.
//!
//! The superblock of an F2FS can name up to eight devices by their paths. The kernel opens them
//! when it mounts it, with the rights of root. The author of the image chose the paths.

use std::path::Path;

use crate::{Error, Result};

/// Both superblocks are in the first blocks of 4 KiB.
pub(crate) const START_BYTES: usize = 3 * 4096;
/// `devs` of `struct f2fs_super_block`: eight entries of a path and a count.
const DEVICES_AT: usize = 0x899;
const DEVICE_BYTES: usize = 64 + 4;
const DEVICES: usize = 8;

/// Checks the first [`START_BYTES`] of a device. The kernel uses the second superblock if the first
/// one is damaged.
///
/// Errors: one of them names a device.
pub(crate) fn check_single_device(path: &Path, start: &[u8]) -> Result<()> {
    let names_one = |superblock: usize| {
        let entry = |index: usize| start.get(superblock + DEVICES_AT + index * DEVICE_BYTES);
        (0..DEVICES).any(|index| entry(index).is_none_or(|&first| first != 0))
    };
    if [1024, 4096 + 1024].into_iter().any(names_one) {
        let why = "its superblock names other devices, which the kernel would open";
        return Err(Error::NotPossible { operation: "mount", path: path.to_owned(), why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_names_a_device_is_refused() {
        let path = Path::new("/dev/loop9");
        check_single_device(path, &[0; START_BYTES]).unwrap();
        check_single_device(path, &[0; START_BYTES - 4096]).unwrap();
        for superblock in [1024, 5120] {
            for index in 0..8 {
                let mut start = vec![0; START_BYTES];
                start[superblock + 0x899 + index * 68] = b'/';
                let error = check_single_device(path, &start).unwrap_err();
                assert!(error.to_string().contains("names other devices"), "{error}");
            }
        }
        assert!(check_single_device(path, &[0; 4096]).is_err(), "a missing superblock is not trusted");
    }
}
