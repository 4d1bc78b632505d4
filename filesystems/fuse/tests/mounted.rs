//! An engine mounted through the kernel: programs observe the behaviour of an ordinary directory.

mod bed;

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        },
    },
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bed::Bed;
use senesce_core::{RelPath, Rng, Seed};
use senesce_exec::{
    PosixTarget, Target, collect_engine_tree,
    tree::{collect_tree, compare_trees},
};
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode, SetAttributes, Timestamp};
use senesce_fuse::{KernelPages, MountOptions, Mounted};
use senesce_oplog::{Content, ContentSource, Op, SpaceChange};

#[test]
fn programs_and_engine_see_each_others_changes() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/file"), b"hello").unwrap();
    fs::hard_link(bed.path("d/file"), bed.path("second")).unwrap();
    symlink("d/file", bed.path("link")).unwrap();
    fs::set_permissions(bed.path("second"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::read(bed.path("link")).unwrap(), b"hello");
    assert_eq!(fs::metadata(bed.path("no/such")).unwrap_err().raw_os_error(), Some(2));
    assert_eq!(fs::metadata(bed.path("nothing")).unwrap_err().raw_os_error(), Some(2));
    fs::write(bed.path("nothing"), b"contents").unwrap();
    assert_eq!(fs::read_to_string(bed.path("nothing")).unwrap(), "contents");
    let shown = fs::metadata(bed.path("second")).unwrap();
    assert_eq!((shown.nlink(), shown.mode() & 0o7777, shown.size(), shown.blocks()), (2, 0o640, 5, 8));
    assert_eq!(shown.mtime_nsec(), 5);
    fs::rename(bed.path("d"), bed.path("e")).unwrap();
    assert_eq!(fs::canonicalize(bed.path("link")).unwrap_err().raw_os_error(), Some(2));
    assert_eq!(fs::remove_dir(bed.path("e")).unwrap_err().raw_os_error(), Some(39));
    bed.unmount().unwrap();

    let e = bed.fs.lookup(Ino::ROOT, b"e").unwrap().ino;
    let file = bed.fs.lookup(e, b"file").unwrap();
    assert_eq!((file.links, file.permissions), (2, 0o640));
    let change = SetAttributes { size: Some(2), uid: Some(7), ..SetAttributes::default() };
    bed.fs.set_attributes(&Caller::default(), file.ino, &change).unwrap();
    bed.mount(2, false).unwrap();
    let shown = fs::metadata(bed.path("second")).unwrap();
    assert_eq!((shown.uid(), shown.size()), (7, 2));
    bed.unmount().unwrap();
    let owner = bed.fs.attributes(file.ino).unwrap();
    assert_eq!((owner.uid, bed.fs.release(file.ino, owner.changed).is_err()), (7, true), "the file is closed");
}

/// A handle of a file as file servers keep it.
#[repr(C)]
struct Handle {
    head: libc::file_handle,
    bytes: [u8; libc::MAX_HANDLE_SZ as usize],
}

