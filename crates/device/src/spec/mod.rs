//! The description of a device: a TOML text of constants, each with its unit and its source.
//!
//! ```
//! let spec = senesce_device::find_preset("hdd-7200").unwrap();
//! let rotation = &spec.constants["rotation"];
//! assert_eq!((rotation.value, rotation.unit.as_str()), (7200.0, "rpm"));
//! assert!(!rotation.source.is_empty());
//! let model = spec.build().unwrap();
//! assert_eq!(model.name(), "model: HDD 7.2K");
//! ```

mod keys;
mod presets;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use keys::{KeyRule, keys};
pub use presets::{find_preset, presets};

use crate::{
    DeviceModel, Error,
    hdd::Hdd,
    ssd::{FlashState, Ssd},
};

/// The format that this version reads and writes.
pub const FORMAT: &str = "senesce-device/1";

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A disk with arms and platters.
    Hdd,
    /// Flash with a controller.
    Ssd,
}

impl DeviceKind {
    /// `hdd` or `ssd`.
    pub fn as_str(self) -> &'static str {
        match self {
            DeviceKind::Hdd => "hdd",
            DeviceKind::Ssd => "ssd",
        }
    }
}

/// One constant of a device, with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// The number.
    pub value: f64,
    /// Its unit, which must be that of the [`KeyRule`].
    pub unit: String,
    /// The datasheet, measurement, fit or assumption that is its source; never empty.
    pub source: String,
}

/// The description of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// [`FORMAT`].
    pub format: String,
    /// The name by which it is selected, such as `hdd-7200`.
    pub name: String,
    /// The name on axes, where it follows `model: `, such as `HDD 7.2K`.
    pub title: String,
    /// The kind of the device.
    pub kind: DeviceKind,
    /// Facts that a user of the figures must know: the real device, and the accuracy of the model.
    pub description: String,
    /// The constants by name: all those of [`keys`], and no others.
    pub constants: BTreeMap<String, Constant>,
}

impl DeviceSpec {
    /// Parses and checks a description.
    ///
    /// Errors: unknown, missing or duplicate keys; another format; a wrong unit; an empty source;
    /// an impossible number.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let spec: Self = toml::from_str(text).map_err(|error| Error::Malformed { problem: error.to_string() })?;
        spec.check()?;
        Ok(spec)
    }

    /// The description as a text that [`DeviceSpec::parse`] reads.
    pub fn render(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::Malformed { problem: error.to_string() })
    }

    /// Checks each constant, and all of them together. Cost: building the model once.
    pub fn check(&self) -> Result<(), Error> {
        self.check_constants()?;
        self.build().map(drop)
    }

    /// The name of the model in results and on axes.
    pub fn model_name(&self) -> String {
        format!("model: {}", self.title)
    }

    /// The model in its initial state: arm at the outermost track, buffers empty, clock at zero. An
    /// SSD has no garbage collection.
    pub fn build(&self) -> Result<Box<dyn DeviceModel>, Error> {
        self.build_with_flash(FlashState::NotModelled)
    }

    /// The model with flash whose garbage collection is modelled. A disk ignores the state.
    ///
    /// Cost: about 9 bytes of memory for each written page. [`FlashState::Used`] also costs the
    /// time of its writes, about ten million pages per second.
    pub fn build_with_flash(&self, flash: FlashState) -> Result<Box<dyn DeviceModel>, Error> {
        self.check_constants()?;
        match self.kind {
            DeviceKind::Hdd => Ok(Box::new(Hdd::new(self)?)),
            DeviceKind::Ssd => Ok(Box::new(Ssd::new(self, flash)?)),
        }
    }

    /// Bytes that the host can address, in whole sectors.
    pub fn capacity_bytes(&self) -> u64 {
        let bytes = (self.value("capacity") * 1e9) as u64;
        bytes - bytes % senesce_core::SECTOR_BYTES
    }

    /// The value of a constant in the unit of its rule. The key must be one of the kind, and
    /// checked.
    pub(crate) fn value(&self, key: &str) -> f64 {
        self.constants.get(key).map_or(f64::NAN, |constant| constant.value)
    }

    /// An [`Error::Absurd`] about one constant.
    pub(crate) fn absurd(&self, key: &str, problem: String) -> Error {
        Error::Absurd { device: self.name.clone(), key: key.to_owned(), problem }
    }

    fn check_constants(&self) -> Result<(), Error> {
        if self.format != FORMAT {
            return Err(Error::Format { device: self.name.clone(), found: self.format.clone(), known: FORMAT });
        }
        if self.name.is_empty() || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            let problem = format!("{:?} is no name; use letters, digits, '-', '_' and '.'", self.name);
            return Err(self.absurd("name", problem));
        }
        let rules = keys(self.kind);
        if let Some(key) = self.constants.keys().find(|key| !rules.iter().any(|rule| rule.key == *key)) {
            return Err(Error::UnknownKey {
                device: self.name.clone(),
                kind: self.kind.as_str(),
                key: key.clone(),
                known: rules.iter().map(|rule| rule.key).collect::<Vec<_>>().join(", "),
            });
        }
        rules.iter().try_for_each(|rule| self.check_constant(rule))
    }

    fn check_constant(&self, rule: &KeyRule) -> Result<(), Error> {
        let Some(constant) = self.constants.get(rule.key) else {
            let (key, meaning, unit) = (rule.key, rule.meaning, rule.unit);
            return Err(Error::MissingKey { device: self.name.clone(), key, meaning, unit });
        };
        let Constant { value, unit, source } = constant;
        if unit != rule.unit {
            return Err(self.absurd(rule.key, format!("is given in {unit:?}; it must be given in {:?}", rule.unit)));
        }
        if source.trim().is_empty() {
            return Err(self.absurd(rule.key, "has no source; say which datasheet, measurement or assumption".into()));
        }
        // In this form NaN, which compares with nothing, is refused as well.
        if !(rule.at_least..=rule.at_most).contains(value) {
            let problem =
                format!("{value} {unit} is not possible; {} to {} {unit} would be", rule.at_least, rule.at_most);
            return Err(self.absurd(rule.key, problem));
        }
        if rule.whole && value.fract() != 0.0 {
            return Err(self.absurd(rule.key, format!("{value} {unit} is not possible; a whole number would be")));
        }
        Ok(())
    }
}
