//! Opens a file or block device once, checks it through its descriptor, and uses the same
//! descriptor.
//!
//! A name can lead to another file between a check and the use. So no name is opened twice, and the
//! checked file is the one that is written.

use std::{
    fs::File,
    io::{Seek, SeekFrom},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};
use senesce_core::Bytes;

use super::{
    DeviceNumber, HeldDevice,
    in_use::{Use, find_uses, name_of, node_name},
    linux_device::number,
    locks::{find_lock, is_claimed, open_patiently},
    probe::find_probed,
};
use crate::{
    Error, Result,
    signature::{EDGE_BYTES, describe_content},
};

/// Between two tries to use a device.
const PAUSE: Duration = Duration::from_millis(100);

/// The purpose of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Read it. Other readers may have a file open.
    Read,
    /// Write into it.
    Write,
    /// Put another file in its place. A symbolic link is refused, because the link and not its
    /// target would be replaced.
    Replace,
}

/// An open file or block device that no other process uses. Until it is dropped, no process can
/// mount or claim the device, and no engine can open the file.
#[derive(Debug)]
pub struct Claim {
    file: File,
    /// The path that the caller named.
    path: PathBuf,
    /// The number of a block device.
    number: Option<DeviceNumber>,
    /// The name for programs that accept no descriptor.
    node: PathBuf,
}

impl Claim {
    /// Opens the file or device at `path`, claims and locks it, and checks that it is not in use.
    ///
    /// Errors: it cannot be opened; it is neither a file nor a block device; it is in use, with
    /// every use in words. Cost: reads all mounts and loop devices once.
    pub fn open(path: &Path, purpose: Purpose) -> Result<Self> {
        let failed = || Error::io("open", path);
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, purpose == Purpose::Replace);
        let place = rustix::fs::open(path, flags, Mode::empty()).map_err(failed())?;
        let stat = rustix::fs::fstat(&place).map_err(Error::io("look up", path))?;
        let mut flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
        flags |= if purpose == Purpose::Write { OFlags::RDWR } else { OFlags::RDONLY };
        // Opened by the descriptor, because a name would be looked up a second time.
        let by_descriptor = format!("/proc/self/fd/{}", place.as_raw_fd());
        let (fd, number) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => {
                let number = DeviceNumber::of(stat.st_rdev);
                (open_alone(&place, Path::new(&by_descriptor), flags, path, number)?, Some(number))
            }
            FileType::RegularFile => (rustix::fs::open(&by_descriptor, flags, Mode::empty()).map_err(failed())?, None),
            FileType::Symlink => return Err(Error::WrongKind { path: path.to_owned(), found: "a symbolic link" }),
            _ => return Err(Error::WrongKind { path: path.to_owned(), found: "neither a file nor a block device" }),
        };
        let lock = match purpose {
            Purpose::Read => FlockOperation::NonBlockingLockShared,
            Purpose::Write | Purpose::Replace => FlockOperation::NonBlockingLockExclusive,
        };
        let mut uses = find_uses(&fd, path)?;
        uses.extend(find_lock(&fd, path, lock)?);
        refuse(path, &uses)?;
        let node = match number {
            // If `/dev` is not the kernel's, as in a container, the given name is used.
            Some(number) => match node_name(number) {
                Some(node) => node,
                None => std::fs::canonicalize(path).map_err(Error::std("look up", path))?,
            },
            None => path.to_owned(),
        };
        // NONBLOCK was only for the opening, which must not wait for a pipe or a drive without a
        // medium.
        let kept = rustix::fs::fcntl_getfl(&fd).map_err(failed())? - OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&fd, kept).map_err(failed())?;
        Ok(Self { file: fd.into(), path: path.to_owned(), number, node })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The open file. The claim and the lock last until it is closed.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The path that was claimed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        self.number.is_some()
    }

    /// The size in bytes.
    pub fn size(&self) -> Result<Bytes> {
        let mut file = &self.file;
        file.seek(SeekFrom::End(0)).map(Bytes).map_err(Error::std("find the size of", &self.path))
    }

    /// Refuses a file or device that is not empty, unless `force`.
    ///
    /// Errors: it is not empty; the program that knows foreign signatures is missing. Cost: reads 2
    /// MiB and runs a program.
    pub fn check_content(&self, force: bool) -> Result<()> {
        if force {
            return Ok(());
        }
        match self.find_content()? {
            Some(found) => Err(Error::HasSignature { device: self.path.clone(), found }),
            None => Ok(()),
        }
    }

    fn find_content(&self) -> Result<Option<String>> {
        let size = self.size()?.0;
        let start = self.read(0, EDGE_BYTES)?;
        let end = self.read(size.saturating_sub(EDGE_BYTES as u64), EDGE_BYTES)?;
        // The program reads further places, and its names are better than "data".
        if let Some(marks) = describe_content(&start, &end) {
            return Ok(Some(marks));
        }
        if let Some(probed) = find_probed(&self.file, &self.path)? {
            return Ok(Some(probed));
        }
        let is_zero = start.iter().chain(&end).all(|&byte| byte == 0);
        Ok((!is_zero).then(|| "data: its first and last MiB are not all zeros".to_owned()))
    }
}

