//! `senesce device`: the devices that costs are modelled for.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_device::{DeviceSpec, find_preset, presets};

use crate::{
    args::{DeviceArgs, DeviceVerb},
    exit::usage,
};

/// Lists or shows them.
pub fn device(args: DeviceArgs) -> Result<()> {
    match args.verb {
        DeviceVerb::List => list(),
        DeviceVerb::Show { device, toml } => show(&read_device(&device)?, toml),
    }
}

/// A preset by its name, or a description in a file.
pub fn read_device(name: &str) -> Result<DeviceSpec> {
    if let Some(spec) = find_preset(name) {
        return Ok(spec);
    }
    if !Path::new(name).exists() {
        let known = presets().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let message = format!("there is no device and no file {name:?}");
        return Err(usage(message, Some(&format!("known devices: {known}; or the path of a description in TOML"))));
    }
    let text = fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    DeviceSpec::parse(&text).map_err(|error| usage(format!("{name}: {error}"), None))
}

fn list() -> Result<()> {
    for (name, _) in presets() {
        let spec = read_device(name)?;
        println!("{name:<12} {:<12} {}", spec.title, Bytes(spec.capacity_bytes()));
    }
    Ok(())
}

fn show(spec: &DeviceSpec, toml: bool) -> Result<()> {
    if toml {
        print!("{}", spec.render()?);
        return Ok(());
    }
    println!("{} (model: {})\n\n{}\n", spec.name, spec.title, spec.description.trim());
    for (key, constant) in &spec.constants {
        println!("{key:<24} {:>10} {:<8} {}", constant.value, constant.unit, constant.source);
    }
    Ok(())
}
