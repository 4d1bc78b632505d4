//! Import of the output of `strace -f`: the calls that change files, as an operation log.
//!
//! Only the lengths of writes are known, so contents are generated. Files and directories from
//! before the trace are created empty when they first change. With -y the paths of descriptors come
//! from the trace; with -ttt or -tt steps have times. Writes through memory maps are counted, not
//! logged. Symbolic links within paths are not resolved.

mod calls;
mod line;
mod world;

use std::{
    collections::HashMap,
    fs::File as HostFile,
    io::{BufRead, BufReader},
    path::{Path as HostPath, PathBuf},
};

use senesce_core::{Nanos, RelPath, Seed, input::read_line};
use senesce_oplog::{Content, LogSummary, Op};

use crate::{Error, Result, sink::Sink};
use line::Said;
use world::{Entry, Open, Path, World, normal, octal};

/// Options of an import.
pub struct ImportOptions {
    /// The trace.
    pub trace: PathBuf,
    /// The log to create. `None`: the trace is only checked.
    pub log: Option<PathBuf>,
    /// Only files below it are logged, with paths relative to it. Without -y it is also the first
    /// process's working directory.
    pub dir: PathBuf,
    /// Whether names and contents are replaced.
    pub anonymize: bool,
    /// Seed of contents and aliases.
    pub seed: Seed,
    /// Returns true to stop the import. It is called before each line, and before each MiB that is
    /// written.
    pub stop: fn() -> bool,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Totals of the log.
    pub summary: LogSummary,
    /// Lines read.
    pub lines: u64,
    /// Files and directories from before the trace, which were created empty.
    pub assumed: u64,
    /// Writable shared memory maps of files. The log does not contain writes through them.
    pub maps: u64,
    /// Writes to files without a name.
    pub unnamed_writes: u64,
}

/// The longest line of a trace, bytes. By default strace prints 32 bytes of a text, and paths have
/// at most 4 KiB.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The most bytes that one call writes: Linux's MAX_RW_COUNT.
const MAX_CALL_BYTES: u64 = 0x7fff_f000;

/// Imports a trace.
///
/// Errors: a malformed line, with its number; the log cannot be created; the import was stopped. On
/// an error the log is removed.
///
/// A file that was assumed to be plain becomes a directory when a later line uses a path below it.
///
/// Memory: at most 4 Mi open descriptors, one line, and each path that exists at one time.
pub fn import_strace(options: &ImportOptions) -> Result<Imported> {
    let trace = HostFile::open(&options.trace).map_err(Error::io("open the trace", &options.trace))?;
    let dir = std::path::absolute(&options.dir).map_err(Error::io("look up", &options.dir))?;
    let dir = normal(std::os::unix::ffi::OsStrExt::as_bytes(dir.as_os_str()));
    let workload = serde_json::json!({ "name": "strace", "contents": "lengths", "anonymized": options.anonymize });
    let sink = Sink::create(options.log.as_deref(), workload, options.seed, None, false, options.anonymize)?;
    let mut import = Import::new(sink, dir, options.stop);
    let done = import.read(BufReader::new(trace), &options.trace);
    if done.is_err() {
        // A partial log would look like a complete one. If its removal fails, too, the first error
        // is reported.
        drop(import);
        if let Some(log) = &options.log {
            let _ = std::fs::remove_file(log);
        }
        return Err(done.expect_err("it is one"));
    }
    let Import { sink, counts, .. } = import;
    let operations = sink.steps();
    let summary = sink.finish()?.unwrap_or(LogSummary { steps: operations, operations, ..counts.summary.clone() });
    Ok(Imported { summary, ..counts })
}

struct Import {
    sink: Sink,
    world: World,
    root: Path,
    began: Option<Nanos>,
    first: Option<Nanos>,
    counts: Imported,
    label: String,
    programs: HashMap<u32, String>,
    stop: fn() -> bool,
}

/// Calls whose result is the number of bytes written.
const WRITES: [&str; 8] =
    ["write", "writev", "pwrite64", "pwritev", "sendfile", "sendfile64", "copy_file_range", "splice"];

fn no_content() -> Content {
    Content::Inline([].into())
}

