//! Operations of real programs through a real mount: checks the backing tree and the replay of the
//! log.

mod bench;
mod nameless;

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
    process::Command,
    sync::Arc,
};

use proptest::prelude::*;
use rustix::{
    fs::{AtFlags, FallocateFlags, Mode, RenameFlags, XattrFlags},
    io::Errno,
};
use senesce_core::{ManualClock, RelPath, Rng, Seed};
use senesce_exec::{
    CheckContents, PosixTarget, Target, apply_done,
    tree::{Tree, collect_tree, compare_trees},
};
use senesce_oplog::{Content, LogReader, Op, SpaceChange};
use senesce_record::{Error, RecordOptions, Recording, Trouble};

use bench::{Bench, can_mount, replay};

fn any_path(rng: &mut Rng) -> RelPath {
    const NAMES: [&[u8]; 5] = [b"a", b"b", b"c.d", b"\xff", b"a!"];
    let parts: Vec<&[u8]> = (0..rng.between(1, 3)).map(|_| NAMES[rng.below(5) as usize]).collect();
    RelPath::new(&parts.join(&b'/')).unwrap()
}

fn any_op(rng: &mut Rng) -> Op {
    const MODES: [u32; 5] = [0o644, 0o755, 0o444, 0o700, 0o777];
    let (path, mode) = (any_path(rng), MODES[rng.below(5) as usize]);
    let content = |rng: &mut Rng| Content::Seeded { seed: rng.next_u64(), len: rng.below(20_000) };
    match rng.below(24) {
        0..4 => Op::Mkdir { path, mode: mode | 0o700 },
        4..9 => Op::Create { path, mode, content: content(rng) },
        9..11 => Op::Write { path, offset: rng.below(9000), content: content(rng) },
        11 => Op::Truncate { path, len: rng.below(20_000) },
        12..14 => Op::Rename { from: path, to: any_path(rng) },
        14 => Op::Unlink { path },
        15 => Op::Symlink { path, target: Arc::from(any_path(rng).as_bytes()) },
        16 => Op::Link { existing: path, path: any_path(rng) },
        17 => Op::Chmod { path, mode: mode | 0o700 },
        18 => Op::RemoveTree { path },
        19 => Op::Allocate { path, mode, len: rng.below(20_000) },
        20 => Op::Exchange { first: path, second: any_path(rng) },
        21 => {
            let how = [SpaceChange::Punch, SpaceChange::Reserve, SpaceChange::ZeroKeepSize][rng.below(3) as usize];
            Op::Fallocate { path, how, offset: rng.below(20_000), len: 1 + rng.below(20_000) }
        }
        22 => Op::Mknod { path, mode: 0o010_000 | mode, device: 0 },
        _ => Op::Rmdir { path },
    }
}

/// Applies random operations below a directory. Returns which succeeded.
fn random_operations(root: &Path, rng: &mut Rng, count: usize) -> Vec<bool> {
    let mut target = PosixTarget::open(root).unwrap();
    let mut apply = |rng: &mut Rng| {
        let op = any_op(rng);
        let payload = op.content().map(|content| content.payload(&()).unwrap());
        target.apply(&RelPath::root(), &op, payload.as_ref()).is_ok()
    };
    (0..count).map(|_| apply(rng)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_are_recorded_and_replayed(seed: u64) {
        if !can_mount() {
            return Ok(());
        }
        // The existing tree is random too. The same operations without a recorder are the oracle.
        let prepare = |root: &Path| drop(random_operations(root, &mut Rng::for_purpose(Seed(seed), "found"), 60));
        let oracle = tempfile::tempdir().unwrap();
        prepare(oracle.path());
        let mut bench = Bench::new(prepare, |_| {});
        let rng = || Rng::for_purpose(Seed(seed), "recorded");
        let wanted = random_operations(oracle.path(), &mut rng(), 200);
        let found = random_operations(&bench.at("mount"), &mut rng(), 200);
        prop_assert_eq!(wanted, found, "an operation ended otherwise than without a recorder");
        let (backing, replayed) = bench.trees();
        prop_assert_eq!(compare_trees(&collect_tree(oracle.path(), 1).unwrap(), &backing, 5), []);
        prop_assert_eq!(compare_trees(&backing, &replayed, 5), []);
    }
}

#[test]
fn memory_map_writes_are_recorded() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    // Python's mmap is a plain MAP_SHARED; the file is closed before the map is written.
    let script = "import mmap,os,sys\nfd=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT)\nos.ftruncate(fd,20000)\n\
                  m=mmap.mmap(fd,20000)\nos.close(fd)\nm[5:10]=b'hello'\nm[19990:20000]=b'0123456789'\n";
    let done = Command::new("python3").args(["-c", script]).arg(bench.mounted("mapped")).status();
    assert!(done.unwrap().success());
    let tree = bench.assert_replays();
    assert_eq!(tree.content_bytes(), 20_000);
    let bytes = fs::read(bench.at("backing/mapped")).unwrap();
    assert_eq!((&bytes[5..10], &bytes[19_990..]), (&b"hello"[..], &b"0123456789"[..]));
    assert!(bench.ops().iter().any(|op| matches!(op, Op::Write { .. })));
}

