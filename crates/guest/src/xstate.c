/* ptrace(2) for user-mode Linux on processors with large registers. `build.rs` makes a shared object of it, and
 * `xstate.rs` preloads that into the guest kernel.
 *
 * User-mode Linux up to 6.11 saves and restores 2,696 bytes of the extended state of a process. The kernel of the
 * host refuses to set a part of the state. On processors with AMX the state has 11,008 bytes, so the guest kernel
 * would panic at its first process. This ptrace sets the whole state: what user-mode Linux passes, then what the
 * process has in the rest.
 *
 * It is linked with nothing. The C library of user-mode Linux has `__errno_location`. */

enum { SYS_PTRACE = 101, PEEK_FIRST = 1, PEEK_LAST = 3, GET_REGISTERS = 0x4204, SET_REGISTERS = 0x4205, EXTENDED = 0x202 };

struct part {
    unsigned char *bytes;
    unsigned long length;
};

extern int *__errno_location(void);

static long call(long request, long process, long address, long data) {
    register long fourth __asm__("r10") = data;
    long result = SYS_PTRACE;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(request), "S"(process), "d"(address), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

static long set_extended(long process, const struct part *given) {
    /* The guest kernel is one process with one thread that traces. */
    static unsigned char state[1 << 16] __attribute__((aligned(64)));
    struct part whole = {state, sizeof state};
    long result = call(GET_REGISTERS, process, EXTENDED, (long)&whole);
    if (result < 0 || whole.length <= given->length)
        return call(SET_REGISTERS, process, EXTENDED, (long)given);
    for (unsigned long at = 0; at < given->length; at++)
        ((volatile unsigned char *)state)[at] = given->bytes[at];
    return call(SET_REGISTERS, process, EXTENDED, (long)&whole);
}

/* The C library declares it with variable arguments. On x86-64 they are passed in the same registers. */
long ptrace(int request, int process, long address, long data) {
    long peeked = 0, result;
    /* The system call stores what the function of the C library returns. */
    int peeks = request >= PEEK_FIRST && request <= PEEK_LAST;
    if (request == SET_REGISTERS && address == EXTENDED)
        result = set_extended(process, (const struct part *)data);
    else
        result = call(request, process, address, peeks ? (long)&peeked : data);
    if (result < 0) {
        *__errno_location() = (int)-result;
        return -1;
    }
    if (peeks)
        *__errno_location() = 0;
    return peeks ? peeked : result;
}
