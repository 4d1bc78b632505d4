//! All stores pass the same suite.

mod suite;

use senesce_objects::{FaultObjects, MemoryObjects, ObjectCall, ObjectStore};
use suite::check;

#[test]
fn memory_passes_the_suite() {
    let store = MemoryObjects::default();
    check(&store);
    let fork = store.fork();
    fork.delete("garden/2").unwrap();
    assert_eq!((store.bytes(), fork.bytes()), (22, 16));
}

#[cfg(feature = "library")]
#[test]
fn directory_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let objects = dir.path().join("made/objects");
    check(&senesce_objects::LibraryObjects::directory(&objects).unwrap());
    let again = senesce_objects::LibraryObjects::directory(&objects).unwrap();
    assert_eq!(again.get_range("garden/2", 0..6).unwrap(), b"second");
    std::fs::write(dir.path().join("file"), b"").unwrap();
    senesce_objects::LibraryObjects::directory(&dir.path().join("file")).unwrap_err();
}

#[cfg(feature = "library")]
#[test]
fn missing_or_replaced_directory_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (here, away) = (dir.path().join("objects"), dir.path().join("away"));
    let store = senesce_objects::LibraryObjects::directory(&here).unwrap();
    store.put("garden/1", b"first").unwrap();
    let fail_with = |why: &str| {
        let all = [
            store.put("garden/2", b"second").unwrap_err(),
            store.get_range("garden/1", 0..5).unwrap_err(),
            store.delete("garden/1").unwrap_err(),
            store.list("garden").unwrap_err(),
        ];
        assert!(all.iter().all(|error| error.to_string().contains(why)), "{all:?}");
    };
    std::fs::rename(&here, &away).unwrap();
    fail_with("No such file or directory");
    std::fs::create_dir(&here).unwrap();
    fail_with("another directory is in its place");
    std::fs::remove_dir(&here).unwrap();
    std::fs::rename(&away, &here).unwrap();
    assert_eq!(store.list("garden").unwrap(), ["garden/1"]);
    assert_eq!(store.get_range("garden/1", 0..5).unwrap(), b"first");
}

#[test]
fn injected_failures_occur_and_calls_are_counted() {
    let store = FaultObjects::new(MemoryObjects::default());
    check(&store);
    let before = store.counts();
    assert_eq!((before.puts, before.gets, before.deletes, before.lists), (5, 5, 2, 3));
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