#[test]
fn removed_open_file_stays_until_it_is_closed() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(bench.mounted("gone")).unwrap();
    file.write_all(b"before").unwrap();
    fs::remove_file(bench.mounted("gone")).unwrap();
    file.write_all(b" and after").unwrap();
    file.set_len(12).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before and a");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    // Replaced by a rename while open.
    fs::write(bench.mounted("new"), b"new").unwrap();
    let old = File::create(bench.mounted("old")).unwrap();
    fs::rename(bench.mounted("new"), bench.mounted("old")).unwrap();
    old.write_all_at(b"unseen", 0).unwrap();
    drop((file, old));
    let tree = bench.assert_replays();
    assert_eq!((tree.files(), tree.content_bytes()), (1, 3));
    let held = bench.ops();
    let hidden = |path: &RelPath| path.as_bytes().starts_with(b".senesce-open-");
    assert_eq!(held.iter().filter(|op| matches!(op, Op::Rename { to, .. } if hidden(to))).count(), 2);
    assert_eq!(held.iter().filter(|op| matches!(op, Op::Write { path, .. } if hidden(path))).count(), 2);
    assert_eq!(held.iter().filter(|op| matches!(op, Op::Unlink { path } if hidden(path))).count(), 2);
}

#[test]
fn links_holes_renames_attributes_and_times_are_replayed() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    let m = |name: &str| bench.mounted(name);
    fs::write(m("a"), vec![7u8; 100_000]).unwrap();
    fs::hard_link(m("a"), m("twin")).unwrap();
    assert_eq!(fs::metadata(m("a")).unwrap().ino(), fs::metadata(m("twin")).unwrap().ino());
    assert_eq!(fs::metadata(m("twin")).unwrap().nlink(), 2);
    // The name by which it was opened is removed; the log must use the other one.
    let file = OpenOptions::new().write(true).open(m("a")).unwrap();
    fs::remove_file(m("a")).unwrap();
    file.write_all_at(b"by the other name", 50).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 4096, 65_536).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 200_000, 100).unwrap();
    drop(file);
    assert!(fs::metadata(m("twin")).unwrap().blocks() * 512 < 100_000, "the hole is one");
    let sparse = File::create(m("sparse")).unwrap();
    sparse.write_all_at(b"end", 1 << 30).unwrap();
    assert_eq!(rustix::fs::seek(&sparse, rustix::fs::SeekFrom::Data(0)).unwrap(), 1 << 30);
    drop(sparse);
    fs::create_dir_all(m("d/e")).unwrap();
    fs::write(m("d/e/f"), b"f").unwrap();
    let cwd = rustix::fs::CWD;
    let rename = |from: &str, to: &str, flags| rustix::fs::renameat_with(cwd, m(from), cwd, m(to), flags);
    assert_eq!(rename("d", "twin", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("d/e/f", "g", RenameFlags::NOREPLACE).unwrap();
    rename("d", "g", RenameFlags::EXCHANGE).unwrap();
    fs::write(m("g/e/below"), b"after the exchange").unwrap();
    rustix::fs::setxattr(m("twin"), "user.colour", b"red\0", XattrFlags::CREATE).unwrap();
    rustix::fs::setxattr(m("twin"), "user.other", b"x", XattrFlags::empty()).unwrap();
    rustix::fs::removexattr(m("twin"), "user.other").unwrap();
    let name = CString::new(m("pipe").to_str().unwrap()).unwrap();
    rustix::fs::mknodat(cwd, &name, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    // Read-only for its own creator, as git creates its objects.
    let mut object = OpenOptions::new().write(true).create_new(true).mode(0o444).open(m("object")).unwrap();
    object.write_all(b"blob").unwrap();
    drop(object);
    assert_eq!(fs::metadata(m("object")).unwrap().permissions().mode() & 0o777, 0o444);
    let when = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    File::open(m("object")).unwrap().set_modified(when).unwrap();
    bench.assert_replays();

    let out = tempfile::tempdir().unwrap();
    let mut target = PosixTarget::open(out.path()).unwrap();
    for done in LogReader::open(&bench.at("log")).unwrap() {
        apply_done(&mut target, &done.unwrap(), &(), CheckContents::Yes).unwrap();
    }
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(out.path().join("twin"), "user.colour", &mut value).unwrap();
    assert_eq!(&value[..length], b"red\0");
    assert_eq!(rustix::fs::getxattr(out.path().join("twin"), "user.other", &mut value), Err(Errno::NODATA));
    assert_eq!(fs::metadata(out.path().join("object")).unwrap().modified().unwrap(), when);
    assert!(fs::metadata(out.path().join("sparse")).unwrap().blocks() < 1000, "the replay is sparse too");
}

#[test]
fn files_of_another_user_belong_to_that_user() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::new(|root| fs::set_permissions(root, fs::Permissions::from_mode(0o777)).unwrap(), |_| {});
    fs::set_permissions(bench.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("umask 027; cd {}; echo x > f; mkdir d; echo y > d/g", bench.at("mount").display());
    let done =
        Command::new("setpriv").args(["--reuid=1234", "--regid=1234", "--clear-groups", "sh", "-c", &script]).status();
    assert!(done.unwrap().success());
    let stat = rustix::fs::statat(rustix::fs::CWD, bench.at("backing/d/g"), AtFlags::empty()).unwrap();
    assert_eq!((stat.st_uid, stat.st_gid, stat.st_mode & 0o777), (1234, 1234, 0o640));
    bench.assert_replays();
}

#[test]
fn anonymous_log_contains_the_structure_only() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::new(
        |root| fs::write(root.join("found-secret"), b"found-secret-content").unwrap(),
        |options| {
            options.keep_contents = false;
            options.anonymize = true;
        },
    );
    fs::create_dir(bench.mounted("private")).unwrap();
    fs::write(bench.mounted("private/diary"), b"dear diary, a secret").unwrap();
    std::os::unix::fs::symlink("../private/diary", bench.mounted("pointer")).unwrap();
    rustix::fs::setxattr(bench.mounted("pointer-less"), "user.x", b"", XattrFlags::empty()).unwrap_err();
    rustix::fs::setxattr(bench.mounted("private/diary"), "user.keyword", b"secret value", XattrFlags::empty()).unwrap();
    let (backing, replayed) = bench.trees();
    let shape = |tree: &Tree| {
        let mut shape: Vec<_> = tree
            .entries
            .iter()
            .map(|(path, entry)| {
                let (kind, size) = match entry {
                    senesce_exec::tree::Entry::File { size_bytes, .. } => ("file", *size_bytes),
                    senesce_exec::tree::Entry::Directory { .. } => ("directory", 0),
                    senesce_exec::tree::Entry::Symlink { target } => ("link", target.len() as u64),
                    senesce_exec::tree::Entry::Other { .. } => ("other", 0),
                };
                (path.as_bytes().split(|&b| b == b'/').map(<[u8]>::len).collect::<Vec<_>>(), kind, size)
            })
            .collect();
        shape.sort();
        shape
    };
    assert_eq!(shape(&backing), shape(&replayed));
    let text: String = LogReader::open(&bench.at("log"))
        .unwrap()
        .map(|done| {
            let done = done.unwrap();
            format!("{:?}{}", done, senesce_oplog::render_step(&done))
        })
        .collect();
    for word in ["secret", "diary", "private", "pointer", "keyword", "found"] {
        assert!(!text.contains(word), "{word} is in the log: {text}");
    }
}

#[test]
fn vanished_backing_directory_is_an_error() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    fs::write(bench.mounted("file"), b"x").unwrap();
    assert_eq!(bench.recording.as_ref().unwrap().trouble(), None);
    fs::rename(bench.at("backing"), bench.at("elsewhere")).unwrap();
    assert_eq!(bench.recording.as_ref().unwrap().trouble(), Some(Trouble::Vanished));
    let error = bench.finish().unwrap_err();
    assert!(matches!(error, Error::Vanished { .. }), "{error}");
    assert!(error.to_string().contains("vanished"));
    assert_eq!(replay(&bench.at("log")).files(), 1, "the log is good up to that moment");
}

