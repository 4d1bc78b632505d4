//! One file per verb.

pub mod age;
pub mod bench;
mod capture;
pub mod clean;
pub mod compare;
pub mod defrag;
pub mod device;
pub mod export;
pub mod fragment;
pub mod fs;
pub mod garden;
pub mod generate;
pub mod grep;
pub mod home;
pub mod image;
pub mod inspect;
mod little;
pub mod log;
pub mod personality;
pub mod profile;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod show;
pub mod synth;
pub mod trace;
