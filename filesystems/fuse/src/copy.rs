//! Copies of ranges inside the server, without a transfer to the program.

use senesce_fsapi::{CLONE_BYTES, Caller, FileSystem, FsError, FsResult, Ino};

/// The most bytes of one clone: the reply is a number of 32 bits.
const LARGEST_CLONE: u64 = 1 << 30;
/// The bytes that are read and written at a time, if a range cannot be cloned.
const PIECE: u64 = 1 << 20;

/// Copies up to `len` bytes, at least one if possible, and returns their number. The caller
/// continues there, as with a write.
///
/// Whole blocks and the end of the source are cloned if the engine can; the rest is read and
/// written.
pub(crate) fn copy_range(
    fs: &dyn FileSystem,
    caller: &Caller,
    from: (Ino, u64),
    to: (Ino, u64),
    len: u64,
) -> FsResult<u64> {
    let (phase, other) = (from.1 % CLONE_BYTES, to.1 % CLONE_BYTES);
    if phase == 0 && other == 0 {
        let left = fs.attributes(from.0)?.size.saturating_sub(from.1);
        let len = len.min(LARGEST_CLONE);
        let whole = if len >= left { left } else { len / CLONE_BYTES * CLONE_BYTES };
        match fs.clone_range(caller, from, to, whole) {
            // Nothing to clone, or the source has changed since the read of its attributes.
            Ok(0) | Err(FsError::Unsupported | FsError::Invalid { .. }) => {}
            done => return done,
        }
    }
    // Up to the offset where cloning may continue.
    let piece = if phase == other && phase > 0 { CLONE_BYTES - phase } else { PIECE };
    let mut bytes = vec![0; piece.min(len) as usize];
    let got = fs.read(from.0, from.1, &mut bytes)?;
    if got == 0 {
        return Ok(0);
    }
    Ok(fs.write(caller, to.0, to.1, &bytes[..got])? as u64)
}

#[cfg(test)]
mod tests {
    use senesce_core::Bytes;
    use senesce_fsapi::{ModelFs, NewNode};

    use super::*;

    #[test]
    fn repeated_calls_copy_any_range() {
        let (fs, caller) = (ModelFs::new(Bytes(1 << 24)), Caller::default());
        let make = |name: &[u8]| fs.make_node(&caller, Ino::ROOT, name, &NewNode::file(0o644)).unwrap().ino;
        let data: Vec<u8> = (0..100_000u32).map(|at| (at / 13) as u8).collect();
        let source = make(b"source");
        fs.write(&caller, source, 0, &data).unwrap();
        for (number, (from, to, len)) in [
            (0, 0, 100_000),
            (0, 0, 5000),
            (100, 4196, 90_000),
            (100, 50, 90_000),
            (99_999, 1, 7),
            (8192, 4096, 1 << 40),
        ]
        .into_iter()
        .enumerate()
        {
            let target = make(format!("target {number}").as_bytes());
            let (mut done, mut asked) = (0, 0);
            while done < len {
                let copied = copy_range(&fs, &caller, (source, from + done), (target, to + done), len - done).unwrap();
                if copied == 0 {
                    break;
                }
                (done, asked) = (done + copied, asked + 1);
            }
            let want = &data[from as usize..data.len().min((from + len) as usize)];
            assert_eq!((done, asked <= 3), (want.len() as u64, true), "{from} to {to}, {len} bytes: {asked} times");
            let mut got = vec![0xee; want.len()];
            assert_eq!(fs.read(target, to, &mut got).unwrap(), want.len());
            assert!(got == want, "{from} to {to}, {len} bytes");
        }
    }
}
