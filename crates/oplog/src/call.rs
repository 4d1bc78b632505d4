//! Calls: what the threads of a program do through open files, finer than operations, which open and close a file each time.
//!
//! Whoever knows the program (a personality) makes a [`Script`] and a stream of [`FlowCall`]s for each thread; whoever has
//! the file system makes the files and issues the calls. They are no part of the operation log.

use senesce_core::RelPath;

/// One call of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opens a file in the thread's slot, which is empty.
    Open {
        /// The slot: a thread has as many as it asks for.
        slot: u32,
        /// The file, an index into [`Script::files`].
        file: u32,
        /// How.
        access: Access,
    },
    /// Closes what is open in the slot.
    Close {
        /// The slot.
        slot: u32,
    },
    /// Reads from the beginning to the end, in pieces.
    ReadWhole {
        /// The slot.
        slot: u32,
        /// Bytes of a piece.
        piece: u32,
    },
    /// Writes from the beginning, in pieces.
    WriteWhole {
        /// The slot.
        slot: u32,
        /// Bytes in all.
        len: u64,
        /// Bytes of a piece.
        piece: u32,
    },
    /// Writes at the end.
    Append {
        /// The slot.
        slot: u32,
        /// How many bytes.
        len: u32,
    },
    /// Reads once at an offset.
    ReadAt {
        /// The slot.
        slot: u32,
        /// Where, bytes.
        offset: u64,
        /// How many bytes.
        len: u32,
    },
    /// Writes once at an offset.
    WriteAt {
        /// The slot.
        slot: u32,
        /// Where, bytes.
        offset: u64,
        /// How many bytes.
        len: u32,
    },
    /// Makes what was written to the slot's file durable.
    Fsync {
        /// The slot.
        slot: u32,
    },
    /// Removes a file.
    Unlink {
        /// The file.
        file: u32,
    },
    /// Looks a file up.
    Stat {
        /// The file.
        file: u32,
    },
    /// Adds to semaphores, each in turn, and waits where one is at its high-water mark.
    Post {
        /// The first of them, an index into [`Script::semaphores`].
        first: u32,
        /// How many.
        count: u32,
        /// How much is added to each.
        by: u32,
    },
    /// Waits until a semaphore has so much, and takes it.
    Wait {
        /// The semaphore.
        semaphore: u32,
        /// How much.
        by: u32,
    },
    /// Computes: writes so many times to memory.
    Burn {
        /// How often.
        times: u32,
    },
    /// Does nothing for a while.
    Pause {
        /// Milliseconds.
        milliseconds: u32,
    },
    /// There was no file to do it with.
    PassOver,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// It is made; it must not be there.
    pub create: bool,
    /// It is only read.
    pub read_only: bool,
    /// Writes are durable when they return (O_SYNC).
    pub synchronous: bool,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
}

/// A call, and which of the script's flow operations it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowCall {
    /// An index into [`Script::flows`].
    pub flow: u32,
    /// Whether it counts as an operation: not what a flow operation needs first, such as the opening of a log.
    pub counted: bool,
    /// The call.
    pub call: Call,
}

/// A file of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// Where, below the script's directory.
    pub path: RelPath,
    /// Bytes that it has if it is there at the beginning.
    pub bytes: u64,
    /// Whether it is there at the beginning.
    pub is_there: bool,
}

/// A thread of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptThread {
    /// Whether its end is waited for. The others end when they would have to wait for those that ended.
    pub is_driver: bool,
    /// How many files it has open at most.
    pub slots: u32,
    /// The semaphore that only it waits for.
    pub semaphore: Option<u32>,
}

/// A flow operation: a line of a thread's loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFlow {
    /// Its name.
    pub name: String,
    /// What it does, such as `appendfilerand`.
    pub op: String,
}

/// All that calls refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Directories to be made, parents first.
    pub directories: Vec<RelPath>,
    /// Files, whether they are there or not.
    pub files: Vec<ScriptFile>,
    /// Flow operations of all threads.
    pub flows: Vec<ScriptFlow>,
    /// High-water marks of the semaphores: how far one may be ahead of who waits for it.
    pub semaphores: Vec<u64>,
    /// Threads.
    pub threads: Vec<ScriptThread>,
}

impl Script {
    /// Bytes of the files that are there at the beginning.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter(|file| file.is_there).map(|file| file.bytes).sum()
    }
}
