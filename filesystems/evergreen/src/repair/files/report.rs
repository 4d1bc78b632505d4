//! The files with keys in lost ranges.

use bytes::Bytes;

use super::FileRepair;
use crate::fs::inode_record::{BLOCK, Body};
use crate::{KeyValue, Loss, Lost, keys::Home};

impl<S: KeyValue> FileRepair<'_, S> {
    /// Reports the files with keys in the lost ranges. Files that are completely lost were reported
    /// before.
    pub(super) fn tell_lost(&mut self, lost: &[Loss]) {
        let mut told = Vec::new();
        for (home, object) in &self.files.objects {
            let (Some(inode), Some(path)) = (object.inode, object.path.clone()) else { continue };
            for loss in lost {
                let blocks = match inode.body {
                    Body::File { .. } => lost_blocks(home, inode.size.div_ceil(BLOCK), loss),
                    _ => None,
                };
                if let Some((first, end)) = blocks {
                    let how = match loss.what {
                        Lost::Values => "are zeros",
                        Lost::Changes => "may be older",
                    };
                    let (from, to) = (first * BLOCK, (end * BLOCK).min(inode.size));
                    told.push((path.clone(), format!("bytes from {from} to {to} {how}")));
                }
                let own = home.metadata();
                if loss.what == Lost::Changes && overlap(&own.start, &own.end, loss) {
                    told.push((path.clone(), "attributes and names may be older".to_owned()));
                }
            }
        }
        told.into_iter().for_each(|(path, what)| self.lose(path, what));
    }
}

fn overlap(from: &[u8], to: &[u8], loss: &Loss) -> bool {
    loss.from < to && loss.to.as_ref().is_none_or(|end| &end[..] > from)
}

/// The blocks of a file with keys in a range: the first one, and the one after the last.
fn lost_blocks(home: &Home, blocks: u64, loss: &Loss) -> Option<(u64, u64)> {
    let before = |bound: &Bytes| {
        let (mut low, mut high) = (0, blocks);
        while low < high {
            let middle = low + (high - low) / 2;
            match home.block_key(middle)[..] < **bound {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    };
    let (first, end) = (before(&loss.from), loss.to.as_ref().map_or(blocks, before));
    (first < end).then_some((first, end))
}
