//! Real volumes on real loop devices, as root only. Every test makes its own images. The
//! custodian's drop removes them, also after a failure.

mod bench;
mod copying;
mod devices;
mod in_use;
mod killed;
mod signatures;
mod virtual_disk;
mod volumes;
