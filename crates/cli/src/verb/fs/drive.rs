//! Driving an engine in this process, for verbs that do so with other places too.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use senesce_exec::EngineTarget;
use senesce_garden::{Garden, Limits};

use super::place;
use crate::{clock::SystemClock, exit::usage};

/// Opens the first volume of the garden in a directory and hands it out; afterwards everything is in a consistency point.
///
/// Errors: no garden, or one that holds something already.
pub fn with_engine<T>(dir: &Path, act: impl FnOnce(&EngineTarget) -> Result<T>) -> Result<T> {
    let devices = place::open(dir)?;
    let opened = Garden::open(&devices.drives, devices.log, Limits::default());
    let garden = opened.with_context(|| format!("cannot open {}", dir.display()))?;
    let name = garden.volumes().into_iter().next().ok_or_else(|| usage("the garden has no volume", None))?;
    let target = EngineTarget::new(Arc::new(garden.volume(&name)?), Arc::new(SystemClock::start()));
    if !target.is_empty().with_context(|| format!("cannot list {}", dir.display()))? {
        return Err(usage(format!("{} is not empty", dir.display()), Some("`senesce fs mkfs garden` makes a new one")));
    }
    let done = act(&target)?;
    garden.consistency_point().with_context(|| format!("cannot close {}", dir.display()))?;
    Ok(done)
}
