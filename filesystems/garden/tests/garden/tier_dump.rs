//! Dumps of objects show their contents, also where they are damaged.

use std::sync::Arc;

use senesce_garden::{Dump, DumpValue, DumpWhat, dump_with};
use senesce_objects::ObjectStore;

use crate::{
    rig::SMALL,
    tier_rig::{ALL, Tiered, bytes},
};

const FOLDER: &str = "garden-73656e657363652067617264656e2031";

fn cells(dump: &Dump, word: &str) -> Vec<DumpValue> {
    let table = dump.table.as_ref().unwrap();
    let at = table.columns.iter().position(|column| *column == word).unwrap();
    table.rows.iter().map(|row| row[at].clone()).collect()
}

#[test]
fn dump_shows_an_object_of_the_store() {
    let mut tiered = Tiered::new(&SMALL);
    let ino = tiered.make(b"cold", &bytes(30, 1));
    tiered.garden().tier(ALL).unwrap();
    tiered.forget_drives();
    // Every third block is on the drives again.
    (0..30).step_by(3).for_each(|block| tiered.write(ino, block * 4096, &bytes(1, 9)).unwrap());
    tiered.garden().consistency_point().unwrap();
    let store: Arc<dyn ObjectStore> = tiered.store.clone();
    let damaged = tiered.store.inner();
    let (log, drives) = tiered.devices.split_last().unwrap();
    let key = &store.list(FOLDER).unwrap()[0];
    let number: u64 = key.rsplit('/').next().unwrap().parse().unwrap();
    let shown = || dump_with(drives, log, Some(&store), &DumpWhat::Object { number }, 1000).unwrap();
    let dump = shown();
    assert!(dump.is_sound(), "{dump}");
    assert!(dump.fields.contains(&("living blocks", 20u64.into())), "{dump}");
    assert!(dump.fields.contains(&("magic", "SNSCobjt".into())), "{dump}");
    let living = cells(&dump, "living");
    let of_file: Vec<DumpValue> = cells(&dump, "of it");
    assert_eq!(of_file.len(), 30);
    for (block, lives) in of_file.iter().zip(&living) {
        let DumpValue::Number(block) = block else { panic!("{block:?}") };
        assert_eq!(*lives, DumpValue::from(if block % 3 == 0 { "no" } else { "yes" }), "block {block} of the file");
    }
    // A flipped bit of a block, and one of the head. The rest is shown.
    let whole = store.get_range(key, 0..1 << 22).unwrap();
    for (at, rows) in [((16 << 10) + 2 * 4160 + 9, 29), (70, 30)] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        damaged.damage(key, &bad);
        let dump = shown();
        assert!(dump.wrong.len() == 1 && cells(&dump, "block").len() == rows, "{dump}");
    }
    damaged.damage(key, &whole[..100]);
    assert!(!shown().is_sound());
    store.delete(key).unwrap();
    let told = |store| dump_with(drives, log, store, &DumpWhat::Object { number }, 1000).unwrap_err().to_string();
    assert!(told(Some(&store)).contains("there is no such object"));
    assert!(told(None).contains("--objects"));
}
