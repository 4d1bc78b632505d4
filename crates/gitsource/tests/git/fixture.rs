//! Repositories with all difficult cases of a replay, made by `git fast-import`.

use std::{
    io::Write,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Stdio},
};

use senesce_gitsource::{Error, SpoolRepository, TrustedOwners};

/// A `git` without the configuration of the machine.
pub fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    command
}

/// The owners that a test trusts: root and the user who runs it.
pub fn ours() -> TrustedOwners {
    TrustedOwners::new(std::fs::metadata("/proc/self").unwrap().uid(), None)
}

/// Copies a repository to a new name beside it.
pub fn try_spool(source: &Path) -> Result<SpoolRepository, Error> {
    let mut dest = source.as_os_str().to_owned();
    dest.push(".spool");
    // Removes the copy of an earlier call, if there is one.
    std::fs::remove_dir_all(&dest).ok();
    SpoolRepository::copy(source, Path::new(&dest), &ours(), &|| true)
}

/// Copies a repository that can be read.
pub fn spool(source: &Path) -> SpoolRepository {
    try_spool(source).unwrap()
}

/// Runs git and returns its output. The test fails if git fails.
pub fn git_output(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = git(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs git and returns its output as trimmed text.
pub fn git_text(dir: &Path, args: &[&str]) -> String {
    String::from_utf8(git_output(dir, args)).unwrap().trim().to_owned()
}

/// Writes a stream for `git fast-import`.
#[derive(Default)]
pub struct Stream {
    bytes: Vec<u8>,
    commits: u32,
}

/// The change of a path in a commit.
pub enum Edit<'a> {
    File(&'a [u8], &'a [u8]),
    Exec(&'a [u8], &'a [u8]),
    Link(&'a [u8], &'a [u8]),
    Sub(&'a [u8], u8),
    Delete(&'a [u8]),
    Rename(&'a [u8], &'a [u8]),
    DeleteAll,
}

impl Stream {
    /// Adds a commit on `branch` with `parents` by mark, to which the edits apply. Returns its
    /// mark.
    pub fn commit(&mut self, parents: &[u32], edits: &[Edit]) -> u32 {
        self.commits += 1;
        let mark = self.commits;
        // Times go backwards and forwards, so that the order cannot depend on them.
        let time = 1_000_000 + u64::from(mark) * 7919 % 1000;
        let mut out = Vec::new();
        // The commit has a branch of its own, so that no parent is implied.
        writeln!(out, "commit refs/heads/c{mark}\nmark :{mark}\ncommitter A <a@b> {time} +0100\ndata 2").unwrap();
        writeln!(out, "{}\n", mark % 10).unwrap();
        for (at, parent) in parents.iter().enumerate() {
            writeln!(out, "{} :{parent}", if at == 0 { "from" } else { "merge" }).unwrap();
        }
        for edit in edits {
            match edit {
                Edit::File(path, data) => write_file(&mut out, "100644", path, data),
                Edit::Exec(path, data) => write_file(&mut out, "100755", path, data),
                Edit::Link(path, target) => write_file(&mut out, "120000", path, target),
                Edit::Sub(path, byte) => {
                    write!(out, "M 160000 {} ", format!("{byte:02x}").repeat(20)).unwrap();
                    write_path(&mut out, path);
                    out.push(b'\n');
                }
                Edit::Delete(path) => {
                    out.extend(b"D ");
                    write_path(&mut out, path);
                    out.push(b'\n');
                }
                Edit::Rename(from, to) => {
                    out.extend(b"R ");
                    write_path(&mut out, from);
                    out.push(b' ');
                    write_path(&mut out, to);
                    out.push(b'\n');
                }
                Edit::DeleteAll => out.extend(b"deleteall\n"),
            }
        }
        out.push(b'\n');
        self.bytes.extend(out);
        mark
    }

    /// Makes a bare repository at `dir` whose branch `main` is at `tip`.
    pub fn import(&self, dir: &Path, tip: u32) {
        std::fs::create_dir_all(dir).unwrap();
        git_output(dir, &["init", "-q", "--bare", "-b", "main"]);
        let mut child = git(dir).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&self.bytes).unwrap();
        assert!(child.wait().unwrap().success());
        git_output(dir, &["update-ref", "refs/heads/main", &format!("refs/heads/c{tip}")]);
    }
}

fn write_file(out: &mut Vec<u8>, mode: &str, path: &[u8], data: &[u8]) {
    write!(out, "M {mode} inline ").unwrap();
    write_path(out, path);
    writeln!(out, "\ndata {}", data.len()).unwrap();
    out.extend(data);
    out.push(b'\n');
}

fn write_path(out: &mut Vec<u8>, path: &[u8]) {
    out.push(b'"');
    for &byte in path {
        write!(out, "\\{byte:03o}").unwrap();
    }
    out.push(b'"');
}

/// Makes the difficult history, with its tip at `main`.
pub fn awkward(dir: &Path) {
    use Edit::*;
    let mut s = Stream::default();
    let attributes = b"* text=auto eol=crlf ident\n*.bin filter=none working-tree-encoding=UTF-16\n";
    let c1 = s.commit(
        &[],
        &[
            File(b".gitattributes", attributes),
            File(b"a/b/f", b"one\n"),
            File(b"a/g", b"two\n"),
            File(b"a-b", b"sorts between\n"),
            File(b"a.x/y", b"and here\n"),
            File(b"top", b"top as a file\n"),
            Exec(b"run", b"#!/bin/sh\n"),
            Link(b"link", b"../outside \xfe"),
            File(b"empty", b""),
            File(b"crlf.txt", b"a\r\nb\n$Id$\r\n"),
            File(b"wide.bin", b"plain"),
            File(b"\xff\xfe name\n\".c", b"not UTF-8\n"),
            File(b"deep/x/y/z/w", b"deep\n"),
            Sub(b"sub", 0x11),
            File(b"gone/1/2/3", b"x"),
        ],
    );
    let c2 = s.commit(
        &[c1],
        &[
            Delete(b"top"),
            File(b"top/in/side", b"top as a directory\n"),
            Delete(b"a/b/f"),
            File(b"link", b"a link no more\n"),
            Delete(b"gone/1/2/3"),
            Exec(b"a-b", b"sorts between\n"),
        ],
    );
    let c3 = s.commit(
        &[c2],
        &[
            Delete(b"top/in/side"),
            File(b"top", b"a file again\n"),
            Sub(b"sub", 0x22),
            File(b"run", b"#!/bin/sh\n"),
            Link(b"empty", b"now-a-link"),
        ],
    );
    let c4 = s.commit(&[c3], &[]);
    let root2 = s.commit(&[], &[File(b"sub", b"a file where a submodule was\n"), File(b"other/1", b"1")]);
    let m1 = s.commit(
        &[c4, root2],
        &[
            File(b"sub/module/file", b"a directory where a submodule was\n"),
            File(b"other/1", b"1"),
            Delete(b"deep/x/y/z/w"),
            Link(b"deep", b"a"),
        ],
    );
    let side1 = s.commit(&[c2], &[File(b"side1", b"s1\n"), Sub(b"a/b", 0x33)]);
    let side2 = s.commit(&[c3], &[Rename(b"a/g", b"a/h/g"), File(b"x\\y:z", b"odd\n")]);
    let root3 = s.commit(&[], &[File(b"third", b"root\n")]);
    let octopus = s.commit(&[m1, side1, side2, root3], &[File(b"third", b"root\n"), Sub(b"a/b", 0x33)]);
    let revert = s.commit(&[octopus], &[File(b"top", b"top as a file\n"), Delete(b"a/b"), File(b"a/b/f", b"one\n")]);
    let names: Vec<String> = (0..180).map(|n| format!("many/{}/{n}", n % 9)).collect();
    let data: Vec<String> = (0..180).map(|n| format!("{n} ").repeat(n * 7)).collect();
    let edits = |range: std::ops::Range<usize>| -> Vec<Edit<'_>> {
        range.map(|n| File(names[n].as_bytes(), data[n].as_bytes())).collect()
    };
    let many = s.commit(&[revert], &edits(0..130)); // a pack
    let some = s.commit(&[many], &edits(130..180)); // loose
    let fewer: Vec<Edit> = (3..180).map(|n| Delete(names[n].as_bytes())).collect();
    let fewer = s.commit(&[some], &fewer);
    let moved = s.commit(&[fewer], &[Rename(b"many", b"deeper/than/before"), Delete(b"deep")]);
    let nothing = s.commit(&[moved], &[DeleteAll]);
    let again =
        s.commit(&[nothing, side1], &[File(b"a/b/f", b"one\n"), Exec(b"a/run", b"x"), File(b".gitmodules", b"")]);
    let last = s.commit(&[again], &[File(b"a/b/f", b"two\n")]);
    s.import(dir, last);
}
