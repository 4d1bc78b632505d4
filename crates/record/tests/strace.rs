//! Logs of strace's traces: effects of calls, and malformed traces.

use std::{fs, path::Path, process::Command};

use senesce_core::Seed;
use senesce_exec::{
    CheckContents, ModelTarget, apply_done,
    tree::{Entry, Tree, collect_tree},
};
use senesce_oplog::{LogReader, Op};
use senesce_record::{Error, ImportOptions, Imported, import_strace};

fn options(dir: &Path, root: &str, stop: fn() -> bool) -> ImportOptions {
    let (trace, log) = (dir.join("trace"), Some(dir.join("log")));
    ImportOptions { trace, log, dir: root.into(), anonymize: false, seed: Seed(1), stop }
}

fn import(dir: &Path, trace: &str, root: &str) -> Result<(Imported, Vec<Op>, Tree), Error> {
    fs::write(dir.join("trace"), trace).unwrap();
    let log = dir.join("log");
    let options = options(dir, root, || false);
    let imported = import_strace(&options)?;
    let mut model = ModelTarget::default();
    let mut ops = Vec::new();
    for done in LogReader::open(&log).unwrap() {
        let done = done.unwrap();
        apply_done(&mut model, &done, &(), CheckContents::Yes).unwrap();
        ops.extend(done.step.ops.to_vec());
    }
    Ok((imported, ops, model.tree()))
}

fn shape(tree: &Tree) -> Vec<String> {
    let line = |entry: &Entry| match entry {
        Entry::Directory { mode } => format!("dir {mode:o}"),
        Entry::File { mode, size_bytes, .. } => format!("file {mode:o} {size_bytes}"),
        Entry::Symlink { target } => format!("link {}", target.escape_ascii()),
        Entry::Other { .. } => "other".to_owned(),
    };
    tree.entries.iter().map(|(path, entry)| format!("{path} {}", line(entry))).collect()
}

