//! What XFS says about itself.

use std::path::Path;

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use super::ioctl::Call;
use crate::Error;

/// Inodes of a chunk, for every XFS.
const INODES_PER_CHUNK: u64 = 64;

/// `struct xfs_fsop_geom` of 256 bytes, of which the size of an inode is read.
#[repr(C)]
struct Geometry {
    before: [u32; 6],
    inode_bytes: u32,
    rest: [u32; 57],
}

/// How many bytes a chunk of inodes takes on the XFS mounted at `mountpoint`: 64 inodes, which XFS allocates in one
/// piece. Without such a piece it makes sparse chunks if the volume has the feature, and no inodes otherwise.
///
/// Out: none for another file system. Errors: the path cannot be opened.
pub fn collect_xfs_inode_chunk_bytes(mountpoint: &Path) -> Result<Option<u64>, Error> {
    const XFS_MAGIC: u64 = 0x5846_5342;
    let fd = rustix::fs::openat(CWD, mountpoint, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|source| Error::system("open", mountpoint, source))?;
    let magic = rustix::fs::fstatfs(&fd).map_err(|source| Error::system("statfs", mountpoint, source))?.f_type;
    if magic as u64 & 0xFFFF_FFFF != XFS_MAGIC {
        return Ok(None);
    }
    let mut geometry = Geometry { before: [0; 6], inode_bytes: 0, rest: [0; 57] };
    // SAFETY: 0x8100587E is XFS_IOC_FSGEOMETRY; the kernel writes 256 bytes, which the structure has.
    let asked = unsafe { rustix::ioctl::ioctl(&fd, Call::<0x8100_587E, Geometry>(&mut geometry)) };
    match asked {
        Ok(()) => Ok(Some(u64::from(geometry.inode_bytes) * INODES_PER_CHUNK)),
        // Kernels before 5.2 have a smaller structure.
        Err(Errno::NOTTY) => Ok(None),
        Err(source) => Err(Error::system("ask for the geometry of the XFS at", mountpoint, source)),
    }
}

const _: () = assert!(size_of::<Geometry>() == 256);
