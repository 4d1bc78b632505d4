//! Names of volumes and snapshots as a command gives them: after a directory, or alone with drives
//! that are named.

use std::{ffi::OsString, ops::RangeInclusive, os::unix::ffi::OsStrExt, path::PathBuf};

use anyhow::Result;
use senesce_garden::{Error, Garden};

use super::{mkfs::USUAL_VOLUME, place::Place};
use crate::{
    args::{FsDrivesArgs, FsPlaceArgs},
    exit::usage,
};

/// Splits the words of a command: the place of the garden, and `N` names. Errors: more or fewer
/// of them.
pub fn split(words: &[OsString], drives: &FsDrivesArgs, names: RangeInclusive<usize>) -> Result<(Place, Vec<Vec<u8>>)> {
    let (place, rest) = match drives.drive.is_empty() {
        true => words.split_first().map_or((None, words), |(first, rest)| (Some(PathBuf::from(first)), rest)),
        false => (None, words),
    };
    if !names.contains(&rest.len()) {
        let (least, most) = (names.start(), names.end());
        let wanted = if least == most { format!("{least}") } else { format!("{least} or {most}") };
        let given = rest.iter().map(|name| show(name.as_bytes())).collect::<Vec<_>>().join(", ");
        let given = if given.is_empty() { "none".to_owned() } else { given };
        let message = format!("{wanted} name(s) must follow the garden; these were given: {given}");
        return Err(usage(message, Some("`-h` shows the names and their order")));
    }
    let place = Place::of(&FsPlaceArgs { place, drive: drives.drive.clone(), log: drives.log.clone() })?;
    Ok((place, rest.iter().map(|name| name.as_bytes().to_vec()).collect()))
}

/// Splits the words of a command: the place of the garden, and a volume, which is `main` by
/// default. Errors: more than one name.
pub fn split_volume(words: &[OsString], drives: &FsDrivesArgs) -> Result<(Place, Vec<u8>)> {
    let (place, mut names) = split(words, drives, 0..=1)?;
    Ok((place, names.pop().unwrap_or_else(|| USUAL_VOLUME.as_bytes().to_vec())))
}

/// Splits the words of a command: the place of the garden, a volume, which is `main` by default,
/// and a snapshot. Errors: more or fewer of them.
pub fn split_snapshot(words: &[OsString], drives: &FsDrivesArgs) -> Result<(Place, [Vec<u8>; 2])> {
    let (place, mut names) = split(words, drives, 1..=2)?;
    let snapshot = names.pop().unwrap_or_default();
    Ok((place, [names.pop().unwrap_or_else(|| USUAL_VOLUME.as_bytes().to_vec()), snapshot]))
}

/// A name for people: characters that would move the cursor are escaped.
pub fn show(name: &[u8]) -> String {
    if name.is_empty() {
        return "\"\"".to_owned();
    }
    let text = String::from_utf8_lossy(name);
    let tell =
        |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() };
    text.chars().map(tell).collect()
}

/// The error of a verb that only reads: a structure that does not exist is a matter of usage.
pub fn explain_missing(error: Error) -> anyhow::Error {
    match error {
        Error::Invalid { what } => usage(what, None),
        error => error.into(),
    }
}

/// What cannot be because of a name is the command's matter, and there it helps to know which names
/// there are.
pub fn explain(garden: &Garden, volume: &[u8], error: Error) -> anyhow::Error {
    let Error::Invalid { what } = error else { return error.into() };
    let list = |names: Vec<Vec<u8>>| names.iter().map(|name| show(name)).collect::<Vec<_>>().join(", ");
    let hint = match garden.snapshots(volume) {
        Err(_) => format!("its volumes: {}", list(garden.volumes())),
        Ok(snapshots) if snapshots.is_empty() => format!("volume {} has no snapshots", show(volume)),
        Ok(snapshots) => {
            let names = list(snapshots.into_iter().map(|snapshot| snapshot.name).collect());
            format!("volume {} has the snapshots: {names}", show(volume))
        }
    };
    usage(what, Some(&hint))
}