impl Handle {
    fn of(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let head = libc::file_handle { handle_bytes: libc::MAX_HANDLE_SZ as u32, handle_type: 0, f_handle: [] };
        let mut handle = Self { head, bytes: [0; libc::MAX_HANDLE_SZ as usize] };
        let mut mount = 0;
        // SAFETY: the path ends with a zero byte, and the buffer after the header has the stated
        // length.
        let done =
            unsafe { libc::name_to_handle_at(libc::AT_FDCWD, path.as_ptr(), (&raw mut handle).cast(), &mut mount, 0) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
        handle
    }

    fn open(&mut self, mount: &Path) -> std::io::Result<File> {
        let mount = File::open(mount)?;
        // SAFETY: the handle is from the kernel, and nothing else owns the new descriptor.
        unsafe {
            match libc::open_by_handle_at(mount.as_raw_fd(), (&raw mut *self).cast(), libc::O_RDONLY) {
                -1 => Err(std::io::Error::last_os_error()),
                descriptor => Ok(File::from_raw_fd(descriptor)),
            }
        }
    }
}

#[test]
fn handle_finds_a_file_that_the_kernel_forgot() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    fs::create_dir(bed.path("d")).unwrap();
    fs::write(bed.path("d/file"), b"hello").unwrap();
    let (mut file, mut directory) = (Handle::of(&bed.path("d/file")), Handle::of(&bed.path("d")));
    bed.unmount().unwrap();
    bed.mount(2, false).unwrap();
    let mut got = String::new();
    file.open(bed.dir.path()).unwrap().read_to_string(&mut got).unwrap();
    assert_eq!(got, "hello");
    assert!(directory.open(bed.dir.path()).unwrap().metadata().unwrap().is_dir());
    fs::remove_file(bed.path("d/file")).unwrap();
    bed.unmount().unwrap();
    bed.mount(2, false).unwrap();
    assert_eq!(file.open(bed.dir.path()).unwrap_err().raw_os_error(), Some(libc::ESTALE));
}

#[test]
fn kernel_may_delay_writes_until_a_sync() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Keep) else { return };
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(bed.path("f")).unwrap();
    let ino = bed.fs.lookup(Ino::ROOT, b"f").unwrap().ino;
    let engine = |bed: &Bed| {
        let mut data = vec![0; 300_000];
        let read = bed.fs.read(ino, 0, &mut data).unwrap();
        data.truncate(read);
        data
    };
    // Parts of pages that overlap, out of order.
    let mut want = vec![0; 300_000];
    for (number, at) in [0_usize, 299_000, 5000, 100_000, 4096, 99_500].into_iter().enumerate() {
        let piece = [number as u8 + 1; 1000];
        file.write_all_at(&piece, at as u64).unwrap();
        want[at..at + 1000].copy_from_slice(&piece);
    }
    assert_ne!(engine(&bed), want, "no sync yet");
    // A copy that preserves holes must not mistake delayed data for one.
    let opened = fs::File::open(bed.path("f")).unwrap();
    assert_eq!(rustix::fs::seek(&opened, rustix::fs::SeekFrom::Data(0)), Ok(0));
    assert_eq!(rustix::fs::seek(&opened, rustix::fs::SeekFrom::Hole(0)), Ok(300_000));
    drop(opened);
    assert_eq!(fs::metadata(bed.path("f")).unwrap().len(), 300_000);
    assert!(fs::read(bed.path("f")).unwrap() == want);
    file.sync_all().unwrap();
    assert!(engine(&bed) == want);
    file.set_len(150_000).unwrap();
    file.write_all_at(b"end", 149_999).unwrap();
    let mtime = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(77);
    file.set_modified(mtime).unwrap();
    drop(file);
    bed.unmount().unwrap();
    want.truncate(149_999);
    want.extend(b"end");
    assert!(engine(&bed) == want);
    assert_eq!(bed.fs.attributes(ino).unwrap().modified.seconds, 77);
}

#[test]
fn nameless_file_exists_until_it_is_closed() {
    let Some(mut bed) = Bed::new(1, false, KernelPages::Through) else { return };
    let empty = bed.fs.space().unwrap();
    let options = || OpenOptions::new().read(true).write(true).create(true).to_owned();
    let mut file = options().open(bed.path("f")).unwrap();
    file.write_all(&[7; 100_000]).unwrap();
    fs::remove_file(bed.path("f")).unwrap();
    assert_eq!(fs::read_dir(bed.dir.path()).unwrap().count(), 0);
    file.write_all_at(b"end", 99_997).unwrap();
    file.set_len(99_999).unwrap();
    let mut got = Vec::new();
    file.seek(SeekFrom::Start(99_990)).unwrap();
    file.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"\x07\x07\x07\x07\x07\x07\x07en");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    assert!(bed.fs.space().unwrap().free < empty.free);
    drop(file);
    // The kernel now forgets the file, and sends that with other requests.
    let freed = (0..10_000).any(|_| {
        rustix::fs::statfs(bed.dir.path()).unwrap();
        bed.fs.space().unwrap() == empty
    });
    assert!(freed, "its space is not free");

    // Files that are open at the end of the mount are removed, too.
    let file = options().open(bed.path("g")).unwrap();
    fs::remove_file(bed.path("g")).unwrap();
    rustix::mount::unmount(bed.dir.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    drop(file);
    bed.mounted.take().unwrap().join().unwrap();
    assert_eq!(bed.fs.space().unwrap(), empty);
}

