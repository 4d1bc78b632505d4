//! File systems in a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CurePlan, is_default};

/// The file systems that a plan can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemName {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
    /// Btrfs
    Btrfs,
    /// F2FS; on a kernel without it, `--guest uml` runs the plan in one that has it.
    F2fs,
    /// NILFS2, without its cleaner: a volume must hold all that the run writes. Needs a kernel that
    /// has it, as for F2FS.
    Nilfs2,
    /// JFS. Needs a kernel that has it, as for F2FS.
    Jfs,
    /// ReiserFS. Needs a kernel that has it, as for F2FS.
    Reiserfs,
    /// The garden, senesce's own copy-on-write file system, mounted through FUSE.
    Garden,
    /// Evergreen, senesce's own B-epsilon-tree file system, mounted through FUSE.
    Evergreen,
    /// The file system of the directories that the plan names as volumes.
    Host,
}

impl FileSystemName {
    /// The name in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
            Self::Nilfs2 => "nilfs2",
            Self::Jfs => "jfs",
            Self::Reiserfs => "reiserfs",
            Self::Garden => "garden",
            Self::Evergreen => "evergreen",
            Self::Host => "host",
        }
    }
}

impl FileSystemName {
    /// Whether it is an engine of ours, mounted through FUSE.
    pub fn is_engine(self) -> bool {
        matches!(self, Self::Garden | Self::Evergreen)
    }
}

/// The maintenance of a garden during its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GardeningName {
    /// Nothing.
    #[default]
    Off,
    /// Continuous segment cleaning, and repair of old pointers that reads find.
    Csc,
    /// Write after read: sequential reads, also of a measurement, rewrite scattered data together.
    War,
    /// Both.
    All,
}

impl GardeningName {
    /// The name in plans and in the mount option.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Csc => "csc",
            Self::War => "war",
            Self::All => "all",
        }
    }
}

/// A file system with its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// The file system.
    pub kind: FileSystemName,
    /// Name in the results. The default is the kind, `garden-csc` for a garden with gardening,
    /// `ext4-e4defrag` for a cured ext4. Must be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// More arguments for mkfs.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Mount options that replace the defaults (see docs/reference/plans.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// For a garden: the maintenance during its use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gardening: GardeningName,
    /// A tool that moves files on the aged volumes, and the time of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cure: Option<CurePlan>,
}

impl FileSystem {
    /// The name in the results.
    pub fn name(&self) -> String {
        let kind = self.kind.as_str();
        let usual = || match (self.gardening, &self.cure) {
            (GardeningName::Off, None) => kind.to_owned(),
            (GardeningName::Off, Some(cure)) => format!("{kind}-{}", cure.by.name()),
            (gardening, _) => format!("{kind}-{}", gardening.as_str()),
        };
        self.name.clone().unwrap_or_else(usual)
    }
}
