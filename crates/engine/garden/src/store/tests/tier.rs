//! Objects that hold what they should not.

use senesce_fsapi::{Caller, FileSystem};

use super::{Small, findings, make};
use crate::store::{Filling, Tiering};

#[test]
fn a_block_that_is_twice_in_an_object_is_named_once() {
    let small = Small { groups: vec![3], stripes: 256, aa_stripes: 64, tetris_stripes: 16 };
    let (devices, garden, fs) = small.garden();
    fs.write(&Caller::default(), make(&fs, "file"), 0, &[7; 5 * 4096]).unwrap();
    garden.consistency_point().unwrap();
    let all = Tiering { age: 0, with_cached: true };
    let mut filling = Filling::default();
    {
        let mut store = garden.shared().lock();
        for _ in 0..2 {
            let done = store.collect_cold(0, 0, all, 1000, &mut filling).unwrap();
            assert_eq!((done.unread, done.next), (0, None));
        }
        assert_eq!(filling.blocks(), 10);
        let number = 0;
        store.reserve_object_numbers();
        assert_eq!(store.name_object(number, &filling).unwrap(), 5);
        assert_eq!(store.name_object(number + 1, &filling).unwrap(), 0);
    }
    garden.consistency_point().unwrap();
    assert_eq!(garden.cold().live, 5);
    assert_eq!(findings(&devices), [""; 0]);
}
