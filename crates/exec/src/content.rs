//! Payloads made ready: their hashes, their bytes in pieces, their beginnings.

use std::{
    fs::File,
    io::{self, Read},
    iter,
    sync::Arc,
};

use senesce_core::{StopFn, never};
use senesce_oplog::{Content, ContentError, ContentSource, Op, Payload, seeded_bytes};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Size of the pieces in which contents that are not in memory are read, grown and written, bytes.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Calls `each` with the payload's bytes in order, in pieces of at most [`CHUNK_BYTES`] unless they are in memory.
///
/// `buffer` is scratch space that grows to at most [`CHUNK_BYTES`]. Errors: of reading the payload's file (a file
/// shorter than the payload says is one), and whatever `each` returns.
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

/// XXH3-64 of a payload's bytes. Fails if `stop` returns true.
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

/// A payload ready to be written, with the XXH3-64 of all of it.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub payload: Payload,
    pub hash: u64,
}

/// Makes a content ready. Seeded contents of at most [`CHUNK_BYTES`] are grown into memory, so that they are grown
/// once and not twice (for the hash and for the write).
///
/// A derived content that nobody resolved before is not kept: a step that copies a whole repository would otherwise
/// hold all of it in memory.
pub(crate) fn make_ready(
    content: &Content,
    source: &dyn ContentSource,
    buffer: &mut Vec<u8>,
) -> Result<Ready, ContentError> {
    make_ready_until(content, source, buffer, never)
}

/// Makes a content ready as [`make_ready`] does. Fails if `stop` returns true.
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

/// Resolves and hashes every derived content of `ops` ahead of their use, for example on another thread; the results
/// are kept in the operations until those are dropped.
///
/// Stops when `most_bytes` are held, so that one huge step does not fill the memory; whoever applies it makes the rest.
///
/// Out: the bytes that are now held in memory for `ops` (contents in files count nothing).
pub fn resolve_ops(ops: &[Op], source: &dyn ContentSource, most_bytes: u64) -> Result<u64, ContentError> {
    let mut held_bytes = 0;
    let mut buffer = Vec::new();
    for content in ops.iter().filter_map(Op::content) {
        if held_bytes >= most_bytes {
            break;
        }
        if let Content::Derived(_) = content {
            // The first call keeps the payload in the operation, the second finds it there and hashes it.
            content.payload(source)?;
            if let Payload::Bytes(bytes) = make_ready(content, source, &mut buffer)?.payload {
                held_bytes += bytes.len() as u64;
            }
        }
    }
    Ok(held_bytes)
}
