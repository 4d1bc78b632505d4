//! The contents of an evergreen as a read-only store, so that the check of the files can use it.

use std::{
    ops::ControlFlow,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;

use super::{CheckReport, walk::Walk};
use crate::{
    Batch, Error, KeyValue, Live, Result,
    disk::{Area, Damage, KeyOrder, NodeMap, Superblock},
    fs::check_files,
    keys::layout_key,
};

/// The contents of an evergreen that is not open.
pub(super) struct Contents {
    area: Area,
    superblock: Superblock,
    map: NodeMap,
    report: Mutex<CheckReport>,
    /// The record with the key order, once the walk has found it.
    layout: Mutex<Option<Bytes>>,
}

impl Contents {
    pub fn new(area: Area, superblock: Superblock, map: NodeMap, report: CheckReport) -> Self {
        Self { area, superblock, map, report: Mutex::new(report), layout: Mutex::default() }
    }

    /// Checks the tree.
    pub fn check_keys(self) -> Result<CheckReport> {
        self.scan(&[], &[u8::MAX], &mut |_, _| ControlFlow::Continue(()))?;
        Ok(self.into_report())
    }

    /// Checks the tree and the files in it.
    pub fn check_files(self) -> Result<CheckReport> {
        let files = check_files(&self)?;
        let wanted = self.superblock.shape.key_order;
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut report = self.into_report();
        let is_same = |layout: &Bytes| match wanted {
            KeyOrder::BirthPath => layout.last() == Some(&0),
            KeyOrder::InodeNumber => layout.last() == Some(&1),
        };
        if let Some(layout) = layout.filter(|layout| !is_same(layout)) {
            let expected = format!("as the file system's record of its layout has it, {layout:?}");
            let damage = Damage::new("superblock", "key order", format!("{wanted:?}"), expected);
            report.find(format!("superblock {}", report.generation), damage);
        }
        // In a damaged tree some files are missing, so findings about files would be wrong.
        if report.is_whole() {
            files.into_iter().for_each(|finding| report.find("files", finding));
        }
        Ok(report)
    }

    fn into_report(self) -> CheckReport {
        self.report.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyValue for Contents {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let mut found = None;
        self.scan(key, &[key, &[0]].concat(), &mut |_, value| {
            found = Some(value);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Each call walks over the tree, and adds to the report.
    fn scan(&self, from: &[u8], to: &[u8], sink: &mut dyn FnMut(&[u8], Bytes) -> ControlFlow<()>) -> Result<()> {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let mut walk = Walk::new(&self.area, &self.superblock, &self.map, &mut report);
        let layout = layout_key();
        walk.walk(&mut |key, value| match key {
            key if key < from => ControlFlow::Continue(()),
            key if key >= to => ControlFlow::Break(()),
            key => {
                if key == layout {
                    *self.layout.lock().unwrap_or_else(PoisonError::into_inner) = Some(value.clone());
                }
                sink(key, value)
            }
        })
    }

    fn apply(&self, _: Batch) -> Result<()> {
        Err(Error::Invalid { what: "a check is read-only".to_owned() })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn live(&self) -> Live {
        Live { bytes: self.superblock.live_bytes, most: self.area.geometry().data_bytes() }
    }

    fn max_batch_bytes(&self) -> usize {
        0
    }
}
