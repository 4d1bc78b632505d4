//! The contents for the keys that the planner writes into its operations.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use senesce_oplog::{ContentError, ContentSource, Payload};
use senesce_workload::{
    WorkloadError,
    git::{ContentKey, IndexState, Oid, PackKey, PackNames, compute_changes},
};

use crate::{Error, History, deflate::Deflaters, packs::Packs};

/// Makes the contents of [`ContentKey`]s from a history. Several threads may use it.
///
/// Memory: the index of one commit as a map and as a file (about 200 bytes per path in total), and
/// the contents that are being decoded. Packs are files in the spool directory, and stay there.
pub struct GitContents {
    history: History,
    packs: Packs,
    index: Mutex<IndexAt>,
    deflaters: Deflaters,
}

/// The index of one commit. The index of another commit is made by applying the difference.
#[derive(Default)]
struct IndexAt {
    number: Option<usize>,
    tree: Option<Oid>,
    state: IndexState,
    file: Option<Arc<[u8]>>,
}

impl GitContents {
    /// Contents of `history`, with packs below the directory `spool` (made if needed; not on the
    /// tested volume).
    ///
    /// A spool belongs to one history with one set of options, because packs are found there by
    /// commit number.
    pub fn new(history: &History, spool: &Path) -> Result<Self, Error> {
        let packs = Packs::new(history.inner.clone(), spool)?;
        Ok(Self {
            history: history.clone(),
            packs,
            index: Mutex::new(IndexAt::default()),
            deflaters: Deflaters::default(),
        })
    }

    fn make(&self, key: ContentKey) -> Result<Payload, Error> {
        let inner = &self.history.inner;
        Ok(match key {
            ContentKey::Blob(oid) => Payload::Bytes(inner.objects.read_kind(oid, gix::objs::Kind::Blob)?.into()),
            ContentKey::Loose(oid) => {
                let (kind, data) = inner.objects.read(oid)?;
                Payload::Bytes(self.deflaters.deflate(&format!("{kind} {}\0", data.len()), &data))
            }
            ContentKey::Index(number) => Payload::Bytes(self.index_file(number)?),
            ContentKey::Pack(pack) => self.packs.payload(pack, false)?,
            ContentKey::PackIdx(pack) => self.packs.payload(pack, true)?,
        })
    }

    fn index_file(&self, number: usize) -> Result<Arc<[u8]>, Error> {
        let inner = &self.history.inner;
        let mut at = self.index.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if at.number == Some(number)
            && let Some(file) = &at.file
        {
            return Ok(file.clone());
        }
        let tree = inner.objects.read_commit(inner.oid(number)?)?.tree;
        let changes = compute_changes(&self.history, at.tree, Some(tree))?;
        at.state.apply(&changes);
        at.tree = Some(tree);
        at.number = Some(number);
        at.file = None; // before the next one is made, so that memory holds only one
        let file: Arc<[u8]> = at.state.to_file().into();
        at.file = Some(file.clone());
        Ok(file)
    }
}

impl ContentSource for GitContents {
    fn payload(&self, key: &str) -> Result<Payload, ContentError> {
        let error = |problem: String, source| ContentError { key: key.to_owned(), problem, source };
        let parsed: ContentKey =
            key.parse().map_err(|e| error("it is no git content".into(), Some(Box::new(e) as _)))?;
        self.make(parsed).map_err(|e| error(e.to_string(), Some(Box::new(e))))
    }
}

impl PackNames for GitContents {
    fn pack_name(&self, pack: PackKey) -> Result<Oid, WorkloadError> {
        self.packs.name(pack).map_err(|error| error.into_workload(format!("pack {pack}")))
    }
}
