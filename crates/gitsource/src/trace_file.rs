//! Trace files, plain or compressed.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use lzma_rust2::XzReader;

use crate::Error;

/// The first bytes of an xz file.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// Bytes of one read from the file or the decompressor.
const BUFFER_BYTES: usize = 64 << 10;

/// Opens a trace for [`TraceReplay`](senesce_workload::trace::TraceReplay). A trace in xz format is
/// decompressed during the read; its first bytes show the format, not its name.
///
/// Errors: the file cannot be opened or read. A damaged xz file is an error of the returned reader.
pub fn open_trace(path: &Path) -> Result<Box<dyn BufRead + Send>, Error> {
    let error = |operation| move |source| Error::Io { operation, path: path.to_owned(), source };
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(error("open the trace"))?);
    let start = file.fill_buf().map_err(error("read the trace"))?;
    if start.starts_with(&XZ_MAGIC) {
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, XzReader::new(file, true))))
    } else {
        Ok(Box::new(file))
    }
}
