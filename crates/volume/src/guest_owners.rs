//! The users that count as the user of this process, and as root.
//!
//! In a guest kernel, the program is root, and the files of the host belong to the user who started
//! the guest. That user has all rights in the guest, so the files are trusted as the program's own.
//! If the guest is in a user namespace, files of the host's root belong to a user without a name.
//! The launcher has checked them on the host.

use std::sync::OnceLock;

static GUEST: OnceLock<GuestOwners> = OnceLock::new();

/// How a guest sees owners of the host's files.
#[derive(Clone, Copy, Debug)]
pub struct GuestOwners {
    /// The user of the host who started the guest.
    pub caller: u32,
    /// The host's root. In a user namespace, it is also each other user of the host.
    pub system: u32,
}

/// Sets the owners that this guest trusts. Call it once, and only in a guest.
pub fn set_guest_owners(owners: GuestOwners) {
    let _ = GUEST.set(owners);
}

/// Whether a file of this user is the program's own.
pub(crate) fn is_own(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw() || GUEST.get().is_some_and(|owners| owners.caller == uid)
}

/// Whether a file of this user belongs to the machine.
pub(crate) fn is_system(uid: u32) -> bool {
    uid == 0 || GUEST.get().is_some_and(|owners| owners.system == uid)
}