#[test]
fn conflicting_places_are_refused_before_any_change() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["backing/inner", "mount", "full"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("full/file"), b"").unwrap();
    for (mount, log) in [
        ("backing/inner", "log"),
        ("mount", "backing/log"),
        ("backing", "log"),
        ("full", "log"),
        ("mount", "mount/log"),
    ] {
        let started = Recording::start(RecordOptions {
            backing: dir.path().join("backing"),
            mount: dir.path().join(mount),
            log: dir.path().join(log),
            source: "senesce-record-test".into(),
            keep_contents: false,
            anonymize: false,
            seed: Seed(1),
            clock: Arc::new(ManualClock::default()),
        });
        assert!(matches!(started, Err(Error::Place { .. })), "{mount} {log}");
        assert!(!dir.path().join(log).exists());
    }
}

#[test]
fn recorded_c_build_replays_to_an_equal_tree() {
    if !can_mount() {
        return;
    }
    let sources = |root: &Path| {
        fs::write(root.join("main.c"), "int f(void); int main(void) { return f(); }\n").unwrap();
        fs::write(root.join("f.c"), "int f(void) { return 0; }\n").unwrap();
        let rules = "prog: main.o f.o\n\tcc -o $@ $^\n\tstrip $@\n%.o: %.c\n\tcc -c -o $@ $<\n";
        fs::write(root.join("Makefile"), rules).unwrap();
    };
    let mut bench = Bench::new(sources, |_| {});
    let done = Command::new("make").args(["-s", "-j2"]).current_dir(bench.at("mount")).status().unwrap();
    assert!(done.success());
    assert!(Command::new(bench.mounted("prog")).status().unwrap().success(), "the program runs in the mount");
    let tree = bench.assert_replays();
    assert!(tree.files() == 6, "{tree:?}");
}
