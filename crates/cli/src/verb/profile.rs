//! `senesce profile`: what the files of a machine are like, as a profile to age others by.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::Clock;
use senesce_probe::collect::{CensusOptions, collect_census};
use senesce_workload::profile::{
    AgingProfile, Captured, FoundFile, builtin_profiles, compute_difference, compute_profile, draw_difference,
    draw_profile, find_builtin, merge_profiles,
};

use crate::{
    args::{ProfileArgs, ProfileCaptureArgs, ProfileVerb},
    clock::SystemClock,
    exit::usage,
    machine::count_threads,
};

/// Lists, shows, captures, merges or compares profiles.
pub fn profile(args: ProfileArgs, quiet: bool) -> Result<()> {
    match args.verb {
        ProfileVerb::List => list(),
        ProfileVerb::Show { profile, toml } => {
            let profile = read_profile(&profile)?;
            print(&if toml { render(&profile)? } else { draw_profile(&profile) })
        }
        ProfileVerb::Capture(args) => capture(&args, quiet),
        ProfileVerb::Merge { profiles, name, out } => {
            let parts = profiles.iter().map(|profile| read_profile(profile)).collect::<Result<Vec<_>>>()?;
            let merged = merge_profiles(&parts, &name).map_err(|problem| usage(problem.to_string(), None))?;
            write(&render(&merged)?, out.as_deref())
        }
        ProfileVerb::Diff { found, wanted, json } => {
            let (found, wanted) = (read_profile(&found)?, read_profile(&wanted)?);
            if !json {
                return print(&draw_difference(&found, &wanted));
            }
            let difference = compute_difference(&found, &wanted);
            let document = serde_json::json!({
                "schema": "senesce-profile-diff/1",
                "found": found.name,
                "wanted": wanted.name,
                "size": difference.size,
                "depth": difference.depth,
                "age": difference.age,
            });
            print(&format!("{}\n", serde_json::to_string_pretty(&document)?))
        }
    }
}

/// A built-in profile by its name, or one in a file.
fn read_profile(name: &str) -> Result<AgingProfile> {
    if let Some(profile) = find_builtin(name) {
        return Ok(profile);
    }
    if !Path::new(name).exists() {
        let known = builtin_profiles().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let hint = format!("known profiles: {known}; or the path of one");
        return Err(usage(format!("there is no profile and no file {name:?}"), Some(&hint)));
    }
    let text = fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    AgingProfile::parse(&text).map_err(|problem| usage(format!("{name}: {problem}"), None))
}

fn list() -> Result<()> {
    let mut text = String::new();
    for (name, _) in builtin_profiles() {
        text.push_str(&format!("{name:<12} {}\n", read_profile(name)?.description));
    }
    print(&text)
}

fn capture(args: &ProfileCaptureArgs, quiet: bool) -> Result<()> {
    let clock = SystemClock::start();
    let like = args.like.as_deref().map(read_profile).transpose()?;
    let threads = count_threads(args.threads);
    let census = collect_census(&args.path, &CensusOptions { threads, with_extents: args.extents })?;
    let took = clock.now();
    for error in &census.errors {
        eprintln!("cannot {} {}: {}", error.operation, error.path.display(), error.message);
    }
    if census.errors_count > 0 {
        eprintln!("{} entries could not be looked at; the profile is of the others", census.errors_count);
    }
    let now = args.now.unwrap_or_else(|| clock.unix_seconds());
    let found: Vec<FoundFile> = census
        .files
        .iter()
        .map(|file| FoundFile {
            size_bytes: file.size_bytes,
            depth: u64::from(file.depth),
            age_seconds: now.saturating_sub(u64::try_from(file.modified_unix_seconds).unwrap_or(0)),
            extents: file.extents.map(u64::from),
        })
        .collect();
    let captured = Captured {
        name: &args.name,
        study: format!("captured by senesce {}", env!("CARGO_PKG_VERSION")),
        fullness: Some(collect_fullness(&args.path)?),
        directories_by_depth: &census.directories_by_depth,
        like: like.as_ref(),
    };
    let profile = compute_profile(&found, &captured)
        .map_err(|problem| usage(format!("{}: {problem}", args.path.display()), None))?;
    if !quiet {
        let directories: u64 = census.directories_by_depth.iter().sum();
        eprintln!(
            "{} files in {directories} directories, {:.2} s with {threads} thread(s)",
            census.files.len(),
            took.as_secs_f64()
        );
    }
    write(&render(&profile)?, args.out.as_deref())
}

/// Share of the file system's capacity that is used.
fn collect_fullness(path: &Path) -> Result<f64> {
    let stat = rustix::fs::statvfs(path).with_context(|| format!("cannot look at {}", path.display()))?;
    Ok(1.0 - stat.f_bavail as f64 / stat.f_blocks.max(1) as f64)
}

fn render(profile: &AgingProfile) -> Result<String> {
    profile.render().map_err(anyhow::Error::msg)
}

fn write(text: &str, out: Option<&Path>) -> Result<()> {
    match out {
        None => print(text),
        Some(path) => fs::write(PathBuf::from(path), text).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// To stdout; a reader that went away is no failure of ours and ends with its error.
fn print(text: &str) -> Result<()> {
    print!("{text}");
    Ok(())
}