impl HeldDevice for Claim {
    fn node(&self) -> &Path {
        &self.node
    }

    fn check_content(&self, force: bool) -> Result<()> {
        self.check_content(force)
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut have = 0;
        while have < length {
            let got = self.file.read_at(&mut bytes[have..], offset + have as u64);
            match got.map_err(Error::std("read", &self.path))? {
                0 => break,
                got => have += got,
            }
        }
        bytes.truncate(have);
        Ok(bytes)
    }

    fn wipe(&self, offset: u64, length: usize) -> Result<()> {
        self.file.write_all_at(&vec![0; length], offset).map_err(Error::std("wipe a part of", &self.path))?;
        self.file.sync_all().map_err(Error::std("sync", &self.path))
    }

    fn share(&mut self) -> Result<()> {
        // The next program claims the device. The open descriptor prevents that the kernel gives
        // its number to another device. A name that now leads to another device is refused.
        if number(&self.node)? != self.number {
            let detail = "it leads to another device now".to_owned();
            return Err(Error::Unverified { operation: "looking up", path: self.node.clone(), detail });
        }
        let name = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        self.file = rustix::fs::open(&name, flags, Mode::empty()).map_err(Error::io("open", &self.path))?.into();
        Ok(())
    }
}

/// Opens a block device exclusively: the kernel cannot mount it, and no other program can open it
/// exclusively.
fn open_alone(place: &OwnedFd, name: &Path, flags: OFlags, path: &Path, number: DeviceNumber) -> Result<OwnedFd> {
    match open_patiently(name, flags | OFlags::EXCL) {
        Err(error) if error.is_busy() => {
            let mut uses = find_uses(place, path)?;
            if uses.is_empty() {
                uses.extend(find_engine(name, flags, path)?);
            }
            if uses.is_empty() {
                uses.push(Use::Claimed { device: node_name(number).unwrap_or_else(|| path.to_owned()) });
            }
            refuse(path, &uses)?;
            Err(error)
        }
        Err(Error::Io { operation, source, .. }) => Err(Error::Io { operation, path: path.to_owned(), source }),
        opened => opened,
    }
}

/// Finds the lock of an engine that serves a device. The lock names the process.
fn find_engine(name: &Path, flags: OFlags, path: &Path) -> Result<Option<Use>> {
    let flags = flags - OFlags::RDWR;
    match rustix::fs::open(name, flags, Mode::empty()) {
        Ok(fd) => find_lock(&fd, path, FlockOperation::NonBlockingLockExclusive),
        Err(Errno::BUSY) => Ok(None),
        Err(errno) => Err(Error::io("open", path)(errno)),
    }
}

/// The number of tries until a device that is still in use is refused. Each takes about 0.2 s,
/// because the open retries, too.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseTries {
    /// Tries before the uses are read.
    pub first: u32,
    /// Further tries while the only use is a mount in another namespace.
    pub elsewhere: u32,
}

impl Default for ReleaseTries {
    fn default() -> Self {
        Self { first: 50, elsewhere: 150 }
    }
}

