//! Values that shell completion offers.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use senesce_device::presets;
use senesce_experiment::RunPaths;
use senesce_report::MapColour;
use senesce_store::Table;
use senesce_volume::Registry;
use senesce_workload::{personality::builtin_personalities, profile::builtin_profiles};

use crate::verb::run::registry_dir;

/// Workloads of `age` that need no argument after a colon.
const WORKLOADS: [&str; 8] =
    ["fsfb", "mail", "intrafile", "interfile", "renames", "overwrite", "synthetic", "profile:"];
/// Prefixes of workloads that read a file or repository.
const PREFIXES: [&str; 3] = ["git:", "replay:", "trace:"];

/// Prefixes of places. All but the first are followed by a file or directory.
const PLACES: [&str; 3] = ["image:", "garden:", "evergreen:"];

/// Candidates from names.
fn named(names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Directories of runs: those in the caller's list, and those below `senesce-runs`.
pub fn runs() -> Vec<CompletionCandidate> {
    let listed = registry_dir().and_then(|dir| Ok(Registry::new(&dir).runs()?)).unwrap_or_default();
    let local = std::fs::read_dir("senesce-runs").into_iter().flatten().flatten().map(|entry| entry.path());
    let here = std::fs::read_dir(".").into_iter().flatten().flatten().map(|entry| entry.file_name().into());
    let mut found: Vec<_> =
        listed.into_iter().chain(local).chain(here).filter(|dir| RunPaths::new(dir).results().is_dir()).collect();
    found.sort();
    found.dedup();
    found.into_iter().map(CompletionCandidate::new).collect()
}

/// Names of result tables.
pub fn tables() -> Vec<CompletionCandidate> {
    named(Table::ALL.map(|table| table.name().to_owned()))
}

/// Colours of the map of `inspect`.
pub fn map_colours() -> Vec<CompletionCandidate> {
    named(MapColour::ALL.map(|colour| colour.name().to_owned()))
}

/// Devices with a built-in model, and files.
pub fn devices() -> ArgValueCompleter {
    names_and_files(|| presets().map(|(name, _)| name.to_owned()).collect())
}

/// Built-in profiles, and files.
pub fn profiles() -> ArgValueCompleter {
    names_and_files(profile_names)
}

/// Built-in personalities, and files.
pub fn personalities() -> ArgValueCompleter {
    names_and_files(|| builtin_personalities().map(|(name, _)| name.to_owned()).collect())
}

fn profile_names() -> Vec<String> {
    builtin_profiles().map(|(name, _)| name.to_owned()).collect()
}

/// Workloads of `age`, and plans.
pub fn workloads() -> ArgValueCompleter {
    names_and_files(|| {
        let profiles = profile_names().into_iter().map(|name| format!("profile:{name}"));
        WORKLOADS.iter().chain(&PREFIXES).map(|name| (*name).to_owned()).chain(profiles).collect()
    })
}

/// Places of `age` and `replay`: directories, devices, images, and file systems of this project.
pub fn places() -> ArgValueCompleter {
    names_and_files(|| PLACES.map(str::to_owned).to_vec())
}

/// Prefixes of the places that `inspect` reads; files and devices follow.
pub fn places_to_inspect() -> ArgValueCompleter {
    names_and_files(|| PLACES[1..].iter().map(|prefix| (*prefix).to_owned()).collect())
}

/// Names with the typed beginning, then files. After a prefix such as `git:` files follow.
fn names_and_files(names: fn() -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let typed = current.to_string_lossy();
        let mut found = named(names().into_iter().filter(|name| name.starts_with(&*typed)));
        let prefix = PREFIXES.iter().chain(&PLACES[1..]).find(|prefix| typed.starts_with(**prefix));
        match prefix {
            Some(prefix) => {
                let files = PathCompleter::file().complete(OsStr::new(&typed[prefix.len()..]));
                found.extend(files.into_iter().map(|file| file.add_prefix(*prefix)));
            }
            None => found.extend(PathCompleter::file().complete(current)),
        }
        found
    })
}
