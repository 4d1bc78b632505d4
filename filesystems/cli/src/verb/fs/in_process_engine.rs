//! Driving an engine in this process, for verbs that do so with other places too.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use senesce_exec::EngineTarget;
use senesce_garden::Garden;

use super::place::Place;
use crate::{clock::SystemClock, exit::usage};

/// Opens the first volume of the garden at a path and hands it out; afterwards everything is in a
/// consistency point.
///
/// Errors: no garden, or one that holds something already.
pub fn with_engine<T>(dir: &Path, act: impl FnOnce(&EngineTarget, &Garden) -> Result<T>) -> Result<T> {
    let place = Place::at(dir);
    let garden = place.garden(&place.open()?)?;
    let name = garden.volumes().into_iter().next().ok_or_else(|| usage("the garden has no volume", None))?;
    let target = EngineTarget::new(Arc::new(garden.volume(&name)?), Arc::new(SystemClock::start()));
    if !target.is_empty().with_context(|| format!("cannot list {place}"))? {
        return Err(usage(format!("{place} is not empty"), Some("`senesce fs mkfs garden` makes a new one")));
    }
    let done = act(&target, &garden)?;
    garden.close().with_context(|| format!("cannot close {place}"))?;
    Ok(done)
}