#[test]
fn directories_of_any_length_are_listed_and_removed() {
    let Some(bed) = Bed::new(2, false, KernelPages::Through) else { return };
    let caller = Caller::default();
    let d = bed.fs.make_node(&caller, Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap().ino;
    for count in [0, 1, 127, 128, 129, 3000] {
        for n in 0..count {
            let name = format!("{n:0width$}", width = 1 + n % 200);
            bed.fs.make_node(&caller, d, name.as_bytes(), &NewNode::file(0o644)).unwrap();
        }
        // A new mount, because the kernel rightly trusts its cache.
        let (dir, pages) = (tempfile::tempdir().unwrap(), KernelPages::Through);
        let mut again = Bed { fs: bed.fs.clone(), mounted: None, dir, pages, suffix: "" };
        again.mount(2, false).unwrap();
        let names: Vec<_> = fs::read_dir(again.path("d")).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|entry| entry.metadata().unwrap().is_file()));
        for entry in names {
            fs::remove_file(entry.path()).unwrap();
        }
        assert_eq!(fs::read_dir(again.path("d")).unwrap().count(), 0);
        again.unmount().unwrap();
    }
}

#[test]
fn holes_and_attributes_pass_through() {
    let Some(bed) = Bed::new(2, false, KernelPages::Through) else { return };
    let file = File::create_new(bed.path("f")).unwrap();
    file.write_all_at(&[1; 4096], 1 << 20).unwrap();
    let seek = |from| rustix::fs::seek(&file, from).ok();
    assert_eq!(seek(rustix::fs::SeekFrom::Data(0)), Some(1 << 20));
    assert_eq!(seek(rustix::fs::SeekFrom::Hole(1 << 20)), Some((1 << 20) + 4096));
    assert_eq!(seek(rustix::fs::SeekFrom::Data((1 << 20) + 4096)), None);
    let path = bed.path("f");
    let set = |name: &str, value: &[u8]| rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty());
    set("user.one", b"1").unwrap();
    set("user.two", &[2; 300]).unwrap();
    // An ACL of version 2, with entries for owner, group and others. No engine would obey it.
    let entry = |tag: u8| [tag, 0, 6, 0, 0xff, 0xff, 0xff, 0xff];
    let list = [&[2, 0, 0, 0][..], &entry(1), &entry(4), &entry(0x20)].concat();
    let refused = Some(rustix::io::Errno::OPNOTSUPP);
    assert_eq!(set("system.posix_acl_access", &list).err(), refused);
    assert_eq!(rustix::fs::getxattr(&path, "system.posix_acl_access", &mut [0; 64]).err(), refused);
    let nameless = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(bed.dir.path());
    assert_eq!(nameless.unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    let mut names = [0u8; 64];
    let len = rustix::fs::listxattr(&path, &mut names).unwrap();
    assert_eq!(&names[..len], b"user.one\0user.two\0");
    let mut value = [0u8; 300];
    assert_eq!(rustix::fs::getxattr(&path, "user.two", &mut value).unwrap(), 300);
    assert_eq!(rustix::fs::getxattr(&path, "user.two", &mut value[..299]), Err(rustix::io::Errno::RANGE));
    assert_eq!(rustix::fs::getxattr(&path, "user.no", &mut value), Err(rustix::io::Errno::NODATA));
}

