//! `senesce profile`: what the files of a machine are like, as a profile to age others by.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::Printable;
use senesce_experiment::read_description;
use senesce_workload::profile::{
    AgingProfile, Deviation, builtin_profiles, compute_difference, draw_difference, draw_profile, find_builtin,
    merge_profiles,
};
use serde::Serialize;

use super::{capture::capture, output::check_description};
use crate::{
    args::{ProfileArgs, ProfileVerb},
    exit::usage,
    schema::document,
};

/// The version of [`ProfileDiffDocument`].
pub(super) const PROFILE_DIFF_SCHEMA: &str = "senesce-profile-diff/1";

/// The JSON output of `profile diff`.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProfileDiffDocument {
    /// The name of the profile that was found.
    found: String,
    /// The name of the profile that was wanted.
    wanted: String,
    /// The difference of sizes.
    size: Deviation,
    /// The difference of depths.
    depth: Deviation,
    /// The difference of ages, relative to the age of each file system.
    age: Deviation,
}

/// Lists, shows, captures, merges or compares profiles.
pub fn profile(args: ProfileArgs, quiet: bool) -> Result<()> {
    match args.verb {
        ProfileVerb::List => list(),
        ProfileVerb::Show { profile, toml } => {
            let profile = read_profile(&profile)?;
            print(&if toml { render(&profile)? } else { draw_profile(&profile) })
        }
        ProfileVerb::Capture(args) => {
            check_description(args.out.as_deref())?;
            let like = args.like.as_deref().map(read_profile).transpose()?;
            if args.dry_run {
                fs::metadata(&args.path).with_context(|| format!("cannot read {}", args.path.display()))?;
                let out = args.out.as_ref().map_or("stdout".to_owned(), |out| Printable::new(out).to_string());
                let path = Printable::new(&args.path);
                return print(&format!("the files of {path} would be counted, and their profile written to {out}\n"));
            }
            write(&render(&capture(&args, like.as_ref(), quiet)?)?, args.out.as_deref())
        }
        ProfileVerb::Merge { profiles, name, out, dry_run } => {
            let parts = profiles.iter().map(|profile| read_profile(profile)).collect::<Result<Vec<_>>>()?;
            let merged = merge_profiles(&parts, &name).map_err(|problem| {
                let problem = problem.to_string();
                let problem = problem.strip_prefix("not a profile: ").unwrap_or(&problem);
                usage(problem, Some("capture with the bins of the other one: `senesce profile capture --like PROFILE`"))
            })?;
            check_description(out.as_deref())?;
            let text = render(&merged)?;
            if dry_run {
                let to = out.map_or_else(|| "stdout".to_owned(), |out| Printable::new(&out).to_string());
                return print(&format!("profile {name} of {} profiles would be written to {to}\n", parts.len()));
            }
            write(&text, out.as_deref())
        }
        ProfileVerb::Diff { found, wanted, json } => {
            let (found, wanted) = (read_profile(&found)?, read_profile(&wanted)?);
            if !json {
                return print(&draw_difference(&found, &wanted));
            }
            let difference = compute_difference(&found, &wanted);
            let parts = ProfileDiffDocument {
                found: found.name,
                wanted: wanted.name,
                size: difference.size,
                depth: difference.depth,
                age: difference.age,
            };
            print(&format!("{:#}\n", document(PROFILE_DIFF_SCHEMA, parts)))
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
    let text = read_description(name).with_context(|| format!("cannot read {name}"))?;
    AgingProfile::parse(&text).map_err(|problem| usage(format!("{name}: {problem}"), None))
}

fn list() -> Result<()> {
    let mut text = String::new();
    for (name, _) in builtin_profiles() {
        text.push_str(&format!("{name:<12} {}\n", read_profile(name)?.description));
    }
    print(&text)
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
