//! Descriptions: accepted and refused ones, the texts of errors, and the presets.

use senesce_core::Nanos;
use senesce_device::{DeviceKind, DeviceSpec, Error, FlashState, compute_derived_figures, find_preset, keys, presets};

#[test]
fn every_preset_has_its_name_and_sources() {
    let names: Vec<&str> = presets().map(|(name, _)| name).collect();
    assert_eq!(names, ["hdd-7200", "hdd-10k", "sata-ssd", "nvme"]);
    for (name, text) in presets() {
        let spec = DeviceSpec::parse(text).unwrap();
        assert_eq!(spec.name, name);
        assert_eq!(find_preset(name).as_ref(), Some(&spec));
        for (key, constant) in &spec.constants {
            assert!(constant.source.len() > 10, "{name} {key}: {}", constant.source);
        }
        let model = spec.build().unwrap();
        assert_eq!(model.name(), format!("model: {}", spec.title));
        assert_eq!((model.now(), model.totals().requests), (Nanos(0), 0));
        assert_eq!(DeviceSpec::parse(&spec.render().unwrap()).unwrap(), spec);
        for figure in compute_derived_figures(&spec).unwrap() {
            assert!(figure.value.is_finite() && figure.value > 0.0, "{name} {figure:?}");
        }
    }
    assert_eq!(find_preset("hdd-7201"), None);
}

#[test]
fn golden_description_of_format_1_is_read() {
    let spec = DeviceSpec::parse(include_str!("golden-device-1.toml")).unwrap();
    assert_eq!((spec.name.as_str(), spec.kind), ("golden.disk-1_a", DeviceKind::Hdd));
    assert_eq!(spec.constants.len(), keys(DeviceKind::Hdd).len());
    assert_eq!(spec.constants["mean_seek_write"].value, 4.4);
    assert_eq!(spec.constants["mean_seek_write"].source, "the test, mean_seek_write");
    assert_eq!(spec.capacity_bytes(), 73_400_000_000 / 512 * 512);
}

/// The error for a changed preset.
fn refusal(preset: &str, key: &str, value: f64) -> String {
    let mut spec = find_preset(preset).unwrap();
    spec.constants.get_mut(key).unwrap().value = value;
    spec.check().unwrap_err().to_string()
}

#[test]
fn absurd_numbers_are_refused_with_possible_values() {
    for (preset, key, value, says) in [
        ("hdd-7200", "rotation", 0.0, "rotation: 0 rpm is not possible; 1000 to 30000 rpm would be"),
        ("hdd-7200", "rotation", 7200.5, "rotation: 7200.5 rpm is not possible; a whole number would be"),
        ("hdd-7200", "capacity", 0.0, "capacity: 0 GB is not possible; 0.001 to 1000000 GB would be"),
        ("hdd-7200", "capacity", 0.001, "capacity: 0.001 GB are 1 cylinders"),
        ("hdd-7200", "outer_rate", -5.0, "outer_rate: -5 MB/s is not possible"),
        ("hdd-7200", "outer_rate", f64::NAN, "outer_rate: NaN MB/s is not possible"),
        ("hdd-7200", "outer_rate", f64::INFINITY, "outer_rate: inf MB/s is not possible"),
        ("hdd-7200", "outer_rate", 50.0, "inner_rate: 92 MB/s is above the outer rate of 50 MB/s"),
        ("hdd-7200", "mean_seek_read", 0.5, "mean_seek_read: 0.5 ms does not go with track_to_track_read of 0.6 ms"),
        ("hdd-7200", "mean_seek_write", 15.0, "mean_seek_write: 15 ms does not go with"),
        ("hdd-7200", "full_stroke_read", 0.1, "full_stroke_read: 0.1 ms is below track_to_track_read of 0.6 ms"),
        ("hdd-7200", "read_ahead", 40_000.0, "read_ahead: 40000 KiB do not fit into the buffer of 32 MiB"),
        ("sata-ssd", "channels", 0.0, "channels: 0 count is not possible"),
        ("sata-ssd", "spare", 0.0, "spare: 0 ratio is not possible; 0.01 to 10 ratio would be"),
        ("sata-ssd", "capacity", 1.0, "pages_per_block: 256 pages are not possible where a plane has 954"),
        ("sata-ssd", "page_read", -1.0, "page_read: -1 us is not possible"),
    ] {
        let got = refusal(preset, key, value);
        assert!(got.starts_with(&format!("device {preset}: ")) && got.contains(says), "{got}");
        assert!(got.contains("would be"), "{got}");
    }
    assert!(refusal("hdd-7200", "mean_seek_read", 0.5).contains("ms would be possible"));
}

