//! Mounted files lose set-id bits and capabilities as files of the kernel's own file systems do.

mod bed;

use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown},
    path::Path,
    process::{Command, Stdio},
};

use bed::Bed;
use rustix::{fs::XattrFlags, io::Errno};
use senesce_fuse::KernelPages;

/// Changes of a file by a shell: `$1` is the file, `$2` another one of 64 KiB.
const CHANGES: [&str; 8] = [
    "printf x >> $1",
    "printf x | dd of=$1 bs=1 seek=7 conv=notrunc status=none",
    ": > $1",
    "truncate -s 5 $1",
    "truncate -s 50000 $1",
    "fallocate -l 100000 $1",
    "cp --no-preserve=mode $2 $1",
    "printf x >> $1; printf y >> $1",
];
const MODES: [u32; 5] = [0o4777, 0o6777, 0o2767, 0o6766, 0o1777];
/// The callers, by options of setpriv.
const CALLERS: [(&str, &[&str]); 3] = [
    ("root", &[]),
    ("root without CAP_FSETID", &["--bounding-set", "-fsetid", "--inh-caps", "-fsetid"]),
    // Without privileges, and not the owner.
    ("another user", &["--reuid", "65534", "--regid", "65534", "--clear-groups"]),
];

fn change(directory: &Path, command: &str, mode: u32, who: &[&str]) -> (u32, u64) {
    let (file, source) = (directory.join("file"), directory.join("source"));
    fs::write(&file, [1; 9000]).unwrap();
    fs::write(&source, [2; 1 << 16]).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    // Makes the kernel know the file before it is changed.
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
    let done = Command::new("setpriv")
        .args(who)
        .args(["sh", "-c", command, "sh"])
        .args([&file, &source])
        .stdout(Stdio::null())
        .status()
        .expect("setpriv runs");
    assert!(done.success(), "{command} by {who:?}");
    let found = fs::metadata(&file).unwrap();
    fs::remove_file(&file).unwrap();
    (found.mode() & 0o7777, found.size())
}

fn bed(pages: KernelPages) -> Option<Bed> {
    let bed = Bed::new(2, false, pages)?;
    fs::set_permissions(bed.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    Some(bed)
}

#[test]
fn changes_of_contents_clear_set_id_bits() {
    for pages in [KernelPages::Through, KernelPages::Keep, KernelPages::PastIfNew] {
        let Some(bed) = bed(pages) else { return };
        let host = tempfile::tempdir().unwrap();
        fs::set_permissions(host.path(), fs::Permissions::from_mode(0o777)).unwrap();
        for command in CHANGES {
            for mode in MODES {
                for (name, who) in CALLERS {
                    let ours = change(&bed.path("."), command, mode, who);
                    let theirs = change(host.path(), command, mode, who);
                    assert_eq!(ours, theirs, "{pages:?}: {command}, mode {mode:o}, {name}");
                }
            }
        }
    }
}

#[test]
fn changes_of_owner_clear_set_id_bits() {
    let Some(bed) = bed(KernelPages::Through) else { return };
    let host = tempfile::tempdir().unwrap();
    let owned = |directory: &Path, mode, uid, gid, is_directory| {
        let path = directory.join("owned");
        if is_directory {
            fs::create_dir(&path).unwrap()
        } else {
            fs::write(&path, "x").unwrap()
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        chown(&path, uid, gid).unwrap();
        let found = fs::metadata(&path).unwrap();
        if is_directory {
            fs::remove_dir(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        (found.mode() & 0o7777, found.uid(), found.gid())
    };
    for mode in MODES {
        for (uid, gid) in [(None, None), (Some(0), None), (Some(7), None), (None, Some(7)), (Some(7), Some(8))] {
            for is_directory in [false, true] {
                let ours = owned(&bed.path("."), mode, uid, gid, is_directory);
                let theirs = owned(host.path(), mode, uid, gid, is_directory);
                assert_eq!(ours, theirs, "mode {mode:o}, owner {uid:?} {gid:?}, directory {is_directory}");
            }
        }
    }
}

#[test]
fn first_write_through_any_handle_removes_capabilities() {
    const NAME: &str = "security.capability";
    // linux/capability.h: version 2, and CAP_CHOWN.
    let capability = [&0x0200_0000_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0; 12]].concat();
    let Some(mut bed) = bed(KernelPages::Through) else { return };
    let tool = bed.path("tool");
    let found = || rustix::fs::getxattr(&tool, NAME, &mut [0_u8; 64][..]);
    let file = fs::File::create(&tool).unwrap();
    for round in 0..3 {
        file.write_all_at(b"before", 0).unwrap();
        rustix::fs::setxattr(&tool, NAME, &capability, XattrFlags::empty()).unwrap();
        assert_eq!(found(), Ok(capability.len()), "round {round}");
        file.write_all_at(b"after", 0).unwrap();
        assert_eq!(found(), Err(Errno::NODATA), "round {round}");
    }
    drop(file);
    bed.unmount().unwrap();
}
