//! Stories: commands as text, with each answer below its command.
//!
//! A line is a command. The lines below it that start with two spaces are its answer, `! NotFound`
//! for an error. Paths start at the root, or at `@name` for a held inode. Bytes are `"text"`, or
//! `x*4096` for repetitions. `at` sets the time in seconds, and `as` sets owner and group.

use std::{collections::BTreeMap, fmt::Write, ops::ControlFlow};

use super::{
    Subject,
    words::{bytes, number, octal, shown, time, words},
};
use crate::{
    Attributes, Caller, FallocateMode, FileKind, FileSystem, FsError, Ino, NewNode, RenameMode, SeekTo, SetAttributes,
    SetXattrMode, Timestamp,
};

/// Runs a story on a subject. Returns the commands, each with its actual answer. Comments and other
/// lines stay; the old answers are removed.
pub fn tell(subject: &mut dyn Subject, story: &str) -> String {
    let mut teller = Teller { caller: Caller::default(), held: BTreeMap::new() };
    let mut told = String::new();
    for line in story.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(told, "{line}"); // a String takes everything
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let answer = teller.command(subject, &words(line)).unwrap_or_else(|problem| match problem {
            Problem::Fs(FsError::Stale) => "! NotFound".to_owned(),
            Problem::Fs(error) => format!("! {}", error.word()),
            Problem::Words(what) => format!("?! {what}"),
        });
        for line in answer.lines() {
            let _ = writeln!(told, "  {line}");
        }
    }
    told
}

/// The reason for a missing answer.
enum Problem {
    Fs(FsError),
    Words(String),
}

impl From<FsError> for Problem {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self::Words(what)
    }
}

type Answer = Result<String, Problem>;

struct Teller {
    caller: Caller,
    held: BTreeMap<String, Ino>,
}

impl Teller {
    fn ino(&self, fs: &dyn FileSystem, path: &str) -> Result<Ino, Problem> {
        let (mut ino, below) = match path.strip_prefix('@') {
            None => (Ino::ROOT, path),
            Some(rest) => {
                let (held, below) = rest.split_once('/').unwrap_or((rest, ""));
                (*self.held.get(held).ok_or(format!("nothing is held as {held}"))?, below)
            }
        };
        for name in below.split('/').filter(|name| !name.is_empty()) {
            ino = fs.lookup(ino, &bytes(name)?)?.ino;
        }
        Ok(ino)
    }

