//! Cures: tools that move files on an aged volume, and the time of their runs.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use senesce_defrag::Strategy;
use senesce_volume::FileSystemKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{FileSystem, FileSystemName, is_false, size::Written};

/// A tool that moves files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CureTool {
    /// `senesce defrag`: ext4, XFS and Btrfs.
    Senesce,
    /// `e4defrag` of e2fsprogs: ext4.
    E4defrag,
    /// `xfs_fsr` of xfsprogs: XFS.
    XfsFsr,
    /// `btrfs filesystem defragment -r` of btrfs-progs: Btrfs.
    Btrfs,
}

impl CureTool {
    /// The name in plans and results. For an outside tool, it is the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Senesce => "senesce",
            Self::E4defrag => "e4defrag",
            Self::XfsFsr => "xfs_fsr",
            Self::Btrfs => "btrfs",
        }
    }

    /// The file systems on which it moves files.
    fn kinds(self) -> &'static [FileSystemName] {
        match self {
            Self::Senesce => &[FileSystemName::Ext4, FileSystemName::Xfs, FileSystemName::Btrfs],
            Self::E4defrag => &[FileSystemName::Ext4],
            Self::XfsFsr => &[FileSystemName::Xfs],
            Self::Btrfs => &[FileSystemName::Btrfs],
        }
    }

    /// The program to install. `None` if this program does the work.
    pub fn program(self) -> Option<&'static str> {
        (self != Self::Senesce).then(|| self.name())
    }

    /// The Debian package of the program.
    pub(crate) fn debian_package(self) -> &'static str {
        match self {
            Self::Senesce => "senesce",
            Self::E4defrag => FileSystemKind::Ext4.debian_package(),
            Self::XfsFsr => FileSystemKind::Xfs.debian_package(),
            Self::Btrfs => FileSystemKind::Btrfs.debian_package(),
        }
    }

    /// The arguments with which the program prints its version.
    pub(crate) fn version_arguments(self) -> &'static [&'static str] {
        match self {
            Self::XfsFsr => &["-V"],
            Self::Btrfs => &["--version"],
            // It prints its version with its usage, if it has no argument.
            Self::E4defrag | Self::Senesce => &[],
        }
    }

    /// The arguments of the program before the directory.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Btrfs => &["filesystem", "defragment", "-r"],
            Self::Senesce | Self::E4defrag | Self::XfsFsr => &[],
        }
    }
}

/// The strategies of `senesce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CureStrategy {
    /// Files that are read one after the other become adjacent.
    Order,
    /// Shattered ranges of large files become contiguous.
    Pieces,
}

impl CureStrategy {
    /// The strategy of the mover.
    pub fn strategy(self) -> Strategy {
        match self {
            Self::Order => Strategy::Order,
            Self::Pieces => Strategy::Pieces,
        }
    }
}

/// The counted step after which a cure runs once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CureAt {
    /// The last one, also if the steps end early.
    End,
    /// This step.
    Step(u64),
}

impl<'de> Deserialize<'de> for CureAt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = || D::Error::custom("expected the number of a step, or \"end\"");
        match Written::deserialize(deserializer).map_err(|_| expected())? {
            Written::Number(number) => Ok(Self::Step(number)),
            Written::Text(text) if text == "end" => Ok(Self::End),
            Written::Text(_) => Err(expected()),
        }
    }
}

impl Serialize for CureAt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::End => serializer.serialize_str("end"),
            Self::Step(number) => serializer.serialize_u64(*number),
        }
    }
}

impl JsonSchema for CureAt {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CureAt".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"end\", or the number of a counted step, from 1.",
            "anyOf": [{"const": "end"}, {"type": "integer", "minimum": 1}]
        })
    }
}

/// A cure of the aged volumes of a file system. A checkpoint before and one after it show its gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurePlan {
    /// The tool.
    pub by: CureTool,
    /// The counted step after which it runs, or `"end"`: after the last one. The default is
    /// `"end"`, unless `every` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CureAt>,
    /// It runs each time after this number of counted steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// For `senesce`: the strategies. The default is both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategies: Option<Vec<CureStrategy>>,
    /// For `senesce` on ext4: executable files also move.
    #[serde(default, skip_serializing_if = "is_false")]
    pub programs: bool,
}

