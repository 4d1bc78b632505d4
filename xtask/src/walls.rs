//! Dependency rules: which crate may import which, read from `cargo metadata`.
//!
//! The tables of crates in ARCHITECTURE.md and filesystems/ARCHITECTURE.md are made from these
//! rules (see `architecture`).

use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// A crate: what it may import, and what it is for.
pub struct Wall {
    pub package: &'static str,
    /// The crates of the project that it may import, by the names of their directories.
    pub imports: &'static str,
    pub purpose: &'static str,
    /// What the crate must not do. Readers of code check it, not this program.
    pub never: &'static str,
}

impl Wall {
    /// The name of the crate's directory, as in `imports`.
    pub fn short(&self) -> &'static str {
        match self.package {
            "senesce" | "senesce-fs" => "cli",
            package => package.strip_prefix("senesce-").unwrap_or(package),
        }
    }

    fn may_import(&self, package: &str) -> bool {
        let short = package.strip_prefix("senesce-").unwrap_or(if package == "senesce" { "cli" } else { package });
        self.imports.split_whitespace().any(|allowed| allowed == short)
    }
}

/// The crates of `crates/`.
pub const LABORATORY: &[Wall] = &[
    Wall {
        package: "senesce-core",
        imports: "",
        purpose: "units, paths, extents, block requests, seeded random numbers, the clock trait, statistics",
        never: "access the system",
    },
    Wall {
        package: "senesce-oplog",
        imports: "core",
        purpose: "operations, steps, contents; writer and reader of the log ([format](docs/reference/oplog-format.md))",
        never: "produce the bytes of contents",
    },
    Wall {
        package: "senesce-workload",
        imports: "core oplog",
        purpose: "steps of git, FSFB, mail, micro, overwrite, personality, profile, replay, synthetic and trace workloads",
        never: "use files, clocks or threads",
    },
    Wall {
        package: "senesce-gitsource",
        imports: "core oplog workload",
        purpose: "reads repositories, runs the git binary, keeps packs in a spool directory",
        never: "write to the source repository",
    },
    Wall {
        package: "senesce-fsapi",
        imports: "core",
        purpose: "the trait of a file system at inode level, a model in memory, a conformance suite",
        never: "use files or clocks; know an engine",
    },
    Wall {
        package: "senesce-exec",
        imports: "core fsapi oplog",
        purpose: "applies steps to a mounted file system, an engine, a model or nothing; compares trees",
        never: "leave the root directory of its target",
    },
    Wall {
        package: "senesce-device",
        imports: "core",
        purpose: "turns block requests into modelled nanoseconds",
        never: "access the system; measure",
    },
    Wall {
        package: "senesce-vdisk",
        imports: "core device",
        purpose: "a disk in virtual time: a file on a FUSE mount, served by its own process",
        never: "interpret the contents",
    },
    Wall {
        package: "senesce-volume",
        imports: "core vdisk",
        purpose: "images, mkfs, loop devices, mounts, cold caches, snapshots, clean-up",
        never: "format a device in use, or one with a signature without `--force`",
    },
    Wall {
        package: "senesce-guest",
        imports: "core",
        purpose: "starts a guest kernel and kills its processes; in the guest, mounts, loads modules and executes one command",
        never: "know a volume or a plan; write a host file outside its private directory",
    },
    Wall {
        package: "senesce-probe",
        imports: "core",
        purpose: "`collect` measures: grep test, extents, surveys, free space, block traces; `score` computes",
        never: "write to the volume; access the system in `score`",
    },
    Wall {
        package: "senesce-ext4",
        imports: "core",
        purpose: "reads ext2, ext3 and ext4 from a device or image",
        never: "write; mount",
    },
    Wall {
        package: "senesce-inspect",
        imports: "core device ext4 probe volume",
        purpose: "surveys a file system in use, models its costs and judges it",
        never: "write to it",
    },
    Wall {
        package: "senesce-defrag",
        imports: "core inspect probe",
        purpose: "restores the order of files: plan, prediction, movers",
        never: "rename or remove files; change contents, times or inode numbers; write in a dry run",
    },
    Wall {
        package: "senesce-fragment",
        imports: "core probe volume",
        purpose: "fragments files or the free space of a volume",
        never: "change other files; replace a file without verification",
    },
    Wall {
        package: "senesce-image",
        imports: "",
        purpose: "saves and restores containers of volumes",
        never: "interpret the contents; decide which device may be written",
    },
    Wall {
        package: "senesce-bundle",
        imports: "core",
        purpose: "writes bundles of runs, and verifies them",
        never: "know a plan or a result table; write a file; unpack an archive",
    },
    Wall {
        package: "senesce-record",
        imports: "core oplog",
        purpose: "logs the operations of any program, through a FUSE mount or from the output of strace",
        never: "change the directory on its own",
    },
    Wall {
        package: "senesce-store",
        imports: "core",
        purpose: "result tables in Parquet, appended atomically ([tables](docs/reference/tables.md))",
        never: "know what a volume is",
    },
    Wall {
        package: "senesce-experiment",
        imports: "core oplog workload gitsource exec volume probe device inspect defrag vdisk store",
        purpose: "plans, arms, checkpoints, cells; the journal and resume",
        never: "print; read the environment or the system clock",
    },
    Wall {
        package: "senesce-report",
        imports: "core store",
        purpose: "reads results; writes HTML, SVG, PNG, PDF and CSV",
        never: "compute more than medians, intervals and ratios",
    },
    Wall {
        package: "senesce",
        imports: "core oplog workload gitsource exec volume probe device ext4 vdisk inspect image bundle guest fragment defrag store experiment record report fsapi",
        purpose: "one module for each command; prints and reads the environment; the program `senesce`",
        never: "be imported, except by `filesystems/cli`; import an engine",
    },
];

