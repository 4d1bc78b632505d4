//! How the C library's allocator keeps memory that was freed.

/// Lets a mount use the memory that it was allowed, and little more.
///
/// By default glibc has a heap for each thread. A mount allocates in the threads that serve and
/// frees in the one that writes, so that each heap keeps what the others could use; and a heap of a
/// thread grows by a system call for each page. One heap for all, which grows and shrinks in larger
/// steps, takes a sixth less memory and a fourth less processor time to write a large file. Call it
/// before other threads run. Other C libraries are left as they are.
pub fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    {
        const MIB: libc::c_int = 1 << 20;
        let parameters = [
            (libc::M_ARENA_MAX, 1),
            (libc::M_TOP_PAD, 4 * MIB),
            // Larger allocations are mapped, and unmapped when they are freed. The largest reads of
            // an engine, 16 MiB, stay below. The buffers of FUSE requests, 16 MiB and a page for
            // each thread, are above: so only the pages that a request fills take memory.
            (libc::M_MMAP_THRESHOLD, 16 * MIB + 2048),
            (libc::M_TRIM_THRESHOLD, 64 * MIB),
        ];
        for (parameter, value) in parameters {
            // SAFETY: it sets a number of the allocator, and no other thread allocates at the same
            // time. If it refuses, memory is kept as before, which is no error.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}
