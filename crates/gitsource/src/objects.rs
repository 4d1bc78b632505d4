//! Objects of the source repository, decoded.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

use gix::ThreadSafeRepository;
use senesce_workload::{
    WorkloadError,
    git::{CommitInfo, Oid, Repository, TreeEntry},
};
use sha1::{Digest, Sha1};

use crate::Error;

/// The type of an object in the spelling of its header, and its body.
pub(crate) type Object = (gix::objs::Kind, Vec<u8>);

/// The cache of decoded objects per handle, bytes. Consecutive commits share nearly all their
/// trees.
const OBJECT_CACHE_BYTES: usize = 16 << 20;

/// The cache of delta bases per handle, bytes. Chains of deltas share their bases.
const DELTA_CACHE_BYTES: usize = 32 << 20;

/// The repository is reopened after this number of decoded bytes. Its packs are mapped into memory,
/// and pages that were read stay resident as long as the mapping. A large clone would make all of a
/// large pack resident.
const REOPEN_AFTER_BYTES: u64 = 128 << 20;

/// A read of a small object makes a whole page resident.
const PAGE_BYTES: u64 = 4096;

/// A pool of handles to one repository. Each handle has its own caches, and only one thread uses it
/// at a time.
pub(crate) struct Objects {
    /// The repository as the user named it, for messages.
    origin: PathBuf,
    git_dir: PathBuf,
    pool: Mutex<Pool>,
}

struct Pool {
    shared: ThreadSafeRepository,
    idle: Vec<gix::Repository>,
    /// Counts reopenings. A handle of an earlier opening is dropped when it is returned.
    opening: u64,
    /// Bytes decoded since the last opening.
    decoded_bytes: u64,
}

/// The largest object that is read, bytes. A header may claim any size, and objects are decoded in
/// memory.
const LARGEST_OBJECT_BYTES: u64 = 2 << 30;

/// Opens a repository for reading. Ignores the configuration of the user and of the machine.
fn open_shared(git_dir: &Path) -> Result<ThreadSafeRepository, Box<dyn std::error::Error + Send + Sync>> {
    let limit = format!("gitoxide.objects.allocLimit={LARGEST_OBJECT_BYTES}");
    let options = gix::open::Options::isolated()
        .with(gix::sec::Trust::Full)
        .open_path_as_is(true)
        .config_overrides(["core.useReplaceRefs=false", &limit]);
    Ok(ThreadSafeRepository::open_opts(git_dir, options)?)
}

impl Objects {
    /// Opens the spool repository at `git_dir`; `origin` is its name in messages.
    pub fn open(origin: &Path, git_dir: &Path) -> Result<Self, Error> {
        let shared =
            open_shared(git_dir).map_err(|source| Error::NotARepository { path: origin.to_owned(), source })?;
        let pool = Mutex::new(Pool { shared, idle: Vec::new(), opening: 0, decoded_bytes: 0 });
        Ok(Self { origin: origin.to_owned(), git_dir: git_dir.to_owned(), pool })
    }

    /// Reads an object of any type, and checks that the hash of its bytes equals its id.
    ///
    /// Cost: decoding, and one SHA-1 of the object.
    pub fn read(&self, oid: Oid) -> Result<Object, Error> {
        let (repository, opening) = self.take();
        let id = gix::ObjectId::from_bytes_or_panic(&oid.0);
        let object = match repository.find_object(id) {
            Ok(object) => Ok((object.kind, object.detach().data)),
            Err(error) => Err(self.error(oid, &error.to_string(), Some(Box::new(error)))),
        };
        self.give_back(
            repository,
            opening,
            object.as_ref().map_or(0, |(_, data): &Object| data.len() as u64 + PAGE_BYTES),
        );
        let (kind, data) = object?;
        let found = compute_oid(kind, &data);
        if found != oid {
            return Err(self.error(oid, &format!("its bytes are those of {kind} {found}: it is damaged"), None));
        }
        Ok((kind, data))
    }

    /// Whether the object exists. Cost: a search in the indices of the packs, and in one directory.
    pub fn contains(&self, oid: Oid) -> bool {
        let (repository, opening) = self.take();
        let found = repository.has_object(gix::ObjectId::from_bytes_or_panic(&oid.0));
        self.give_back(repository, opening, 0);
        found
    }

    /// The size of an object's body in its header. Cost: reads no contents.
    pub fn size(&self, oid: Oid) -> Result<u64, Error> {
        let (repository, opening) = self.take();
        let size = match repository.find_header(gix::ObjectId::from_bytes_or_panic(&oid.0)) {
            Ok(header) => Ok(header.size()),
            Err(error) => Err(self.error(oid, &error.to_string(), Some(Box::new(error)))),
        };
        self.give_back(repository, opening, 0);
        size
    }

    fn take(&self) -> (gix::Repository, u64) {
        let mut pool = self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let handle = pool.idle.pop().unwrap_or_else(|| open_handle(&pool.shared));
        (handle, pool.opening)
    }

    fn give_back(&self, handle: gix::Repository, opening: u64, decoded_bytes: u64) {
        let mut pool = self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if opening == pool.opening {
            pool.idle.push(handle);
            pool.decoded_bytes += decoded_bytes;
        }
        if pool.decoded_bytes >= REOPEN_AFTER_BYTES {
            pool.decoded_bytes = 0;
            // If the repository cannot be opened any more, the old mapping is still valid.
            if let Ok(shared) = open_shared(&self.git_dir) {
                pool.shared = shared;
                pool.idle.clear();
                pool.opening += 1;
            }
        }
    }