impl CurePlan {
    /// The strategies of `senesce`.
    pub fn strategies(&self) -> Vec<Strategy> {
        match &self.strategies {
            Some(strategies) => strategies.iter().map(|strategy| strategy.strategy()).collect(),
            None => Strategy::ALL.to_vec(),
        }
    }

    /// Whether it runs after this counted step. `is_end` is whether the step is the last one.
    pub fn is_due(&self, step: u64, is_end: bool) -> bool {
        match (self.every, self.at) {
            (Some(every), _) => step > 0 && step.is_multiple_of(every),
            (None, Some(CureAt::Step(at))) => step == at,
            (None, Some(CureAt::End) | None) => is_end,
        }
    }

    /// The steps after which it runs, if there are `steps`. Memory: up to 8 bytes for each step.
    pub fn steps(&self, steps: u64) -> Vec<u64> {
        match (self.every, self.at) {
            (Some(every), _) => (every..=steps).step_by(every as usize).collect(),
            (None, Some(CureAt::Step(at))) => (at..=steps).take(1).collect(),
            (None, Some(CureAt::End) | None) => vec![steps],
        }
    }

    /// The first step after which it runs, unless that is the last one.
    pub(crate) fn first_step(&self) -> Option<u64> {
        match (self.every, self.at) {
            (Some(every), _) => Some(every),
            (None, Some(CureAt::Step(at))) => Some(at),
            (None, Some(CureAt::End) | None) => None,
        }
    }

    /// Returns the key and the problem if the cure does not fit its file system or contradicts
    /// itself.
    pub(super) fn check(&self, file_system: &FileSystem) -> Result<(), (&'static str, String)> {
        let (kind, by) = (file_system.kind, self.by);
        if kind.is_engine() {
            return Err((
                "file_system.cure",
                format!("has no effect on kind = {:?}; `senesce fs defrag` puts a mounted one in order", kind.as_str()),
            ));
        }
        if kind == FileSystemName::Host {
            let problem = "does not go with kind = \"host\": a cure moves files on a whole file system of its own";
            return Err(("file_system.cure", problem.to_owned()));
        }
        if !by.kinds().contains(&kind) {
            let tools = [CureTool::Senesce, CureTool::E4defrag, CureTool::XfsFsr, CureTool::Btrfs];
            let fit: Vec<String> = tools
                .into_iter()
                .filter(|tool| tool.kinds().contains(&kind))
                .map(|tool| format!("{:?}", tool.name()))
                .collect();
            let fit = if fit.is_empty() { "no tool does".to_owned() } else { format!("write {}", fit.join(" or ")) };
            let problem = format!("is {:?}, which does not move files on {}; {fit}", by.name(), kind.as_str());
            return Err(("file_system.cure.by", problem));
        }
        if self.at.is_some() && self.every.is_some() {
            return Err(("file_system.cure", "has both at and every; write one of them".to_owned()));
        }
        if self.at == Some(CureAt::Step(0)) {
            return Err((
                "file_system.cure.at",
                "is 0; nothing is aged before the first step: write 1 or more".to_owned(),
            ));
        }
        if self.every == Some(0) {
            return Err((
                "file_system.cure.every",
                "is 0; write the number of steps between two cures, 1 or more".to_owned(),
            ));
        }
        if by != CureTool::Senesce && self.strategies.is_some() {
            return Err(("file_system.cure.strategies", "is allowed with by = \"senesce\" only".to_owned()));
        }
        if self.strategies.as_ref().is_some_and(Vec::is_empty) {
            return Err(("file_system.cure.strategies", "is empty: nothing would move".to_owned()));
        }
        if self.programs && (by != CureTool::Senesce || kind != FileSystemName::Ext4) {
            let problem = "is allowed with by = \"senesce\" on ext4 only; elsewhere programs move anyway";
            return Err(("file_system.cure.programs", problem.to_owned()));
        }
        Ok(())
    }
}