impl Import {
    fn new(sink: Sink, root: Path, stop: fn() -> bool) -> Self {
        let mut world = World::default();
        world.start.clone_from(&root);
        let summary = LogSummary {
            steps: 0,
            counted_steps: 0,
            no_space_steps: 0,
            operations: 0,
            operations_by_kind: std::collections::BTreeMap::new(),
            content_bytes: 0,
            frames: 0,
            raw_bytes: 0,
            file_bytes: 0,
            digest: String::new(),
            ended: senesce_oplog::Ended::Unfinished,
        };
        let counts = Imported { summary, lines: 0, assumed: 0, maps: 0, unnamed_writes: 0 };
        let (label, programs) = (String::new(), HashMap::new());
        Self { sink, world, root, began: None, first: None, counts, label, programs, stop }
    }

    fn read(&mut self, mut trace: impl BufRead, path: &HostPath) -> Result<()> {
        let mut unfinished: HashMap<u32, String> = HashMap::new();
        let mut bytes = Vec::new();
        loop {
            if read_line(&mut trace, &mut bytes, MAX_LINE_BYTES).map_err(Error::io("read the trace", path))? == 0 {
                return Ok(());
            }
            self.check_stop()?;
            self.counts.lines += 1;
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_end_matches(['\n', '\r']);
            let number = self.counts.lines;
            let bad = |problem: String| Error::Trace { line: number, problem, text: text.chars().take(80).collect() };
            let line = line::parse(text).map_err(bad)?;
            if let Some(time) = line.time {
                let first = *self.first.get_or_insert(time);
                self.began = Some(Nanos(time.0.saturating_sub(first.0)).max(self.began.unwrap_or(Nanos(0))));
            }
            let call = match line.said {
                Said::Nothing => continue,
                Said::Exited => {
                    unfinished.remove(&line.pid);
                    self.programs.remove(&line.pid);
                    self.world.exit(line.pid);
                    continue;
                }
                Said::Call(call) => call,
                Said::Unfinished(head) => {
                    if head.starts_with("clone") || head.starts_with("fork") || head.starts_with("vfork") {
                        self.world.process(line.pid);
                        self.world.forking.push((line.pid, head.contains("CLONE_FILES")));
                    }
                    unfinished.insert(line.pid, head);
                    continue;
                }
                Said::Resumed(tail) => {
                    let head = unfinished
                        .remove(&line.pid)
                        .ok_or_else(|| bad("this process has no unfinished call".into()))?;
                    line::parse_call(&format!("{head}{tail}")).map_err(bad)?
                }
            };
            self.world.process(line.pid);
            self.label = self.programs.get(&line.pid).cloned().unwrap_or_else(|| "traced".into());
            if let Some(result) = call.result {
                if WRITES.contains(&&*call.name) && result.unsigned_abs() > MAX_CALL_BYTES {
                    return Err(bad(format!("{result} bytes are more than one call can write ({MAX_CALL_BYTES})")));
                }
                self.call(line.pid, &call, result)?;
                if self.world.is_too_large() {
                    return Err(bad("more descriptors are open than an import keeps (4,194,304)".into()));
                }
            }
        }
    }

    fn check_stop(&self) -> Result<()> {
        if (self.stop)() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Returns the path in the log; `None` if it is not recorded.
    fn inside(&self, path: &[u8]) -> Option<RelPath> {
        let rest = if self.root == b"/" { path } else { path.strip_prefix(&self.root[..])? };
        let rest = rest.strip_prefix(b"/")?;
        let is_system = self.root == b"/" && [&b"dev/"[..], b"proc/", b"sys/"].iter().any(|dir| rest.starts_with(dir));
        if is_system { None } else { RelPath::new(rest).ok() }
    }

    fn log(&mut self, op: Op) -> Result<()> {
        self.sink.log_at(&self.label, self.began, op)
    }

    /// Creates the directories above a path that the log does not have yet.
    fn assume_parents(&mut self, path: &[u8]) -> Result<()> {
        let ends: Vec<usize> = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(at, _)| at).collect();
        for end in ends {
            let parent = &path[..end];
            let Some(inside) = self.inside(parent) else { continue };
            let known = self.world.names.get(parent).copied();
            if matches!(known, Some(Entry::File(_))) {
                // Its kind was assumed: no earlier line of the trace shows it.
                self.remove(parent, false)?;
            }
            if matches!(known, None | Some(Entry::File(_))) {
                self.world.names.insert(parent.to_vec(), Entry::Directory);
                self.counts.assumed += 1;
                self.log(Op::Mkdir { path: inside, mode: 0o755 })?;
            }
        }
        Ok(())
    }

