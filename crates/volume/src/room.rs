//! Checks before any write whether a volume can be made and can hold its contents.

use std::path::{Path, PathBuf};

use senesce_core::Bytes;

use crate::{Backend, Error, FileSystemKind, Host, Result, VolumeSpec};

/// The largest image: the largest file on an ext4 with blocks of 4 KiB, and a size that mkfs
/// formats in seconds.
const LARGEST_IMAGE: Bytes = Bytes(16 << 40);

impl FileSystemKind {
    /// Bytes that the file system itself needs with default mkfs options. It is a lower bound:
    /// contents that do not fit next to it fit never. A new image occupies this at once, except for
    /// Btrfs and engines of ours.
    ///
    /// Sources: mke2fs.conf of e2fsprogs 1.47 (256 bytes per inode; one inode per 4 KiB below 512
    /// MiB, 16 KiB below 4 TiB, 32 KiB below 16 TiB; a journal of at least 1,024 blocks), and the
    /// log of xfsprogs 6.1 (at least 64 MiB, or a 2,048th).
    pub fn own_bytes(self, size: Bytes) -> Bytes {
        const TIB: u64 = 1 << 40;
        let size = size.0;
        Bytes(match self {
            FileSystemKind::Ext4 if size < 512 * Bytes::MIB => size / 16 + 4 * Bytes::MIB,
            FileSystemKind::Ext4 if size < 4 * TIB => size / 64,
            FileSystemKind::Ext4 => size / 128,
            FileSystemKind::Xfs => (size / 2048).clamp(64 * Bytes::MIB, 2000 * Bytes::MIB),
            FileSystemKind::Btrfs => 0,
            // Eight segments of metadata, and a reserve for cleaning that grows as the square root
            // of the size (f2fs-tools 1.15: 32 MiB of 64 MiB, 136 MiB of 1 GiB).
            FileSystemKind::F2fs => 16 * Bytes::MIB + size.isqrt() * 3584,
            // Eight segments that mkfs makes, and 5% reserved (nilfs-tools 2.2).
            FileSystemKind::Nilfs2 => 64 * Bytes::MIB + size / 20,
            // Its log (0.4%, jfsutils 1.1), and the maps of blocks and inodes.
            FileSystemKind::Jfs => size / 128 + Bytes::MIB,
            // Its journal of 8,193 blocks, and bitmaps (reiserfsprogs 3.6).
            FileSystemKind::Reiserfs => 33 * Bytes::MIB + size / 16_384,
            // Its log, and 64 bytes for each block.
            FileSystemKind::Garden => (size / 16).clamp(Bytes::MIB, 32 * Bytes::MIB) + size / 70,
            // Its log, and the new blocks of a checkpoint, which coexist with the old ones.
            FileSystemKind::Evergreen => {
                (size / 64).clamp(64 * Bytes::MIB, 1024 * Bytes::MIB).min(size / 8) + size / 10
            }
        })
    }
}

/// Refuses a volume that its file system cannot be made on, or that cannot hold `held` bytes next
/// to the file system's own. [`Volume::create`](crate::Volume::create) checks the same without
/// contents. A caller that knows the contents calls this before.
///
/// Mkfs options or compression may gain space. With mkfs options only the bare size counts, and
/// with compression the contents do not count. A directory has no size and always passes.
///
/// Errors: too small, too large, a device whose size cannot be read, no space for an image's
/// metadata. Cost: one query of the device, or of the free space of the image's directory.
pub fn check_room(host: &dyn Host, spec: &VolumeSpec, held: Bytes) -> Result<()> {
    let (place, size) = match (&spec.backend, spec.backend.image()) {
        (_, Some(image)) => (image.dir.to_owned(), image.size),
        (Backend::Device { path, size }, None) => (path.clone(), size.map_or_else(|| host.device_size(path), Ok)?),
        (_, None) => return Ok(()),
    };
    check_size(spec, &place, size, held)?;
    let Some(image) = spec.backend.image() else { return Ok(()) };
    if size > LARGEST_IMAGE {
        return Err(Error::ImageTooLarge { size, most: LARGEST_IMAGE });
    }
    let own = own_bytes(spec, size);
    let available = host.free_bytes(image.dir)?;
    if own > available {
        return Err(Error::NotEnoughSpace { dir: image.dir.to_owned(), available, needed: own });
    }
    Ok(())
}

/// The part of [`check_room`] that needs no host: checks whether `size` is enough.
pub fn check_size(spec: &VolumeSpec, place: &Path, size: Bytes, held: Bytes) -> Result<()> {
    let file_system = spec.file_system;
    let minimum = file_system.minimum_size();
    if size < minimum {
        return Err(Error::VolumeTooSmall { file_system, size, minimum });
    }
    let is_compressed = spec.mount_options.contains("compress");
    let own = own_bytes(spec, size);
    if !is_compressed && held.0.saturating_add(own.0) > size.0 {
        return Err(Error::NoRoom { place: PathBuf::from(place), size, own, held });
    }
    Ok(())
}

fn own_bytes(spec: &VolumeSpec, size: Bytes) -> Bytes {
    if spec.mkfs_options.is_empty() { spec.file_system.own_bytes(size) } else { Bytes(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: FileSystemKind) -> VolumeSpec {
        VolumeSpec::new(Backend::Device { path: "/dev/x".into(), size: None }, kind)
    }

    #[test]
    fn contents_and_own_bytes_must_fit() {
        let mib = |count: u64| Bytes(count * Bytes::MIB);
        let check = |spec: &VolumeSpec, size, held| check_size(spec, Path::new("/dev/x"), mib(size), mib(held));
        let mut ext4 = spec(FileSystemKind::Ext4);
        check(&ext4, 30, 24).unwrap();
        let error = check(&ext4, 30, 25).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("/dev/x has 30 MiB") && said.contains("25 MiB"), "{said}");
        assert!(error.hint().is_some_and(|hint| hint.contains("larger")) && !error.is_environment());
        // Options may omit the journal, and compression gains space.
        ext4.mkfs_options = vec!["-O".into(), "^has_journal".into()];
        check(&ext4, 30, 30).unwrap();
        assert!(check(&ext4, 30, 31).is_err());
        ext4.mount_options = "compress=zstd".into();
        check(&ext4, 30, 300).unwrap();
        assert!(matches!(check(&spec(FileSystemKind::Btrfs), 108, 0), Err(Error::VolumeTooSmall { .. })));
    }
}
