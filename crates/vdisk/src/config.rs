//! The configuration of a disk in virtual time.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Pace, Result, host::ProcessRef};

/// Version of the line protocol, of the configurations and of the answers. Since version 2, a
/// process reference includes the boot.
pub const PROTOCOL_VERSION: u32 = 2;

/// The storage of the disk's contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BackingSpec {
    /// A sparse file without a name in an existing directory (best on tmpfs). It disappears with
    /// the server, even after a kill.
    Unlinked {
        /// The directory.
        dir: PathBuf,
    },
    /// A sparse file with a name, which outlives the server. After a kill, a new server shows the
    /// same contents. Created if it is missing.
    File {
        /// The file.
        path: PathBuf,
    },
}

/// A disk in virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeConfig {
    /// The disk's name in the machine's list of mounts, by which it is recognised after a kill:
    /// letters, digits, `-`, `_`, `.`; unique on the machine.
    pub name: String,
    /// An existing empty directory; the disk is the file `disk` in it.
    pub mount_point: PathBuf,
    /// Size of the disk, bytes; a multiple of 4096.
    pub size_bytes: u64,
    /// The storage of the contents.
    pub backing: BackingSpec,
    /// The modelled device: a preset's name or a whole description, as
    /// [`find_device`](crate::find_device) accepts it.
    pub device: String,
    /// The source of the progress of virtual time.
    #[serde(default)]
    pub pace: Pace,
    /// Whether the disk supports discards. The kernel learns if it does not (a plain hard disk).
    #[serde(default = "yes")]
    pub discard: bool,
    /// How long the server continues after its parent died, seconds, while the disk is in use.
    #[serde(default = "default_grace")]
    pub grace_seconds: u32,
    /// The time after which the guard aborts the connection, seconds, if requests wait and the
    /// server makes no progress.
    #[serde(default = "default_stall")]
    pub stall_seconds: u32,
    /// A new file that receives the contents of all writes, in their order. With a request log from
    /// the start, it gives the contents of the disk at any moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<PathBuf>,
}

fn yes() -> bool {
    true
}

fn default_grace() -> u32 {
    60
}

fn default_stall() -> u32 {
    30
}

impl ServeConfig {
    /// Name of the file that is the disk.
    pub const FILE_NAME: &str = "disk";

    /// A disk with all defaults.
    pub fn new(name: &str, mount_point: PathBuf, size_bytes: u64, backing: BackingSpec, device: &str) -> Self {
        Self {
            name: name.to_owned(),
            mount_point,
            size_bytes,
            backing,
            device: device.to_owned(),
            pace: Pace::default(),
            discard: yes(),
            grace_seconds: default_grace(),
            stall_seconds: default_stall(),
            contents: None,
        }
    }

    /// Errors: a setting that cannot be served. Acquires nothing.
    pub fn check(&self) -> Result<()> {
        let bad = |key, value: &dyn ToString, problem| Err(Error::Config { key, value: value.to_string(), problem });
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return bad("name", &self.name, "it must consist of letters, digits, '-', '_' and '.'");
        }
        if self.size_bytes == 0 || !self.size_bytes.is_multiple_of(4096) {
            return bad("size_bytes", &self.size_bytes, "it must be a positive multiple of 4096");
        }
        // Offsets in files are signed.
        if self.size_bytes > i64::MAX as u64 {
            return bad("size_bytes", &self.size_bytes, "it must be at most 2^63 - 1");
        }
        if self.stall_seconds == 0 {
            return bad("stall_seconds", &self.stall_seconds, "it must be at least 1");
        }
        Ok(())
    }

    /// The path of the disk, for a loop device.
    pub fn disk_path(&self) -> PathBuf {
        self.mount_point.join(Self::FILE_NAME)
    }

    /// The source of this disk's mount in the machine's list of mounts.
    pub fn mount_source(&self) -> String {
        mount_source(&self.name)
    }
}

/// The source of the mount of disk `name` in the list of mounts.
pub(crate) fn mount_source(name: &str) -> String {
    format!("senesce-vdisk:{name}")
}

/// The target of a guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardConfig {
    /// The disk's name.
    pub name: String,
    /// The server.
    pub server: ProcessRef,
    /// Number of the FUSE connection.
    pub connection: u32,
    /// Its mount point.
    pub mount_point: PathBuf,
    /// As in [`ServeConfig`].
    pub stall_seconds: u32,
}

/// The first line on the standard input of the hidden verb: the role of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchConfig {
    pub version: u32,
    #[serde(flatten)]
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Serve(ServeConfig),
    Guard(GuardConfig),
}

impl Role {
    /// The source of the disk's mount.
    pub(crate) fn mount_source(&self) -> String {
        match self {
            Self::Serve(config) => mount_source(&config.name),
            Self::Guard(config) => mount_source(&config.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_configurations_are_refused() {
        let dir = PathBuf::from("/nowhere");
        let good = ServeConfig::new("a-1", dir.clone(), 1 << 20, BackingSpec::Unlinked { dir }, "plain");
        good.check().unwrap();
        for bad in [
            ServeConfig { name: String::new(), ..good.clone() },
            ServeConfig { name: "a b".to_owned(), ..good.clone() },
            ServeConfig { size_bytes: 0, ..good.clone() },
            ServeConfig { size_bytes: 4097, ..good.clone() },
            ServeConfig { size_bytes: 1 << 63, ..good.clone() },
            ServeConfig { stall_seconds: 0, ..good.clone() },
        ] {
            assert!(matches!(bad.check(), Err(Error::Config { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_charge_is_one_line_and_parses_back() {
        let dir = PathBuf::from("/nowhere");
        let config = ServeConfig::new("a", dir.clone(), 1 << 20, BackingSpec::File { path: dir }, "plain");
        let charge = LaunchConfig { version: PROTOCOL_VERSION, role: Role::Serve(config) };
        let line = serde_json::to_string(&charge).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<LaunchConfig>(&line).unwrap(), charge);
    }
}
