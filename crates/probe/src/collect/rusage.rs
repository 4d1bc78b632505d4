//! CPU time as the kernel accounts it, by calls that rustix does not offer.

use std::{io, mem::MaybeUninit};

/// CPU time used, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTimes {
    /// In user mode.
    pub user_seconds: f64,
    /// In the kernel.
    pub system_seconds: f64,
}

impl CpuTimes {
    fn from_rusage(usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self { user_seconds: seconds(usage.ru_utime), system_seconds: seconds(usage.ru_stime) }
    }

    /// The time since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_seconds: (self.user_seconds - earlier.user_seconds).max(0.0),
            system_seconds: (self.system_seconds - earlier.system_seconds).max(0.0),
        }
    }
}

/// CPU time of the calling thread so far.
pub(crate) fn collect_thread_times() -> CpuTimes {
    times_of(libc::RUSAGE_THREAD)
}

/// Bytes that the calling thread has requested from block devices so far. 0 if the kernel does not
/// count them.
pub fn collect_thread_read_bytes() -> u64 {
    const BLOCK_BYTES: u64 = 512;
    u64::try_from(usage_of(libc::RUSAGE_THREAD).ru_inblock).unwrap_or(0) * BLOCK_BYTES
}

/// CPU time so far of all threads of this process and of all its exited children.
pub fn collect_process_times() -> CpuTimes {
    let (own, children) = (times_of(libc::RUSAGE_SELF), times_of(libc::RUSAGE_CHILDREN));
    CpuTimes {
        user_seconds: own.user_seconds + children.user_seconds,
        system_seconds: own.system_seconds + children.system_seconds,
    }
}

fn times_of(who: libc::c_int) -> CpuTimes {
    CpuTimes::from_rusage(&usage_of(who))
}

fn usage_of(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes at most one rusage to the pointer, which is valid for it. A zeroed
    // rusage is a valid value (integers only), so that the memory is initialised even after a
    // failure.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Waits for a child; returns its wait status and its CPU time. The caller must not wait for it in
/// another way.
pub(crate) fn wait_with_times(pid: u32) -> io::Result<(i32, CpuTimes)> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are valid for the one value each that wait4 writes.
        if unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) } == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeroed above and integers only, hence initialised whatever wait4 wrote.
    Ok((status, CpuTimes::from_rusage(&unsafe { usage.assume_init() })))
}
