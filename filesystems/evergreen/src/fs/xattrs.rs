//! Extended attributes: in pieces, because values of the store are shorter.

use std::ops::ControlFlow;

use bytes::Bytes;
use senesce_fsapi::{Caller, FsError, FsResult, Ino, MAX_NAME_BYTES, MAX_XATTR_BYTES, SetXattrMode};

use super::{
    evergreen::{EvergreenFs, damaged},
    inode_record::Inode,
    inode_table::Object,
};
use crate::{Batch, KeyValue, MAX_VALUE_BYTES, keys::Key};

/// The length of the value at the start of the first piece, in bytes.
const LENGTH_BYTES: usize = 4;

/// The number of pieces of a value of this length.
pub fn pieces(bytes: usize) -> usize {
    (LENGTH_BYTES + bytes).div_ceil(MAX_VALUE_BYTES)
}

fn check_name(name: &[u8]) -> FsResult<()> {
    match name.len() {
        0 => Err(FsError::Invalid { what: "an attribute without a name" }),
        bytes if bytes > MAX_NAME_BYTES => {
            Err(FsError::TooLong { what: "an attribute's name", bytes, max: MAX_NAME_BYTES })
        }
        _ if name.contains(&0) => Err(FsError::Invalid { what: "an attribute's name with NUL" }),
        _ => Ok(()),
    }
}

/// Counts an attribute of this length, new or removed.
fn count(inode: &mut Inode, name: &[u8], bytes: usize, sign: i64) {
    let pieces = pieces(bytes);
    // Each key after the home: its kind, the name, a zero, the number of the piece.
    let counted = pieces * (name.len() + 3) + LENGTH_BYTES + bytes;
    inode.xattr_pieces = inode.xattr_pieces.saturating_add_signed(sign as i32 * pieces as i32);
    inode.xattr_bytes = inode.xattr_bytes.saturating_add_signed(sign * counted as i64);
}

impl<S: KeyValue> EvergreenFs<S> {
    /// The length of an attribute's value and its first piece, if it exists.
    fn first_piece(&self, object: &Object, name: &[u8]) -> FsResult<Option<(usize, Bytes)>> {
        let Some(piece) = self.store.get(&object.home.xattr_key(name, 0))? else { return Ok(None) };
        match piece.split_first_chunk::<LENGTH_BYTES>() {
            Some((bytes, _)) => Ok(Some((u32::from_le_bytes(*bytes) as usize, piece.slice(LENGTH_BYTES..)))),
            None => Err(damaged("an extended attribute", format!("its first piece has {} bytes", piece.len())).into()),
        }
    }

    pub(super) fn do_get_xattr(&self, ino: Ino, name: &[u8]) -> FsResult<Vec<u8>> {
        check_name(name)?;
        let node = self.table.get(ino);
        let object = self.reading(&node)?;
        let (bytes, first) = self.first_piece(&object, name)?.ok_or(FsError::NoAttribute)?;
        let mut value = first.to_vec();
        for piece in 1..pieces(bytes) {
            value.extend_from_slice(&self.store.get(&object.home.xattr_key(name, piece as u8))?.unwrap_or_default());
        }
        if value.len() != bytes {
            let what = format!("it has {} bytes; expected {bytes}", value.len());
            return Err(damaged("an extended attribute", what).into());
        }
        Ok(value)
    }

    pub(super) fn do_set_xattr(
        &self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        how: SetXattrMode,
    ) -> FsResult<()> {
        check_name(name)?;
        if value.len() > MAX_XATTR_BYTES {
            return Err(FsError::ValueTooLong { bytes: value.len(), max: MAX_XATTR_BYTES });
        }
        let node = self.table.get(ino);
        let mut object = self.writing(&node)?;
        let most = self.batch_values(object.home.xattr_key(name, 0).len());
        if pieces(value.len()) > most {
            return Err(FsError::ValueTooLong { bytes: value.len(), max: most * MAX_VALUE_BYTES - LENGTH_BYTES });
        }
        let old = self.first_piece(&object, name)?.map(|(bytes, _)| bytes);
        match (how, old) {
            (SetXattrMode::Create, Some(_)) => return Err(FsError::Exists),
            (SetXattrMode::Replace, None) => return Err(FsError::NoAttribute),
            _ => {}
        }
        let mut batch = Batch::new();
        let mut inode = object.inode;
        inode.changed = caller.now;
        if let Some(old) = old {
            count(&mut inode, name, old, -1);
            if pieces(old) > pieces(value.len()) {
                let range = object.home.xattr(name);
                batch.delete_range(range.start, range.end);
            }
        }
        count(&mut inode, name, value.len(), 1);
        let told = [&(value.len() as u32).to_le_bytes()[..], value].concat();
        for (piece, bytes) in told.chunks(MAX_VALUE_BYTES).enumerate() {
            batch.put(object.home.xattr_key(name, piece as u8), Bytes::copy_from_slice(bytes));
        }
        self.change_inode(&mut batch, ino, &object, &inode);
        self.store.apply(batch)?;
        object.inode = inode;
        Ok(())
    }

    pub(super) fn do_list_xattrs(&self, ino: Ino) -> FsResult<Vec<Vec<u8>>> {
        let node = self.table.get(ino);
        let object = self.reading(&node)?;
        let mut names = Vec::new();
        if object.inode.xattr_pieces > 0 {
            self.scan(object.home.xattrs(), &mut |key, _| {
                if let Key::Xattr(_, name, 0) = key {
                    names.push(name);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(names)
    }

    pub(super) fn do_remove_xattr(&self, caller: &Caller, ino: Ino, name: &[u8]) -> FsResult<()> {
        check_name(name)?;
        let node = self.table.get(ino);
        let mut object = self.writing(&node)?;
        let (bytes, _) = self.first_piece(&object, name)?.ok_or(FsError::NoAttribute)?;
        let mut batch = Batch::new();
        batch.claim.is_removal = true;
        let mut inode = object.inode;
        inode.changed = caller.now;
        count(&mut inode, name, bytes, -1);
        let range = object.home.xattr(name);
        batch.delete_range(range.start, range.end);
        self.change_inode(&mut batch, ino, &object, &inode);
        self.store.apply(batch)?;
        object.inode = inode;
        Ok(())
    }
}
