//! Unusable repositories are refused with the problem and a hint.

use std::fs;

use senesce_gitsource::{Error, GitContents, History, HistoryOptions};
use senesce_oplog::ContentSource;
use tempfile::TempDir;

use crate::fixture::{awkward, git_output, git_text, spool, try_spool};

fn open(path: &std::path::Path) -> Error {
    match try_spool(path).and_then(|repository| History::open(&repository, HistoryOptions::default())) {
        Ok(_) => panic!("{path:?} was opened"),
        Err(error) => error,
    }
}

#[test]
fn unusable_histories_are_refused_with_a_hint() {
    let dir = TempDir::new().unwrap();
    let missing = open(&dir.path().join("nowhere"));
    assert!(matches!(missing, Error::Missing { .. }) && missing.to_string().contains("hint:"), "{missing}");
    assert!(matches!(open(dir.path()), Error::NotARepository { .. }));

    let empty = dir.path().join("empty");
    git_output(dir.path(), &["init", "-q", "empty"]);
    assert!(matches!(open(&empty), Error::Empty { .. }));

    let source = dir.path().join("source");
    awkward(&source);
    let url = format!("file://{}", source.display());
    git_output(dir.path(), &["clone", "-q", "--bare", "--depth=2", &url, "shallow"]);
    let shallow = open(&dir.path().join("shallow"));
    assert!(matches!(shallow, Error::Shallow { .. }) && shallow.to_string().contains("--unshallow"), "{shallow}");

    git_output(dir.path(), &["init", "-q", "--object-format=sha256", "wide"]);
    let wide = open(&dir.path().join("wide"));
    assert!(matches!(&wide, Error::ObjectFormat { format, .. } if format == "sha256"), "{wide}");

    let options = HistoryOptions { tip: Some("no-such-branch".into()), ..Default::default() };
    assert!(matches!(History::open(&spool(&source), options), Err(Error::NoSuchTip { .. })));
}

#[test]
fn corrupt_object_is_named() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    awkward(&source);
    let broken = git_text(&source, &["rev-parse", "main~1"]);
    // fast-import made a pack, or left the objects loose. Makes all loose, then damages one.
    let packs: Vec<_> = fs::read_dir(source.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for pack in packs {
        let moved = dir.path().join(pack.file_name().unwrap());
        fs::rename(&pack, &moved).unwrap();
        if moved.extension().is_some_and(|extension| extension == "pack") {
            let mut unpack = crate::fixture::git(&source);
            let status = unpack.args(["unpack-objects", "-q"]).stdin(fs::File::open(&moved).unwrap()).status().unwrap();
            assert!(status.success());
        }
    }
    let object = source.join("objects").join(&broken[..2]).join(&broken[2..]);
    fs::remove_file(&object).unwrap();
    fs::write(&object, b"not an object").unwrap();
    let error = open(&source);
    assert!(matches!(&error, Error::Object { oid, .. } if oid.to_string() == broken), "{error}");
    assert!(error.to_string().contains(&broken), "{error}");
}

#[test]
fn invalid_keys_are_refused() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    awkward(&source);
    let history = History::open(&spool(&source), HistoryOptions::default()).unwrap();
    let contents = GitContents::new(&history, &dir.path().join("spool")).unwrap();
    let absent = format!("blob {}", "ab".repeat(20));
    for key in ["", "blob", absent.as_str(), "index 999", "pack all 999", "pack fetch 999"] {
        let error = contents.payload(key).unwrap_err();
        assert_eq!(error.key, key);
    }
}