    /// Reads an object that must be of one type.
    pub fn read_kind(&self, oid: Oid, want: gix::objs::Kind) -> Result<Vec<u8>, Error> {
        let (kind, data) = self.read(oid)?;
        if kind == want { Ok(data) } else { Err(self.error(oid, &format!("it is a {kind}, not a {want}"), None)) }
    }

    pub fn read_commit(&self, oid: Oid) -> Result<CommitInfo, Error> {
        let data = self.read_kind(oid, gix::objs::Kind::Commit)?;
        parse_commit(&data).ok_or_else(|| self.error(oid, "it is not a well-formed commit", None))
    }

    pub fn read_tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, Error> {
        let data = self.read_kind(oid, gix::objs::Kind::Tree)?;
        parse_tree(&data).ok_or_else(|| self.error(oid, "it is not a well-formed tree", None))
    }

    /// The repository as the user named it.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    pub fn error(&self, oid: Oid, problem: &str, source: Option<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Object { path: self.origin.clone(), oid, problem: problem.to_owned(), source }
    }
}

/// The id of an object in git: the SHA-1 of its header and bytes.
fn compute_oid(kind: gix::objs::Kind, data: &[u8]) -> Oid {
    let hash = Sha1::new().chain_update(format!("{kind} {}\0", data.len())).chain_update(data).finalize();
    Oid(hash.into())
}

fn open_handle(shared: &ThreadSafeRepository) -> gix::Repository {
    let mut handle = shared.to_thread_local();
    handle.object_cache_size(OBJECT_CACHE_BYTES);
    let delta_cache = || Box::new(gix::odb::pack::cache::lru::MemoryCappedHashmap::new(DELTA_CACHE_BYTES)) as _;
    handle.objects.set_pack_cache(delta_cache);
    handle
}

impl Repository for Objects {
    fn commit(&self, oid: Oid) -> Result<CommitInfo, WorkloadError> {
        self.read_commit(oid).map_err(|error| error.into_workload(format!("commit {oid}")))
    }

    fn tree(&self, oid: Oid) -> Result<Vec<TreeEntry>, WorkloadError> {
        self.read_tree(oid).map_err(|error| error.into_workload(format!("tree {oid}")))
    }

    fn blob(&self, oid: Oid) -> Result<Vec<u8>, WorkloadError> {
        self.read_kind(oid, gix::objs::Kind::Blob).map_err(|error| error.into_workload(format!("blob {oid}")))
    }
}

/// Parses the headers of a commit. Strict about the tree and the parents only.
fn parse_commit(data: &[u8]) -> Option<CommitInfo> {
    let hex = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<Oid>().ok();
    let mut lines = data.split(|&b| b == b'\n');
    let tree = hex(lines.next()?.strip_prefix(b"tree ")?)?;
    let mut info = CommitInfo { tree, parents: Vec::new(), committed_unix_seconds: 0 };
    for line in lines {
        if let Some(parent) = line.strip_prefix(b"parent ") {
            info.parents.push(hex(parent)?);
        } else if let Some(who) = line.strip_prefix(b"committer ") {
            let after_mail = who.rsplit(|&b| b == b'>').next()?;
            let time = std::str::from_utf8(after_mail).ok().and_then(|text| text.split_whitespace().next());
            info.committed_unix_seconds = time.and_then(|text| text.parse().ok()).unwrap_or(0);
        } else if line.is_empty() {
            break;
        }
    }
    Some(info)
}

/// Parses a tree, which consists of entries `<octal mode> <name>\0<20 bytes>`.
fn parse_tree(mut data: &[u8]) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !data.is_empty() {
        let space = data.iter().position(|&b| b == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&data[..space]).ok()?, 8).ok()?;
        let nul = space + data[space..].iter().position(|&b| b == 0)?;
        let oid = data.get(nul + 1..nul + 21)?.try_into().ok()?;
        entries.push(TreeEntry { mode, name: data[space + 1..nul].into(), oid: Oid(oid) });
        data = &data[nul + 21..];
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_headers_are_parsed() {
        let (tree, parent) = ("11".repeat(20), "22".repeat(20));
        let text = format!(
            "tree {tree}\nparent {parent}\nauthor A <a@b> 5 +0000\ncommitter C <c> x> 17 +0100\n\nparent of all\n"
        );
        let info = parse_commit(text.as_bytes()).unwrap();
        assert_eq!(info.tree.to_string(), tree);
        assert_eq!(info.parents, [Oid([0x22; 20])]);
        assert_eq!(info.committed_unix_seconds, 17);
        assert!(parse_commit(b"parent x").is_none());
    }

    #[test]
    fn truncated_tree_is_refused() {
        let mut tree = b"100644 a b\0".to_vec();
        tree.extend([7; 20]);
        let entries = parse_tree(&tree).unwrap();
        assert_eq!((&*entries[0].name, entries[0].oid), (&b"a b"[..], Oid([7; 20])));
        assert!(parse_tree(&tree[..tree.len() - 1]).is_none());
    }
}
