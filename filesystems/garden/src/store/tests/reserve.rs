//! Space for the next consistency point.

use super::Small;

/// In an aggregate with many maps, an operation that frees may change nearly all of them, whatever
/// is dirty.
#[test]
fn freeing_operations_have_space_for_all_maps() {
    let (_, garden, _) = Small { groups: vec![3], stripes: 400_000, aa_stripes: 4096, tetris_stripes: 64 }.garden();
    garden.consistency_point().unwrap();
    let mut store = garden.shared().lock();
    let kept = store.kept();
    assert!(kept > 2000, "{kept} blocks are too few for a large aggregate");
    let (mut may, mut may_not) = (0, 0);
    for free in kept - 1000..kept + 100 {
        store.sb.free = free;
        if store.reserve(Some(0), 48, true).is_ok() {
            may += 1;
            // 64 blocks of the reserve are for changes of such operations, the rest is for maps.
            assert!(free >= 48 + (kept - 64), "{free} free, {kept} kept");
        } else {
            may_not += 1;
            assert!(free < kept, "a full aggregate can be emptied");
        }
    }
    assert!(may > 100 && may_not > 900, "{may}, {may_not}");
}
