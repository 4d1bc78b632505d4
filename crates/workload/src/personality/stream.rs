//! The calls of one thread.

use std::{collections::VecDeque, sync::Arc};

use senesce_core::Rng;
use senesce_oplog::{Access, Call, FlowCall, ScriptFile, ScriptThread};

use super::{Flowop, FlowopKind};

/// A flow operation with its references resolved.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub flow: u32,
    pub flowop: Flowop,
    /// Number of its set of files.
    pub set: Option<usize>,
    /// The first semaphore that it posts to, and their number.
    pub semaphores: (u32, u32),
    /// The slot of the first file, if it rotates.
    pub rotating_from: u32,
}

/// The files of one set that a thread chooses from. Clones share the lists until a file is created
/// or removed.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub there: Arc<Vec<u32>>,
    pub absent: Arc<Vec<u32>>,
}

impl Choice {
    fn make(&mut self, place: usize) -> u32 {
        let file = Arc::make_mut(&mut self.absent).swap_remove(place);
        Arc::make_mut(&mut self.there).push(file);
        file
    }

    fn remove(&mut self, place: usize) -> u32 {
        let file = Arc::make_mut(&mut self.there).swap_remove(place);
        Arc::make_mut(&mut self.absent).push(file);
        file
    }
}

/// The calls of one thread in order. They depend only on script and seed, not on other threads.
///
/// Memory: the thread's share of the created and deleted files.
pub struct CallStream<'a> {
    files: &'a [ScriptFile],
    lines: &'a [Line],
    /// Loops left; `None` if the caller stops the run.
    loops: Option<u64>,
    pub(super) choices: Vec<Choice>,
    /// The semaphore that it waits for.
    semaphore: Option<u32>,
    /// The file in each slot, and the end of its last access.
    slots: Vec<Option<(u32, u64)>>,
    rng: Rng,
    line: usize,
    done_iters: u32,
    /// The position of each rotating line.
    turns: Vec<u32>,
    ready: VecDeque<FlowCall>,
}

impl<'a> CallStream<'a> {
    pub(super) fn new(
        files: &'a [ScriptFile],
        lines: &'a [Line],
        loops: Option<u64>,
        choices: Vec<Choice>,
        thread: &ScriptThread,
        mut rng: Rng,
    ) -> Self {
        // Threads start with different files.
        let turns = lines.iter().map(|_| (rng.next_u64() >> 33) as u32).collect();
        Self {
            files,
            lines,
            loops,
            choices,
            semaphore: thread.semaphore,
            slots: vec![None; thread.slots as usize],
            rng,
            line: 0,
            done_iters: 0,
            turns,
            ready: VecDeque::new(),
        }
    }

    fn push(&mut self, line: &Line, counted: bool, call: Call) {
        let counted = counted && line.flowop.op.is_file_operation() && call != Call::Skip;
        self.ready.push_back(FlowCall { flow: line.flow, counted, call });
    }

    fn is_open(&self, file: u32) -> bool {
        self.slots.iter().flatten().any(|(open, _)| *open == file)
    }

    /// Returns the position of an existing file, chosen uniformly. With `is_shut` it skips files
    /// that this thread has open.
    fn choose(&mut self, set: usize, is_shut: bool) -> Option<usize> {
        let count = self.choices[set].there.len();
        let first = (count > 0).then(|| self.rng.below(count as u64) as usize)?;
        let mut places = (first..count).chain(0..first);
        places.find(|place| !is_shut || !self.is_open(self.choices[set].there[*place]))
    }

    fn access(flowop: &Flowop, create: bool) -> Access {
        let read_only = !create && flowop.op == FlowopKind::Read;
        Access { create, read_only, synchronous: flowop.dsync, direct: flowop.directio }
    }

    fn open(&mut self, line: &Line, slot: u32, counted: bool) -> bool {
        let chosen = line.set.and_then(|set| Some((set, self.choose(set, false)?)));
        let Some((set, place)) = chosen else { return false };
        let file = self.choices[set].there[place];
        self.slots[slot as usize] = Some((file, 0));
        self.push(line, counted, Call::Open { slot, file, access: Self::access(&line.flowop, false) });
        true
    }

