//! Every store does the same.

use senesce_objects::{FaultObjects, MemoryObjects, ObjectCall, ObjectStore};

fn check(store: &dyn ObjectStore) {
    assert_eq!(store.list("garden").unwrap(), [""; 0]);
    store.put("garden/2", b"second").unwrap();
    store.put("garden/1", b"first").unwrap();
    store.put("gardener/1", b"of somebody else").unwrap();
    assert_eq!(store.list("garden").unwrap(), ["garden/1", "garden/2"]);
    assert_eq!(store.get_range("garden/1", 1..4).unwrap(), b"irs");
    assert_eq!(store.get_range("garden/1", 3..100).unwrap(), b"st");
    assert_eq!(store.get_range("garden/1", 50..100).unwrap(), b"");
    let told = store.get_range("garden/3", 0..1).unwrap_err().to_string();
    assert!(told.contains("cannot get garden/3 in") && told.contains("there is no such object"), "{told}");
    store.put("garden/1", b"another").unwrap();
    assert_eq!(store.get_range("garden/1", 0..9).unwrap(), b"another");
    store.delete("garden/1").unwrap();
    store.delete("garden/1").unwrap();
    assert_eq!(store.list("garden").unwrap(), ["garden/2"]);
}

#[test]
fn in_memory() {
    let store = MemoryObjects::default();
    check(&store);
    let fork = store.fork();
    fork.delete("garden/2").unwrap();
    assert_eq!((store.bytes(), fork.bytes()), (22, 16));
}

#[cfg(feature = "library")]
#[test]
fn in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let objects = dir.path().join("made/objects");
    check(&senesce_objects::LibraryObjects::directory(&objects).unwrap());
    let again = senesce_objects::LibraryObjects::directory(&objects).unwrap();
    assert_eq!(again.get_range("garden/2", 0..6).unwrap(), b"second");
    std::fs::write(dir.path().join("file"), b"").unwrap();
    senesce_objects::LibraryObjects::directory(&dir.path().join("file")).unwrap_err();
}

#[test]
fn calls_fail_as_told_and_are_counted() {
    let store = FaultObjects::new(MemoryObjects::default());
    check(&store);
    let before = store.counts();
    assert_eq!((before.puts, before.gets, before.deletes, before.lists), (4, 5, 2, 3));
    store.fail_after(1, 2);
    store.put("garden/4", b"good").unwrap();
    store.put("garden/5", b"bad").unwrap_err();
    store.delete("garden/4").unwrap_err();
    store.delete("garden/4").unwrap();
    store.fail_after(0, u64::MAX);
    store.list("garden").unwrap_err();
    store.heal();
    assert_eq!(store.list("garden").unwrap(), ["garden/2"]);
    let calls = store.calls();
    assert_eq!(calls.len(), 8);
    assert_eq!(calls[7], ObjectCall::Delete("garden/4".to_owned()));
    assert_eq!(store.inner().list("garden").unwrap(), ["garden/2"]);
}
