//! Aggregates on devices in memory: what volumes give, what losses of power and damage leave, what the check finds.

mod conformance;
mod crash;
mod damage;
mod drives;
mod faults;
mod forged;
mod guard;
mod rig;
mod scrub;
mod space;
mod volumes;
