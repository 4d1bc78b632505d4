//! A store that speaks the protocol of S3, behaving well and badly.
#![cfg(feature = "library")]

mod suite;

use std::time::Duration;

use senesce_objects::{LibraryObjects, ObjectErrorKind, ObjectResult, ObjectStore, Patience, S3Access, S3Place};
use senesce_testkit::{S3_BUCKET, S3_KEY_ID, S3Mood, S3Server};

/// Two requests more at most, a moment for each.
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

/// One that asks once more only.
fn open_impatient(server: &S3Server) -> LibraryObjects {
    LibraryObjects::s3(&place("p"), &access(server), Patience { retries: 1, ..SOON }).unwrap()
}

fn told<T>(done: ObjectResult<T>) -> String {
    done.map(drop).unwrap_err().to_string()
}

#[test]
fn it_does_what_every_store_does() {
    let server = S3Server::new();
    for (prefix, key) in [("", "garden/2"), ("of/two/words", "of/two/words/garden/2")] {
        let store = open(&server, prefix).unwrap();
        suite::check(&store);
        assert!(server.keys().contains(&key.to_owned()), "{:?}", server.keys());
    }
    // Lists have pages, and objects just below 4 MiB come as they went.
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
fn opening_asks_for_one_name_however_many_there_are() {
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
fn what_cannot_work_is_told_when_it_is_opened() {
    let mut server = S3Server::new();
    let no_bucket = S3Place { bucket: "other".to_owned(), ..place("p") };
    let said = told(LibraryObjects::s3(&no_bucket, &access(&server), SOON));
    assert!(said.contains("cannot open s3://other/p: there is no such bucket"), "{said}");
    let stranger = S3Access { key_id: "stranger".to_owned(), ..access(&server) };
    let said = told(LibraryObjects::s3(&place("p"), &stranger, SOON));
    assert!(said.contains("it does not let us in: InvalidAccessKeyId: The key you provided"), "{said}");
    server.stop();
    let said = told(open(&server, "p"));
    assert!(said.contains("Connection refused") && said.contains("after 2 retries"), "{said}");
}

#[test]
fn what_passes_is_waited_for() {
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
fn what_does_not_pass_fails_in_the_end_and_all_goes_on_behind_it() {
    let server = S3Server::new();
    let store = open_impatient(&server);
    let first = vec![1; 100_000];
    store.put("garden/1", &first).unwrap();
    for mood in [S3Mood::Locked, S3Mood::Busy(u32::MAX), S3Mood::Silent, S3Mood::Half, S3Mood::Deaf] {
        server.set_mood(mood);
        let before = server.requests().len();
        let said = told(store.get_range("garden/1", 0..100_000));
        assert!(said.contains("cannot get garden/1 in s3://bucket/p: "), "{mood:?}: {said}");
        let kind = store.get_range("garden/1", 0..5).unwrap_err().kind;
        let wanted = if mood == S3Mood::Locked { ObjectErrorKind::Other } else { ObjectErrorKind::Away };
        assert_eq!(kind, wanted, "{mood:?}");
        // It is the same object, so nobody can tell whether it was put.
        assert!(told(store.put("garden/1", &first)).contains("cannot put garden/1"), "{mood:?}");
        let asked = server.requests().len() - before;
        assert!(asked <= 6, "{mood:?}: {asked} requests");
        server.set_mood(S3Mood::Well);
        assert!(store.get_range("garden/1", 0..100_000).unwrap() == first, "{mood:?}");
        assert_eq!(store.list("garden").unwrap(), ["garden/1"], "{mood:?}");
    }
}

#[test]
fn an_answer_that_says_a_secret_again_is_not_told() {
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
        let said = format!("{error} {error:?}");
        assert!(said.contains("it answers 400 Bad Request: ExpiredToken: The provided token has expired."), "{said}");
        assert!(!said.contains("confidential"), "{said}");
        assert_eq!(error.kind, ObjectErrorKind::Other);
    }
}

#[test]
fn others_do_not_wait_for_whoever_waits() {
    let server = S3Server::new();
    let store = open_impatient(&server);
    store.put("garden/1", b"first").unwrap();
    server.set_mood(S3Mood::Silent);
    std::thread::scope(|scope| {
        let waits: Vec<_> = (0..4).map(|_| scope.spawn(|| told(store.get_range("garden/1", 0..5)))).collect();
        for wait in waits {
            let said = wait.join().unwrap();
            assert!(said.contains("timeout"), "{said}");
        }
    });
    assert!(server.peak() > 1, "one after the other");
}