#[test]
fn copies_are_clones_where_possible() {
    let Some(bed) = Bed::new(2, false, KernelPages::Through) else { return };
    let from = File::create_new(bed.path("from")).unwrap();
    from.write_all_at(&[1; 5000], 1 << 20).unwrap();
    let copy = |name: &str, mut at: u64, mut to_at: u64| {
        let to = File::create_new(bed.path(name)).unwrap();
        while rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut to_at), 1 << 30).unwrap() > 0 {}
        to
    };
    let (clone, moved) = (copy("clone", 0, 0), copy("moved", 0, 5));
    // The kernel knows the new file without reading or writing it.
    assert_eq!(clone.metadata().unwrap().size(), (1 << 20) + 5000);
    assert_eq!(fs::read(bed.path("clone")).unwrap(), fs::read(bed.path("from")).unwrap());
    assert_eq!(fs::read(bed.path("moved")).unwrap()[5..], fs::read(bed.path("from")).unwrap());
    // A copy has no holes; a clone has those of its source.
    assert_eq!(clone.metadata().unwrap().blocks(), 16);
    assert!(moved.metadata().unwrap().blocks() > 2048);
    clone.write_all_at(&[2; 10], 1 << 20).unwrap();
    assert_eq!(fs::read(bed.path("from")).unwrap()[1 << 20], 1);
    assert_eq!(fs::read(bed.path("clone")).unwrap()[1 << 20], 2);
}

#[test]
fn times_before_1970_are_kept() {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
    let Some(bed) = Bed::new(2, false, KernelPages::Through) else { return };
    let path = bed.path("old");
    fs::write(&path, "x").unwrap();
    for (tv_sec, tv_nsec) in [(-1, 500_000_000), (-2, 1), (-1, 0), (0, 5), (i64::MIN, 0), (i64::MIN, 999_999_999)] {
        let time = Timespec { tv_sec, tv_nsec };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        let found = fs::metadata(&path).unwrap();
        // The kernel sets the nanoseconds of the least time to 0.
        let nsec = if tv_sec == i64::MIN { 0 } else { tv_nsec };
        assert_eq!((found.mtime(), found.mtime_nsec()), (tv_sec, nsec));
        assert_eq!((found.atime(), found.atime_nsec()), (tv_sec, nsec));
    }
}

#[test]
fn kernel_readahead_is_one_maximal_request() {
    let Some(bed) = Bed::new(1, false, KernelPages::Through) else { return };
    let device = fs::metadata(bed.dir.path()).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let told = fs::read_to_string(format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb")).unwrap();
    assert_eq!(told, "1024\n");
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7 + at / 4096) as u8).collect();
    fs::write(bed.path("f"), &data).unwrap();
    let file = File::open(bed.path("f")).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert!(fs::read(bed.path("f")).unwrap() == data);
}

#[test]
fn busy_mount_stays_and_read_only_mount_refuses() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    fs::write(bed.path("f"), b"x").unwrap();
    bed.unmount().unwrap();
    bed.mount(1, true).unwrap();
    assert_eq!(fs::write(bed.path("g"), b"x").unwrap_err().raw_os_error(), Some(30));
    assert_eq!(fs::read(bed.path("f")).unwrap(), b"x");
    let file = File::open(bed.path("f")).unwrap();
    drop(file);
    let missing = tempfile::tempdir().unwrap();
    let nowhere = missing.path().join("nowhere");
    let options = MountOptions {
        source: "x".into(),
        threads: 1,
        now: Arc::new(Timestamp::default),
        read_only: false,
        pages: KernelPages::Through,
        suid: false,
        dev: false,
    };
    let error = Mounted::start(bed.fs.clone(), &nowhere, options).err().unwrap();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn aborted_connection_is_an_error() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    abort_and_mount_again(&mut bed);
}