    fn name(&self, fs: &dyn FileSystem, path: &str) -> Result<(Ino, Vec<u8>), Problem> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.ino(fs, parent)?, bytes(name)?))
    }

    fn rename(&self, fs: &dyn FileSystem, from: &str, to: &str, how: RenameMode) -> Result<(), Problem> {
        let (from, to) = (self.name(fs, from)?, self.name(fs, to)?);
        Ok(fs.rename(&self.caller, (from.0, &from.1), (to.0, &to.1), how)?)
    }

    fn command(&mut self, subject: &mut dyn Subject, words: &[String]) -> Answer {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["at", seconds] => self.caller.now = Timestamp { seconds: number(seconds)? as i64, nanoseconds: 0 },
            ["as", uid, gid] => (self.caller.uid, self.caller.gid) = (number(uid)? as u32, number(gid)? as u32),
            ["reopen"] => {
                self.held.clear();
                subject.reopen()?;
            }
            ["check"] => subject.check()?,
            _ => return self.on(subject.file_system(), &words),
        }
        Ok(String::new())
    }

    fn on(&mut self, fs: &dyn FileSystem, words: &[&str]) -> Answer {
        let caller = &self.caller.clone();
        match *words {
            ["create", path] => self.make(fs, path, NewNode::file(0o644))?,
            ["create", path, permissions] => self.make(fs, path, NewNode::file(octal(permissions)?))?,
            ["mkdir", path] => self.make(fs, path, NewNode::directory(0o755))?,
            ["mkdir", path, permissions] => self.make(fs, path, NewNode::directory(octal(permissions)?))?,
            ["mknod", path, kind, device] => {
                let node = NewNode { kind: kind_of(kind)?, permissions: 0o600, device: number(device)? as u32 };
                self.make(fs, path, node)?;
            }
            ["symlink", path, target] => {
                let (directory, name) = self.name(fs, path)?;
                fs.symlink(caller, directory, &name, &bytes(target)?)?;
            }
            ["readlink", path] => return Ok(shown(&fs.read_link(self.ino(fs, path)?)?)),
            ["link", existing, path] => {
                let (directory, name) = self.name(fs, path)?;
                fs.link(caller, self.ino(fs, existing)?, directory, &name)?;
            }
            ["unlink", path] => {
                let (directory, name) = self.name(fs, path)?;
                fs.unlink(caller, directory, &name)?;
            }
            ["rmdir", path] => {
                let (directory, name) = self.name(fs, path)?;
                fs.rmdir(caller, directory, &name)?;
            }
            ["rename", from, to] => self.rename(fs, from, to, RenameMode::Replace)?,
            ["rename", from, to, "noreplace"] => self.rename(fs, from, to, RenameMode::NoReplace)?,
            ["rename", from, to, "exchange"] => self.rename(fs, from, to, RenameMode::Exchange)?,
            ["ls", path] => return self.list(fs, path),
            ["stat", path, ref fields @ ..] => {
                let found = fs.attributes(self.ino(fs, path)?)?;
                return fields
                    .iter()
                    .map(|field| stat_field(&found, field))
                    .collect::<Result<Vec<_>, _>>()
                    .map(|all| all.join(" "));
            }
            ["hold", path, name] => {
                let ino = self.ino(fs, path)?;
                fs.open(ino)?;
                self.held.insert(name.to_owned(), ino);
            }
            ["release", name] => {
                let ino = self.held.remove(name).ok_or(format!("nothing is held as {name}"))?;
                fs.release(ino, caller.now)?;
            }
            ["same", first, second] => {
                return Ok((self.ino(fs, first)? == self.ino(fs, second)?).to_string());
            }
            _ => return self.on_inode(fs, words),
        }
        Ok(String::new())
    }

    fn make(&self, fs: &dyn FileSystem, path: &str, node: NewNode) -> Result<(), Problem> {
        let (directory, name) = self.name(fs, path)?;
        fs.make_node(&self.caller, directory, &name, &node)?;
        Ok(())
    }

    fn list(&self, fs: &dyn FileSystem, path: &str) -> Answer {
        let mut names = Vec::new();
        fs.read_dir(self.ino(fs, path)?, 0, &mut |entry| {
            names.push(format!("{} {}", entry.name.escape_ascii(), kind_word(entry.kind)));
            ControlFlow::Continue(())
        })?;
        names.sort();
        Ok(names.join("\n"))
    }

    /// Commands that change or read an inode.
    fn on_inode(&self, fs: &dyn FileSystem, words: &[&str]) -> Answer {
        let caller = &self.caller;
        let [command, path, rest @ ..] = words else { return Err(Problem::Words(format!("what is {words:?}?"))) };
        let ino = self.ino(fs, path)?;
        let change = |change: SetAttributes| fs.set_attributes(caller, ino, &change).map(|_| String::new());
        let none = SetAttributes::default();
        match (*command, rest) {
            ("read", [offset, len]) => {
                let mut out = vec![0xee; number(len)? as usize];
                let got = fs.read(ino, number(offset)?, &mut out)?;
                return Ok(shown(&out[..got]));
            }
            ("write", [offset, data]) => {
                let data = bytes(data)?;
                let written = fs.write(caller, ino, number(offset)?, &data)?;
                if written != data.len() {
                    return Ok(format!("{written} of {}", data.len()));
                }
            }
            ("truncate", [size]) => drop(change(SetAttributes { size: Some(number(size)?), ..none })?),
            ("chmod", [bits]) => drop(change(SetAttributes { permissions: Some(octal(bits)?), ..none })?),
            ("chown", [uid, gid]) => {
                let (uid, gid) = (Some(number(uid)? as u32), Some(number(gid)? as u32));
                drop(change(SetAttributes { uid, gid, ..none })?);
            }
            ("times", [accessed, modified]) => {
                let (accessed, modified) = (time(accessed)?, time(modified)?);
                drop(change(SetAttributes { accessed, modified, ..none })?);
            }
            ("allocate", [how, offset, len]) => {
                fs.allocate(caller, ino, allocate_how(how)?, number(offset)?, number(len)?)?;
            }
            ("clone", [from, to, to_offset, len]) => {
                let to = (self.ino(fs, to)?, number(to_offset)?);
                return Ok(fs.clone_range(caller, (ino, number(from)?), to, number(len)?)?.to_string());
            }
            ("seek", ["data", offset]) => return Ok(fs.seek(ino, number(offset)?, SeekTo::Data)?.to_string()),
            ("seek", ["hole", offset]) => return Ok(fs.seek(ino, number(offset)?, SeekTo::Hole)?.to_string()),
            ("setxattr", [name, value]) => {
                fs.set_xattr(caller, ino, &bytes(name)?, &bytes(value)?, SetXattrMode::Any)?
            }
            ("setxattr", [name, value, "create"]) => {
                fs.set_xattr(caller, ino, &bytes(name)?, &bytes(value)?, SetXattrMode::Create)?;
            }
            ("setxattr", [name, value, "replace"]) => {
                fs.set_xattr(caller, ino, &bytes(name)?, &bytes(value)?, SetXattrMode::Replace)?;
            }
            ("getxattr", [name]) => return Ok(shown(&fs.get_xattr(ino, &bytes(name)?)?)),
            ("rmxattr", [name]) => fs.remove_xattr(caller, ino, &bytes(name)?)?,
            ("listxattr", []) => {
                return Ok(fs.list_xattrs(ino)?.iter().map(|name| shown(name)).collect::<Vec<_>>().join("\n"));
            }
            ("sync", []) => fs.sync(ino)?,
            ("fill", [count]) => {
                for n in 0..number(count)? {
                    fs.make_node(caller, ino, format!("name-{n}").as_bytes(), &NewNode::file(0o644))?;
                }
            }
            ("filled", [count]) => {
                let mut listed = 0;
                fs.read_dir(ino, 0, &mut |_| {
                    listed += 1;
                    ControlFlow::Continue(())
                })?;
                let there = |n: &u64| fs.lookup(ino, format!("name-{n}").as_bytes()).is_ok();
                return Ok(format!("{listed} listed, {} found", (0..number(count)?).filter(there).count()));
            }
            ("empty", [count]) => {
                for n in 0..number(count)? {
                    fs.unlink(caller, ino, format!("name-{n}").as_bytes())?;
                }
            }
            ("fillxattr", [count]) => {
                for n in 0..number(count)? {
                    fs.set_xattr(
                        caller,
                        ino,
                        format!("user.{n:05}").as_bytes(),
                        n.to_string().as_bytes(),
                        SetXattrMode::Any,
                    )?;
                }
            }
            ("filledxattr", [count]) => {
                let right = |n: &u64| {
                    let value = fs.get_xattr(ino, format!("user.{n:05}").as_bytes());
                    value.is_ok_and(|value| value == n.to_string().as_bytes())
                };
                let listed = fs.list_xattrs(ino)?.len();
                return Ok(format!("{listed} listed, {} right", (0..number(count)?).filter(right).count()));
            }
            _ => return Err(Problem::Words(format!("what is {words:?}?"))),
        }
        Ok(String::new())
    }
}

