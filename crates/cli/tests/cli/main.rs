//! The `senesce` program as a user meets it: commands, exit codes, what is printed and which
//! resources remain.
//!
//! Tests that format and mount need root. Each works in a [`lab::Lab`] of its own, which is emptied
//! also on failure.

mod age;
mod bad_input;
mod bad_machine;
mod bench;
mod clean;
mod cure;
mod defrag;
mod defrag_limits;
mod defrag_pieces;
mod defrag_space;
mod disk;
mod dry_run;
mod equivalence;
mod extreme_plans;
mod forged;
mod fragment;
mod fs;
mod fs_away;
mod fs_bad;
mod fs_damage;
mod fs_defrag;
mod fs_degraded;
mod fs_drives;
mod fs_durable;
mod fs_eio;
mod fs_evergreen;
mod fs_full;
mod fs_live;
mod fs_load;
mod fs_repair;
mod fs_snapshots;
mod fs_tier;
mod fs_volumes;
mod fs_wrong_server;
mod garden_gardening;
mod garden_mount;
mod garden_plans;
mod garden_reproduce;
mod guest;
mod hostile;
mod image;
mod inspect;
mod killed;
mod lab;
mod log;
mod look_inside;
mod nightly;
mod outputs;
mod personality;
mod places;
mod plans;
mod power_cut;
mod readme;
mod record;
mod replayed;
mod repositories;
mod resume;
mod untrusted;
mod virtual_disk;
mod wrong_uses;