#[test]
fn abort_with_escaped_bytes_in_the_source() {
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    bed.unmount().unwrap();
    for suffix in [" with blanks", r"\040\", "#\t\n", " - fuse x"] {
        bed.suffix = suffix;
        bed.mount(2, false).unwrap();
        abort_and_mount_again(&mut bed);
    }
}

fn abort_and_mount_again(bed: &mut Bed) {
    fs::write(bed.path("f"), b"written").unwrap();
    let user = File::open(bed.path("f")).unwrap();
    // The kernel first aborts the connection, and then finds the open file.
    let busy = rustix::mount::unmount(bed.dir.path(), rustix::mount::UnmountFlags::FORCE).unwrap_err();
    assert_eq!(busy, rustix::io::Errno::BUSY);
    assert_eq!(fs::metadata(bed.path("g")).unwrap_err().raw_os_error(), Some(107), "ENOTCONN");
    let error = bed.mounted.take().unwrap().join().unwrap_err();
    assert!(matches!(error, senesce_fuse::Error::Aborted { .. }), "{error}");
    drop(user);
    // A mount that was in use when serving ended remains in the list, and its owner removes it.
    let _ = rustix::mount::unmount(bed.dir.path(), rustix::mount::UnmountFlags::DETACH);
    bed.mount(1, false).unwrap();
    assert_eq!(fs::read(bed.path("f")).unwrap(), b"written");
    bed.unmount().unwrap();
}

fn any_path(rng: &mut Rng) -> RelPath {
    let depth = rng.between(1, 3);
    let names: Vec<&[u8]> = (0..depth).map(|_| [&b"a"[..], b"b", b"\xff", b"d d"][rng.below(4) as usize]).collect();
    RelPath::new(&names.join(&b'/')).unwrap()
}

fn any_op(rng: &mut Rng) -> Op {
    let path = any_path(rng);
    let mode = [0o644, 0o755, 0o600, 0o2755][rng.below(4) as usize];
    let len = rng.below(30_000);
    let content = Content::Seeded { seed: rng.next_u64(), len };
    let how = [SpaceChange::Reserve, SpaceChange::ReserveKeepSize, SpaceChange::Punch, SpaceChange::Zero];
    match rng.below(18) {
        0..4 => Op::Mkdir { path, mode },
        4..8 => Op::Create { path, mode, content },
        8 => Op::Write { path, offset: rng.below(20_000), content },
        9 => Op::Truncate { path, len },
        10 => Op::Unlink { path },
        11 => Op::Rename { from: path, to: any_path(rng) },
        12 => Op::Exchange { first: path, second: any_path(rng) },
        13 => Op::Link { existing: path, path: any_path(rng) },
        14 => Op::Symlink { path, target: Arc::from(any_path(rng).as_bytes()) },
        15 => Op::Fallocate { path, how: how[rng.below(4) as usize], offset: rng.below(20_000), len: len + 1 },
        16 => Op::Rmdir { path },
        _ => match rng.below(3) {
            0 => Op::RemoveTree { path },
            1 => Op::Chmod { path, mode },
            _ => Op::Fsync { path },
        },
    }
}

#[test]
fn operations_leave_the_tree_of_a_directory() {
    for seed in 0..10 {
        let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
        let directory = tempfile::tempdir().unwrap();
        let mut targets = [directory.path(), bed.dir.path()].map(|path| PosixTarget::open(path).unwrap());
        let mut rng = Rng::for_purpose(Seed(seed), "mounted");
        for _ in 0..300 {
            let op = any_op(&mut rng);
            let payload = op.content().map(|content| content.payload(&() as &dyn ContentSource).unwrap());
            let done = targets.each_mut().map(|target| target.apply(&RelPath::root(), &op, payload.as_ref()));
            assert_eq!(done[0].is_ok(), done[1].is_ok(), "seed {seed}: {op}: {done:?}");
        }
        let (want, got) = (collect_tree(directory.path(), 1).unwrap(), collect_tree(bed.dir.path(), 1).unwrap());
        assert_eq!(compare_trees(&want, &got, 5), []);
        drop(targets);
        bed.unmount().unwrap();
        assert_eq!(compare_trees(&want, &collect_engine_tree(bed.fs.as_ref()).unwrap(), 5), []);
    }
}

