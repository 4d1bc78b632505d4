//! Real volumes on real loop devices: root only. Every test makes its own images and takes them away again, also
//! when it fails, since the custodian's drop does it.

mod bench;
mod copying;
mod devices;
mod in_use;
mod killed;
mod signatures;
mod virtual_disk;
mod volumes;
