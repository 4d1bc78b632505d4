//! Packs that the git binary makes from the source repository, as files in a spool directory.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use senesce_oplog::Payload;
use senesce_workload::git::{Oid, PackKey};
use sha1::{Digest, Sha1};

use crate::{Error, command::Git, history::Inner};

/// Makes each pack once. A pack that is in the spool already is used as it is, so that a resumed
/// run writes the same bytes.
pub(crate) struct Packs {
    inner: Arc<Inner>,
    spool: PathBuf,
    /// Packs that this process made or checked. The lock also keeps other threads from making one.
    checked: Mutex<HashSet<PackKey>>,
}

impl Packs {
    pub fn new(inner: Arc<Inner>, spool: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { operation: "make the spool directory", path: spool.to_owned(), source };
        fs::create_dir_all(spool).map_err(io)?;
        Ok(Self { inner, spool: std::path::absolute(spool).map_err(io)?, checked: Mutex::default() })
    }

    /// The file of the pack, or of its index.
    pub fn payload(&self, key: PackKey, index: bool) -> Result<Payload, Error> {
        let path = self.ready(key)?;
        let path = if index { path.with_extension("idx") } else { path };
        let len = fs::metadata(&path).map_err(|source| io("stat", &path, source))?.len();
        Ok(Payload::File { path, len })
    }

    /// The hash in the name of the pack, which is the hash at the end of its file.
    pub fn name(&self, key: PackKey) -> Result<Oid, Error> {
        let path = self.ready(key)?;
        let read = || -> std::io::Result<[u8; 20]> {
            let mut file = File::open(&path)?;
            let mut hash = [0; 20];
            file.seek(SeekFrom::End(-20))?;
            file.read_exact(&mut hash)?;
            Ok(hash)
        };
        read().map(Oid).map_err(|source| io("read the end of", &path, source))
    }

    fn ready(&self, key: PackKey) -> Result<PathBuf, Error> {
        let pack = self.spool.join(format!("{}.pack", key.to_string().replace(' ', "-")));
        // One at a time: pack-objects needs memory, and two callers may need the same pack.
        let mut checked = self.checked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !checked.contains(&key) {
            // An earlier process may have made it, and a power cut may have lost its bytes. No
            // process waits for packs to be durable, because they can be made again.
            if !is_whole(&pack) || !is_whole(&pack.with_extension("idx")) {
                self.make(key, &pack)?;
            }
            checked.insert(key);
        }
        Ok(pack)
    }

    fn make(&self, key: PackKey, pack: &Path) -> Result<(), Error> {
        let inner = &self.inner;
        let (wants, haves) = match key {
            PackKey::All(number) => (inner.heads(number)?, Vec::new()),
            PackKey::Fetch(number) => (vec![inner.oid(number)?], inner.haves(number)?),
            PackKey::Since { after, until } => (inner.heads(until)?, inner.heads(after)?),
        };
        let mut revisions: String = wants.iter().map(|oid| format!("{oid}\n")).collect();
        haves.iter().for_each(|oid| revisions.push_str(&format!("^{oid}\n")));
        let base = pack.with_extension("new");
        let hash = Git::new("pack-objects", &inner.git_dir)
            .git_dir()
            .config("pack.threads=1") // several threads may find different deltas each time
            .config("pack.useSparse=false")
            .config("pack.windowMemory=64m")
            .config("pack.writeReverseIndex=false")
            // Less memory for the same bytes: 496 instead of 759 MiB for the pack of 200,000
            // commits, in 10% more time.
            .config("pack.deltaCacheSize=16m")
            .config("core.packedGitWindowSize=16m")
            .config("core.packedGitLimit=64m")
            .config("core.deltaBaseCacheLimit=32m")
            .config("core.fsync=none")
            .args(["--revs".as_ref(), "--delta-base-offset".as_ref(), "-q".as_ref(), base.as_os_str()])
            .run_with(&revisions)?;
        let named = format!("{}-{}", base.display(), String::from_utf8_lossy(&hash).trim());
        let (named_pack, named_idx) = (PathBuf::from(format!("{named}.pack")), PathBuf::from(format!("{named}.idx")));
        let new_idx = pack.with_extension("idx.new");
        let arguments = ["-o".as_ref(), new_idx.as_os_str(), named_pack.as_os_str()];
        Git::new("index-pack", &self.spool)
            .config("pack.threads=1")
            .config("core.deltaBaseCacheLimit=32m")
            .args(arguments)
            .run()?;
        self.check_names(&named_idx, &new_idx)?;
        fs::remove_file(&named_idx).map_err(|source| io("remove", &named_idx, source))?;
        // The pack is renamed last: if it exists, its index exists, too.
        let idx = pack.with_extension("idx");
        fs::rename(&new_idx, &idx).map_err(|source| io("rename", &new_idx, source))?;
        fs::rename(&named_pack, pack).map_err(|source| io("rename", &named_pack, source))
    }

    /// Compares the ids of packed objects with the hashes of their bytes, because git copies
    /// objects into packs without a check.
    fn check_names(&self, packed_under: &Path, computed: &Path) -> Result<(), Error> {
        let names = |path: &Path| -> Result<Vec<gix::ObjectId>, Error> {
            let index = gix::odb::pack::index::File::at(path, gix::hash::Kind::Sha1)
                .map_err(|error| io("read", path, std::io::Error::other(error.to_string())))?;
            Ok(index.iter().map(|entry| entry.oid).collect())
        };
        let (packed_under, computed) = (names(packed_under)?, names(computed)?);
        match packed_under.iter().find(|oid| computed.binary_search(oid).is_err()) {
            None => Ok(()),
            Some(oid) => Err(Error::Object {
                path: self.inner.objects.origin().to_owned(),
                oid: oid.as_bytes().try_into().map_or(Oid([0; 20]), Oid),
                problem: "its bytes are those of another object: it is damaged".to_owned(),
                source: None,
            }),
        }
    }
}

/// Whether the file ends with the hash of its other bytes, as packs and their indices do.
fn is_whole(path: &Path) -> bool {
    let read = || -> std::io::Result<bool> {
        let mut file = File::open(path)?;
        let Some(length) = file.metadata()?.len().checked_sub(20) else { return Ok(false) };
        let mut hash = Sha1::new();
        std::io::copy(&mut (&mut file).take(length), &mut HashWriter(&mut hash))?;
        let mut end = [0; 20];
        file.read_exact(&mut end)?;
        Ok(hash.finalize()[..] == end)
    };
    read().unwrap_or(false)
}

struct HashWriter<'a>(&'a mut Sha1);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn io(operation: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { operation, path: path.to_owned(), source }
}
