//! Tests against an S3 server that behaves well and badly.
#![cfg(feature = "library")]

mod suite;

use std::time::Duration;

use senesce_objects::{LibraryObjects, ObjectErrorKind, ObjectResult, ObjectStore, Patience, S3Access, S3Place};
use senesce_testkit::{S3_BUCKET, S3_KEY_ID, S3Mood, S3Server};

/// At most two repetitions, with short timeouts.
const SOON: Patience = Patience {
    connect: Duration::from_secs(1),
    request: Duration::from_secs(1),
    put: Duration::from_secs(1),
    retries: 2,
    in_all: Duration::from_secs(20),
};

fn place(prefix: &str) -> S3Place {
    S3Place { bucket: S3_BUCKET.to_owned(), prefix: prefix.to_owned() }
}

fn access(server: &S3Server) -> S3Access {
    S3Access {
        endpoint: Some(server.endpoint()),
        region: "us-east-1".to_owned(),
        key_id: S3_KEY_ID.to_owned(),
        secret: "secret".to_owned(),
        token: None,
    }
}

fn open(server: &S3Server, prefix: &str) -> ObjectResult<LibraryObjects> {
    LibraryObjects::s3(&place(prefix), &access(server), SOON)
}

/// A store that repeats a request only once.
fn open_impatient(server: &S3Server) -> LibraryObjects {
    LibraryObjects::s3(&place("p"), &access(server), Patience { retries: 1, ..SOON }).unwrap()
}

fn failure<T>(done: ObjectResult<T>) -> String {
    done.map(drop).unwrap_err().to_string()
}

#[test]
fn store_passes_the_suite() {
    let server = S3Server::new();
    for (prefix, key) in [("", "garden/2"), ("of/two/words", "of/two/words/garden/2")] {
        let store = open(&server, prefix).unwrap();
        suite::check(&store);
        assert!(server.keys().contains(&key.to_owned()), "{:?}", server.keys());
    }
    // Lists have several pages, and objects just below 4 MiB return unchanged.
    let store = open(&server, "many").unwrap();
    let keys: Vec<String> = (0..7).map(|number| format!("garden/{number:010}")).collect();
    keys.iter().for_each(|key| store.put(key, key.as_bytes()).unwrap());
    assert_eq!(store.list("garden").unwrap(), keys);
    let large: Vec<u8> = (0..(4 << 20) - 1000).map(|at: u32| (at % 251) as u8).collect();
    store.put("garden/large", &large).unwrap();
    assert!(store.get_range("garden/large", 0..large.len() as u64).unwrap() == large);
}

#[test]
fn a_range_is_one_request() {
    let server = S3Server::new();
    let store = open(&server, "p").unwrap();
    store.put("garden/1", b"first").unwrap();
    let before = server.requests().len();
    store.get_range("garden/1", 1..3).unwrap();
    store.get_range("garden/1", 9..10).unwrap();
    assert_eq!(server.requests()[before..], ["GET /bucket/p/garden/1"; 2]);
}

#[test]
fn opening_lists_only_one_name() {
    let server = S3Server::new();
    for prefix in ["", "of/two/words"] {
        let store = open(&server, prefix).unwrap();
        (0..7).for_each(|number| store.put(&format!("{number}"), b"object").unwrap());
        let before = (server.requests().len(), server.told_keys());
        open(&server, prefix).unwrap();
        assert_eq!(server.requests()[before.0..], ["GET /bucket"], "{prefix:?}");
        assert_eq!(server.told_keys() - before.1, 1, "{prefix:?}");
    }
}

