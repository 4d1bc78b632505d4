//! Writes of programs: through the kernel's pages, kept in them, or past them.
//!
//! Only a program that created a file and opened it for writing alone may bypass the pages. No
//! process has read the file then, so it has no pages; filling them takes the kernel as long as the
//! rest of the write. Readers use pages as usual; the kernel drops them before and after each
//! write. It cannot stop concurrent writes through *mappings*: a page that they change between the
//! two would overwrite the data. So the option is off by default. For writes through pages the
//! kernel removes privileges (set-id bits, capabilities) itself; here the server does it.

use std::sync::{Arc, OnceLock};

use fuser::{
    FileHandle, FopenFlags, INodeNo, InitFlags, KernelConfig, Notifier, OpenAccMode, OpenFlags, Version, WriteFlags,
};
use senesce_fsapi::{Attributes, Caller, FileKind, FileSystem, FsError, FsResult, Ino, SetAttributes};

/// From this protocol version on (Linux 6.18) the kernel drops the pages of concurrent readers also
/// after a direct write. Earlier kernels may keep outdated pages.
const DROPS_PAGES_BEHIND_WRITES: Version = Version(7, 45);
/// The handle of a program that created a file and writes past its pages. All others have the
/// handle 0.
const PAST_PAGES: FileHandle = FileHandle(1);

// inode(7)
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_RUNS: u32 = 0o010;
const CAPABILITIES: &[u8] = b"security.capability";

/// The use of the page cache by writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelPages {
    /// Writes go through the pages, and immediately to the engine.
    #[default]
    Through,
    /// The pages keep written data for some time, as in file systems of the kernel, if the kernel
    /// supports it.
    Keep,
    /// Writes go immediately to the engine. Those of a program that created a file and opened it
    /// for writing alone do not fill pages (from Linux 6.18 on). Not for programs that write to a
    /// file both ways at once, and through a mapping.
    PastIfNew,
}

/// The notifier that invalidates cached attributes in the kernel; empty before the mount.
pub(crate) type KernelNotifier = Arc<OnceLock<Notifier>>;

/// The mode of writes that was agreed with the kernel.
pub(crate) struct Writing {
    pages: KernelPages,
    notifier: KernelNotifier,
}

impl Writing {
    pub(crate) fn new(pages: KernelPages) -> Self {
        Self { pages, notifier: KernelNotifier::default() }
    }

    pub(crate) fn notifier(&self) -> KernelNotifier {
        Arc::clone(&self.notifier)
    }

    /// Whether the kernel keeps data that the engine does not have yet.
    pub(crate) fn is_kept(&self) -> bool {
        self.pages == KernelPages::Keep
    }

    /// Negotiates with the kernel.
    pub(crate) fn agree(&mut self, config: &mut KernelConfig) {
        match self.pages {
            KernelPages::Keep => {
                // A kernel without it passes each write on immediately, which is slower and equally
                // safe.
                let _ = config.add_capabilities(InitFlags::FUSE_WRITEBACK_CACHE);
            }
            KernelPages::PastIfNew if config.kernel_abi() < DROPS_PAGES_BEHIND_WRITES => {
                self.pages = KernelPages::Through;
            }
            KernelPages::PastIfNew | KernelPages::Through => {}
        }
    }

    /// Whether a new open file has a handle other than 0.
    pub(crate) fn has_handles(&self) -> bool {
        self.pages == KernelPages::PastIfNew
    }

    /// The handle of a new file with these open flags.
    pub(crate) fn open_new(&self, how: i32) -> (FileHandle, FopenFlags) {
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH;
        match self.pages == KernelPages::PastIfNew && OpenFlags(how).acc_mode() == OpenAccMode::O_WRONLY {
            true => (PAST_PAGES, flags | FopenFlags::FOPEN_DIRECT_IO),
            false => (FileHandle(0), flags),
        }
    }

    /// Removes the privileges of a file before a write, if the kernel leaves that to the server.
    pub(crate) fn before_write(
        &self,
        fs: &dyn FileSystem,
        caller: &Caller,
        (ino, handle): (Ino, FileHandle),
        flags: WriteFlags,
    ) -> FsResult<()> {
        let by_others = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        if by_others || handle == PAST_PAGES {
            drop_capabilities(fs, caller, ino)?;
        }
        if by_others { self.drop_set_id(fs, caller, ino) } else { Ok(()) }
    }

    fn drop_set_id(&self, fs: &dyn FileSystem, caller: &Caller, ino: Ino) -> FsResult<()> {
        let found = fs.attributes(ino)?;
        let left = without_set_id(&found, caller);
        if left != found.permissions {
            fs.set_attributes(caller, ino, &SetAttributes { permissions: Some(left), ..SetAttributes::default() })?;
            if let Some(kernel) = self.notifier.get() {
                // Only attributes, no pages, so it waits for no request. It fails if the kernel has
                // forgotten the inode with its attributes.
                let _ = kernel.inval_inode(INodeNo(ino.0), -1, 0);
            }
        }
        Ok(())
    }
}

