//! Helps user-mode Linux on processors whose extended registers are larger than it knows.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsRawFd,
};

use rustix::fs::{MemfdFlags, memfd_create};

/// See `xstate.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xstate.so"));

/// The bytes of the extended state that user-mode Linux up to 6.11 sets: those of processors with
/// AVX-512 and protection keys.
#[cfg(target_arch = "x86_64")]
const KNOWN_BYTES: u32 = 2696;

/// The shared object in memory. The kernel of a guest must inherit its descriptor.
pub(crate) struct Preload(File);

impl Preload {
    /// Makes the shared object, if this processor needs it.
    ///
    /// Errors: the object cannot be stored.
    pub fn for_this_processor() -> io::Result<Option<Self>> {
        if !has_large_state() {
            return Ok(None);
        }
        // Without close-on-exec: user-mode Linux also executes itself.
        let mut file = File::from(memfd_create("senesce-xstate", MemfdFlags::empty())?);
        file.write_all(OBJECT)?;
        Ok(Some(Self(file)))
    }

    /// The value of `LD_PRELOAD` for a child that inherits the descriptor.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

#[cfg(target_arch = "x86_64")]
fn has_large_state() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    /// The leaf that describes the extended state.
    const LEAF: u32 = 0xD;
    // `ebx`: the bytes of the components that the kernel of the host uses.
    __cpuid(0).eax >= LEAF && __cpuid_count(LEAF, 0).ebx > KNOWN_BYTES
}

#[cfg(not(target_arch = "x86_64"))]
fn has_large_state() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_program_runs_with_the_object() {
        let mut file = File::from(memfd_create("senesce-xstate", MemfdFlags::empty()).unwrap());
        file.write_all(OBJECT).unwrap();
        // The loader prints objects that it cannot preload, and continues without them.
        let output = Command::new("/bin/true").env("LD_PRELOAD", Preload(file).path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
