//! Long requests to a block device bypass the page cache, short ones do not: both see the same
//! bytes.

use std::{fs::File, io::IoSliceMut, path::Path};

use senesce_block::{BlockDevice, FileDevice, FileOptions};
use senesce_core::{Bytes, Rng, Seed};
use senesce_testkit::{root_or_skip, run};

/// Not a multiple of 4 KiB.
const SIZE: u64 = (8 << 20) + 3 * 512;
const LONGEST: u64 = 3 << 20;

/// A loop device over a file, until it is dropped.
struct Loop(String);

impl Loop {
    fn new(image: &Path) -> Self {
        Self(run("losetup", &["--find", "--show", image.to_str().unwrap()]).trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.0]);
    }
}

#[test]
fn long_and_short_requests_see_the_same_bytes() {
    if !root_or_skip("loop devices") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let device = Loop::new(&image);
    let open = || FileDevice::open(Path::new(&device.0), Bytes(SIZE), FileOptions::default()).unwrap();
    let mut file = open();
    assert_eq!(file.size(), Bytes(SIZE));
    let mut model = vec![0; SIZE as usize];
    let mut rng = Rng::for_purpose(Seed(7), "long requests");
    for step in 0..300u32 {
        // Short lengths, lengths around the limit for long requests, and lengths that reach the
        // end.
        let len = [rng.below(9000), rng.between(500 << 10, 530 << 10) << rng.below(2), rng.below(LONGEST)]
            [rng.below(3) as usize]
            + 1;
        let start = if rng.chance(1, 8) { SIZE - len } else { rng.below(SIZE - len + 1) };
        let start = if rng.chance(1, 3) { start / 4096 * 4096 } else { start };
        let range = start as usize..(start + len) as usize;
        let mut read = vec![0xaa; len as usize];
        match rng.below(4) {
            0 => {
                let bytes = vec![step as u8; len as usize];
                file.write_at(start, &bytes).unwrap();
                model[range].copy_from_slice(&bytes);
                continue;
            }
            1 => {
                let (first, second) = read.split_at_mut(len as usize / 3);
                file.read_parts_at(start, &mut [IoSliceMut::new(first), IoSliceMut::new(second)]).unwrap();
            }
            2 if rng.chance(1, 8) => {
                file.flush().unwrap();
                drop(file);
                file = open();
                file.read_at(start, &mut read).unwrap();
            }
            _ => file.read_at(start, &mut read).unwrap(),
        }
        assert!(read == model[range], "step {step}: {len} bytes from {start} on");
    }
    assert!(file.read_at(SIZE - 1000, &mut vec![0; 1 << 20]).is_err(), "it is beyond the end");
}