    /// Returns the entry of an existing name, and creates it if the log does not have it yet.
    fn assume(&mut self, path: &[u8], is_directory: bool) -> Result<Option<Entry>> {
        let Some(inside) = self.inside(path) else { return Ok(None) };
        if let Some(entry) = self.world.names.get(path) {
            return Ok(Some(*entry));
        }
        self.assume_parents(path)?;
        self.counts.assumed += 1;
        if is_directory {
            self.world.names.insert(path.to_vec(), Entry::Directory);
            self.log(Op::Mkdir { path: inside, mode: 0o755 })?;
            return Ok(Some(Entry::Directory));
        }
        let file = self.world.add_file(path.to_vec());
        self.log(Op::Create { path: inside, mode: 0o644, content: no_content() })?;
        Ok(Some(Entry::File(file)))
    }

    /// Returns the path of a new name if it is logged, after creating its parents.
    fn new_name(&mut self, path: &[u8]) -> Result<Option<RelPath>> {
        let Some(inside) = self.inside(path) else { return Ok(None) };
        self.assume_parents(path)?;
        // The call made the name, so an earlier entry of this name does not exist any more.
        if matches!(self.world.names.get(path), Some(Entry::File(_) | Entry::Other)) {
            self.remove(path, false)?;
        }
        Ok(Some(inside))
    }

