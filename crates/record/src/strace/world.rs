//! Effects of the calls of a trace: processes with their descriptors, files with their names and
//! lengths.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::line::unquote;

/// The most descriptors that all processes of a trace may have open at one time.
///
/// A child starts with a copy of its parent's descriptors. Without a limit, a trace of a few MiB
/// with many descriptors and many forks would fill the memory.
const MAX_DESCRIPTORS: usize = 4 << 20;

/// The open file of each descriptor. Threads share one table.
type Table = Rc<RefCell<HashMap<i64, usize>>>;

pub(super) type Path = Vec<u8>;

/// A file; its index is its number.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub names: Vec<Path>,
    pub len: u64,
    /// The number of open files that refer to it.
    opens: usize,
}

/// An open file with its offset, shared by duplicated descriptors.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub path: Path,
    pub file: Option<usize>,
    pub offset: u64,
    pub appends: bool,
    /// The number of descriptors that refer to it.
    pub descriptors: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pub cwd: Path,
    pub umask: u32,
    table: Table,
}

/// The state of a trace.
#[derive(Debug, Default)]
pub(super) struct World {
    pub processes: HashMap<u32, Process>,
    /// The number of entries in all tables of descriptors.
    pub(super) descriptors: usize,
    opens: Vec<Open>,
    /// Entries of `opens` without a descriptor.
    free_opens: Vec<usize>,
    pub files: Vec<File>,
    /// Entries of `files` without a name and without a descriptor.
    free_files: Vec<usize>,
    pub names: BTreeMap<Path, Entry>,
    /// Parents of unfinished forks, and whether the child shares their descriptors.
    pub forking: Vec<(u32, bool)>,
    pub start: Path,
}

/// The kind of a known path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    File(usize),
    Other,
}

/// Normalizes a path: `/a/./b/../c` gives `/a/c`. It does not resolve symbolic links.
pub(super) fn normal(path: &[u8]) -> Path {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    [b"/", &parts.join(&b'/')[..]].concat()
}

/// Returns the path that -y appends to a descriptor: `3</a/b>`.
fn noted(text: &str) -> Option<Path> {
    let (_, path) = text.split_once('<')?;
    let path = path.strip_suffix("(deleted)").unwrap_or(path).strip_suffix('>')?;
    path.starts_with('/').then(|| unquote(&format!("\"{path}\"")))?
}

