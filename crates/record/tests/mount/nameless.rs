//! Files created without a name (O_TMPFILE).

use std::{
    fs::{self, File, Permissions},
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt, PermissionsExt},
    },
    path::Path,
    process::Command,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, XattrFlags},
    io::Errno,
    mount::UnmountFlags,
};
use senesce_core::RelPath;
use senesce_exec::tree::{collect_tree, compare_trees};
use senesce_oplog::{Content, Op};

use super::bench::{Bench, can_mount, replay};

/// Creates a file without a name in a directory of the mount.
fn nameless(bench: &Bench, directory: &str, mode: u32) -> File {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(bench.mounted(directory), flags, Mode::from_raw_mode(mode)).unwrap().into()
}

fn give_name(file: &File, path: &Path) -> Result<(), Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, link, CWD, path, AtFlags::SYMLINK_FOLLOW)
}

#[test]
fn nameless_file_stays_until_closed_or_named() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    let m = |name: &str| bench.mounted(name);
    fs::create_dir(m("d")).unwrap();
    // Larger than a request, so that it is read and written in several.
    let large: Vec<u8> = (0..700_000u32).map(|n| (n / 3) as u8).collect();
    let named = nameless(&bench, "d", 0o640);
    named.write_all_at(&large, 0).unwrap();
    assert_eq!(named.metadata().unwrap().nlink(), 0);
    assert_eq!(fs::read_dir(m("d")).unwrap().count(), 0, "it has no name");
    let mut read = vec![0; large.len()];
    named.read_exact_at(&mut read, 0).unwrap();
    assert!(read == large);
    rustix::fs::fsetxattr(&named, "user.colour", b"red", XattrFlags::empty()).unwrap();
    give_name(&named, &m("d/named")).unwrap();
    give_name(&named, &m("twin")).unwrap();
    assert_eq!(named.metadata().unwrap().nlink(), 2);
    assert_eq!(give_name(&named, &m("twin")), Err(Errno::EXIST));
    named.write_all_at(b"after", 3).unwrap();

    // Never named; its directory is removed while it is open.
    fs::create_dir(m("gone")).unwrap();
    let lost = nameless(&bench, "gone", 0o400);
    fs::remove_dir(m("gone")).unwrap();
    lost.write_all_at(b"lost", 0).unwrap();
    lost.set_len(2).unwrap();
    // O_EXCL forbids a name; the kernel enforces it.
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL;
    let never: File = rustix::fs::open(m("d"), flags, Mode::RUSR).unwrap().into();
    assert_eq!(give_name(&never, &m("never")), Err(Errno::NOENT));
    // Read-only when it is named, as git's objects are, and removed while it is open.
    let fleeting = nameless(&bench, ".", 0o444);
    give_name(&fleeting, &m("fleeting")).unwrap();
    fs::remove_file(m("fleeting")).unwrap();
    fleeting.write_all_at(b"fleeting", 0).unwrap();
    let object = nameless(&bench, "d", 0o444);
    give_name(&object, &m("d/object")).unwrap();
    object.write_all_at(b"object", 0).unwrap();
    // A program cannot create a file with the relay's name, `/`.
    assert_eq!(File::create(m("/")).unwrap_err().raw_os_error(), Some(Errno::ISDIR.raw_os_error()));

    drop((named, lost, never, fleeting, object));
    let tree = bench.assert_replays();
    assert_eq!((tree.files(), fs::metadata(bench.at("backing/d/object")).unwrap().mode() & 0o777), (3, 0o444));
    let ops = bench.ops();
    let hidden = |path: &RelPath| path.as_bytes().starts_with(b".senesce-open-");
    let is_born = |op: &&Op| matches!(op, Op::Create { path, .. } if path.to_string().contains(".senesce-open-"));
    assert_eq!(ops.iter().filter(is_born).count(), 5);
    let written = |op: &Op| match op {
        Op::Write { path, content: Content::Inline(bytes), .. } if hidden(path) => bytes.len(),
        _ => 0,
    };
    assert_eq!(ops.iter().map(written).sum::<usize>(), large.len() + 4 + 8, "a file without a name uses space too");
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Unlink { path } if hidden(path))).count(), 3);
}

#[test]
fn memory_map_writes_to_nameless_file_are_recorded() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    // Python's link follows /proc only with a directory argument. The map outlives the descriptor.
    let script = "import mmap,os,sys\nos.chdir(sys.argv[1])\nproc=os.open('/proc',os.O_RDONLY)\n\
                  def nameless():\n fd=os.open('.',os.O_TMPFILE|os.O_RDWR,0o600)\n os.ftruncate(fd,20000)\n return fd,mmap.mmap(fd,20000)\n\
                  (a,named),(b,lost)=nameless(),nameless()\nnamed[5:10]=lost[5:10]=b'hello'\n\
                  os.link(f'self/fd/{a}','named',src_dir_fd=proc,follow_symlinks=True)\n\
                  os.close(a)\nos.close(b)\nnamed[19990:20000]=lost[19990:20000]=b'0123456789'\n";
    let done = Command::new("python3").args(["-c", script]).arg(bench.at("mount")).status();
    assert!(done.unwrap().success());
    let tree = bench.assert_replays();
    assert_eq!((tree.files(), tree.content_bytes()), (1, 20_000));
    let bytes = fs::read(bench.at("backing/named")).unwrap();
    assert_eq!((&bytes[5..10], &bytes[19_990..]), (&b"hello"[..], &b"0123456789"[..]));
    let lost = |op: &Op| matches!(op, Op::Write { path, .. } if path.as_bytes().starts_with(b".senesce-open-"));
    assert!(bench.ops().iter().any(lost));
}

#[test]
fn log_closes_files_open_at_the_end() {
    if !can_mount() {
        return;
    }
    let mut bench = Bench::plain();
    let lost = nameless(&bench, ".", 0o400);
    let named = nameless(&bench, ".", 0o400);
    give_name(&named, &bench.mounted("named")).unwrap();
    fs::write(bench.mounted("gone"), b"gone").unwrap();
    fs::set_permissions(bench.mounted("gone"), Permissions::from_mode(0o400)).unwrap();
    let gone = File::open(bench.mounted("gone")).unwrap();
    fs::remove_file(bench.mounted("gone")).unwrap();
    rustix::mount::unmount(bench.at("mount"), UnmountFlags::DETACH).unwrap();
    bench.recording.take().unwrap().finish().unwrap();
    drop((lost, named, gone));
    let tree = replay(&bench.at("log"));
    assert_eq!(compare_trees(&collect_tree(&bench.at("backing"), 1).unwrap(), &tree, 9), []);
    assert_eq!(tree.files(), 1);
}