#[test]
fn import_follows_forks_offsets_and_renames() {
    let trace = r#"
100 execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0
100 mkdir("d", 0777)                  = 0
100 chdir("d")                        = 0
100 openat(AT_FDCWD, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3
100 vfork( <unfinished ...>
101 write(3, "12345"..., 5)           = 5
101 close(3)                          = 0
101 openat(AT_FDCWD, "missing", O_RDONLY) = -1 ENOENT (No such file or directory)
100 <... vfork resumed>)              = 101
100 dup2(3, 1)                        = 1
100 write(1, "a, b) = \"c", 10)       = 10
100 lseek(1, 2, SEEK_SET)             = 2
100 write(3, "appended all the same", 21) = 21
100 openat(AT_FDCWD, "x", O_RDWR|O_CREAT|O_TRUNC, 0600) = 4
100 pwrite64(4, "zz", 2, 4096)        = 2
100 write(4, "ab", 2 <unfinished ...>
101 +++ exited with 0 +++
100 <... write resumed>)              = 2
100 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
100 unlink("x")                       = 0
100 write(4, "gone", 4)               = 4
100 chdir("..")                       = 0
100 rename("d", "e")                  = 0
100 write(3, "!", 1)                  = 1
100 symlink("e/log", "s")             = 0
100 link("e/log", "twin")             = 0
100 exit_group(0)                     = ?
"#;
    let dir = tempfile::tempdir().unwrap();
    let (imported, ops, tree) = import(dir.path(), trace, "/work").unwrap();
    // 5 + 10 + 21 + 1 bytes, all at the end although the offset was moved. The other file was
    // removed before its last write.
    let wanted = ["e dir 755", "e/log file 644 37", "s link e/log", "twin file 644 37"];
    assert_eq!(shape(&tree), wanted);
    assert_eq!((imported.assumed, imported.unnamed_writes, imported.maps), (0, 1, 0));
    let at = |op: &Op| if let Op::Write { path, offset, .. } = op { Some((path.to_string(), *offset)) } else { None };
    let writes: Vec<_> = ops.iter().filter_map(at).collect();
    let write = |path: &str, offset| (path.to_owned(), offset);
    let wanted = [
        write("d/log", 0),
        write("d/log", 5),
        write("d/log", 15),
        write("d/x", 4096),
        write("d/x", 0),
        write("e/log", 36),
    ];
    assert_eq!(writes, wanted);
}

#[test]
fn earlier_files_are_created_and_outside_files_omitted() {
    let trace = r#"
[pid 7] 1000.5 openat(AT_FDCWD</work/deep/er>, "old", O_WRONLY) = 5</work/deep/er/old>
[pid 7] 1001.0 pwrite64(5</work/deep/er/old>, "x", 1, 9) = 1
[pid 7] 1001.5 openat(AT_FDCWD</work/deep/er>, "/etc/elsewhere", O_WRONLY|O_CREAT, 0644) = 6</etc/elsewhere>
[pid 7] 1001.6 write(6</etc/elsewhere>, "x", 1) = 1
[pid 7] 1001.7 mmap(NULL, 10, PROT_READ|PROT_WRITE, MAP_SHARED, 5</work/deep/er/old>, 0) = 0x7f00
[pid 7] 1002.0 rename("/work/thing", "/work/deep/thing") = 0
[pid 7] 1002.0 unlinkat(AT_FDCWD</work/deep/er>, "../../old-dir", AT_REMOVEDIR) = 0
"#;
    let dir = tempfile::tempdir().unwrap();
    let (imported, _, tree) = import(dir.path(), trace, "/work").unwrap();
    let wanted = ["deep dir 755", "deep/er dir 755", "deep/er/old file 644 10", "deep/thing file 644 0"];
    assert_eq!(shape(&tree), wanted);
    assert_eq!((imported.assumed, imported.maps), (5, 1));
    let began: Vec<f64> = LogReader::open(&dir.path().join("log"))
        .unwrap()
        .map(|done| done.unwrap().began.unwrap().0 as f64 / 1e9)
        .collect();
    assert!(began.is_sorted());
    assert_eq!((began[0], *began.last().unwrap()), (0.0, 1.5));
}

#[test]
fn malformed_line_is_reported_and_leaves_no_log() {
    let dir = tempfile::tempdir().unwrap();
    for (trace, line) in [
        ("1 mkdir(\"d\", 0777) = 0\n1 mkdir(\"e\n", 2),
        ("cc -c -o a.o a.c\n", 1),
        ("1 mkdir(\"d\", 0777) = 0\n\n1 <... write resumed>) = 3\n", 3),
        ("1 mkdir(\"d\", 0777) = 0\n1 \u{0}\u{1}\n", 2),
    ] {
        let error = import(dir.path(), trace, "/").unwrap_err();
        assert!(matches!(error, Error::Trace { line: found, .. } if found == line), "{trace:?}: {error}");
        assert!(error.to_string().starts_with(&format!("line {line} of the trace is malformed")), "{error}");
        assert!(!dir.path().join("log").exists());
    }
}

#[test]
fn imported_script_gives_its_own_tree() {
    let found = Command::new("strace").arg("-V").output().ok();
    if senesce_testkit::found_or_skip(found, "strace").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = "mkdir d; cd d; echo hello > a; echo more >> a; cp a b; mv b c; ln c l; ln -s c s; chmod 600 c; \
                  truncate -s 100000 c; rm a; mkdir e; rmdir e; (echo sub > sub.txt); mkdir -p x/y; mv x z; echo 1 > z/y/f";
    for (turn, options) in [&["-f"][..], &["-f", "-y", "-ttt"]].into_iter().enumerate() {
        let work = dir.path().join(format!("work-{turn}"));
        let trace = dir.path().join("made");
        fs::create_dir(&work).unwrap();
        let status = Command::new("strace")
            .args(options)
            .arg("-o")
            .arg(&trace)
            .args(["sh", "-c", script])
            .current_dir(&work)
            .status();
        if !status.unwrap().success() {
            eprintln!("skipped: strace may not trace here");
            return;
        }
        let text = String::from_utf8_lossy(&fs::read(&trace).unwrap()).into_owned();
        fs::remove_file(dir.path().join("log")).ok();
        let (_, _, tree) = import(dir.path(), &text, work.to_str().unwrap()).unwrap();
        assert_eq!(shape(&tree), shape(&collect_tree(&work, 1).unwrap()), "{options:?}");
    }
}

#[test]
fn forged_traces_fail_with_the_line() {
    let write = |call: &str| format!("5 openat(AT_FDCWD, \"f\", O_WRONLY|O_CREAT, 0600) = 3\n5 {call}\n");
    let descriptors: String = (0..5_000).map(|fd| format!("1 dup(0) = {fd}\n")).collect();
    let opened = format!("1 open(\"/x\", O_RDONLY) = 0\n{descriptors}");
    let forks: String = (2..1_000).map(|pid| format!("1 fork() = {pid}\n")).collect();
    let cases = [
        (write("write(3, \"\"..., 1) = 9223372036854775807"), "more than one call can write"),
        (write("sendfile(3, 4, NULL, 1) = 2147483648"), "more than one call can write"),
        (format!("{opened}{forks}"), "more descriptors are open"),
        (format!("5 write(1, \"{}\", 1) = 1\n", "a".repeat(17 << 20)), "the line has more than"),
    ];
    for (trace, problem) in cases {
        let dir = tempfile::tempdir().unwrap();
        let error = import(dir.path(), &trace, "/work").unwrap_err();
        let text = match &error {
            Error::Io { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        assert!(text.contains(problem), "{text}");
        assert!(!dir.path().join("log").exists(), "a partial log would look like a complete one");
    }
}

#[test]
fn descriptors_of_exited_processes_are_not_counted() {
    let opened: String = (0..5_000).map(|fd| format!("1 dup(0) = {fd}\n")).collect();
    let mut trace = format!("1 open(\"/x\", O_RDONLY) = 0\n{opened}");
    (2..1_000).for_each(|pid| trace.push_str(&format!("1 fork() = {pid}\n{pid} +++ exited with 0 +++\n")));
    import(tempfile::tempdir().unwrap().path(), &trace, "/work").unwrap();
}

#[test]
fn import_stops_within_a_large_call() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let dir = tempfile::tempdir().unwrap();
    let trace = "5 openat(AT_FDCWD, \"f\", O_WRONLY|O_CREAT, 0600) = 3\n5 write(3, \"\"..., 1) = 2147479552\n";
    fs::write(dir.path().join("trace"), trace).unwrap();
    let stop = || CALLS.fetch_add(1, Ordering::Relaxed) == 5;
    assert!(matches!(import_strace(&options(dir.path(), "/", stop)), Err(Error::Stopped)));
    assert_eq!(CALLS.load(Ordering::Relaxed), 6, "two lines and four MiB");
    assert!(!dir.path().join("log").exists());
}

/// Renames and links of files that existed before the trace. The log can be applied whatever kind
/// they were.
#[test]
fn assumed_files_become_directories() {
    let trace = r#"
7 rename("old", "new")             = 0
7 openat(AT_FDCWD, "new/file", O_WRONLY|O_CREAT, 0644) = 3
7 write(3, "12345"..., 5)          = 5
7 mkdir("empty", 0755)             = 0
7 rename("unknown", "empty")       = 0
7 openat(AT_FDCWD, "empty/deep/file", O_WRONLY|O_CREAT, 0644) = 4
7 openat(AT_FDCWD, "plain", O_WRONLY|O_CREAT, 0644) = 5
7 rename("new", "plain")           = 0
7 symlink("nowhere", "s")          = 0
7 link("s", "t")                   = 0
7 link("plain/file", "twin")       = 0
7 rename("plain/file", "twin")     = 0
7 write(3, "67", 2)                = 2
7 mkdir("twin", 0755)              = 0
"#;
    let dir = tempfile::tempdir().unwrap();
    // `apply_done` in `import` fails if an operation is not possible.
    let (imported, _, tree) = import(dir.path(), trace, "/work").unwrap();
    let wanted = [
        "empty dir 755",
        "empty/deep dir 755",
        "empty/deep/file file 644 0",
        "plain dir 755",
        "plain/file file 644 7",
        "s link nowhere",
        "t link nowhere",
        "twin dir 755",
    ];
    assert_eq!(shape(&tree), wanted);
    assert_eq!(imported.unnamed_writes, 0);
}
