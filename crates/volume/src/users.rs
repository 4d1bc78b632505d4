//! The users that count as the user of this process.
//!
//! In a guest kernel, the program is root, and the files of the host belong to the user who started
//! the guest. That user has all rights in the guest, so the files are trusted as the program's own.

use std::sync::OnceLock;

static CALLER: OnceLock<u32> = OnceLock::new();

/// Sets the user of the host who started this guest. Files of this user then count as the program's
/// own. Call it once, and only in a guest.
pub fn set_guest_caller(uid: u32) {
    let _ = CALLER.set(uid);
}

/// Whether a file of this user is the program's own.
pub(crate) fn is_own(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() || CALLER.get() == Some(&uid)
}
