//! Bundles of equal contents have equal bytes. A reader gets the contents that were written.

use std::{fs, io, path::Path, process::Command};

use senesce_bundle::{Content, Contents, Error, Licence, Limits, MANIFEST_FILE, Prepared, RESEARCH_FILE, Research};
use serde_json::Value;

use super::common::{bundle, contents, prepare, read_bytes};

#[test]
fn a_written_bundle_reads_back_with_all_files() {
    let bytes = bundle(contents());
    assert_eq!(bundle(contents()), bytes);
    let read = read_bytes(&bytes, Limits::default()).unwrap();
    assert_eq!(read.file("plan.toml"), Some(&b"name = \"small\"\n"[..]));
    assert_eq!(read.file("figures/empty.csv"), Some(&b""[..]));
    let paths: Vec<&str> = read.manifest.files.iter().map(|file| file.path.as_str()).collect();
    let expected = ["figures/a.svg", "figures/empty.csv", "plan.toml", "results/cells.parquet", RESEARCH_FILE];
    assert_eq!(paths, expected);
    assert_eq!(read.manifest.files[0].bytes, 600);
    assert!(read.file(MANIFEST_FILE).is_some());
}

#[test]
fn contents_in_files_are_those_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let on_disk = |mut contents: Contents| {
        for (number, content) in contents.files.values_mut().enumerate() {
            let Content::Bytes(bytes) = &*content else { continue };
            let path = dir.path().join(number.to_string());
            fs::write(&path, bytes).unwrap();
            *content = Content::File(path);
        }
        contents
    };
    assert_eq!(bundle(on_disk(contents())), bundle(contents()));
    let mut lacking = on_disk(contents());
    lacking.files.insert("gone".to_owned(), Content::File(dir.path().join("gone")));
    let error = prepare(lacking, Limits::default()).unwrap_err();
    assert!(matches!(error, Error::Io { operation: "read", .. }), "{error}");
}

#[test]
fn other_programs_unpack_a_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.senesce-bundle");
    fs::write(&path, bundle(contents())).unwrap();
    let done = Command::new("tar").arg("--zstd").arg("-xf").arg(&path).current_dir(dir.path()).output();
    let done = done.expect("tar is installed");
    if !done.status.success() && String::from_utf8_lossy(&done.stderr).contains("zstd: Cannot exec") {
        eprintln!("SKIPPED: zstd is not installed");
        return;
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_to_string(dir.path().join("bundle/plan.toml")).unwrap(), "name = \"small\"\n");
}

#[test]
fn research_metadata_describe_every_file() {
    let licensed = Research { licence: Licence::Spdx("CC-BY-4.0".to_owned()), ..contents().research };
    let read = read_bytes(&bundle(Contents { research: licensed, ..contents() }), Limits::default()).unwrap();
    let document: Value = serde_json::from_slice(read.file(RESEARCH_FILE).unwrap()).unwrap();
    let graph = document["@graph"].as_array().unwrap();
    let find = |id: &str| graph.iter().find(|entity| entity["@id"] == id).unwrap_or_else(|| panic!("{id}"));
    assert_eq!(find(RESEARCH_FILE)["about"]["@id"], "./");
    let root = find("./");
    assert_eq!((&root["@type"], &root["datePublished"]), (&"Dataset".into(), &"2023-11-14".into()));
    assert_eq!(root["license"]["@id"], "https://spdx.org/licenses/CC-BY-4.0");
    for part in root["hasPart"].as_array().unwrap() {
        let entity = find(part["@id"].as_str().unwrap());
        assert!(entity["@type"] == "File" && entity["encodingFormat"].is_string(), "{entity}");
    }
    let parts: Vec<&Value> = root["hasPart"].as_array().unwrap().iter().map(|part| &part["@id"]).collect();
    assert_eq!(parts, ["figures/a.svg", "figures/empty.csv", "plan.toml", "results/cells.parquet", MANIFEST_FILE]);
    let svg = find("figures/a.svg");
    assert_eq!((&svg["contentSize"], svg["sha256"].as_str().map(str::len)), (&"600".into(), Some(64)));
    let action = find(action_of(root));
    assert_eq!((&action["@type"], &action["startTime"]), (&"CreateAction".into(), &"2023-11-14T22:13:20Z".into()));
    let software = find(action["instrument"]["@id"].as_str().unwrap());
    assert_eq!((&software["@type"], &software["version"]), (&"SoftwareApplication".into(), &"0.1.0".into()));
    assert_eq!(find(software["identifier"]["@id"].as_str().unwrap())["value"], "1a2b");
    // Every reference has its entity, apart from those to the web.
    let mut open = vec![&document["@graph"]];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(keys) if keys.len() == 1 && keys.contains_key("@id") => {
                let id = keys["@id"].as_str().unwrap();
                assert!(id.starts_with("https://w3id.org/") || find(id).is_object());
            }
            Value::Object(keys) => open.extend(keys.values()),
            _ => {}
        }
    }
}

fn action_of(root: &Value) -> &str {
    root["mentions"]["@id"].as_str().unwrap()
}

#[test]
fn names_that_no_bundle_has_are_refused() {
    for name in ["../x", "/x", "a b", ""] {
        let mut contents = contents();
        contents.files.insert(name.to_owned(), Content::Bytes(Vec::new()));
        let error = prepare(contents, Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Content { .. }), "{error}");
    }
}

#[test]
fn an_interruption_stops_the_writer() {
    let stop = || Err(io::Error::other("stop"));
    assert!(Prepared::new(contents(), Limits::default(), |_| true, &stop).is_err());
    let prepared = prepare(contents(), Limits::default()).unwrap();
    assert!(prepared.write(io::sink(), Path::new("x"), &stop).is_err());
}

/// The limits hold for the metadata, too.
#[test]
fn a_bundle_is_written_if_readers_accept_it() {
    let all = prepare(contents(), Limits::default()).unwrap();
    let bytes = all.write(Vec::new(), Path::new("x"), &|| Ok(())).unwrap();
    let exact = Limits { files: all.files(), bytes: all.bytes().0, kept_bytes: all.bytes().0 };
    for (limits, fault) in [
        (exact, None),
        (Limits { files: exact.files - 1, ..exact }, Some("it has 6 files, and a bundle has up to 5")),
        (Limits { bytes: exact.bytes - 1, ..exact }, Some("it has ")),
        (Limits { kept_bytes: exact.kept_bytes - 1, ..exact }, Some("its tables and input files have ")),
    ] {
        assert_eq!(read_bytes(&bytes, limits).is_ok(), fault.is_none(), "{limits:?}");
        let refused = prepare(contents(), limits).err().map(|error| error.to_string());
        let expected = fault.map(|fault| format!("cannot bundle the run: {fault}"));
        let is_expected = refused.as_ref().zip(expected.as_ref()).is_none_or(|(is, start)| is.starts_with(start));
        assert!(refused.is_some() == expected.is_some() && is_expected, "{refused:?}");
    }
    // Readers keep the metadata in memory even if they keep no other file.
    let few = Limits { kept_bytes: 100, ..exact };
    assert!(Prepared::new(contents(), few, |_| false, &|| Ok(())).is_err());
}
