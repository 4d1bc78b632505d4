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

/// The format version that this program reads.
pub const PERSONALITY_FORMAT: &str = "senesce-personality/1";

/// The file operations that a program's threads repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Personality {
    /// Version of the format: `senesce-personality/1`.
    pub format: String,
    /// Short name: letters, digits, `-`, `_`.
    pub name: String,
    /// The program that it resembles, for readers.
    #[serde(default)]
    pub description: String,
    /// The source of the numbers.
    #[serde(default)]
    pub source: String,
    /// Differences from the source, for readers.
    #[serde(default)]
    pub notes: Vec<String>,
    /// File operations of a run, rounded up to whole loops of every thread.
    pub operations: u64,
    /// Sets of files.
    #[serde(rename = "fileset", default)]
    pub filesets: Vec<Fileset>,
    /// Processes. Their threads run concurrently.
    #[serde(rename = "process", default)]
    pub processes: Vec<Process>,
}

/// Files in a tree of directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fileset {
    /// Its name, and that of its directory: letters, digits, `-`, `_`.
    pub name: String,
    /// The number of files.
    pub entries: u64,
    /// Mean size of a file, bytes.
    pub size_bytes: u64,
    /// Shape of the gamma distribution of sizes, a multiple of 0.5; 0: all files have the mean
    /// size.
    pub size_gamma: f64,
    /// Mean number of entries of a directory. Files are log(entries) / log(dir_width) directories
    /// deep, rounded, at least 1.
    pub dir_width: u64,
    /// Shape of the gamma distribution of that number, a multiple of 0.5; 0: all directories have
    /// the mean.
    pub dir_gamma: f64,
    /// Share of the files that exist at the start of a run, percent.
    pub prealloc_percent: u64,
    /// The quantity that a scale factor multiplies.
    pub scales: Scales,
}

/// The quantity that a scale factor multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scales {
    /// The number of files.
    Entries,
    /// Their size.
    Size,
}

/// A process. All its threads run the same loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// The number of instances.
    pub instances: u32,
    /// Threads of each instance.
    pub threads: u32,
    /// The loop of a thread: these operations in order, repeated.
    pub flowops: Vec<Flowop>,
}

/// The kind of a flow operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowopKind {
    /// Opens an existing file.
    OpenFile,
    /// Creates a missing file and opens it.
    CreateFile,
    /// Closes the slot's file.
    CloseFile,
    /// Removes an existing file.
    DeleteFile,
    /// Reads the metadata of an existing file.
    StatFile,
    /// Reads the slot's file from start to end in pieces of `iosize_bytes`.
    ReadWholeFile,
    /// Writes the slot's file from its start to its drawn size in pieces of `iosize_bytes`.
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
    /// Writes `iosize_bytes` once; the same as `write`, since the thread waits for the result.
    AioWrite,
    /// Waits until `value` was posted to it, and subtracts that.
    SemBlock,
    /// Posts `value` to every semblock named `target`.
    SemPost,
    /// Uses the CPU: writes `value` times to memory.
    Hog,
    /// Does nothing for `value` milliseconds.
    Delay,
}

impl FlowopKind {
    /// Its name in the format.
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

    /// Whether it counts as a file operation.
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

/// A flow operation: one line of a thread's loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flowop {
    /// Its kind.
    pub op: FlowopKind,
    /// Its name in results. Default: its kind, with its number among those of the same kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The set of files it chooses from, uniformly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fileset: Option<String>,
    /// The slot in which the thread keeps the file open, 1 to 64.
    #[serde(default = "default_slot")]
    pub slot: u32,
    /// Bytes of an access, or of its pieces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iosize_bytes: Option<u32>,
    /// Access a uniformly random multiple of `iosize_bytes`, not the end of the last access.
    #[serde(default)]
    pub random: bool,
    /// Writes are durable when they return.
    #[serde(default)]
    pub dsync: bool,
    /// Bypass the page cache.
    #[serde(default)]
    pub directio: bool,
    /// Use the files of the set in turn, and keep each open.
    #[serde(default)]
    pub rotate: bool,
    /// Repetitions within one loop.
    #[serde(default = "one")]
    pub iters: u32,
    /// The number of semblock, sempost, hog and delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u32>,
    /// Of semblock: the number of posts that posting threads may be ahead before its first wait.
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