/// The crates of `filesystems/`.
pub const FILE_SYSTEMS: &[Wall] = &[
    Wall {
        package: "senesce-block",
        imports: "core",
        purpose: "block devices: files, memory, and devices that fail, record, or lose power",
        never: "interpret the contents",
    },
    Wall {
        package: "senesce-objects",
        imports: "",
        purpose: "object stores: memory, a directory, S3, and stores that fail; prices",
        never: "interpret the contents; delete on its own",
    },
    Wall {
        package: "senesce-garden",
        imports: "core block fsapi objects",
        purpose: "the copy-on-write engine: aggregates of drives, and volumes with movable blocks; `check` and `dump` read drives without the open engine",
        never: "use clocks; start threads, except one that writes a consistency point; overwrite blocks of the last consistency point",
    },
    Wall {
        package: "senesce-evergreen",
        imports: "core block fsapi",
        purpose: "the B-epsilon-tree engine: a file system over a store of keys, and a tree",
        never: "use clocks; start threads; know another engine",
    },
    Wall {
        package: "senesce-fuse",
        imports: "core fsapi",
        purpose: "mounts an implementation of the trait in `fsapi`",
        never: "know an engine",
    },
    Wall {
        package: "senesce-service",
        imports: "core block fsapi garden evergreen objects",
        purpose: "requests to an open engine, the code that answers them, the control socket",
        never: "print, mount, or find servers; read a clock other than that of `core`",
    },
    Wall {
        package: "senesce-trials",
        imports: "core block fsapi garden objects",
        purpose: "published experiments with the garden, in memory",
        never: "use files, clocks or threads; tune a constant for one experiment",
    },
    Wall {
        package: "senesce-sim",
        imports: "core device",
        purpose: "queues, processors and drives in virtual time, driven by recorded work of an engine",
        never: "access the system; know an engine; measure",
    },
    Wall {
        package: "senesce-timed",
        imports: "core block device garden sim trials",
        purpose: "records the drive requests of trials, and simulates them with `sim`",
        never: "use files, clocks or threads; compute a latency from a formula",
    },
    Wall {
        package: "senesce-fs",
        imports: "core cli exec experiment inspect probe report volume block fsapi fuse garden evergreen objects service timed trials",
        purpose: "the verbs of `fs` and `garden`; answers what `senesce` hands over; the program `senesce-fs`",
        never: "be imported",
    },
];

/// Crates that are part of no program.
const TOOLS: &[Wall] = &[
    Wall { package: "senesce-testkit", imports: "core", purpose: "fakes and oracles for tests", never: "" },
    Wall { package: "xtask", imports: "", purpose: "checks of the tree", never: "" },
];

/// Heavy or dangerous libraries, and the only crates that may own them.
const OWNERS: &[(&str, &[&str])] = &[
    ("gix", &["senesce-gitsource"]),
    ("parquet", &["senesce-store"]),
    ("resvg", &["senesce-report"]),
    ("minijinja", &["senesce-report"]),
    ("quick-junit", &["senesce"]),
    ("tar", &["senesce-bundle"]),
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
        let mut walls = LABORATORY.iter().chain(FILE_SYSTEMS).chain(TOOLS);
        let Some(wall) = walls.find(|wall| wall.package == name) else {
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
                if wanted.starts_with("senesce") && !wall.may_import(wanted) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_point_up_the_tables() {
        let mut above = Vec::new();
        for wall in LABORATORY.iter().chain(FILE_SYSTEMS) {
            for import in wall.imports.split_whitespace() {
                assert!(above.contains(&import), "{} imports {import}, which is not above it", wall.package);
            }
            above.push(wall.short());
        }
    }
}
