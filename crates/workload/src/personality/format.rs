//! The file format of personalities: TOML, which states every parameter.
//!
//! ```toml
//! format = "senesce-personality/1"
//! name = "tiny"
//! operations = 400
//! [[fileset]]
//! name = "files"
//! entries = 100
//! size_bytes = 16384
//! size_gamma = 1.5
//! dir_width = 20
//! dir_gamma = 1.5
//! prealloc_percent = 80
//! scales = "entries"
//! [[process]]
//! name = "worker"
//! instances = 1
//! threads = 2
//! flowops = [
//!     { op = "deletefile", fileset = "files" },
//!     { op = "createfile", fileset = "files", slot = 1 },
//!     { op = "appendfilerand", slot = 1, iosize_bytes = 16384 },
//!     { op = "closefile", slot = 1 },
//! ]
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version this program reads.
pub const PERSONALITY_FORMAT: &str = "senesce-personality/1";

/// What the threads of a program do to files, over and over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Personality {
    /// Version of the format: `senesce-personality/1`.
    pub format: String,
    /// Short name: letters, digits, `-`, `_`.
    pub name: String,
    /// What program it is like, for readers.
    #[serde(default)]
    pub description: String,
    /// Where the numbers come from.
    #[serde(default)]
    pub source: String,
    /// Where it differs from its source, for readers.
    #[serde(default)]
    pub notes: Vec<String>,
    /// File operations of a run, rounded up to whole loops of every thread.
    pub operations: u64,
    /// Sets of files.
    #[serde(rename = "fileset", default)]
    pub filesets: Vec<Fileset>,
    /// Processes, whose threads run at the same time.
    #[serde(rename = "process", default)]
    pub processes: Vec<Process>,
}

/// Files in a tree of directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fileset {
    /// Its name, and that of its directory: letters, digits, `-`, `_`.
    pub name: String,
    /// How many files.
    pub entries: u64,
    /// Mean size of a file, bytes.
    pub size_bytes: u64,
    /// Shape of the gamma distribution of sizes, a multiple of 0.5; 0: all files have the mean size.
    pub size_gamma: f64,
    /// Mean number of entries of a directory. Files lie log(entries) / log(dir_width) directories deep, rounded, at
    /// least 1.
    pub dir_width: u64,
    /// Shape of the gamma distribution of that number, a multiple of 0.5; 0: all directories have the mean.
    pub dir_gamma: f64,
    /// Share of the files that are there at the beginning, percent.
    pub prealloc_percent: u64,
    /// What a scale factor multiplies.
    pub scales: Scales,
}

/// What becomes less when a personality is scaled down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scales {
    /// The number of files.
    Entries,
    /// Their size.
    Size,
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// How many of it.
    pub instances: u32,
    /// Threads of each.
    pub threads: u32,
    /// What a thread does, in this order, over and over.
    pub flowops: Vec<Flowop>,
}

/// What a flow operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowopKind {
    /// Opens a file that is there.
    OpenFile,
    /// Makes a file that is not, and opens it.
    CreateFile,
    /// Closes the slot's file.
    CloseFile,
    /// Removes a file that is there.
    DeleteFile,
    /// Looks a file up that is there.
    StatFile,
    /// Reads the slot's file from its beginning to its end in pieces of `iosize_bytes`.
    ReadWholeFile,
    /// Writes the slot's file from its beginning to its drawn size in pieces of `iosize_bytes`.
    WriteWholeFile,
    /// Appends `iosize_bytes`.
    AppendFile,
    /// Appends a uniform number of 1 to `iosize_bytes` bytes.
    AppendFileRand,
    /// Makes the slot's file durable.
    Fsync,
    /// Reads `iosize_bytes` once.
    Read,
    /// Writes `iosize_bytes` once.
    Write,
    /// The same; issued by the thread itself, and waited for.
    AioWrite,
    /// Waits until `value` was posted to it, and takes that.
    SemBlock,
    /// Posts `value` to every semblock called `target`.
    SemPost,
    /// Computes: writes `value` times to memory.
    Hog,
    /// Does nothing for `value` milliseconds.
    Delay,
}

impl FlowopKind {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenFile => "openfile",
            Self::CreateFile => "createfile",
            Self::CloseFile => "closefile",
            Self::DeleteFile => "deletefile",
            Self::StatFile => "statfile",
            Self::ReadWholeFile => "readwholefile",
            Self::WriteWholeFile => "writewholefile",
            Self::AppendFile => "appendfile",
            Self::AppendFileRand => "appendfilerand",
            Self::Fsync => "fsync",
            Self::Read => "read",
            Self::Write => "write",
            Self::AioWrite => "aiowrite",
            Self::SemBlock => "semblock",
            Self::SemPost => "sempost",
            Self::Hog => "hog",
            Self::Delay => "delay",
        }
    }

    /// Whether it is a file operation, and so counts as one.
    pub fn is_file_operation(self) -> bool {
        !matches!(self, Self::SemBlock | Self::SemPost | Self::Hog | Self::Delay)
    }

    pub(super) fn needs_fileset(self) -> bool {
        matches!(self, Self::OpenFile | Self::CreateFile | Self::DeleteFile | Self::StatFile)
    }

    pub(super) fn needs_size(self) -> bool {
        use FlowopKind::{AioWrite, AppendFile, AppendFileRand, Read, ReadWholeFile, Write, WriteWholeFile};
        matches!(self, Read | Write | AioWrite | AppendFile | AppendFileRand | ReadWholeFile | WriteWholeFile)
    }

    pub(super) fn needs_value(self) -> bool {
        !self.is_file_operation()
    }
}

/// A flow operation: a line of a thread's loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flowop {
    /// What it does.
    pub op: FlowopKind,
    /// Its name in results; default: what it does, with its number among those of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The set of files it chooses from, uniformly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fileset: Option<String>,
    /// The place where the thread keeps the file open, 1 to 64.
    #[serde(default = "default_slot")]
    pub slot: u32,
    /// Bytes of an access, or of its pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iosize_bytes: Option<u32>,
    /// At a uniformly random multiple of `iosize_bytes`, not where the last access ended.
    #[serde(default)]
    pub random: bool,
    /// Writes are durable when they return.
    #[serde(default)]
    pub dsync: bool,
    /// Past the page cache.
    #[serde(default)]
    pub directio: bool,
    /// The files of the set in turn, each kept open.
    #[serde(default)]
    pub rotate: bool,
    /// How often it is done in a loop.
    #[serde(default = "one")]
    pub iters: u32,
    /// Of semblock, sempost, hog and delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u32>,
    /// Of semblock: how far those who post may be ahead before it first waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highwater: Option<u64>,
    /// Of sempost: the name of the semblock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn default_slot() -> u32 {
    1
}

fn one() -> u32 {
    1
}
