//! The devices that a plan names.

use std::path::Path;

use senesce_device::{DeviceSpec, find_preset, presets};

use super::{Plan, PlanError};
use crate::description::read_description;

impl Plan {
    /// The devices to model: built-in ones by name, others from files. `path` is the plan's, for
    /// messages.
    ///
    /// Errors: no such device and no such file; a file that describes no device.
    pub fn devices(&self, path: &Path) -> Result<Vec<DeviceSpec>, PlanError> {
        self.measure.devices.iter().map(|name| find_device("measure.devices", name, path)).collect()
    }

    /// The device whose times the volumes have, if they are disks in virtual time.
    ///
    /// Errors: as [`Plan::devices`].
    pub fn virtual_device(&self, path: &Path) -> Result<Option<DeviceSpec>, PlanError> {
        self.volumes.device.as_ref().map(|name| find_device("volumes.device", name, path)).transpose()
    }
}

/// A built-in device by name, or one from a file. `key` and `path` are for messages.
pub(crate) fn find_device(key: &str, name: &str, path: &Path) -> Result<DeviceSpec, PlanError> {
    let wrong = |problem: String| PlanError::Contradiction { path: path.to_owned(), key: key.to_owned(), problem };
    if let Some(spec) = find_preset(name) {
        return Ok(spec);
    }
    let text = read_description(name).map_err(|error| {
        let known = presets().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        wrong(format!(
            "names {name:?}, which is neither built in ({known}) nor a description that can be read ({error})"
        ))
    })?;
    DeviceSpec::parse(&text).map_err(|error| wrong(format!("{name}: {error}")))
}