/// Writes all of `data`, or fails.
///
/// The kernel ignores the count of a reply for pages that it writes back. It regards every page as
/// written unless the reply is an error, which fsync, msync and close then return. So a partial
/// write must not be a success here.
///
/// Errors: those of [`FileSystem::write`], also after a partial write.
pub(crate) fn write_all(
    fs: &dyn FileSystem,
    caller: &Caller,
    ino: Ino,
    mut offset: u64,
    mut data: &[u8],
) -> FsResult<()> {
    while !data.is_empty() {
        match fs.write(caller, ino, offset, data)? {
            0 => return Err(FsError::NoSpace),
            written => {
                data = &data[written..];
                offset += written as u64;
            }
        }
    }
    Ok(())
}

/// Adds to a change of attributes the set-id bits that the file loses by it. The kernel leaves that
/// to the server (`FUSE_HANDLE_KILLPRIV_V2`) in three cases: a new owner, a new length, and a
/// request that sets nothing else.
///
/// The last one has three causes: `chown` to the same owner, an unprivileged user who is about to
/// change contents in another way, and the removal of a file's capabilities. After the third, file
/// systems of the kernel keep the set-uid bit of root's files; here it is lost.
///
/// `process`: that of the caller. Errors: those of [`FileSystem::attributes`].
pub(crate) fn drop_with(
    fs: &dyn FileSystem,
    caller: &Caller,
    process: u32,
    ino: Ino,
    change: &mut SetAttributes,
) -> FsResult<()> {
    let SetAttributes { permissions, uid, gid, size, accessed, modified, .. } = *change;
    let is_bare = size.is_none() && accessed.is_none() && modified.is_none();
    let is_owner = uid.is_some() || gid.is_some();
    if permissions.is_some() || !(is_owner || size.is_some() || is_bare) {
        return Ok(());
    }
    let found = fs.attributes(ino)?;
    let left = without_set_id(&found, caller);
    let is_lost = found.kind != FileKind::Directory && left != found.permissions;
    if is_lost && (is_owner || is_bare || !keeps_set_id(caller, process)) {
        change.permissions = Some(left);
    }
    Ok(())
}

/// Whether a process may change the length of a file without the loss of its set-id bits
/// (CAP_FSETID). The kernel sends that with the request, but the library does not pass it on. A
/// process without a readable status has no such right.
fn keeps_set_id(caller: &Caller, process: u32) -> bool {
    const CAP_FSETID: u32 = 4;
    let find = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(effective.trim(), 16).ok()
    };
    caller.uid == 0 && find().is_some_and(|effective| effective >> CAP_FSETID & 1 == 1)
}

/// Removes the capabilities of a file, which every write does.
fn drop_capabilities(fs: &dyn FileSystem, caller: &Caller, ino: Ino) -> FsResult<()> {
    match fs.get_xattr(ino, CAPABILITIES) {
        Ok(_) => match fs.remove_xattr(caller, ino, CAPABILITIES) {
            // Another write removed it meanwhile.
            Err(FsError::NoAttribute) => Ok(()),
            done => done,
        },
        Err(FsError::NoAttribute) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The permissions without the bits that `caller` removes. If the group may not execute the file,
/// its bit stays for root and for a caller of that group. Other groups of the caller are unknown
/// here.
fn without_set_id(found: &Attributes, caller: &Caller) -> u32 {
    let is_member = caller.uid == 0 || caller.gid == found.gid;
    let group = if found.permissions & GROUP_RUNS == 0 && is_member { 0 } else { SET_GID };
    found.permissions & !(SET_UID | group)
}

#[cfg(test)]
mod tests {
    use senesce_core::Bytes;
    use senesce_fsapi::{ModelFs, NewNode};

    use super::*;

    #[test]
    fn set_gid_is_lost_if_group_may_execute() {
        let fs = ModelFs::new(Bytes(1 << 20));
        let (root, member) = (Caller::default(), Caller { uid: 7, gid: 0, ..Caller::default() });
        let other = Caller { uid: 7, gid: 7, ..Caller::default() };
        let ino = fs.make_node(&root, Ino::ROOT, b"f", &NewNode::file(0)).unwrap().ino;
        for (before, after, by_others) in [
            (0o644, 0o644, 0o644),
            (0o4755, 0o755, 0o755),
            (0o6755, 0o755, 0o755),
            (0o6705, 0o2705, 0o705),
            (0o3744, 0o3744, 0o1744),
        ] {
            let change = SetAttributes { permissions: Some(before), ..SetAttributes::default() };
            let found = fs.set_attributes(&root, ino, &change).unwrap();
            for caller in [&root, &member] {
                assert_eq!(without_set_id(&found, caller), after, "{before:o}");
            }
            assert_eq!(without_set_id(&found, &other), by_others, "{before:o}");
        }
    }
}
