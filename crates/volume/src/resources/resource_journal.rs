//! The file `resources.ndjson`: one JSON object per line. Lines are only appended, and each is
//! synced before its resource is acquired.
//!
//! An incomplete last line counts as not written: acquiring starts after the sync, so its resource
//! was not acquired. An incomplete line elsewhere is damage and is refused.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::{Resource, custodian::ResourceId, guest_lock::respect, private_dir::open_regular};
use crate::{
    Error, Result,
    host::{FileId, ProcessId},
};

/// Name of the journal in a run's directory.
pub const JOURNAL_FILE_NAME: &str = "resources.ndjson";

/// The journal's version. All earlier versions stay readable. Version 2 added disks in virtual
/// time, version 3 the boot of their processes, version 4 mounts that record and homes. Version 5
/// added mounts of engines, version 6 the processes that serve them, version 7 the journal's own
/// place.
pub(super) const VERSION: u32 = 7;

/// The longest journal. A real one has a few hundred bytes per resource.
const MOST_BYTES: usize = 256 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Entry {
    /// A process starts to use the journal.
    Owner {
        version: u32,
        process: ProcessId,
        token: String,
        /// The journal's directory holds nothing else. It is removed when nothing is held. Since
        /// version 4.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        home: bool,
        /// The journal's directory when the owner opened it. It may have been moved. Since version
        /// 7.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<PathBuf>,
    },
    /// A resource will be acquired after this line.
    Acquire { id: ResourceId, resource: Resource },
    /// It was acquired, and has this identity.
    Confirm { id: ResourceId, file: FileId },
    /// It has more properties than were known. Since version 2.
    Amend { id: ResourceId, resource: Resource },
    /// It is gone, or no longer ours.
    Release { id: ResourceId },
}

/// A resource that may exist, according to the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub id: ResourceId,
    pub resource: Resource,
    /// The identity of the file, once it is known.
    pub file: Option<FileId>,
}

/// The state that a journal describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The last owner.
    pub owner: Option<ProcessId>,
    /// The owner's token, a part of every name that it made.
    pub token: String,
    /// Whether the directory holds only the journal.
    pub home: bool,
    /// The path of the directory when the last owner opened the journal, if it is recorded.
    pub place: Option<PathBuf>,
    /// In the order of acquiring.
    pub held: Vec<Held>,
    /// Ids from here on are unused.
    pub next_id: u64,
    /// Length of the complete lines, bytes.
    pub whole_bytes: u64,
}

impl State {
    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Owner { process, token, home, place, .. } => {
                self.owner = Some(process);
                self.token = token;
                self.home = home;
                self.place = place;
            }
            Entry::Acquire { id, resource } => {
                self.next_id = self.next_id.max(id.0 + 1);
                self.held.push(Held { id, resource, file: None });
            }
            Entry::Confirm { id, file } => {
                if let Some(held) = self.held.iter_mut().find(|held| held.id == id) {
                    held.file = Some(file);
                }
            }
            Entry::Amend { id, resource } => {
                if let Some(held) = self.held.iter_mut().find(|held| held.id == id) {
                    held.resource = resource;
                    // Version 2 did not record the boot of a disk's processes. It is that of their
                    // parent.
                    let boot = self.owner.as_ref().and_then(|owner| owner.boot_id.parse().ok());
                    if let Resource::VirtualDisk { footprint } = &mut held.resource {
                        for process in [&mut footprint.server, &mut footprint.guard].into_iter().flatten() {
                            process.boot = process.boot.or(boot);
                        }
                    }
                }
            }
            Entry::Release { id } => self.held.retain(|held| held.id != id),
        }
    }
}

/// Parses the lines of a journal.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<State> {
    let mut state = State::default();
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let torn = line.last() != Some(&b'\n');
        if torn {
            break;
        }
        let problem = |problem: String| Error::Journal { path: path.to_owned(), line: index + 1, problem };
        let entry: Entry = serde_json::from_slice(line).map_err(|error| problem(error.to_string()))?;
        if let Entry::Owner { version, .. } = entry
            && version > VERSION
        {
            return Err(problem(format!("version {version} is newer than this program's {VERSION}")));
        }
        state.apply(entry);
        state.whole_bytes += line.len() as u64;
    }
    Ok(state)
}

/// A journal is only read and appended to.
const FLAGS: OFlags = OFlags::RDWR.union(OFlags::APPEND);

fn open_dir(dir: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// The directory, locked against guests until the journal is unlocked.
    dir: Option<OwnedFd>,
}

impl Journal {
    /// Opens or creates the journal of a run's directory, and parses it. The caller cuts off an
    /// incomplete end.
    pub(super) fn open(dir: &Path) -> Result<(Self, State)> {
        let path = dir.join(JOURNAL_FILE_NAME);
        let fd = open_dir(dir).map_err(Error::io("open", dir))?;
        respect(&fd, dir)?;
        let file = open_regular(fd.as_fd(), OsStr::new(JOURNAL_FILE_NAME), FLAGS | OFlags::CREATE, &path)?;
        // The name must also be durable. Otherwise a power cut would hide the run's resources.
        rustix::fs::fsync(&fd).map_err(Error::io("sync", dir))?;
        let (mut journal, state) = Self::read(path, file)?;
        journal.dir = Some(fd);
        Ok((journal, state))
    }