impl ReleaseTries {
    /// The longest wait for a mount in another namespace, seconds.
    fn elsewhere_seconds(self) -> u64 {
        u64::from(self.elsewhere).div_ceil(5)
    }
}

/// See [`Host::await_release`](super::Host::await_release). Calls `note` with a sentence before it
/// waits for a process that has a copy of the mount.
pub(super) fn await_release(
    device: &Path,
    tries: ReleaseTries,
    pause: impl Fn(Duration),
    note: impl Fn(&str),
) -> Result<()> {
    let is_released = |tries: u32| -> Result<bool> {
        for _ in 0..tries {
            if !is_claimed(device)? {
                return Ok(true);
            }
            pause(PAUSE);
        }
        Ok(false)
    };
    let find_mounts = || -> Result<Vec<Use>> {
        let uses = find_uses(open_patiently(device, OFlags::RDONLY)?, device)?;
        Ok(uses.into_iter().filter(|found| matches!(found, Use::Mounted { .. })).collect())
    };
    if is_released(tries.first)? {
        return Ok(());
    }
    let mut mounts = find_mounts()?;
    if are_elsewhere(&mounts) {
        if let Some((pid, _)) = mounts[0].mounted_elsewhere() {
            let (seconds, name, device) = (tries.elsewhere_seconds(), name_of(pid), device.display());
            note(&format!(
                "waiting up to {seconds} s for process {pid}{name}, which has a copy of the mount of {device}"
            ));
        }
        if is_released(tries.elsewhere)? {
            return Ok(());
        }
        mounts = find_mounts()?;
    }
    let claim = [Use::Claimed { device: device.to_owned() }];
    refuse(device, if mounts.is_empty() { &claim } else { &mounts })
}

/// Opens a device for writing, as [`Claim::open`]. Waits up to 5 s if its only uses are mounts in
/// other mount namespaces: a program that copied a namespace keeps a mount until it exits.
pub(super) fn claim_patiently(device: &Path, pause: impl Fn(Duration)) -> Result<Claim> {
    const TRIES: u32 = 25;
    for _ in 0..TRIES {
        match Claim::open(device, Purpose::Write) {
            Err(Error::DeviceInUse { elsewhere: Some(_), .. }) => pause(PAUSE),
            opened => return opened,
        }
    }
    Claim::open(device, Purpose::Write)
}

/// Whether all uses are mounts in other mount namespaces, and there is one.
fn are_elsewhere(uses: &[Use]) -> bool {
    !uses.is_empty() && uses.iter().all(|found| found.mounted_elsewhere().is_some())
}

