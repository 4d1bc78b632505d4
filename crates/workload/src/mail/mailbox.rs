//! One mailbox: its messages, its UID list, its index and log.

use senesce_core::RelPath;
use senesce_oplog::{Content, Op};

use crate::{fsfb::printable_content, generated_paths::path};

/// The size at which the log of the index is rotated, bytes.
const LOG_BYTES: u64 = 32 << 10;
const LOG_HEADER_BYTES: u64 = 40;
const APPEND_RECORD_BYTES: u64 = 48;
const FLAG_RECORD_BYTES: u64 = 28;
const EXPUNGE_RECORD_BYTES: u64 = 36;
const INDEX_HEADER_BYTES: u64 = 320;
const INDEX_MESSAGE_BYTES: u64 = 8;

/// A message in `cur`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    uid: u32,
    size_bytes: u64,
}

/// A mailbox. Its methods append their operations to a list.
#[derive(Clone, Debug)]
pub(super) struct Mailbox {
    directory: String,
    messages: Vec<Message>,
    next_uid: u32,
    uidlist_bytes: u64,
    uidlist_lines: u64,
    log_bytes: u64,
    has_old_log: bool,
    has_index: bool,
}

/// The source of random bytes: a seed for each content.
pub(super) type Seeds<'a> = &'a mut dyn FnMut() -> u64;

