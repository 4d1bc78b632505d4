//! Properties of an XFS volume.

use std::path::Path;

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
    ioctl::Updater,
};

use crate::Error;

/// Inodes of a chunk, on every XFS.
const INODES_PER_CHUNK: u64 = 64;

/// `struct xfs_fsop_geom` of 256 bytes.
#[repr(C)]
struct Geometry {
    before: [u32; 6],
    inode_bytes: u32,
    between: [u32; 16],
    flags: u32,
    rest: [u32; 40],
}

/// The size of an inode chunk on the XFS mounted at `mountpoint`, bytes: 64 inodes, which XFS
/// allocates in one extent. Without such an extent it makes sparse chunks if the volume has the
/// feature, and no inodes otherwise.
///
/// Out: none for another file system. Errors: the path cannot be opened.
pub fn collect_xfs_inode_chunk_bytes(mountpoint: &Path) -> Result<Option<u64>, Error> {
    let geometry = collect_geometry(mountpoint)?;
    Ok(geometry.map(|geometry| u64::from(geometry.inode_bytes) * INODES_PER_CHUNK))
}

/// Whether files of the XFS mounted at `mountpoint` can share blocks.
///
/// Out: `false` for another file system, and on kernels before 5.2. Errors: the path cannot be
/// opened.
pub fn collect_xfs_has_reflink(mountpoint: &Path) -> Result<bool, Error> {
    const REFLINK: u32 = 1 << 20;
    Ok(collect_geometry(mountpoint)?.is_some_and(|geometry| geometry.flags & REFLINK != 0))
}

/// The geometry of an XFS; none for another file system, and on kernels before 5.2, which have a
/// smaller structure.
fn collect_geometry(mountpoint: &Path) -> Result<Option<Geometry>, Error> {
    const XFS_MAGIC: u64 = 0x5846_5342;
    let fd = rustix::fs::openat(CWD, mountpoint, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|source| Error::system("open", mountpoint, source))?;
    let magic = rustix::fs::fstatfs(&fd).map_err(|source| Error::system("statfs", mountpoint, source))?.f_type;
    if magic as u64 & 0xFFFF_FFFF != XFS_MAGIC {
        return Ok(None);
    }
    let mut geometry = Geometry { before: [0; 6], inode_bytes: 0, between: [0; 16], flags: 0, rest: [0; 40] };
    // SAFETY: 0x8100587E is XFS_IOC_FSGEOMETRY; the kernel writes 256 bytes, which the structure
    // has.
    match unsafe { rustix::ioctl::ioctl(&fd, Updater::<0x8100_587E, Geometry>::new(&mut geometry)) } {
        Ok(()) => Ok(Some(geometry)),
        Err(Errno::NOTTY) => Ok(None),
        Err(source) => Err(Error::system("ask for the geometry of the XFS at", mountpoint, source)),
    }
}

const _: () = assert!(size_of::<Geometry>() == 256);
