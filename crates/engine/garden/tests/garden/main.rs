//! Aggregates on devices in memory: what volumes give, what losses of power and damage leave, what the check finds.

mod clones;
mod conformance;
mod crash;
mod damage;
mod dedup;
mod defrag;
mod diff;
mod drives;
mod dump;
mod faults;
mod forged;
mod gardening;
mod guard;
mod log;
mod long;
mod packing;
mod packing_damage;
mod rig;
mod scrub;
mod snapshot_crash;
mod snapshots;
mod space;
mod stale;
mod together;
mod volume_clones;
mod volumes;