impl Mailbox {
    /// Makes the directories and the files of an empty mailbox.
    pub fn make(directory: String, seeds: Seeds<'_>, ops: &mut Vec<Op>) -> Self {
        let mut mailbox = Self {
            directory,
            messages: Vec::new(),
            next_uid: 1,
            uidlist_bytes: 0,
            uidlist_lines: 0,
            log_bytes: 0,
            has_old_log: false,
            has_index: false,
        };
        ops.push(Op::Mkdir { path: path(&mailbox.directory), mode: 0o700 });
        for below in ["tmp", "new", "cur"] {
            ops.push(Op::Mkdir { path: mailbox.at(below), mode: 0o700 });
        }
        let list = mailbox.uidlist();
        (mailbox.uidlist_bytes, mailbox.uidlist_lines) = (list.len() as u64, 0);
        ops.push(Op::Create { path: mailbox.at("dovecot-uidlist"), mode: 0o600, content: inline(&list) });
        mailbox.begin_log(seeds, ops);
        mailbox
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Delivers a message.
    pub fn deliver(&mut self, size_bytes: u64, seeds: Seeds<'_>, ops: &mut Vec<Op>) {
        let message = Message { uid: self.next_uid, size_bytes };
        self.next_uid += 1;
        let name = name(&message);
        let (tmp, new) = (self.at(&format!("tmp/{name}")), self.at(&format!("new/{name}")));
        ops.push(Op::Create { path: tmp.clone(), mode: 0o600, content: printable_content(seeds(), size_bytes) });
        ops.push(Op::Fsync { path: tmp.clone() });
        ops.push(Op::Rename { from: tmp, to: new.clone() });
        ops.push(Op::Rename { from: new, to: self.at(&format!("cur/{name}:2,")) });
        let line = line(&message);
        let offset = self.uidlist_bytes;
        self.uidlist_bytes += line.len() as u64;
        self.uidlist_lines += 1;
        ops.push(Op::Write { path: self.at("dovecot-uidlist"), offset, content: inline(&line) });
        self.messages.push(message);
        self.append_to_log(APPEND_RECORD_BYTES, seeds, ops);
    }

    /// Flags and expunges the message at a position.
    pub fn expunge(&mut self, position: usize, seeds: Seeds<'_>, ops: &mut Vec<Op>) {
        let message = self.messages.swap_remove(position);
        let name = name(&message);
        let trashed = self.at(&format!("cur/{name}:2,T"));
        ops.push(Op::Rename { from: self.at(&format!("cur/{name}:2,")), to: trashed.clone() });
        self.append_to_log(FLAG_RECORD_BYTES, seeds, ops);
        ops.push(Op::Unlink { path: trashed });
        self.append_to_log(EXPUNGE_RECORD_BYTES, seeds, ops);
        if (self.messages.len() as u64) * 4 < self.uidlist_lines * 3 {
            self.rewrite_uidlist(ops);
        }
    }

    fn rewrite_uidlist(&mut self, ops: &mut Vec<Op>) {
        let list = self.uidlist();
        (self.uidlist_bytes, self.uidlist_lines) = (list.len() as u64, self.messages.len() as u64);
        let (from, to) = (self.at("dovecot-uidlist.tmp"), self.at("dovecot-uidlist"));
        ops.push(Op::Create { path: from.clone(), mode: 0o600, content: inline(&list) });
        ops.push(Op::Fsync { path: from.clone() });
        ops.push(Op::Rename { from, to });
    }

    /// The list in the format of Dovecot's version 3: UID validity, next UID, then a line for each
    /// message, by UID.
    fn uidlist(&self) -> String {
        let mut text = format!("3 V1 N{}\n", self.next_uid);
        let mut messages = self.messages.clone();
        messages.sort_unstable_by_key(|message| message.uid);
        messages.iter().for_each(|message| text.push_str(&line(message)));
        text
    }

    fn append_to_log(&mut self, len: u64, seeds: Seeds<'_>, ops: &mut Vec<Op>) {
        let offset = self.log_bytes;
        self.log_bytes += len;
        let content = Content::Seeded { seed: seeds(), len };
        ops.push(Op::Write { path: self.at("dovecot.index.log"), offset, content });
        if self.log_bytes >= LOG_BYTES {
            let len = INDEX_HEADER_BYTES + INDEX_MESSAGE_BYTES * self.messages.len() as u64;
            let (from, to) = (self.at("dovecot.index.tmp"), self.at("dovecot.index"));
            ops.push(Op::Create { path: from.clone(), mode: 0o600, content: Content::Seeded { seed: seeds(), len } });
            ops.push(Op::Rename { from, to });
            let (from, to) = (self.at("dovecot.index.log"), self.at("dovecot.index.log.2"));
            ops.push(Op::Rename { from, to });
            (self.has_old_log, self.has_index) = (true, true);
            self.begin_log(seeds, ops);
        }
    }

    fn begin_log(&mut self, seeds: Seeds<'_>, ops: &mut Vec<Op>) {
        let content = Content::Seeded { seed: seeds(), len: LOG_HEADER_BYTES };
        ops.push(Op::Create { path: self.at("dovecot.index.log"), mode: 0o600, content });
        self.log_bytes = LOG_HEADER_BYTES;
    }

    fn at(&self, below: &str) -> RelPath {
        path(&format!("{}/{below}", self.directory))
    }

    /// The existing files with their sizes; for tests.
    #[cfg(test)]
    pub fn files(&self) -> Vec<(String, u64)> {
        let mut files: Vec<(String, Option<u64>)> =
            self.messages.iter().map(|m| (format!("cur/{}:2,", name(m)), Some(m.size_bytes))).collect();
        files.push(("dovecot-uidlist".into(), Some(self.uidlist_bytes)));
        files.push(("dovecot.index.log".into(), Some(self.log_bytes)));
        files.extend(self.has_old_log.then(|| ("dovecot.index.log.2".into(), None)));
        files.extend(self.has_index.then(|| ("dovecot.index".into(), None)));
        files.into_iter().map(|(name, size)| (format!("{}/{name}", self.directory), size.unwrap_or(0))).collect()
    }
}

/// A name by the rules of Maildir: unique, with the size in it.
fn name(message: &Message) -> String {
    format!("{}.M{}P{}.mail,S={}", 1_500_000_000 + u64::from(message.uid), message.uid, 1000, message.size_bytes)
}

fn line(message: &Message) -> String {
    format!("{} :{}\n", message.uid, name(message))
}

fn inline(text: &str) -> Content {
    Content::Inline(text.as_bytes().into())
}
