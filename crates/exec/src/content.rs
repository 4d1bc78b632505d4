//! Payloads: their hashes, their bytes in pieces, and their beginnings.

use std::{
    fs::File,
    io::{self, Read},
    iter,
    sync::Arc,
};

use senesce_core::{StopFn, never};
use senesce_oplog::{Content, ContentError, ContentSource, Op, Payload, seeded_bytes};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The size of the pieces in which contents outside memory are read, generated and written, bytes.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Calls `each` with the bytes of the payload in order. Pieces have at most [`CHUNK_BYTES`], unless
/// the payload is in memory.
///
/// `buffer` is scratch space that grows to at most [`CHUNK_BYTES`]. Errors: reading the payload's
/// file, also if it is shorter than the payload; those of `each`.
pub(crate) fn for_each_chunk<E: From<io::Error>>(
    payload: &Payload,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    match payload {
        Payload::Bytes(bytes) if bytes.is_empty() => Ok(()),
        Payload::Bytes(bytes) => each(bytes),
        Payload::File { path, len } => {
            let named = |e: io::Error| io::Error::new(e.kind(), format!("content file {}: {e}", path.display()));
            let mut file = File::open(path).map_err(named)?;
            chunked(*len, buffer, |_, out| file.read_exact(out).map_err(named), each)
        }
        Payload::Seeded { seed, len } => chunked(
            *len,
            buffer,
            |at, out| {
                seeded_bytes(*seed, at, out);
                Ok(())
            },
            each,
        ),
    }
}

fn chunked<E: From<io::Error>>(
    len: u64,
    buffer: &mut Vec<u8>,
    mut fill: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = 0;
    while at < len {
        let size = (len - at).min(CHUNK_BYTES as u64) as usize;
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        fill(at, &mut buffer[..size])?;
        each(&buffer[..size])?;
        at += size as u64;
    }
    Ok(())
}

/// XXH3-64 of the bytes of a payload. Fails if `stop` returns true.
pub(crate) fn compute_hash(payload: &Payload, buffer: &mut Vec<u8>, stop: StopFn) -> io::Result<u64> {
    if let Payload::Bytes(bytes) = payload {
        return Ok(xxh3_64(bytes));
    }
    let mut hasher = Xxh3Default::new();
    for_each_chunk(payload, buffer, |chunk| {
        check_stop(stop)?;
        hasher.update(chunk);
        Ok::<(), io::Error>(())
    })?;
    Ok(hasher.digest())
}

/// Fails if `stop` returns true.
pub(crate) fn check_stop(stop: StopFn) -> io::Result<()> {
    if stop() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// A payload that can be written, with the XXH3-64 of its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub payload: Payload,
    pub hash: u64,
}

/// Makes a content and its hash. Seeded contents of at most [`CHUNK_BYTES`] are generated in memory
/// once, instead of twice for the hash and for the write.
///
/// A derived content that is not resolved yet is not kept: a step that copies a whole repository
/// would otherwise hold all of it in memory.
pub(crate) fn make_ready(
    content: &Content,
    source: &dyn ContentSource,
    buffer: &mut Vec<u8>,
) -> Result<Ready, ContentError> {
    make_ready_until(content, source, buffer, never)
}

/// Makes a content and its hash, as [`make_ready`] does. Fails if `stop` returns true.
pub(crate) fn make_ready_until(
    content: &Content,
    source: &dyn ContentSource,
    buffer: &mut Vec<u8>,
    stop: StopFn,
) -> Result<Ready, ContentError> {
    if let Some((payload, hash)) = source.ready(content) {
        return Ok(Ready { payload, hash });
    }
    let payload = make_payload(content, source)?;
    let remembered = if let Content::Derived(derived) = content { derived.hash() } else { None };
    let hash = match remembered {
        Some(hash) => hash,
        None => {
            let hash = compute_hash(&payload, buffer, stop).map_err(|source| ContentError {
                key: content.to_string(),
                problem: source.to_string(),
                source: Some(Box::new(source)),
            })?;
            if let Content::Derived(derived) = content {
                derived.remember_hash(hash);
            }
            hash
        }
    };
    Ok(Ready { payload, hash })
}

/// The bytes of a content, without their hash.
pub(crate) fn make_payload(content: &Content, source: &dyn ContentSource) -> Result<Payload, ContentError> {
    Ok(match content {
        Content::Inline(bytes) => Payload::Bytes(bytes.clone()),
        Content::Seeded { seed, len } if *len <= CHUNK_BYTES as u64 => {
            let mut bytes: Arc<[u8]> = iter::repeat_n(0, *len as usize).collect();
            seeded_bytes(*seed, 0, Arc::get_mut(&mut bytes).expect("it was just made"));
            Payload::Bytes(bytes)
        }
        Content::Seeded { seed, len } => Payload::Seeded { seed: *seed, len: *len },
        Content::Derived(derived) => match derived.resolved() {
            Some(payload) => payload.clone(),
            None => source.payload(&derived.key)?,
        },
    })
}

/// Resolves and hashes the derived contents of `ops` before their use, for example on another
/// thread. The operations keep the results until they are dropped.
///
/// Stops when `most_bytes` are held, so that one huge step does not fill the memory. Applying the
/// step makes the remaining contents.
///
/// Out: the bytes that `ops` now hold in memory. Contents in files do not count.
pub fn resolve_ops(ops: &[Op], source: &dyn ContentSource, most_bytes: u64) -> Result<u64, ContentError> {
    let mut held_bytes = 0;
    let mut buffer = Vec::new();
    for content in ops.iter().filter_map(Op::content) {
        if held_bytes >= most_bytes {
            break;
        }
        if let Content::Derived(_) = content {
            // The first call keeps the payload in the operation. The second call finds it there and
            // hashes it.
            content.payload(source)?;
            if let Payload::Bytes(bytes) = make_ready(content, source, &mut buffer)?.payload {
                held_bytes += bytes.len() as u64;
            }
        }
    }
    Ok(held_bytes)
}