    fn open(&mut self, pid: u32, path: Option<Path>, flags: &str, mode: &str, result: i64) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let has = |flag: &str| flags.split('|').any(|found| found == flag);
        let writes = has("O_WRONLY") || has("O_RDWR");
        let mut file = None;
        if !has("O_DIRECTORY") && !has("O_PATH") && !has("O_TMPFILE") && self.inside(&path).is_some() {
            file = match self.world.names.get(&path) {
                Some(Entry::File(file)) => Some(*file),
                Some(_) => None,
                None if has("O_CREAT") => {
                    let umask = self.world.process(pid).umask;
                    let mode = (octal(mode).unwrap_or(0o666) & !umask & 0o7777) | 0o200;
                    let inside = self.new_name(&path)?.expect("it is inside");
                    self.log(Op::Create { path: inside, mode, content: no_content() })?;
                    Some(self.world.add_file(path.clone()))
                }
                None if writes => match self.assume(&path, false)? {
                    Some(Entry::File(file)) => Some(file),
                    _ => None,
                },
                None => None,
            };
            if let Some(file) = file
                && has("O_TRUNC")
                && self.world.files[file].len > 0
            {
                self.truncate(file, 0)?;
            }
        }
        self.world.install(pid, result, Open { path, file, offset: 0, appends: has("O_APPEND"), descriptors: 0 });
        Ok(())
    }

    fn named(&self, file: usize) -> Option<RelPath> {
        self.world.files[file].names.first().and_then(|name| self.inside(name))
    }

    fn truncate(&mut self, file: usize, len: u64) -> Result<()> {
        self.world.files[file].len = len;
        match self.named(file) {
            Some(path) => self.log(Op::Truncate { path, len }),
            None => Ok(()),
        }
    }

    /// Logs bytes written to a descriptor, at an offset or at the descriptor's own.
    fn write(&mut self, pid: u32, descriptor: &str, at: Option<u64>, len: u64) -> Result<()> {
        let Some(open) = self.world.open_of(pid, descriptor) else { return Ok(()) };
        let (file, appends, own) = (open.file, open.appends, open.offset);
        let Some(file) = file else { return Ok(()) };
        let end = self.world.files[file].len;
        let offset = if appends { end } else { at.unwrap_or(own) };
        let Some(after) = offset.checked_add(len) else { return Ok(()) };
        if at.is_none()
            && let Some(open) = self.world.open_of(pid, descriptor)
        {
            open.offset = after;
        }
        if len == 0 {
            return Ok(());
        }
        self.world.files[file].len = end.max(after);
        let Some(path) = self.named(file) else {
            self.counts.unnamed_writes += 1;
            return Ok(());
        };
        let mut done = 0;
        while done < len {
            self.check_stop()?;
            // Split a large copy, so that no step is huge.
            let part = (len - done).min(1 << 20);
            let content = self.sink.grown(part);
            self.log(Op::Write { path: path.clone(), offset: offset + done, content })?;
            done += part;
        }
        Ok(())
    }

    fn rename(&mut self, from: Option<Path>, to: Option<Path>, exchange: bool) -> Result<()> {
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        match (self.inside(&from), self.inside(&to)) {
            (Some(source), Some(target)) => {
                self.assume_renamed(&from, &to, exchange)?;
                if exchange {
                    self.assume(&to, false)?;
                    let aside = [&to[..], b"\0"].concat();
                    self.world.rename(&from, &aside);
                    self.world.rename(&to, &from);
                    self.world.rename(&aside, &to);
                    return self.log(Op::Exchange { first: source, second: target });
                }
                // Between two names of one file, rename(2) does nothing.
                let (old, new) = (self.world.names.get(&from), self.world.names.get(&to));
                if old != new || !matches!(old, Some(Entry::File(_))) {
                    self.world.rename(&from, &to);
                }
                self.log(Op::Rename { from: source, to: target })
            }
            // It left the recorded directory.
            (Some(_), None) => self.remove(&from, false),
            // It entered the recorded directory, with contents that the trace does not show.
            (None, Some(_)) => self.assume(&to, false).map(drop),
            (None, None) => Ok(()),
        }
    }

    /// Makes what a successful rename needs: a directory replaces only a directory.
    fn assume_renamed(&mut self, from: &[u8], to: &[u8], exchange: bool) -> Result<()> {
        let replaces_directory = !exchange && matches!(self.world.names.get(to), Some(Entry::Directory));
        if replaces_directory && matches!(self.world.names.get(from), Some(Entry::File(_))) {
            self.remove(from, false)?;
        }
        let kind = self.assume(from, replaces_directory)?;
        self.assume_parents(to)?;
        let replaced = self.world.names.get(to).copied();
        if !exchange && kind == Some(Entry::Directory) && matches!(replaced, Some(Entry::File(_) | Entry::Other)) {
            self.remove(to, false)?;
        }
        Ok(())
    }

    fn remove(&mut self, path: &[u8], is_directory: bool) -> Result<()> {
        let Some(entry) = self.assume(path, is_directory)? else { return Ok(()) };
        let inside = self.inside(path).expect("assume() gives nothing outside");
        self.world.remove(path);
        match entry {
            Entry::Directory => self.log(Op::Rmdir { path: inside }),
            _ => self.log(Op::Unlink { path: inside }),
        }
    }

    fn link(&mut self, existing: Option<Path>, path: Option<Path>) -> Result<()> {
        let (Some(existing), Some(path)) = (existing, path) else { return Ok(()) };
        // The kernel refuses that, so only a forged trace has it.
        if existing == path {
            return Ok(());
        }
        if self.inside(&existing).is_none() {
            return self.assume(&path, false).map(drop);
        }
        let kind = self.assume(&existing, false)?;
        let (Some(kind), Some(new)) = (kind, self.new_name(&path)?) else { return Ok(()) };
        match kind {
            Entry::File(file) => self.world.files[file].names.push(path.clone()),
            // Symbolic links have hard links, too; directories have none.
            Entry::Other => {}
            Entry::Directory => return Ok(()),
        }
        self.world.names.insert(path, kind);
        self.log(Op::Link { existing: self.inside(&existing).expect("asked above"), path: new })
    }

    fn mkdir(&mut self, pid: u32, path: Option<Path>, mode: &str) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let Some(inside) = self.new_name(&path)? else { return Ok(()) };
        let mode = octal(mode).unwrap_or(0o777) & !self.world.process(pid).umask & 0o7777;
        self.world.names.insert(path, Entry::Directory);
        self.log(Op::Mkdir { path: inside, mode })
    }

    fn symlink(&mut self, target: &str, path: Option<Path>) -> Result<()> {
        let (Some(path), Some(target)) = (path, line::unquote(target)) else { return Ok(()) };
        let Some(inside) = self.new_name(&path)? else { return Ok(()) };
        self.world.names.insert(path, Entry::Other);
        self.log(Op::Symlink { path: inside, target: target.into() })
    }

    fn chmod(&mut self, path: Option<Path>, mode: &str) -> Result<()> {
        let (Some(path), Some(mode)) = (path, octal(mode)) else { return Ok(()) };
        match self.assume(&path, false)? {
            Some(Entry::File(_) | Entry::Directory) => {
                self.log(Op::Chmod { path: self.inside(&path).expect("assumed"), mode: mode & 0o7777 })
            }
            _ => Ok(()),
        }
    }

    /// Returns the current path and the file of a descriptor.
    fn of_descriptor(&mut self, pid: u32, descriptor: &str) -> (Option<Path>, Option<usize>) {
        let Some(open) = self.world.open_of(pid, descriptor) else { return (None, None) };
        let (path, file) = (open.path.clone(), open.file);
        match file {
            Some(file) => (self.world.files[file].names.first().cloned(), Some(file)),
            None => (Some(path), None),
        }
    }
}
