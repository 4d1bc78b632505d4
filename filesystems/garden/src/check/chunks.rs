//! Compacted blocks: their chunks against the container maps, and the counts of chunks.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CheckReport,
    aggregate::{Contents, Map},
    media::Media,
};
use crate::{
    Damage,
    format::{BLOCK, compacted, pointer::Form},
    raid::Want,
    store::container_of,
};

/// Checks all compacted blocks that maps name, and the file of counts; returns their PVBNs.
///
/// Each chunk that a map names is in the block once, and all are of one volume. The initial count
/// equals the chunks in the block, the current count equals the chunks that maps name.
pub(super) fn check(
    media: &Media,
    report: &mut CheckReport,
    maps: &BTreeMap<u32, Map>,
    counts: &Contents,
) -> BTreeSet<u64> {
    let mut meant: BTreeMap<u64, Vec<(u32, u64, u16)>> = BTreeMap::new();
    for (&space, map) in maps {
        for (&vvbn, at) in map.iter().filter(|(_, at)| at.form == Form::Compacted) {
            meant.entry(at.pvbn).or_default().push((space, vvbn, at.tag));
        }
    }
    let mut counted: BTreeMap<u64, (u8, u8)> = BTreeMap::new();
    for (block, data) in counts {
        let pairs = data.as_chunks::<2>().0;
        let first = block * (BLOCK / 2) as u64;
        counted.extend(
            (first..).zip(pairs).filter(|(_, pair)| **pair != [0; 2]).map(|(at, pair)| (at, (pair[0], pair[1]))),
        );
    }
    for (&pvbn, chunks) in &meant {
        let found = counted.remove(&pvbn).unwrap_or_default();
        if let Err(damage) = check_block(media, pvbn, chunks, found) {
            report.find(format!("compacted block at PVBN {pvbn}"), damage);
        }
    }
    for (pvbn, (initial, left)) in counted {
        let damage = Damage::new("chunk counts", "chunks", format!("{initial} and {left}"), "none, for no map has one");
        report.find(format!("PVBN {pvbn}"), damage);
    }
    meant.into_keys().collect()
}

fn check_block(media: &Media, pvbn: u64, chunks: &[(u32, u64, u16)], (initial, left): (u8, u8)) -> Result<(), Damage> {
    let (space, _, tag) = chunks[0];
    if let Some((other, ..)) = chunks.iter().find(|(other, ..)| *other != space) {
        return Err(Damage::new("compacted block", "volumes", format!("{space} and {other}"), "one"));
    }
    if let Some((.., other)) = chunks.iter().find(|(.., other)| *other != tag) {
        return Err(Damage::new("container map", "tags of one compacted block", format!("{tag} and {other}"), "one"));
    }
    let (context, block) = media.read(pvbn)?;
    Want::compacted(container_of(space), tag).check(&context, pvbn)?;
    let tuples: BTreeSet<u64> = compacted::decode(&block)?.into_iter().map(|tuple| tuple.vvbn).collect();
    if let Some((_, vvbn, _)) = chunks.iter().find(|(_, vvbn, _)| !tuples.contains(vvbn)) {
        return Err(Damage::new("compacted block", "chunk", "none", format!("one of VVBN {vvbn}")));
    }
    for (field, found, expected) in [("chunks at first", initial, tuples.len()), ("chunks left", left, chunks.len())] {
        if usize::from(found) != expected {
            return Err(Damage::new("chunk counts", field, found, expected));
        }
    }
    Ok(())
}