    /// Opens an existing journal. `None` if there is none.
    pub(super) fn open_existing(dir: &Path) -> Result<Option<(Self, State)>> {
        let fd = match open_dir(dir) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            opened => opened.map_err(Error::io("open", dir))?,
        };
        respect(&fd, dir)?;
        let opened = Self::open_below_lock(dir)?;
        Ok(opened.map(|(journal, state)| (Self { dir: Some(fd), ..journal }, state)))
    }

    /// As [`open_existing`](Self::open_existing), for a caller that holds the lock of the
    /// directory.
    pub(super) fn open_below_lock(dir: &Path) -> Result<Option<(Self, State)>> {
        let path = dir.join(JOURNAL_FILE_NAME);
        let opened = open_dir(dir)
            .map_err(Error::io("open", dir))
            .and_then(|fd| open_regular(fd.as_fd(), OsStr::new(JOURNAL_FILE_NAME), FLAGS, &path));
        match opened {
            Ok(file) => Self::read(path, file).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(path: PathBuf, file: File) -> Result<(Self, State)> {
        // Without this lock, two concurrent cleaners would both act on the same lines.
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).map_err(Error::io("lock", &path))?;
        let bytes = senesce_core::input::read_bytes(&file, MOST_BYTES).map_err(Error::std("read", &path))?;
        let state = parse(&path, &bytes)?;
        Ok((Self { path, file, dir: None }, state))
    }

    /// Cuts off an incomplete end. Call it only if no other process writes the journal.
    pub(super) fn cut_to(&self, whole_bytes: u64) -> Result<()> {
        let io = |operation| Error::std(operation, &self.path);
        if self.file.metadata().map_err(io("look up"))?.len() > whole_bytes {
            self.file.set_len(whole_bytes).map_err(io("cut the torn end of"))?;
            self.file.sync_data().map_err(io("sync"))?;
        }
        Ok(())
    }

    /// Lets other processes open it. An owner works unlocked, because cleaners respect a live
    /// owner.
    pub(super) fn unlock(&self) -> Result<()> {
        let unlock = rustix::fs::FlockOperation::Unlock;
        rustix::fs::flock(&self.file, unlock).map_err(Error::io("unlock", &self.path))?;
        match &self.dir {
            Some(dir) => rustix::fs::flock(dir, unlock).map_err(Error::io("unlock", &self.path)),
            None => Ok(()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. The line is durable when this returns.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<()> {
        let mut line = serde_json::to_vec(entry).map_err(|error| Error::Journal {
            path: self.path.clone(),
            line: 0,
            problem: format!("an entry cannot be written: {error}"),
        })?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::std("write the journal", &self.path))?;
        self.file.sync_data().map_err(Error::std("sync the journal", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../../../golden/volume/resources-v1.ndjson");

    const GOLDEN_2: &[u8] = include_bytes!("../../../../golden/volume/resources-v2.ndjson");

    const GOLDEN_3: &[u8] = include_bytes!("../../../../golden/volume/resources-v3.ndjson");

    const GOLDEN_4: &[u8] = include_bytes!("../../../../golden/volume/resources-v4.ndjson");
    const GOLDEN_5: &[u8] = include_bytes!("../../../../golden/volume/resources-v5.ndjson");
    const GOLDEN_6: &[u8] = include_bytes!("../../../../golden/volume/resources-v6.ndjson");
    const GOLDEN_7: &[u8] = include_bytes!("../../../../golden/volume/resources-v7.ndjson");

    #[test]
    fn version_7_records_the_journals_place() {
        let state = parse(Path::new("golden"), GOLDEN_7).unwrap();
        assert_eq!(state.place.as_deref(), Some(Path::new("/srv/run")));
        let moved = state.held[0].resource.clone().moved(Path::new("/srv/run"), Path::new("/srv/moved"));
        assert_eq!(moved.path(), Path::new("/srv/moved/volumes/full.1267-181cd-0b1b2f3a"));
    }

    #[test]
    fn version_6_with_an_engine_process_is_readable() {
        let state = parse(Path::new("golden"), GOLDEN_6).unwrap();
        let held: Vec<String> = state.held.iter().map(|held| held.resource.to_string()).collect();
        assert_eq!(held, ["engine on /mnt/garden-full.1267-181cd-0b1b2f3a"]);
        let Resource::Engine { server, .. } = &state.held[0].resource else { panic!("{:?}", state.held) };
        assert_eq!(server.as_ref().map(|server| (server.pid, server.start_ticks)), Some((4712, 98_770)));
    }

    #[test]
    fn version_1_is_readable() {
        let state = parse(Path::new("golden"), GOLDEN).unwrap();
        assert_eq!(state.owner, Some(ProcessId { pid: 4711, start_ticks: 98_765, boot_id: "b00t".to_owned() }));
        assert_eq!(state.token, "1267-181cd-b00t");
        let held: Vec<String> = state.held.iter().map(|held| held.resource.to_string()).collect();
        assert_eq!(
            held,
            [
                "file /images/ext4-full.1267-181cd-b00t.img",
                "loop device of /images/ext4-full.1267-181cd-b00t.img",
                "directory /mnt/ext4-full.1267-181cd-b00t",
                "mount on /mnt/ext4-full.1267-181cd-b00t",
                "read-ahead of /dev/sdb"
            ]
        );
        assert_eq!(state.held[0].file, Some(FileId { device: 65_024, inode: 12 }));
        assert_eq!(state.next_id, 6);
    }

    #[test]
    fn version_2_with_a_virtual_disk_is_readable() {
        let state = parse(Path::new("golden"), GOLDEN_2).unwrap();
        let held: Vec<String> = state.held.iter().map(|held| held.resource.to_string()).collect();
        assert_eq!(
            held,
            [
                "file /dev/shm/ext4-full.1267-181cd-b00t.img",
                "directory /run/ext4-full.1267-181cd-b00t.disk",
                "virtual disk on /run/ext4-full.1267-181cd-b00t.disk",
                "loop device of /run/ext4-full.1267-181cd-b00t.disk/disk",
                "mount on /run/ext4-full.1267-181cd-b00t"
            ]
        );
        let Resource::VirtualDisk { footprint } = &state.held[2].resource else { panic!("{:?}", state.held[2]) };
        assert_eq!(footprint.server.map(|server| (server.pid, server.start_ticks)), Some((4712, 98_770)), "as amended");
        assert_eq!(footprint.guard.map(|guard| guard.pid), Some(4713));
    }

    #[test]
    fn version_3_records_the_boot_of_disk_processes() {
        let boot = "0b1b2f3a-99aa-4c0d-8e0f-1a2b3c4d5e6f";
        let second = String::from_utf8(GOLDEN_2.to_vec())
            .unwrap()
            .replace("\"boot_id\":\"b00t\"", &format!("\"boot_id\":\"{boot}\""));
        for text in [GOLDEN_3, second.as_bytes()] {
            let state = parse(Path::new("golden"), text).unwrap();
            let Resource::VirtualDisk { footprint } = &state.held[2].resource else { panic!("{:?}", state.held[2]) };
            for process in [footprint.server, footprint.guard] {
                assert_eq!(process.unwrap().boot.map(|boot| boot.to_string()).as_deref(), Some(boot));
            }
        }
    }

    #[test]
    fn version_4_records_homes_and_recordings() {
        let state = parse(Path::new("golden"), GOLDEN_4).unwrap();
        assert!(state.home);
        let held: Vec<String> = state.held.iter().map(|held| held.resource.to_string()).collect();
        assert_eq!(
            held,
            ["tree /srv/senesce-record.1267-181cd-0b1b2f3a", "recording on /mnt/rec", "temporary files in /srv/tables"]
        );
        assert!(!parse(Path::new("golden"), GOLDEN_3).unwrap().home);
    }

    #[test]
    fn version_5_records_mounts_of_engines() {
        let state = parse(Path::new("golden"), GOLDEN_5).unwrap();
        let held: Vec<String> = state.held.iter().map(|held| held.resource.to_string()).collect();
        assert_eq!(held, ["mount on /mnt/garden"]);
    }

    #[test]
    fn golden_files_equal_the_written_lines() {
        for line in [GOLDEN, GOLDEN_2, GOLDEN_3, GOLDEN_4, GOLDEN_5, GOLDEN_6, GOLDEN_7]
            .concat()
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let entry: Entry = serde_json::from_slice(line).unwrap();
            assert_eq!(serde_json::to_vec(&entry).unwrap(), line);
        }
    }

    #[test]
    fn complete_lines_count_at_any_cut() {
        let ends: Vec<usize> = (1..=GOLDEN.len()).filter(|&at| GOLDEN[at - 1] == b'\n').collect();
        for cut in 0..=GOLDEN.len() {
            let state = parse(Path::new("golden"), &GOLDEN[..cut]).unwrap();
            let want = ends.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
            assert_eq!(state.whole_bytes as usize, want, "cut at {cut}");
        }
    }

    #[test]
    fn damage_in_the_middle_and_newer_versions_are_refused() {
        let bad = b"{\"event\":\"release\",\"id\":1}\ngarbage\n{\"event\":\"release\",\"id\":1}\n";
        assert!(matches!(parse(Path::new("x"), bad), Err(Error::Journal { line: 2, .. })));
        let newer = String::from_utf8(GOLDEN.to_vec())
            .unwrap()
            .replace("\"version\":1", &format!("\"version\":{}", VERSION + 1));
        let error = parse(Path::new("x"), newer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("newer"), "{error}");
    }
}