fn refuse(path: &Path, uses: &[Use]) -> Result<()> {
    if uses.is_empty() {
        return Ok(());
    }
    let by: Vec<String> = uses.iter().map(ToString::to_string).collect();
    let elsewhere = match are_elsewhere(uses) {
        true => uses[0].mounted_elsewhere().map(|(pid, point)| Box::new((pid, point.to_owned()))),
        false => None,
    };
    Err(Error::DeviceInUse { device: path.to_owned(), by: by.join("; "), elsewhere })
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        fs,
        io::{BufRead, BufReader},
        os::unix::fs::symlink,
        process::{Command, Stdio},
    };

    use senesce_testkit::{apart, root_or_skip, run};

    use super::*;

    #[test]
    fn a_moved_name_does_not_move_the_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("empty"), [0; 4096]).unwrap();
        fs::write(path("precious"), [7; 4096]).unwrap();
        symlink(path("empty"), path("link")).unwrap();
        let claim = Claim::open(&path("link"), Purpose::Write).unwrap();
        claim.check_content(false).unwrap();
        fs::remove_file(path("link")).unwrap();
        symlink(path("precious"), path("link")).unwrap();
        claim.wipe(0, 4096).unwrap();
        claim.file().write_all_at(b"ours", 0).unwrap();
        assert_eq!(fs::read(path("precious")).unwrap(), [7; 4096]);
        assert!(fs::read(path("empty")).unwrap().starts_with(b"ours"));
    }

    #[test]
    fn a_locked_file_is_refused_for_writing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = Claim::open(file.path(), Purpose::Read).unwrap();
        drop(Claim::open(file.path(), Purpose::Read).unwrap());
        for purpose in [Purpose::Write, Purpose::Replace] {
            let error = Claim::open(file.path(), purpose).unwrap_err();
            assert!(matches!(&error, Error::DeviceInUse { .. }), "{error}");
        }
        drop(reader);
        drop(Claim::open(file.path(), Purpose::Write).unwrap());
    }

    #[test]
    fn only_files_and_block_devices_are_claimed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        let refused = |path: &Path, purpose| Claim::open(path, purpose).unwrap_err().to_string();
        assert!(refused(&dir.path().join("link"), Purpose::Replace).contains("symbolic link"));
        for (path, purpose) in [(dir.path(), Purpose::Read), (Path::new("/dev/null"), Purpose::Write)] {
            assert!(refused(path, purpose).contains("neither a file nor a block device"));
        }
    }

    /// A loop device, which its drop detaches.
    struct Loop(PathBuf);

    impl Drop for Loop {
        fn drop(&mut self) {
            // A failure must not hide the panic of the test.
            let _ = Command::new("losetup").arg("--detach").arg(&self.0).output();
        }
    }

    /// Mounts a device in another mount namespace only, and calls `wait` with a pause that unmounts
    /// it in its call number `last`. Returns the result, and the number of pauses.
    fn with_mount_elsewhere<T>(
        last: u32,
        wait: impl FnOnce(&Path, &dyn Fn(Duration)) -> Result<T>,
    ) -> (Result<T>, u32) {
        let dir = tempfile::Builder::new().prefix("senesce-volume-test-").tempdir_in("/tmp").unwrap();
        let image = dir.path().join("disk");
        File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let device = Loop(run("losetup", &["--find", "--show", image.to_str().unwrap()]).trim().into());
        run("mkfs.ext4", &["-q", device.0.to_str().unwrap()]);
        let point = dir.path().join("point");
        fs::create_dir(&point).unwrap();
        let mut command = apart("mount \"$0\" \"$1\" && echo mounted && read -r _");
        let mut child =
            command.arg(&device.0).arg(&point).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "mounted\n");
        let holder = RefCell::new(child);
        let release = || {
            let mut child = holder.borrow_mut();
            drop(child.stdin.take());
            // A failure must not hide the panic of the test.
            let _ = child.wait();
        };
        let pauses = Cell::new(0);
        let result = wait(&device.0, &|_| {
            pauses.set(pauses.get() + 1);
            if pauses.get() == last {
                release();
            }
        });
        release();
        (result, pauses.get())
    }

    #[test]
    fn a_mount_elsewhere_is_awaited_longer() {
        if !root_or_skip("loop devices and mount namespaces") {
            return;
        }
        // Another process may open the device once more.
        let tries = ReleaseTries { first: 2, ..ReleaseTries::default() };
        let notes = RefCell::new(Vec::new());
        let note = |text: &str| notes.borrow_mut().push(text.to_owned());
        let (released, pauses) = with_mount_elsewhere(5, |device, pause| await_release(device, tries, pause, note));
        released.unwrap();
        let notes = notes.into_inner();
        assert!(notes.len() == 1 && notes[0].starts_with("waiting up to 30 s for process "), "{notes:?}");
        // The process can be another one that has a copy, such as another test.
        assert!(notes[0].contains("), which has a copy of the mount of /dev/loop"), "{notes:?}");
        assert!(pauses >= 5, "{pauses}");
        let (claimed, pauses) = with_mount_elsewhere(3, |device, pause| claim_patiently(device, pause));
        assert!(claimed.unwrap().is_device());
        assert!(pauses >= 3, "{pauses}");
    }

    #[test]
    fn a_mount_that_stays_elsewhere_names_its_process() {
        if !root_or_skip("loop devices and mount namespaces") {
            return;
        }
        let (claimed, _) = with_mount_elsewhere(u32::MAX, |device, pause| claim_patiently(device, pause));
        let error = claimed.map(drop).unwrap_err();
        let Error::DeviceInUse { elsewhere: Some(found), .. } = &error else { panic!("{error}") };
        let pid = found.0;
        assert!(error.to_string().contains(&format!("in the mount namespace of process {pid} (")), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("nsenter --target {pid} --mount umount")), "{hint}");
    }
}