pub(super) fn number(text: &str) -> Option<i64> {
    let text = text.split(['<', ' ']).next()?;
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn octal(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok()
}

impl World {
    /// Returns the process of a line. A new process is the child of the last unfinished fork.
    pub fn process(&mut self, pid: u32) -> &mut Process {
        if !self.processes.contains_key(&pid) {
            match self.forking.pop() {
                Some((parent, shares)) => self.fork(parent, pid, shares),
                None => {
                    let process = Process { cwd: self.start.clone(), umask: 0o022, table: Table::default() };
                    self.processes.insert(pid, process);
                }
            }
        }
        self.processes.get_mut(&pid).expect("inserted above")
    }

    /// Adds a child. A child that is already known, because its lines precede its parent's result,
    /// stays as it is.
    pub fn fork(&mut self, parent: u32, child: u32, shares: bool) {
        self.forking.retain(|(forking, _)| *forking != parent);
        if self.processes.contains_key(&child) {
            return;
        }
        let mut process = self.process(parent).clone();
        if !shares {
            let copied = process.table.borrow().clone();
            self.descriptors += copied.len();
            copied.values().for_each(|open| self.opens[*open].descriptors += 1);
            process.table = Rc::new(RefCell::new(copied));
        }
        self.processes.insert(child, process);
    }

    /// Removes a process that exited. A later process may have the same number.
    pub fn exit(&mut self, pid: u32) {
        self.forking.retain(|(forking, _)| *forking != pid);
        if let Some(process) = self.processes.remove(&pid)
            && let Some(table) = Rc::into_inner(process.table)
        {
            for open in table.into_inner().into_values() {
                self.descriptors -= 1;
                self.release(open);
            }
        }
    }

    /// Whether the processes have more descriptors than an import keeps in memory.
    pub fn is_too_large(&self) -> bool {
        self.descriptors > MAX_DESCRIPTORS
    }

    /// Returns the path of an argument, relative to the descriptor of a directory if there is one.
    pub fn path(&mut self, pid: u32, directory: Option<&str>, argument: &str) -> Option<Path> {
        let path = unquote(argument)?;
        if path.starts_with(b"/") {
            return Some(normal(&path));
        }
        let base = match directory {
            None => self.process(pid).cwd.clone(),
            Some(directory) => match noted(directory) {
                Some(noted) => noted,
                None if directory.starts_with("AT_FDCWD") => self.process(pid).cwd.clone(),
                None => self.open_of(pid, directory).map(|open| open.path.clone())?,
            },
        };
        // With -y the trace shows the working directory here.
        if directory.is_some_and(|directory| directory.starts_with("AT_FDCWD<")) {
            self.process(pid).cwd.clone_from(&base);
        }
        Some(normal(&[&base, &b"/"[..], &path].concat()))
    }

    /// Returns the open file of a descriptor.
    pub fn open_of(&mut self, pid: u32, descriptor: &str) -> Option<&mut Open> {
        let number = number(descriptor)?;
        let open = *self.process(pid).table.borrow().get(&number)?;
        Some(&mut self.opens[open])
    }

    pub fn install(&mut self, pid: u32, number: i64, open: Open) {
        if let Some(file) = open.file {
            self.files[file].opens += 1;
        }
        let at = match self.free_opens.pop() {
            Some(at) => {
                self.opens[at] = open;
                at
            }
            None => {
                self.opens.push(open);
                self.opens.len() - 1
            }
        };
        self.set(pid, number, Some(at));
    }

    /// Applies dup, dup2, dup3 and fcntl.
    pub fn duplicate(&mut self, pid: u32, from: &str, to: i64) {
        let open = number(from).and_then(|from| self.process(pid).table.borrow().get(&from).copied());
        self.set(pid, to, open);
    }

    pub fn close(&mut self, pid: u32, descriptor: &str) {
        if let Some(number) = number(descriptor) {
            self.set(pid, number, None);
        }
    }

    /// Points a descriptor to an open file, or closes it.
    fn set(&mut self, pid: u32, number: i64, open: Option<usize>) {
        let table = self.process(pid).table.clone();
        let previous = match open {
            Some(open) => table.borrow_mut().insert(number, open),
            None => table.borrow_mut().remove(&number),
        };
        self.descriptors = self.descriptors + usize::from(open.is_some()) - usize::from(previous.is_some());
        // First the new one: it may be the previous one.
        if let Some(open) = open {
            self.opens[open].descriptors += 1;
        }
        if let Some(open) = previous {
            self.release(open);
        }
    }

    /// Removes a descriptor of an open file. Without descriptors its memory is used again, so that
    /// a long trace needs no more than a short one.
    fn release(&mut self, open: usize) {
        let found = &mut self.opens[open];
        found.descriptors -= 1;
        if found.descriptors > 0 {
            return;
        }
        found.path = Path::new();
        let file = found.file.take();
        self.free_opens.push(open);
        if let Some(file) = file {
            self.files[file].opens -= 1;
            self.forget(file);
        }
    }

    /// Frees a file without a name and without a descriptor.
    fn forget(&mut self, file: usize) {
        if self.files[file].names.is_empty() && self.files[file].opens == 0 {
            self.free_files.push(file);
        }
    }

    pub fn add_file(&mut self, path: Path) -> usize {
        let new = File { names: vec![path.clone()], ..File::default() };
        let file = match self.free_files.pop() {
            Some(file) => {
                self.files[file] = new;
                file
            }
            None => {
                self.files.push(new);
                self.files.len() - 1
            }
        };
        self.names.insert(path, Entry::File(file));
        file
    }

    pub fn remove(&mut self, path: &[u8]) {
        if let Some(Entry::File(file)) = self.names.remove(path) {
            self.files[file].names.retain(|name| name != path);
            self.forget(file);
        }
    }

    /// Moves a name and all names below it.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        self.remove(to);
        let below = [from, b"/"].concat();
        // All names below it are adjacent in the order of names.
        let names_below = self.names.range(below.clone()..).map(|(name, _)| name);
        let names_below = names_below.take_while(|name| name.starts_with(&below));
        let moved: Vec<Path> =
            self.names.get_key_value(from).map(|(name, _)| name).into_iter().chain(names_below).cloned().collect();
        for name in moved {
            let Some(entry) = self.names.remove(&name) else { continue };
            let new = [to, &name[from.len()..]].concat();
            if let Entry::File(file) = entry {
                for known in self.files[file].names.iter_mut().filter(|known| **known == name) {
                    known.clone_from(&new);
                }
            }
            self.names.insert(new, entry);
        }
    }
}
