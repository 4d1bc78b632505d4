//! Which users count as this one.
//!
//! In a guest kernel, the program is root, and the files of the host belong to the user who started
//! the guest. That user has all rights in the guest, so the files are as good as the program's own.

use std::sync::OnceLock;

static CALLER: OnceLock<u32> = OnceLock::new();

/// In a guest, the user of the host who started it: files of this user count as the program's own
/// from now on. Call it once, and only in a guest.
pub fn set_guest_caller(uid: u32) {
    let _ = CALLER.set(uid);
}

/// Whether a file of this user is the program's own.
pub(crate) fn is_own(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() || CALLER.get() == Some(&uid)
}
