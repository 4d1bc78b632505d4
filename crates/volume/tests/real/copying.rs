//! The unaged twin equals its source.

use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    sync::atomic::{AtomicU64, Ordering},
};

use senesce_core::never;
use senesce_volume::{Error, copy_tree};

use crate::bench::{fill, tree};

#[test]
fn a_twin_has_the_same_tree_with_all_attributes() {
    let temp = tempfile::tempdir().unwrap();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    fill(&from);
    fs::create_dir(from.join("lost+found")).unwrap();
    fs::create_dir(from.join("dir-0/lost+found")).unwrap();
    fs::write(from.join("empty"), "").unwrap();
    fs::write(from.join("big"), vec![3; (2 << 20) + 1]).unwrap();
    symlink("no/where", from.join("dangling")).unwrap();
    symlink("dir-0", from.join("link to a directory")).unwrap();
    fs::hard_link(from.join("big"), from.join("dir-1/big again")).unwrap();
    let script = from.join("dir-2/script");
    fs::write(&script, "#!").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(from.join("dir-3"), fs::Permissions::from_mode(0o500)).unwrap();
    let name = std::ffi::OsString::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff\xfe"));
    fs::write(from.join(name), "not UTF-8").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        from.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o640),
        0,
    )
    .unwrap();
    let old = fs::File::open(from.join("dir-1")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000, 123_456_789)).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(from.join("empty"), "user.colour", b"green", flags).unwrap();

    let report = copy_tree(&from, &to, &never).unwrap();
    assert_eq!((report.files, report.directories), (64 + 4, 5));
    assert_eq!((report.symlinks, report.hard_links, report.special_files), (2, 1, 1));
    assert_eq!(tree(&to), tree(&from));
    assert!(!to.join("lost+found").exists() && to.join("dir-0/lost+found").exists());
    let inode = |path: &str| fs::metadata(to.join(path)).unwrap().ino();
    assert_eq!(inode("big"), inode("dir-1/big again"));
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(to.join("empty"), "user.colour", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"green");
}

#[test]
fn holes_and_the_data_around_them_stay() {
    let temp = tempfile::tempdir().unwrap();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    let sparse = fs::File::create(from.join("sparse")).unwrap();
    sparse.write_all_at(b"middle", 1 << 30).unwrap();
    sparse.write_all_at(&vec![7; 3 << 20], 5 << 20).unwrap();
    sparse.set_len(2 << 30).unwrap();
    fs::File::create(from.join("nothing")).unwrap().set_len(12_345).unwrap();
    copy_tree(&from, &to, &never).unwrap();
    let copy = fs::File::open(to.join("sparse")).unwrap();
    let at = |offset: u64| {
        let mut bytes = [1; 8];
        copy.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    };
    assert_eq!((at(1 << 30), at((1 << 30) - 6)), (*b"middle\0\0", *b"\0\0\0\0\0\0mi"));
    assert_eq!((at((5 << 20) - 4), at((8 << 20) - 4)), ([0, 0, 0, 0, 7, 7, 7, 7], [7, 7, 7, 7, 0, 0, 0, 0]));
    let (sparse, nothing) = (copy.metadata().unwrap(), fs::metadata(to.join("nothing")).unwrap());
    assert_eq!((sparse.len(), nothing.len()), (2 << 30, 12_345));
    assert!(sparse.blocks() * 512 < 4 << 20, "{}", sparse.blocks());
}

#[test]
fn a_stopped_copy_writes_nothing_more() {
    let temp = tempfile::tempdir().unwrap();
    let from = temp.path().join("from");
    fs::create_dir_all(from.join("directory")).unwrap();
    (0..5).for_each(|file| fs::write(from.join(format!("directory/{file}")), "small").unwrap());
    fs::write(from.join("large"), vec![3; 5 << 20]).unwrap();
    let mut most = 0;
    for at in 1.. {
        let to = temp.path().join(format!("to-{at}"));
        fs::create_dir(&to).unwrap();
        let (asked, large) = (AtomicU64::new(0), to.join("large"));
        let at_signal = AtomicU64::new(0);
        let large_bytes = || fs::metadata(&large).map_or(0, |found| found.len());
        let stop = || {
            let is_now = asked.fetch_add(1, Ordering::SeqCst) + 1 >= at;
            if is_now {
                at_signal.store(large_bytes(), Ordering::SeqCst);
            }
            is_now
        };
        let copied = copy_tree(&from, &to, &stop);
        if asked.load(Ordering::SeqCst) < at {
            copied.unwrap();
            break;
        }
        assert!(matches!(copied, Err(Error::Interrupted { .. })), "stopped at question {at}");
        assert_eq!(asked.into_inner(), at, "it calls `stop` once and returns");
        assert_eq!(large_bytes(), at_signal.into_inner());
        most = most.max(Some(large_bytes()).filter(|bytes| *bytes < 5 << 20).unwrap_or(0));
    }
    assert_eq!(most, 4 << 20, "`stop` is called after every MiB of a large file");
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let temp = tempfile::tempdir().unwrap();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(from.join("x"), "new").unwrap();
    fs::write(to.join("x"), "old").unwrap();
    assert!(copy_tree(&from, &to, &never).is_err());
    assert_eq!(fs::read_to_string(to.join("x")).unwrap(), "old");
}
