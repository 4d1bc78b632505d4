//! How much memory a guest may have, and where the host keeps it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use senesce_core::Bytes;

use crate::{Error, Result};

/// The memory of a guest if the user names none. The host provides it page by page, as the guest
/// uses it.
pub const DEFAULT_MEMORY: Bytes = Bytes(Bytes::GIB);

/// The least memory with which the kernel, its init and a run start.
pub const LEAST_MEMORY: Bytes = Bytes(192 * Bytes::MIB);

/// Checks the memory of a guest, and finds the directory for the file that holds it.
///
/// Out: `/dev/shm` if it has the space, else `temporary`. Errors: too little for a guest, or more
/// than the host has.
pub fn check_memory(asked: Bytes, temporary: &Path) -> Result<PathBuf> {
    let wrong = |why: String| Err(Error::Memory { asked, why });
    if asked < LEAST_MEMORY {
        return wrong(format!("at least {LEAST_MEMORY} are needed"));
    }
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_available(&text));
    if let Some(available) = available.filter(|&available| available < asked) {
        return wrong(format!("the host has {available} available"));
    }
    // A page that the file cannot hold ends the guest (SIGBUS) at a random moment.
    let shared = Path::new("/dev/shm");
    let free = |dir: &Path| {
        let stat = rustix::fs::statvfs(dir).ok()?;
        // The kernel maps its memory executable.
        if stat.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
            return None;
        }
        Some(Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
    };
    let is_writable = rustix::fs::access(shared, rustix::fs::Access::WRITE_OK).is_ok();
    if is_writable && free(shared).is_some_and(|free| free >= asked) {
        return Ok(shared.to_owned());
    }
    match free(temporary) {
        Some(free) if free < asked => {
            wrong(format!("neither /dev/shm nor {} ({free} free) has space for it", temporary.display()))
        }
        Some(_) => Ok(temporary.to_owned()),
        None => wrong(format!("neither /dev/shm nor {} can hold it: they are mounted noexec", temporary.display())),
    }
}

fn parse_available(text: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(Bytes(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(Bytes::KIB)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_and_too_much_are_refused() {
        let dir = Path::new("/tmp");
        let problem = |bytes| check_memory(Bytes(bytes), dir).unwrap_err();
        assert!(problem(1 << 20).to_string().contains("at least 192"), "{}", problem(1 << 20));
        assert!(problem(1 << 60).to_string().contains("available"), "{}", problem(1 << 60));
        assert!(problem(0).hint().unwrap().contains("--guest-memory"));
        assert_eq!(parse_available("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(Bytes(2 << 20)));
    }
}