#[test]
fn wrong_keys_units_and_sources_are_refused() {
    let text = include_str!("golden-device-1.toml");
    let refuse = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        DeviceSpec::parse(&text.replacen(from, to, 1)).unwrap_err()
    };
    assert!(matches!(refuse("senesce-device/1\"\nname", "senesce-device/2\"\nname"), Error::Format { .. }));
    assert!(matches!(refuse("title", "titel"), Error::Malformed { .. }));
    assert!(matches!(refuse("kind = \"hdd\"", "kind = \"tape\""), Error::Malformed { .. }));
    assert!(matches!(refuse("source = \"the test, heads\"", "sauce = \"x\""), Error::Malformed { .. }));
    assert!(matches!(refuse("unit = \"rpm\"", "unit = \"rpm\", scale = 2"), Error::Malformed { .. }));
    assert!(matches!(refuse("golden.disk-1_a", "golden disk"), Error::Absurd { .. }));
    let unknown = refuse("rotation = {", "rotatoin = {").to_string();
    assert!(
        unknown.contains("a device of kind hdd has no constant \"rotatoin\"; it has capacity, rotation"),
        "{unknown}"
    );
    let missing = refuse("rotation = {", "# rotation = {").to_string();
    assert_eq!(missing, "device golden.disk-1_a: rotation is missing: turns per minute, in rpm");
    let unit = refuse("unit = \"rpm\"", "unit = \"Hz\"").to_string();
    assert!(unit.contains("rotation: is given in \"Hz\"; it must be given in \"rpm\""), "{unit}");
    assert!(refuse("the test, rotation", "  ").to_string().contains("rotation: has no source"));
    let twice = format!("{text}rotation = {{ value = 1, unit = \"rpm\", source = \"x\" }}\n");
    assert!(matches!(DeviceSpec::parse(&twice), Err(Error::Malformed { .. })));
}

#[test]
fn every_constant_has_one_rule() {
    for kind in [DeviceKind::Hdd, DeviceKind::Ssd] {
        for (index, rule) in keys(kind).iter().enumerate() {
            assert!(rule.at_least <= rule.at_most && !rule.meaning.is_empty(), "{rule:?}");
            assert!(keys(kind)[..index].iter().all(|other| other.key != rule.key), "{rule:?}");
        }
    }
}

#[test]
fn disk_accepts_any_flash_huge_drive_none() {
    let disk = find_preset("hdd-10k").unwrap();
    assert!(disk.build_with_flash(FlashState::Erased).is_ok());
    let mut drive = find_preset("nvme").unwrap();
    drive.constants.get_mut("capacity").unwrap().value = 100_000.0;
    assert!(drive.build().is_ok());
    let refusal = drive.build_with_flash(FlashState::Erased).err().unwrap().to_string();
    assert!(refusal.contains("capacity: 100000 GB are 12207031296 pages"), "{refusal}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// For any numbers in a description, the result is an error or a model that serves, never a
    /// panic.
    #[test]
    fn any_numbers_never_break_the_models(
        preset in 0usize..4,
        changes in proptest::collection::vec((0usize..19, 0.0f64..1.0, 0u8..4), 0..6),
        sector: u64,
        sectors: u32,
    ) {
        let mut spec = find_preset(presets().nth(preset).unwrap().0).unwrap();
        for (key, share, how) in changes {
            let rules = keys(spec.kind);
            let rule = rules[key % rules.len()];
            // Tables stay small, because the test is not about memory.
            let at_most = match rule.key {
                "capacity" => 10.0,
                "channels" | "chips" | "dies" | "planes" => 8.0,
                _ => rule.at_most,
            };
            let constant = spec.constants.get_mut(rule.key).unwrap();
            constant.value = match how {
                0 => rule.at_least,
                1 => constant.value * (0.25 + share * 4.0),
                2 => rule.at_least + (at_most - rule.at_least) * share.powi(8),
                _ => (rule.at_least.max(1e-3).ln() * (1.0 - share) + at_most.ln() * share).exp(),
            };
            if rule.whole {
                constant.value = constant.value.round();
            }
        }
        if let Ok(mut model) = spec.build_with_flash(FlashState::Erased) {
            let mut now = Nanos(0);
            for op in [senesce_core::BlockOp::Read, senesce_core::BlockOp::Write, senesce_core::BlockOp::Discard,
                       senesce_core::BlockOp::Flush, senesce_core::BlockOp::Read] {
                let request = senesce_core::BlockRequest {
                    issued: now,
                    op,
                    sector: sector % (1 << 40),
                    sectors: sectors % 100_000,
                };
                let done = model.serve(&request, now);
                proptest::prop_assert!(done >= now);
                now = done;
            }
        }
    }
}
