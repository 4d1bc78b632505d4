//! A block device of the system: a loop device.

use std::{
    io::IoSlice,
    path::{Path, PathBuf},
};

use senesce_block::{BlockDevice, BlockError, FileDevice, FileOptions};
use senesce_core::Bytes;
use senesce_testkit::{Volume, root_or_skip, run};

const SIZE: Bytes = Bytes(4 << 20);

/// A loop device for the time of the test.
struct Loop {
    device: PathBuf,
}

impl Loop {
    fn new(image: &Path) -> Self {
        std::fs::File::create_new(image).unwrap().set_len(SIZE.0).unwrap();
        let device = run("losetup", &["--find", "--show", &image.to_string_lossy()]);
        Self { device: device.trim().into() }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.device.to_string_lossy()]);
    }
}

fn open(path: &Path, direct: bool) -> Result<FileDevice, BlockError> {
    FileDevice::open(path, SIZE, FileOptions { direct, ..FileOptions::default() })
}

/// A process that looks for a free loop device briefly claims others, perhaps also this one.
fn open_when_free(path: &Path, direct: bool) -> FileDevice {
    for _ in 0..100_000 {
        match open(path, direct) {
            Err(error) if error.to_string().contains("busy") => std::thread::yield_now(),
            result => return result.unwrap(),
        }
    }
    panic!("{} stays busy", path.display());
}

#[test]
fn works_with_and_without_the_page_cache() {
    if !root_or_skip("loop devices") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = Loop::new(&dir.path().join("image"));
    let device = open_when_free(&at.device, false);
    assert_eq!(device.size(), SIZE);
    device.write_at(4160, &[7; 4160]).unwrap();
    device.flush().unwrap();
    assert!(open(&at.device, true).unwrap_err().to_string().contains("busy"), "only one user at a time");
    drop(device);

    let direct = open_when_free(&at.device, true);
    let mut got = [0; 8192];
    direct.read_at(0, &mut got).unwrap();
    assert!(got[..4160] == [0; 4160] && got[4160..] == [7; 4032]);
    direct.write_at(4096, &[9; 4096]).unwrap();
    direct.discard(0, 4096).unwrap();
    direct.flush().unwrap();
    let last = SIZE.0 - 4096;
    direct.write_at(last, &[1; 4096]).unwrap();
    assert!(direct.write_at(last + 4096, &[1; 4096]).is_err());
    drop(direct);
    let device = open_when_free(&at.device, false);
    device.read_at(4096, &mut got).unwrap();
    assert!(got[..4096] == [9; 4096] && got[4096..4096 + 128] == [7; 128] && got[4096 + 128..] == [0; 3968]);
}

#[test]
fn mounted_device_is_refused() {
    if !root_or_skip("mounting") {
        return;
    }
    let volume = Volume::new("ext4", 16, &[], "");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = volume.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let line = mounts.lines().find(|line| line.split(' ').nth(4) == Some(&point)).unwrap();
    let device = line.split(" - ").nth(1).unwrap().split(' ').nth(1).unwrap();
    let error = open(Path::new(device), false).unwrap_err().to_string();
    assert!(error.contains(device) && error.contains("busy"), "{error}");
}

#[test]
fn long_writes_leave_the_bytes_around_them() {
    if !root_or_skip("loop devices") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = Loop::new(&dir.path().join("image"));
    let device = open_when_free(&at.device, false);
    let mut want: Vec<u8> = (0..SIZE.0).map(|at| (at / 512) as u8).collect();
    device.write_at(0, &want).unwrap();
    for (turn, (offset, len)) in
        [(0, 1 << 20), (4160, 4160 * 256), (4159, (512 << 10) + 1), (1 << 20, 4096 * 130 - 1)].into_iter().enumerate()
    {
        let data: Vec<u8> = (0..len).map(|at| (at / 64 + 7 * turn) as u8).collect();
        let parts: Vec<IoSlice<'_>> = data.chunks(4160 + turn).map(IoSlice::new).collect();
        match turn % 2 {
            0 => device.write_at(offset as u64, &data).unwrap(),
            _ => device.write_parts_at(offset as u64, &parts).unwrap(),
        }
        want[offset..offset + len].copy_from_slice(&data);
        let mut got = vec![0; want.len()];
        device.read_at(0, &mut got).unwrap();
        assert!(got == want, "{len} bytes at {offset}");
    }
    device.flush().unwrap();
    drop(device);
    let mut got = vec![0; want.len()];
    open_when_free(&at.device, true).read_at(0, &mut got).unwrap();
    assert!(got == want, "the durable bytes");
}
