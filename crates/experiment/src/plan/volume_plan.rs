//! Parses a volume: a size or a place. An error of serde's untagged enums names no key, so this is
//! written by hand.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Absent, AutoSize, Place, VolumePlan};
use senesce_core::Bytes;

impl<'de> Deserialize<'de> for VolumePlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VolumeVisitor)
    }
}

struct VolumeVisitor;

impl<'de> Visitor<'de> for VolumeVisitor {
    type Value = VolumePlan;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a size such as \"5GiB\", \"auto\", \"none\", or a table with device or directory")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<VolumePlan, E> {
        match text {
            "auto" => Ok(VolumePlan::Size(AutoSize::Auto)),
            "none" => Ok(VolumePlan::Absent(Absent::None)),
            _ if text.starts_with(['/', '.', '~']) => Err(E::custom(format!(
                "{text:?} is no size; write {{ device = {text:?} }} for a block device, or {{ directory = {text:?} }} for \
                 a directory"
            ))),
            _ => text.parse().map(|bytes| VolumePlan::Size(AutoSize::Given(bytes))).map_err(E::custom),
        }
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<VolumePlan, E> {
        let bytes = u64::try_from(bytes).map_err(|_| E::custom(format!("{bytes} is negative; a size is not")))?;
        self.visit_u64(bytes)
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<VolumePlan, E> {
        Ok(VolumePlan::Size(AutoSize::Given(Bytes(bytes))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VolumePlan, A::Error> {
        Place::deserialize(MapAccessDeserializer::new(map)).map(VolumePlan::Place)
    }
}
