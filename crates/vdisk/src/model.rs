//! Finds the modelled device of a name.

use senesce_core::{BlockRequest, Nanos};
use senesce_device::{DeviceModel, DeviceSpec, find_preset, presets};

use crate::{Error, Result};

/// A disk with simple times, for tests and first trials: 100 us a request, 8 ms more if it does not
/// start where the previous one ended, 100 MB/s. A discard or a flush needs 100 us.
#[derive(Debug, Default)]
pub struct PlainDisk {
    head: u64,
}

/// The name of [`PlainDisk`].
pub const PLAIN: &str = "plain";

impl DeviceModel for PlainDisk {
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
        use senesce_core::BlockOp::{Discard, Flush, Read, Write};
        let moving = match request.op {
            Discard | Flush => 0,
            Read | Write => {
                let seek = if request.sector == self.head { 0 } else { 8_000_000 };
                self.head = request.end();
                seek + request.bytes() * 10
            }
        };
        Nanos(arrival.0 + 100_000 + moving)
    }

    fn name(&self) -> &str {
        "model: plain"
    }
}

/// The modelled device called `name`: `plain`, a preset of the device crate, or a whole
/// description. A description is the TOML text of a [`DeviceSpec`], recognised by its line breaks.
///
/// Errors: there is no such device, or the description is not valid.
pub fn find_device(name: &str) -> Result<Box<dyn DeviceModel>> {
    let shown = name.lines().next().unwrap_or_default();
    let bad = |problem: String| Error::Device { name: shown.to_owned(), problem };
    if name == PLAIN {
        return Ok(Box::new(PlainDisk::default()));
    }
    let spec = if name.trim_end().contains('\n') {
        DeviceSpec::parse(name).map_err(|error| bad(error.to_string()))?
    } else {
        let known = || presets().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        find_preset(name).ok_or_else(|| bad(format!("known are {PLAIN}, {}", known())))?
    };
    spec.build().map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_name_or_description() {
        assert_eq!(find_device("plain").unwrap().name(), "model: plain");
        let preset = find_device("hdd-7200").unwrap().name().to_owned();
        assert!(preset.starts_with("model: "), "{preset}");
        let text = find_preset("hdd-7200").unwrap().render().unwrap();
        assert_eq!(find_device(&text).unwrap().name(), preset);
    }

    #[test]
    fn an_unknown_device_is_refused_with_known_names() {
        let error = find_device("hdd-7201").err().unwrap().to_string();
        assert!(error.contains("hdd-7201") && error.contains("hdd-7200"), "{error}");
        assert!(find_device("format = 1\nname = 2\n").is_err());
    }
}
