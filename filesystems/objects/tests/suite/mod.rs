//! The behaviour of every store.

use senesce_objects::{ObjectErrorKind, ObjectStore};

/// Puts, reads, lists and deletes in a store that has none of these keys.
pub fn check(store: &dyn ObjectStore) {
    assert_eq!(store.list("garden").unwrap(), [""; 0]);
    store.put("garden/2", b"second").unwrap();
    store.put("garden/1", b"first").unwrap();
    store.put("gardener/1", b"of other gardens").unwrap();
    assert_eq!(store.list("garden").unwrap(), ["garden/1", "garden/2"]);
    assert_eq!(store.get_range("garden/1", 1..4).unwrap(), b"irs");
    assert_eq!(store.get_range("garden/1", 3..100).unwrap(), b"st");
    assert_eq!(store.get_range("garden/1", 50..100).unwrap(), b"");
    let error = store.get_range("garden/3", 0..1).unwrap_err().to_string();
    assert!(error.contains("cannot get garden/3 in") && error.contains("there is no such object"), "{error}");
    // Objects are never overwritten; an existing one with the same bytes is fine.
    let taken = store.put("garden/1", b"other").unwrap_err();
    assert!(
        taken.kind == ObjectErrorKind::Taken && taken.to_string().contains("another object of that name"),
        "{taken}"
    );
    store.put("garden/1", b"first").unwrap();
    assert_eq!(store.get_range("garden/1", 0..9).unwrap(), b"first");
    store.delete("garden/1").unwrap();
    store.delete("garden/1").unwrap();
    assert_eq!(store.list("garden").unwrap(), ["garden/2"]);
}
