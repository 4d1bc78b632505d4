//! An object in the store: its head, its blocks, and the container maps that still name them.

use std::{collections::HashMap, ops::Range, sync::Arc};

use senesce_objects::ObjectStore;

use super::{
    field_offsets::OBJECT,
    reader::{Reader, Tree},
    value::{Dump, DumpTable, read_fields},
};
use crate::{
    Damage,
    error::{Error, Result},
    format::{
        Decoded, SLOT,
        object::{self, HEAD, ObjectHead, SLOTS, slot_at},
        pointer::ObjectPlace,
        slot::{self, Context, Kind},
    },
};

/// Shows an object with up to `most` of its blocks. Errors: the store does not return it.
pub(super) fn object(reader: &Reader, store: &Arc<dyn ObjectStore>, number: u64, most: u64) -> Result<Dump> {
    let key = object::key(reader.media.uuid, number);
    let get = |range: Range<u64>| {
        let got = store.get_range(&key, range);
        got.map_err(|error| Error::cold(&key, &error))
    };
    let bytes = get(0..slot_at(SLOTS as u64))?;
    let mut dump = Dump::new(format!("object {number}"));
    dump.field("key", key.clone());
    dump.field("bytes", bytes.len() as u64);
    let mut head = bytes.clone();
    head.resize(HEAD.max(bytes.len()), 0);
    read_fields(&mut dump, &head[..HEAD], OBJECT);
    let blocks = match ObjectHead::decode(&bytes) {
        Ok(head) => {
            if (head.uuid, head.object) != (reader.media.uuid, number) {
                dump.wrong(Damage::new("object", "number", head.object, number));
            }
            head.blocks
        }
        Err(damage) => {
            dump.wrong(damage);
            // The number of blocks follows from the length; their owners are unknown.
            vec![(0, 0); bytes.len().saturating_sub(HEAD) / SLOT]
        }
    };
    let mut table = DumpTable::new(&["block", "container", "VVBN", "tag", "CP number", "file", "of it", "living"]);
    let mut containers = HashMap::new();
    let mut living = 0;
    for (slot, &listed) in (0..).zip(&blocks) {
        let at = slot_at(slot) as usize;
        let context = judge(&bytes, at, listed);
        let context = match context {
            Ok(context) => context,
            Err(damage) => {
                dump.wrong(format!("block {slot}: {damage}"));
                continue;
            }
        };
        let pvbn = ObjectPlace { object: number, slot }.pvbn();
        if context.pvbn != pvbn {
            dump.wrong(format!("block {slot}: {}", Damage::new("trailer", "own PVBN", context.pvbn, pvbn)));
        }
        let tree: &Decoded<Tree> =
            containers.entry(context.owner).or_insert_with(|| reader.aggregate_file(context.owner));
        // A deleted container has no live blocks.
        let named = match tree {
            Ok(tree) => {
                reader.pointer(tree, 0, context.block).map(|pointer| pointer.is_some_and(|to| to.at.pvbn == pvbn))
            }
            Err(_) => Ok(false),
        };
        let is_living = named.unwrap_or_else(|damage| {
            dump.wrong(format!("the map of block {slot}: {damage}"));
            false
        });
        living += u64::from(is_living);
        let Context { owner, block, tag, cp, hint_file, hint_block, .. } = context;
        let mut row: Vec<_> = [slot, owner, block, tag.into(), cp, hint_file, hint_block].map(Into::into).into();
        row.push(if is_living { "yes" } else { "no" }.into());
        table.push(most, row);
    }
    dump.field("living blocks", living);
    dump.table = Some(table);
    Ok(dump)
}

/// The trailer of a block. Errors: it is damaged, or differs from the list.
fn judge(bytes: &[u8], at: usize, listed: (u64, u64)) -> Decoded<Context> {
    let context = object::slot_of(bytes.get(at..).unwrap_or_default()).and_then(|slot| slot::decode(&slot))?;
    let found = (context.kind, context.owner, context.block);
    let expected = (Kind::Volume, listed.0, listed.1);
    match found == expected || listed == (0, 0) {
        true => Ok(context),
        false => Err(Damage::new("trailer", "context", format!("{found:?}"), format!("{expected:?}"))),
    }
}
