//! Listings of directories: names in order, then unordered ones.

use std::ops::ControlFlow;

use senesce_fsapi::{DirEntry, FsResult, Ino};

use super::{evergreen::EvergreenFs, inode_table::Writing, labels::LABELS, name_record::Entry};
use crate::{KeyValue, keys::Key};

/// One in this number of listed names is remembered as a place to continue, and the last one.
const REMEMBER_EACH: usize = 64;

type Sink<'a> = &'a mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>;

impl<S: KeyValue> EvergreenFs<S> {
    pub(super) fn do_read_dir(&self, directory: Ino, cookie: u64, sink: Sink<'_>) -> FsResult<()> {
        let node = self.table.get(directory);
        let mut object = self.writing(&node)?;
        object.inode.check_directory()?;
        if object.inode.size == 0 {
            return Ok(());
        }
        let mut is_done = false;
        if cookie < LABELS {
            is_done = self.list_in_order(&mut object, cookie, sink)?;
        }
        if !is_done {
            self.list_unordered(&object, cookie.max(LABELS - 1), sink)?;
        }
        Ok(())
    }

    /// Lists the names with a label greater than the cookie; returns whether `sink` broke.
    fn list_in_order(&self, object: &mut Writing<'_>, cookie: u64, sink: Sink<'_>) -> FsResult<bool> {
        let mut range = object.home.names();
        // If no place is known, the listing reads from the start and skips earlier names.
        if let Some(name) = object.labels.place(cookie) {
            range.start = object.home.name_key(name);
        }
        let (mut places, mut given, mut is_done) = (Vec::new(), 0, false);
        let mut last = None;
        self.scan(range, &mut |key, value| {
            let Key::Name(home, name) = key else { return Ok(ControlFlow::Continue(())) };
            let entry = Self::decode_entry(&home, &name, &value)?;
            if entry.label <= cookie || entry.label >= LABELS {
                return Ok(ControlFlow::Continue(()));
            }
            self.table.tell(entry.ino, || self.home_of(&home, &name, &entry));
            is_done = sink(dir_entry(&entry, &name)).is_break();
            given += 1;
            last = Some((entry.label, name));
            if given % REMEMBER_EACH == 0 || is_done {
                places.extend(last.take());
            }
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        for (label, name) in places.into_iter().chain(last) {
            object.labels.note_place(label, &name);
        }
        Ok(is_done)
    }

    fn list_unordered(&self, object: &Writing<'_>, cookie: u64, sink: Sink<'_>) -> FsResult<()> {
        let mut range = object.home.unordered();
        range.start = object.home.unordered_key(cookie.saturating_add(1) - LABELS);
        self.scan(range, &mut |key, name| {
            if !matches!(key, Key::Unordered(..)) {
                return Ok(ControlFlow::Continue(()));
            }
            match self.find(object, &name)? {
                Some(entry) => {
                    self.table.tell(entry.ino, || self.home_of(&object.home, &name, &entry));
                    Ok(sink(dir_entry(&entry, &name)))
                }
                None => Ok(ControlFlow::Continue(())),
            }
        })
    }
}

fn dir_entry<'a>(entry: &Entry, name: &'a [u8]) -> DirEntry<'a> {
    DirEntry { ino: entry.ino, kind: entry.kind, cookie: entry.label, name }
}