    /// Turns one flow operation into one call, preceded by the calls it needs.
    fn make(&mut self, line: &Line) {
        let (flowop, slot) = (&line.flowop, line.flowop.slot);
        let is_open = self.slots.get(slot as usize).is_some_and(Option::is_some);
        let value = flowop.value.unwrap_or(0);
        let call = match flowop.op {
            FlowopKind::OpenFile => {
                if is_open || !self.open(line, slot, true) {
                    self.push(line, false, Call::Skip);
                }
                return;
            }
            FlowopKind::CreateFile => line.set.filter(|_| !is_open).and_then(|set| {
                let count = self.choices[set].absent.len() as u64;
                let place = (count > 0).then(|| self.rng.below(count) as usize)?;
                let file = self.choices[set].make(place);
                self.slots[slot as usize] = Some((file, 0));
                Some(Call::Open { slot, file, access: Self::access(flowop, true) })
            }),
            FlowopKind::CloseFile => self.slots[slot as usize].take().map(|_| Call::Close { slot }),
            FlowopKind::DeleteFile => line.set.and_then(|set| {
                let place = self.choose(set, true)?;
                Some(Call::Unlink { file: self.choices[set].remove(place) })
            }),
            FlowopKind::StatFile => line.set.and_then(|set| {
                let place = self.choose(set, false)?;
                Some(Call::Stat { file: self.choices[set].there[place] })
            }),
            FlowopKind::SemBlock => self.semaphore.map(|semaphore| Call::Wait { semaphore, by: value }),
            FlowopKind::SemPost => {
                let (first, count) = line.semaphores;
                Some(Call::Post { first, count, by: value })
            }
            FlowopKind::Hog => Some(Call::Spin { times: value }),
            FlowopKind::Delay => Some(Call::Pause { milliseconds: value }),
            _ => self.access_slot(line),
        };
        self.push(line, true, call.unwrap_or(Call::Skip));
    }

    /// A read, a write or an fsync of the file in a slot. An empty slot is filled first.
    fn access_slot(&mut self, line: &Line) -> Option<Call> {
        let flowop = &line.flowop;
        let mut slot = flowop.slot;
        let files = self.files;
        if let Some(set) = line.set.filter(|_| flowop.rotate) {
            let (count, at) = (self.choices[set].there.len() as u32, self.line);
            let turn = self.turns[at] % count.max(1);
            self.turns[at] = turn + 1;
            let file = *self.choices[set].there.get(turn as usize)?;
            slot = line.rotating_from + turn;
            if self.slots[slot as usize].is_none() {
                self.slots[slot as usize] = Some((file, 0));
                self.push(line, false, Call::Open { slot, file, access: Self::access(flowop, false) });
            }
        }
        if self.slots[slot as usize].is_none() && !self.open(line, slot, false) {
            return None;
        }
        let (file, position) = self.slots[slot as usize]?;
        let bytes = files[file as usize].bytes;
        let size = flowop.iosize_bytes.unwrap_or(1);
        let pieces = (bytes / u64::from(size)).max(1);
        let takes_offset = matches!(flowop.op, FlowopKind::Read | FlowopKind::Write | FlowopKind::AioWrite);
        let offset = match flowop.random && takes_offset {
            true => self.rng.below(pieces) * u64::from(size),
            false => position % (pieces * u64::from(size)),
        };
        if takes_offset {
            self.slots[slot as usize] = Some((file, offset + u64::from(size)));
        }
        Some(match flowop.op {
            FlowopKind::Read => Call::ReadAt { slot, offset, len: size },
            FlowopKind::Write | FlowopKind::AioWrite => Call::WriteAt { slot, offset, len: size },
            FlowopKind::ReadWholeFile => Call::ReadWhole { slot, piece: size },
            FlowopKind::WriteWholeFile => Call::WriteWhole { slot, len: bytes, piece: size },
            FlowopKind::AppendFile => Call::Append { slot, len: size },
            FlowopKind::AppendFileRand => Call::Append { slot, len: self.rng.between(1, u64::from(size)) as u32 },
            _ => Call::Fsync { slot },
        })
    }
}

impl Iterator for CallStream<'_> {
    type Item = FlowCall;

    fn next(&mut self) -> Option<FlowCall> {
        loop {
            if let Some(call) = self.ready.pop_front() {
                return Some(call);
            }
            if self.line == self.lines.len() {
                self.line = 0;
                self.loops = self.loops.map(|loops| loops - 1);
            }
            if self.loops == Some(0) {
                return None;
            }
            let lines = self.lines;
            let line = &lines[self.line];
            self.make(line);
            self.done_iters += 1;
            if self.done_iters >= line.flowop.iters {
                (self.done_iters, self.line) = (0, self.line + 1);
            }
        }
    }
}
