//! Extended attributes: each inode that has any has a file without a name, which holds all of them.

use senesce_fsapi::{Caller, FileKind, FsError, FsResult, MAX_NAME_BYTES, MAX_XATTR_BYTES, NewNode, SetXattrMode};

use crate::{
    error::{Error, Result},
    format::bytes::{Reader, push_sized},
    store::Store,
};

/// Names and values, in the order of names.
type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// All attributes of an inode together have at most this number of bytes.
const MAX_ALL_BYTES: usize = 96 << 10;

impl Store {
    /// All attributes of an inode.
    pub fn xattrs(&mut self, space: u32, ino: u64) -> FsResult<Xattrs> {
        let file = self.user_inode(space, ino)?.xattrs;
        if file == 0 { Ok(Vec::new()) } else { Ok(self.read_xattrs(space, file)?) }
    }

    pub(super) fn set_xattr(
        &mut self,
        space: u32,
        caller: &Caller,
        ino: u64,
        (name, value): (&[u8], &[u8]),
        how: SetXattrMode,
        file: u64,
    ) -> FsResult<()> {
        check_xattr_name(name)?;
        if value.len() > MAX_XATTR_BYTES {
            return Err(FsError::ValueTooLong { bytes: value.len(), max: MAX_XATTR_BYTES });
        }
        let mut all = self.xattrs(space, ino)?;
        let at = all.binary_search_by(|(other, _)| other[..].cmp(name));
        match (at, how) {
            (Ok(_), SetXattrMode::Create) => return Err(FsError::Exists),
            (Err(_), SetXattrMode::Replace) => return Err(FsError::NoAttribute),
            (Ok(at), _) => all[at].1 = value.to_vec(),
            (Err(at), _) => all.insert(at, (name.to_vec(), value.to_vec())),
        }
        if encode(&all).len() > MAX_ALL_BYTES {
            return Err(FsError::NoSpace);
        }
        let mut inode = self.inode(space, ino)?;
        if inode.xattrs == 0 {
            let node = NewNode::file(0);
            let mut holder = self.make_inode(space, caller, None, &node, file)?;
            (holder.links, holder.parent) = (1, ino);
            self.put_inode(space, file, &holder)?;
            inode.xattrs = file;
        }
        inode.changed = caller.now;
        self.put_inode(space, ino, &inode)?;
        Ok(self.write_xattrs(space, inode.xattrs, &all)?)
    }

    pub(super) fn remove_xattr(&mut self, space: u32, caller: &Caller, ino: u64, name: &[u8]) -> FsResult<()> {
        check_xattr_name(name)?;
        let mut all = self.xattrs(space, ino)?;
        let at = all.binary_search_by(|(other, _)| other[..].cmp(name)).map_err(|_| FsError::NoAttribute)?;
        all.remove(at);
        let mut inode = self.inode(space, ino)?;
        inode.changed = caller.now;
        let file = inode.xattrs;
        if all.is_empty() {
            inode.xattrs = 0;
        }
        self.put_inode(space, ino, &inode)?;
        let done = if all.is_empty() { self.remove_inode(space, file) } else { self.write_xattrs(space, file, &all) };
        Ok(done?)
    }

    fn read_xattrs(&mut self, space: u32, file: u64) -> Result<Xattrs> {
        let inode = self.inode(space, file)?;
        if inode.kind != FileKind::File || inode.size > MAX_ALL_BYTES as u64 {
            let damage = crate::Damage::new("attributes", "length", inode.size, format!("at most {MAX_ALL_BYTES}"));
            return Err(Error::damaged(format!("inode {file} of volume {space}"), damage));
        }
        let mut bytes = vec![0; inode.size as usize];
        self.read_file(space, file, 0, &mut bytes)?;
        decode(&bytes).map_err(|damage| Error::damaged(format!("inode {file} of volume {space}"), damage))
    }

    fn write_xattrs(&mut self, space: u32, file: u64, all: &Xattrs) -> Result<()> {
        let bytes = encode(all);
        self.resize(space, file, 0)?;
        self.write_file(space, file, 0, &bytes[..])
    }
}

/// Errors: `Invalid` for an empty name, `TooLong`.
pub(crate) fn check_xattr_name(name: &[u8]) -> FsResult<()> {
    match name.len() {
        0 => Err(FsError::Invalid { what: "an attribute without a name" }),
        bytes if bytes > MAX_NAME_BYTES => {
            Err(FsError::TooLong { what: "an attribute's name", bytes, max: MAX_NAME_BYTES })
        }
        _ => Ok(()),
    }
}

fn encode(all: &Xattrs) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in all {
        push_sized(&mut out, name);
        push_sized(&mut out, value);
    }
    out
}

/// Decodes the output of [`encode`].
pub(crate) fn decode(bytes: &[u8]) -> crate::format::Decoded<Xattrs> {
    let mut from = Reader::new("attributes", bytes);
    let mut all = Vec::new();
    while from.end().is_err() {
        all.push((from.sized("name")?.to_vec(), from.sized("value")?.to_vec()));
    }
    Ok(all)
}
