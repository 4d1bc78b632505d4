//! Writes past the kernel's pages, through write-only handles that created their files.

mod bed;

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use bed::Bed;
use rustix::{fs::XattrFlags, io::Errno};
use senesce_fuse::KernelPages;

const SIZE: usize = 64 << 10;

/// A mount whose new files bypass pages, if the kernel can do this.
fn bed() -> Option<Bed> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|separator: char| !separator.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (6, 18) {
        eprintln!("skipped: needs Linux 6.18, and this is {release}");
        return None;
    }
    Bed::new(4, false, KernelPages::PastIfNew)
}

/// Bytes of a file in pages of the kernel.
fn in_pages(path: &Path) -> u64 {
    let told = Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(path).output().unwrap();
    String::from_utf8(told.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn unread_new_file_fills_no_pages() {
    let Some(mut bed) = bed() else { return };
    let new = bed.path("new");
    fs::write(&new, [1; SIZE]).unwrap();
    assert_eq!(in_pages(&new), 0);
    let both = OpenOptions::new().read(true).write(true).create_new(true).open(bed.path("both")).unwrap();
    both.write_all_at(&[1; SIZE], 0).unwrap();
    assert_eq!(in_pages(&bed.path("both")), SIZE as u64, "a readable handle uses pages");
    assert_eq!(fs::read(&new).unwrap(), [1; SIZE]);
    assert_eq!(in_pages(&new), SIZE as u64);
    OpenOptions::new().append(true).open(&new).unwrap().write_all(b"more").unwrap();
    assert_eq!(fs::read(&new).unwrap().len(), SIZE + 4);
    drop(both);
    bed.unmount().unwrap();
}

#[test]
fn readers_of_new_file_see_the_last_write() {
    let Some(mut bed) = bed() else { return };
    let writer = OpenOptions::new().write(true).create_new(true).open(bed.path("new")).unwrap();
    writer.write_all_at(&[0; SIZE], 0).unwrap();
    let (reader, over) = (File::open(bed.path("new")).unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut bytes = vec![0; SIZE];
                while !over.load(Ordering::SeqCst) {
                    reader.read_exact_at(&mut bytes, 0).unwrap();
                }
            });
        }
        let stale = (1..=200).find(|&round| {
            writer.write_all_at(&[round; SIZE], 0).unwrap();
            let mut seen = vec![0; SIZE];
            reader.read_exact_at(&mut seen, 0).unwrap();
            seen != [round; SIZE]
        });
        over.store(true, Ordering::SeqCst);
        assert_eq!(stale, None, "a page is older than this write");
    });
    drop((reader, writer));
    bed.unmount().unwrap();
}

/// For these writes, the server instead of the kernel clears set-id bits and capabilities.
#[test]
fn writing_a_new_file_clears_its_privileges() {
    const NAME: &str = "security.capability";
    // linux/capability.h: version 2, and CAP_CHOWN.
    let capability = [&0x0200_0000_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &[0; 12]].concat();
    let Some(mut bed) = bed() else { return };
    let tool = bed.path("tool");
    let has_capability = || match rustix::fs::getxattr(&tool, NAME, &mut [0_u8; 64][..]) {
        Ok(_) => true,
        Err(errno) => {
            assert_eq!(errno, Errno::NODATA);
            false
        }
    };
    let lend = || {
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o6755)).unwrap();
        rustix::fs::setxattr(&tool, NAME, &capability, XattrFlags::empty()).unwrap();
        assert!(has_capability());
    };
    let mode = || fs::metadata(&tool).unwrap().mode() & 0o7777;

    let mut writer = OpenOptions::new().write(true).create_new(true).open(&tool).unwrap();
    lend();
    writer.write_all(b"by root").unwrap();
    assert_eq!((mode(), has_capability()), (0o6755, false), "root keeps set-id bits but not capabilities");
    lend();
    let program = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "echo", "by another"])
        .stdout::<Stdio>(writer.into())
        .status()
        .unwrap();
    assert!(program.success());
    assert_eq!((mode(), has_capability()), (0o755, false));
    assert_eq!(fs::read(&tool).unwrap(), b"by rootby another\n");
    bed.unmount().unwrap();
}