#[test]
fn errors_of_access_appear_at_opening() {
    let mut server = S3Server::new();
    let no_bucket = S3Place { bucket: "other".to_owned(), ..place("p") };
    let error = failure(LibraryObjects::s3(&no_bucket, &access(&server), SOON));
    assert!(error.contains("cannot open s3://other/p: there is no such bucket"), "{error}");
    let stranger = S3Access { key_id: "stranger".to_owned(), ..access(&server) };
    let error = failure(LibraryObjects::s3(&place("p"), &stranger, SOON));
    assert!(error.contains("it does not let us in: InvalidAccessKeyId: The key you provided"), "{error}");
    server.stop();
    let error = failure(open(&server, "p"));
    assert!(error.contains("Connection refused") && error.contains("after 2 retries"), "{error}");
}

#[test]
fn transient_failures_are_retried() {
    let server = S3Server::new();
    let store = open(&server, "p").unwrap();
    for mood in [S3Mood::Busy(1), S3Mood::Busy(2)] {
        server.set_mood(mood);
        store.put("garden/1", b"first").unwrap();
        server.set_mood(mood);
        assert_eq!(store.get_range("garden/1", 0..5).unwrap(), b"first");
        server.set_mood(mood);
        assert_eq!(store.list("garden").unwrap(), ["garden/1"]);
        server.set_mood(mood);
        store.delete("garden/1").unwrap();
    }
}

#[test]
fn store_works_again_after_permanent_failures() {
    let server = S3Server::new();
    let store = open_impatient(&server);
    let first = vec![1; 100_000];
    store.put("garden/1", &first).unwrap();
    for mood in [S3Mood::Locked, S3Mood::Busy(u32::MAX), S3Mood::Silent, S3Mood::Half, S3Mood::Deaf] {
        server.set_mood(mood);
        let before = server.requests().len();
        let error = failure(store.get_range("garden/1", 0..100_000));
        assert!(error.contains("cannot get garden/1 in s3://bucket/p: "), "{mood:?}: {error}");
        let kind = store.get_range("garden/1", 0..5).unwrap_err().kind;
        let wanted = if mood == S3Mood::Locked { ObjectErrorKind::Other } else { ObjectErrorKind::Away };
        assert_eq!(kind, wanted, "{mood:?}");
        // Repeating the put is harmless because it puts the same object.
        assert!(failure(store.put("garden/1", &first)).contains("cannot put garden/1"), "{mood:?}");
        let asked = server.requests().len() - before;
        assert!(asked <= 6, "{mood:?}: {asked} requests");
        server.set_mood(S3Mood::Well);
        assert!(store.get_range("garden/1", 0..100_000).unwrap() == first, "{mood:?}");
        assert_eq!(store.list("garden").unwrap(), ["garden/1"], "{mood:?}");
    }
}

#[test]
fn secret_in_an_answer_is_not_reported() {
    let server = S3Server::new();
    let lent = S3Access { token: Some("confidential".to_owned()), ..access(&server) };
    let store = LibraryObjects::s3(&place("p"), &lent, SOON).unwrap();
    server.set_mood(S3Mood::Expired);
    let errors = [
        store.put("garden/1", b"first").unwrap_err(),
        store.get_range("garden/1", 0..5).unwrap_err(),
        store.delete("garden/1").unwrap_err(),
        store.list("garden").unwrap_err(),
    ];
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(text.contains("it answers 400 Bad Request: ExpiredToken: The provided token has expired."), "{text}");
        assert!(!text.contains("confidential"), "{text}");
        assert_eq!(error.kind, ObjectErrorKind::Other);
    }
}

#[test]
fn waiting_requests_do_not_block_each_other() {
    let server = S3Server::new();
    let store = open_impatient(&server);
    store.put("garden/1", b"first").unwrap();
    server.set_mood(S3Mood::Silent);
    std::thread::scope(|scope| {
        let waits: Vec<_> = (0..4).map(|_| scope.spawn(|| failure(store.get_range("garden/1", 0..5)))).collect();
        for wait in waits {
            let error = wait.join().unwrap();
            assert!(error.contains("timeout"), "{error}");
        }
    });
    assert!(server.peak() > 1, "one after the other");
}
