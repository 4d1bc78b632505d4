//! A repository with trees deeper than any path is refused with an error, without a stack overflow.

use std::{fs, io::Write, path::Path, sync::Arc};

use flate2::{Compression, write::ZlibEncoder};
use senesce_gitsource::{GitContents, History, HistoryOptions, ObjectCheck};
use senesce_workload::git::{Oid, PlannerOptions, PullPlanner, Repository, compute_changes};
use sha1::{Digest, Sha1};
use tempfile::TempDir;

use crate::fixture::{git_output, spool};

const DEPTH: usize = 100_000;

/// Numbers of the pack format.
const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;

/// Objects for one pack.
#[derive(Default)]
struct Pack {
    entries: Vec<u8>,
    count: u32,
}

impl Pack {
    /// Adds an object and returns its id.
    fn add(&mut self, kind: u8, data: &[u8]) -> Oid {
        let mut size = data.len();
        let mut byte = kind << 4 | (size & 15) as u8;
        size >>= 4;
        while size > 0 {
            self.entries.push(byte | 0x80);
            byte = (size & 0x7f) as u8;
            size >>= 7;
        }
        self.entries.push(byte);
        let mut zlib = ZlibEncoder::new(&mut self.entries, Compression::fast());
        zlib.write_all(data).unwrap();
        zlib.finish().unwrap();
        self.count += 1;
        let word = ["", "commit", "tree", "blob"][usize::from(kind)];
        let header = format!("{word} {}\0", data.len());
        Oid(Sha1::new().chain_update(header).chain_update(data).finalize().into())
    }

    fn tree(&mut self, mode: &str, name: &str, oid: Oid) -> Oid {
        self.add(TREE, &[format!("{mode} {name}\0").as_bytes(), &oid.0].concat())
    }

    fn commit(&mut self, tree: Oid, parent: Option<Oid>) -> Oid {
        let parent = parent.map_or(String::new(), |parent| format!("parent {parent}\n"));
        let person = "A <a@b> 1000000 +0000";
        self.add(COMMIT, format!("tree {tree}\n{parent}author {person}\ncommitter {person}\n\nx\n").as_bytes())
    }

    /// Makes a bare repository at `dir` whose `main` is `tip`.
    fn import(self, dir: &Path, tip: Oid) {
        fs::create_dir_all(dir).unwrap();
        git_output(dir, &["init", "-q", "--bare", "-b", "main"]);
        let mut bytes = [&b"PACK\0\0\0\x02"[..], &self.count.to_be_bytes(), &self.entries].concat();
        let hash = Sha1::digest(&bytes);
        bytes.extend_from_slice(&hash);
        let path = dir.join("objects/pack/pack-1.pack");
        fs::write(&path, bytes).unwrap();
        git_output(dir, &["index-pack", path.to_str().unwrap()]);
        fs::write(dir.join("refs/heads/main"), format!("{tip}\n")).unwrap();
    }
}

#[test]
fn trees_deeper_than_a_path_are_refused() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    let mut pack = Pack::default();
    let blob = pack.add(BLOB, b"x\n");
    let flat = pack.tree("100644", "f", blob);
    let mut deep = flat;
    for _ in 0..DEPTH {
        deep = pack.tree("40000", "d", deep);
    }
    let first = pack.commit(flat, None);
    let second = pack.commit(deep, Some(first));
    pack.import(&source, second);

    let history = History::open(&spool(&source), HistoryOptions::default()).unwrap();
    let check = ObjectCheck::new(&history).check_commit(1).unwrap_err();
    let size = history.work_tree_bytes(1).unwrap_err();
    let too_deep = "deeper than a path can be long";
    assert!(check.to_string().contains(too_deep) && size.to_string().contains(too_deep), "{check}\n{size}");
    for (old, new) in [(Some(flat), Some(deep)), (Some(deep), None)] {
        let error = compute_changes(&history, old, new).unwrap_err();
        assert!(error.to_string().contains("path is longer than 4096 bytes"), "{error}");
    }
    assert_eq!(history.tree(deep).unwrap().len(), 1);
    for start in [0, 1] {
        let contents = Arc::new(GitContents::new(&history, &dir.path().join("packs")).unwrap());
        let options = PlannerOptions { start, ..PlannerOptions::default() };
        let mut pulls = PullPlanner::new(Box::new(history.clone()), contents, history.commits(), options);
        assert!(pulls.any(|pull| pull.is_err()), "from commit {start}");
    }
}
