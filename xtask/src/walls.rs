//! Dependency rules: which crate may import which, read from `cargo metadata`.
//!
//! ARCHITECTURE.md explains them.

use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// A crate, and the crates that it may import.
const WALLS: &[(&str, &[&str])] = &[
    ("senesce-core", &[]),
    ("senesce-oplog", &["senesce-core"]),
    ("senesce-workload", &["senesce-core", "senesce-oplog"]),
    ("senesce-gitsource", &["senesce-core", "senesce-oplog", "senesce-workload"]),
    ("senesce-exec", &["senesce-core", "senesce-fsapi", "senesce-oplog"]),
    ("senesce-volume", &["senesce-core", "senesce-vdisk"]),
    ("senesce-probe", &["senesce-core"]),
    ("senesce-device", &["senesce-core"]),
    ("senesce-ext4", &["senesce-core"]),
    ("senesce-vdisk", &["senesce-core", "senesce-device"]),
    ("senesce-inspect", &["senesce-core", "senesce-device", "senesce-ext4", "senesce-probe", "senesce-volume"]),
    ("senesce-image", &[]),
    ("senesce-guest", &["senesce-core"]),
    ("senesce-fragment", &["senesce-core", "senesce-probe", "senesce-volume"]),
    ("senesce-defrag", &["senesce-core", "senesce-inspect", "senesce-probe"]),
    ("senesce-store", &["senesce-core"]),
    (
        "senesce-experiment",
        &[
            "senesce-core",
            "senesce-oplog",
            "senesce-workload",
            "senesce-gitsource",
            "senesce-exec",
            "senesce-volume",
            "senesce-probe",
            "senesce-device",
            "senesce-inspect",
            "senesce-defrag",
            "senesce-vdisk",
            "senesce-store",
        ],
    ),
    ("senesce-report", &["senesce-core", "senesce-store"]),
    ("senesce-record", &["senesce-core", "senesce-oplog"]),
    ("senesce-block", &["senesce-core"]),
    ("senesce-fsapi", &["senesce-core"]),
    ("senesce-objects", &[]),
    ("senesce-garden", &["senesce-core", "senesce-block", "senesce-fsapi", "senesce-objects"]),
    ("senesce-evergreen", &["senesce-core", "senesce-block", "senesce-fsapi"]),
    ("senesce-trials", &["senesce-core", "senesce-block", "senesce-fsapi", "senesce-garden", "senesce-objects"]),
    ("senesce-fuse", &["senesce-core", "senesce-fsapi"]),
    ("senesce-sim", &["senesce-core", "senesce-device"]),
    (
        "senesce-timed",
        &["senesce-core", "senesce-block", "senesce-device", "senesce-garden", "senesce-sim", "senesce-trials"],
    ),
    (
        "senesce-service",
        &["senesce-core", "senesce-block", "senesce-fsapi", "senesce-garden", "senesce-evergreen", "senesce-objects"],
    ),
    ("senesce-testkit", &["senesce-core"]),
    (
        "senesce",
        &[
            "senesce-core",
            "senesce-oplog",
            "senesce-workload",
            "senesce-gitsource",
            "senesce-exec",
            "senesce-volume",
            "senesce-probe",
            "senesce-device",
            "senesce-ext4",
            "senesce-vdisk",
            "senesce-inspect",
            "senesce-image",
            "senesce-guest",
            "senesce-fragment",
            "senesce-defrag",
            "senesce-store",
            "senesce-experiment",
            "senesce-record",
            "senesce-report",
            "senesce-fsapi",
        ],
    ),
    (
        "senesce-fs",
        &[
            "senesce-core",
            "senesce",
            "senesce-exec",
            "senesce-experiment",
            "senesce-inspect",
            "senesce-probe",
            "senesce-report",
            "senesce-volume",
            "senesce-block",
            "senesce-fsapi",
            "senesce-fuse",
            "senesce-garden",
            "senesce-evergreen",
            "senesce-objects",
            "senesce-service",
            "senesce-timed",
            "senesce-trials",
        ],
    ),
    ("xtask", &[]),
];

/// Heavy or dangerous libraries, and the only crates that may own them.
const OWNERS: &[(&str, &[&str])] = &[
    ("gix", &["senesce-gitsource"]),
    ("parquet", &["senesce-store"]),
    ("resvg", &["senesce-report"]),
    ("minijinja", &["senesce-report"]),
    ("fuser", &["senesce-fuse", "senesce-record", "senesce-vdisk"]),
    ("object_store", &["senesce-objects"]),
    ("tokio", &["senesce-objects"]),
    ("ureq", &["senesce-objects"]),
    ("clap", &["senesce", "senesce-fs"]),
    ("indicatif", &["senesce"]),
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    let mut complaints = Vec::new();
    let dir = metadata.workspace_root.join("filesystems");
    let engines: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|package| package.manifest_path.starts_with(&dir))
        .map(|package| package.name.as_str())
        .collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let Some((_, allowed)) = WALLS.iter().find(|(known, _)| *known == name) else {
            complaints.push(format!("{name} is in no row of the table of dependency rules"));
            continue;
        };
        for dependency in &package.dependencies {
            let wanted = dependency.name.as_str();
            let is_engine = engines.contains(&wanted);
            // Tests and build scripts, too: the laboratory is compiled and tested without engines.
            if is_engine && !engines.contains(&name) {
                complaints.push(format!("{name} must not import {wanted}: only filesystems/ imports filesystems/"));
            }
            if dependency.kind == DependencyKind::Normal {
                if wanted.starts_with("senesce") && !allowed.contains(&wanted) {
                    complaints.push(format!("{name} must not import {wanted}"));
                }
                let owned = OWNERS.iter().find(|(library, _)| *library == wanted);
                if let Some((_, owners)) = owned.filter(|(_, owners)| !owners.contains(&name)) {
                    complaints.push(format!("{name} must not own {wanted}; {} does", owners.join(", ")));
                }
            }
            if dependency.path.is_none() && !dependency.req.to_string().starts_with('=') {
                complaints.push(format!("{name}: {wanted} is not pinned exactly (it says {})", dependency.req));
            }
        }
    }
    Ok(complaints)
}
