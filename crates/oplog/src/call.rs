//! Calls of a program's threads through open files. They are finer than operations, each of which
//! opens and closes its file.
//!
//! A model of a program (a personality) makes a [`Script`] and a stream of [`FlowCall`]s for each
//! thread. The executor makes the files and issues the calls. Calls are not part of the operation
//! log.

use senesce_core::RelPath;

/// One call of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opens a file in an empty slot of the thread.
    Open {
        /// The slot, below [`ScriptThread::slots`].
        slot: u32,
        /// The file, an index into [`Script::files`].
        file: u32,
        /// The mode of opening.
        access: Access,
    },
    /// Closes the file in the slot.
    Close {
        /// The slot.
        slot: u32,
    },
    /// Reads the whole file from its start, in pieces.
    ReadWhole {
        /// The slot.
        slot: u32,
        /// Bytes of a piece.
        piece: u32,
    },
    /// Writes from the start of the file, in pieces.
    WriteWhole {
        /// The slot.
        slot: u32,
        /// Total bytes.
        len: u64,
        /// Bytes of a piece.
        piece: u32,
    },
    /// Appends to the file.
    Append {
        /// The slot.
        slot: u32,
        /// Bytes to write.
        len: u32,
    },
    /// Reads once at an offset.
    ReadAt {
        /// The slot.
        slot: u32,
        /// Offset in the file, bytes.
        offset: u64,
        /// Bytes to read.
        len: u32,
    },
    /// Writes once at an offset.
    WriteAt {
        /// The slot.
        slot: u32,
        /// Offset in the file, bytes.
        offset: u64,
        /// Bytes to write.
        len: u32,
    },
    /// Makes the written data of the slot's file durable.
    Fsync {
        /// The slot.
        slot: u32,
    },
    /// Removes a file.
    Unlink {
        /// The file.
        file: u32,
    },
    /// Reads a file's attributes by its path.
    Stat {
        /// The file.
        file: u32,
    },
    /// Posts to consecutive semaphores, and waits for each that is at its high-water mark.
    Post {
        /// The first semaphore, an index into [`Script::semaphores`].
        first: u32,
        /// The number of semaphores.
        count: u32,
        /// The amount added to each.
        by: u32,
    },
    /// Waits until a semaphore has the amount, and subtracts it.
    Wait {
        /// The semaphore.
        semaphore: u32,
        /// The amount.
        by: u32,
    },
    /// Computes: writes to memory `times` times.
    Spin {
        /// The number of writes.
        times: u32,
    },
    /// Pauses the thread.
    Pause {
        /// Milliseconds.
        milliseconds: u32,
    },
    /// The generator found no file for the call.
    Skip,
}

/// The mode of opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whether the file is created; it must not exist.
    pub create: bool,
    /// Whether the file is opened for reading only.
    pub read_only: bool,
    /// Whether writes are durable when they return (O_SYNC).
    pub synchronous: bool,
    /// Whether the page cache is bypassed (O_DIRECT).
    pub direct: bool,
}

/// A call and the flow operation of the script that issues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCall {
    /// An index into [`Script::flows`].
    pub flow: u32,
    /// Whether the call counts as an operation. Calls that only prepare one, such as opening a log,
    /// do not.
    pub counted: bool,
    /// The call.
    pub call: Call,
}

/// A file of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// Path below the script's directory.
    pub path: RelPath,
    /// Size at the start, if it exists then, bytes.
    pub bytes: u64,
    /// Whether the file exists at the start.
    pub preallocated: bool,
}

/// A thread of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptThread {
    /// Whether the run waits for the thread's end. The other threads end when they would wait for
    /// ended threads.
    pub is_driver: bool,
    /// The most files it has open at once.
    pub slots: u32,
    /// The semaphore for which only this thread waits.
    pub semaphore: Option<u32>,
}

/// A flow operation: a line of a thread's loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFlow {
    /// Its name.
    pub name: String,
    /// The type of the operation, such as `appendfilerand`.
    pub op: String,
}

/// The files, threads and semaphores that calls refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Directories to create, parents first.
    pub directories: Vec<RelPath>,
    /// Files, existing or not.
    pub files: Vec<ScriptFile>,
    /// Flow operations of all threads.
    pub flows: Vec<ScriptFlow>,
    /// High-water marks of the semaphores: the most that is posted and not yet acquired.
    pub semaphores: Vec<u64>,
    /// Threads.
    pub threads: Vec<ScriptThread>,
}

impl Script {
    /// Bytes of the files that exist at the start.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter(|file| file.preallocated).map(|file| file.bytes).sum()
    }
}