const KINDS: [(&str, FileKind); 7] = [
    ("file", FileKind::File),
    ("directory", FileKind::Directory),
    ("symlink", FileKind::Symlink),
    ("fifo", FileKind::Fifo),
    ("socket", FileKind::Socket),
    ("char", FileKind::CharDevice),
    ("block", FileKind::BlockDevice),
];

fn kind_word(kind: FileKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("?", |(word, _)| word)
}

fn kind_of(word: &str) -> Result<FileKind, String> {
    KINDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind).ok_or(format!("{word:?} is no kind"))
}

fn allocate_how(word: &str) -> Result<FallocateMode, String> {
    Ok(match word {
        "reserve" => FallocateMode::Reserve { keep_size: false },
        "reserve-keep" => FallocateMode::Reserve { keep_size: true },
        "punch" => FallocateMode::Punch,
        "zero" => FallocateMode::Zero { keep_size: false },
        "zero-keep" => FallocateMode::Zero { keep_size: true },
        other => return Err(format!("{other:?} is no way to allocate")),
    })
}

fn stat_field(found: &Attributes, field: &str) -> Answer {
    let time = |time: Timestamp| match time.nanoseconds {
        0 => time.seconds.to_string(),
        nanoseconds => format!("{}.{nanoseconds:09}", time.seconds),
    };
    let value = match field {
        "kind" => kind_word(found.kind).to_owned(),
        "permissions" => format!("{:o}", found.permissions),
        "links" => found.links.to_string(),
        "uid" => found.uid.to_string(),
        "gid" => found.gid.to_string(),
        "size" => found.size.to_string(),
        "device" => found.device.to_string(),
        "accessed" => time(found.accessed),
        "modified" => time(found.modified),
        "changed" => time(found.changed),
        other => return Err(Problem::Words(format!("stat has no {other:?}"))),
    };
    Ok(format!("{field}={value}"))
}
