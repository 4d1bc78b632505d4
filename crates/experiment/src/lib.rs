//! Executes plans: a plan has arms, an arm has cells, a cell has results. A journal makes a killed
//! run resumable.
//!
//! [`Run::create`] starts a run of a [`plan::Plan`], [`Run::execute`] completes it, and
//! [`Run::resume`] continues it after a kill. An [`Observer`] receives the events. This crate
//! combines the others. It prints nothing, and reaches the machine only through [`World`].

mod age;
mod arm;
pub mod campaign;
mod circumstances;
mod description;
mod drive_meter;
mod durable_files;
mod environment;
mod error;
pub mod feedback;
pub mod journal;
mod observer;
mod paths;
mod personality;
pub mod plan;
mod prepare;
mod preview;
mod replay;
mod run;
mod sizing;
mod source;
pub mod suite;
mod volumes;

pub use age::{AgeEnd, AgeEnded, AgeLatency, AgeOptions, Ages, Layout, Until, age_into, collect_layout, plan_aging};
pub use description::read_description;
pub use drive_meter::DriveMeter;
pub use environment::{EngineTeller, KernelLoad, LoadMeter, World};
pub use error::{Error, ErrorKind, Interrupted, classify, interruption};
pub use observer::{Event, GrepCost, Observer, Phase};
pub use paths::RunPaths;
pub use personality::{
    DeviceFigures, FlowFigures, PersonalityFigures, PersonalityRun, measure_personality, personality_schema_json,
    read_personality,
};
pub use preview::{Preview, preview};
pub use replay::{Against, Onto, ReplayEnd, ReplayOptions, ReplayPace, replay_log};
pub use run::{BEGUN_UNIX_SECONDS, Run, RunEnd, TOOK_SECONDS, hash_of_plan};
pub use senesce_gitsource::TrustedOwners;
pub use sizing::{Sizes, planned_bytes};
pub use source::{GitSource, Source, collect_peak};
pub use volumes::{create_untaken, kind};