#[test]
fn programs_do_not_disturb_each_other() {
    let Some(mut bed) = Bed::new(4, false, KernelPages::Through) else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let root = bed.path(&format!("thread-{thread}"));
            scope.spawn(move || {
                fs::create_dir(&root).unwrap();
                for n in 0..200 {
                    let path = root.join(format!("{n}"));
                    fs::write(&path, vec![n as u8; n * 50]).unwrap();
                    fs::rename(&path, root.join(format!("moved-{n}"))).unwrap();
                    if n % 3 == 0 {
                        fs::remove_file(root.join(format!("moved-{n}"))).unwrap();
                    }
                }
                for entry in fs::read_dir(&root).unwrap() {
                    let entry = entry.unwrap();
                    let name = entry.file_name().into_string().unwrap();
                    let n: usize = name.strip_prefix("moved-").unwrap().parse().unwrap();
                    assert_eq!(fs::read(entry.path()).unwrap(), vec![n as u8; n * 50]);
                }
            });
        }
    });
    bed.unmount().unwrap();
    let tree = collect_engine_tree(bed.fs.as_ref()).unwrap();
    assert_eq!((tree.directories(), tree.files()), (4, 4 * 133));
}

#[test]
fn only_changes_raise_the_alarm() {
    /// After this time a blocked test fails.
    const STUCK: Duration = Duration::from_secs(120);
    let Some(mut bed) = Bed::new(2, false, KernelPages::Through) else { return };
    let alarm = bed.mounted.as_ref().unwrap().alarm().clone();
    assert_eq!(fs::read_dir(bed.dir.path()).unwrap().count(), 0);
    fs::metadata(bed.dir.path()).unwrap();
    File::open(bed.dir.path()).unwrap().sync_all().unwrap();
    assert!(!alarm.is_changed(), "nothing changed");
    let path = |name: &str| bed.path(name);
    let file = || OpenOptions::new().write(true).open(path("file")).unwrap();
    let changes: [(&str, &dyn Fn()); 12] = [
        ("create", &|| drop(File::create(path("file")).unwrap())),
        ("write", &|| file().write_all(b"bytes").unwrap()),
        ("truncate", &|| file().set_len(100_000).unwrap()),
        ("fallocate", &|| {
            rustix::fs::fallocate(file(), rustix::fs::FallocateFlags::empty(), 0, 200_000).unwrap();
        }),
        ("chmod", &|| fs::set_permissions(path("file"), fs::Permissions::from_mode(0o600)).unwrap()),
        ("mkdir", &|| fs::create_dir(path("directory")).unwrap()),
        ("symlink", &|| symlink("file", path("symlink")).unwrap()),
        ("link", &|| fs::hard_link(path("file"), path("link")).unwrap()),
        ("rename", &|| fs::rename(path("link"), path("directory/link")).unwrap()),
        ("setxattr", &|| {
            rustix::fs::setxattr(path("file"), "user.a", b"value", rustix::fs::XattrFlags::empty()).unwrap();
        }),
        ("unlink", &|| fs::remove_file(path("directory/link")).unwrap()),
        ("rmdir", &|| fs::remove_dir(path("directory")).unwrap()),
    ];
    for (name, change) in changes {
        alarm.take_change();
        change();
        // The reply precedes the alarm.
        let begin = Instant::now();
        while !alarm.is_changed() {
            assert!(begin.elapsed() < STUCK, "{name} raises no alarm");
            alarm.wait(Some(Duration::from_millis(100)));
        }
    }
    bed.unmount().unwrap();
}
