//! Operations on volumes, as the log records them: enough to replay them with the same result.
//!
//! A record also holds results that depended on state that is not durable. These are the number of
//! a new inode, and whether an inode without a name was held open.

use senesce_fsapi::{Caller, FallocateMode, NewNode, RenameMode, SetAttributes, SetXattrMode, Timestamp};

use super::{
    Damage, Decoded,
    bytes::{Reader, push_sized},
    data::Data,
    inode::{kind_number, number_kind},
};

/// An operation: the volume, the caller and the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation<'a> {
    pub volume: u32,
    pub caller: Caller,
    pub act: Act<'a>,
}

/// One change. Directories and inodes are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[rustfmt::skip] // one act a line
pub(crate) enum Act<'a> {
    SetAttributes { ino: u64, change: SetAttributes },
    MakeNode { directory: u64, name: Vec<u8>, node: NewNode, ino: u64 },
    Symlink { directory: u64, name: Vec<u8>, target: Vec<u8>, ino: u64 },
    Link { ino: u64, directory: u64, name: Vec<u8> },
    Unlink { directory: u64, name: Vec<u8>, held: bool },
    Rmdir { directory: u64, name: Vec<u8>, held: bool },
    Rename { from: u64, name: Vec<u8>, to: u64, new_name: Vec<u8>, how: RenameMode, held: bool },
    Write { ino: u64, offset: u64, data: Data<'a> },
    Allocate { ino: u64, how: FallocateMode, offset: u64, len: u64 },
    /// `file` is the number of the new file of attributes, used if the inode has none.
    SetXattr { ino: u64, name: Vec<u8>, value: Vec<u8>, how: SetXattrMode, file: u64 },
    RemoveXattr { ino: u64, name: Vec<u8> },
    /// Removes an inode without a name, after its last holder closed it.
    Reap { ino: u64 },
    CloneRange { from: u64, from_offset: u64, to: u64, to_offset: u64, len: u64 },
}

/// An encoded operation: `head`, then `data`. The data belong to the caller and are copied only
/// into the log.
pub(crate) struct Body<'a> {
    pub head: Vec<u8>,
    pub data: Data<'a>,
}

impl Body<'_> {
    pub fn len(&self) -> usize {
        self.head.len() + self.data.bytes.len()
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn word(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn half(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn time(&mut self, time: Timestamp) {
        self.word(time.seconds as u64);
        self.half(time.nanoseconds);
    }

    fn bytes(&mut self, value: &[u8]) {
        push_sized(&mut self.0, value);
    }

    fn node(&mut self, node: &NewNode) {
        self.byte(kind_number(node.kind));
        self.half(node.permissions);
        self.half(node.device);
    }

    fn change(&mut self, change: &SetAttributes) {
        let halves = [change.permissions, change.uid, change.gid];
        let times = [change.accessed, change.modified, change.changed];
        let present = halves.iter().map(Option::is_some).chain([change.size.is_some()]);
        let present = present.chain(times.iter().map(Option::is_some)).enumerate();
        self.byte(present.fold(0, |bits, (at, is)| bits | u8::from(is) << at));
        halves.into_iter().flatten().for_each(|half| self.half(half));
        change.size.into_iter().for_each(|size| self.word(size));
        times.into_iter().flatten().for_each(|time| self.time(time));
    }
}

impl<'a> Operation<'a> {
    pub fn encode(&self) -> Body<'a> {
        let mut out = Writer(Vec::with_capacity(96));
        out.half(self.volume);
        out.half(self.caller.uid);
        out.half(self.caller.gid);
        out.time(self.caller.now);
        self.act.encode(&mut out);
        let data = if let Act::Write { data, .. } = self.act { data } else { Data::from(&[][..]) };
        Body { head: out.0, data }
    }

    pub fn decode(bytes: &'a [u8]) -> Decoded<Self> {
        let mut from = Reader::new("operation", bytes);
        let volume = from.u32("volume")?;
        let caller = Caller { uid: from.u32("uid")?, gid: from.u32("gid")?, now: time(&mut from)? };
        let act = Act::decode(&mut from)?;
        from.end()?;
        Ok(Self { volume, caller, act })
    }
}

impl<'a> Act<'a> {
    /// Encodes all but the data of a write, which come last.
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::SetAttributes { ino, change } => {
                out.byte(1);
                out.word(*ino);
                out.change(change);
            }
            Self::MakeNode { directory, name, node, ino } => {
                out.byte(2);
                out.word(*directory);
                out.bytes(name);
                out.node(node);
                out.word(*ino);
            }
            Self::Symlink { directory, name, target, ino } => {
                out.byte(3);
                out.word(*directory);
                out.bytes(name);
                out.bytes(target);
                out.word(*ino);
            }
            Self::Link { ino, directory, name } => {
                out.byte(4);
                out.word(*ino);
                out.word(*directory);
                out.bytes(name);
            }
            Self::Unlink { directory, name, held } | Self::Rmdir { directory, name, held } => {
                out.byte(if matches!(self, Self::Unlink { .. }) { 5 } else { 6 });
                out.word(*directory);
                out.bytes(name);
                out.byte(u8::from(*held));
            }
            Self::Rename { from, name, to, new_name, how, held } => {
                out.byte(7);
                out.word(*from);
                out.bytes(name);
                out.word(*to);
                out.bytes(new_name);
                out.byte(match how {
                    RenameMode::Replace => 0,
                    RenameMode::NoReplace => 1,
                    RenameMode::Exchange => 2,
                });
                out.byte(u8::from(*held));
            }
            Self::Write { ino, offset, data } => {
                out.byte(8);
                out.word(*ino);
                out.word(*offset);
                out.half(data.bytes.len() as u32);
            }
            Self::Allocate { ino, how, offset, len } => {
                out.byte(9);
                out.word(*ino);
                out.byte(match how {
                    FallocateMode::Reserve { keep_size } => u8::from(*keep_size),
                    FallocateMode::Punch => 2,
                    FallocateMode::Zero { keep_size } => 3 + u8::from(*keep_size),
                });
                out.word(*offset);
                out.word(*len);
            }
            Self::SetXattr { ino, name, value, how, file } => {
                out.byte(10);
                out.word(*ino);
                out.bytes(name);
                out.bytes(value);
                out.byte(match how {
                    SetXattrMode::Any => 0,
                    SetXattrMode::Create => 1,
                    SetXattrMode::Replace => 2,
                });
                out.word(*file);
            }
            Self::RemoveXattr { ino, name } => {
                out.byte(11);
                out.word(*ino);
                out.bytes(name);
            }
            Self::Reap { ino } => {
                out.byte(12);
                out.word(*ino);
            }
            Self::CloneRange { from, from_offset, to, to_offset, len } => {
                out.byte(13);
                [from, from_offset, to, to_offset, len].into_iter().for_each(|word| out.word(*word));
            }
        }
    }

    fn decode(from: &mut Reader<'a>) -> Decoded<Self> {
        Ok(match from.u8("act")? {
            1 => Self::SetAttributes { ino: from.u64("ino")?, change: change(from)? },
            2 => Self::MakeNode {
                directory: from.u64("directory")?,
                name: from.sized("name")?.to_vec(),
                node: node(from)?,
                ino: from.u64("ino")?,
            },
            3 => Self::Symlink {
                directory: from.u64("directory")?,
                name: from.sized("name")?.to_vec(),
                target: from.sized("target")?.to_vec(),
                ino: from.u64("ino")?,
            },
            4 => Self::Link {
                ino: from.u64("ino")?,
                directory: from.u64("directory")?,
                name: from.sized("name")?.to_vec(),
            },
            act @ (5 | 6) => {
                let (directory, name) = (from.u64("directory")?, from.sized("name")?.to_vec());
                let held = from.u8("held")? != 0;
                if act == 5 { Self::Unlink { directory, name, held } } else { Self::Rmdir { directory, name, held } }
            }
            7 => Self::Rename {
                from: from.u64("directory")?,
                name: from.sized("name")?.to_vec(),
                to: from.u64("new directory")?,
                new_name: from.sized("new name")?.to_vec(),
                how: match from.u8("how")? {
                    0 => RenameMode::Replace,
                    1 => RenameMode::NoReplace,
                    2 => RenameMode::Exchange,
                    other => return Err(Damage::new("operation", "how to rename", other, "0 to 2")),
                },
                held: from.u8("held")? != 0,
            },
            8 => Self::Write { ino: from.u64("ino")?, offset: from.u64("offset")?, data: from.sized("data")?.into() },
            9 => Self::Allocate {
                ino: from.u64("ino")?,
                how: match from.u8("how")? {
                    0 => FallocateMode::Reserve { keep_size: false },
                    1 => FallocateMode::Reserve { keep_size: true },
                    2 => FallocateMode::Punch,
                    3 => FallocateMode::Zero { keep_size: false },
                    4 => FallocateMode::Zero { keep_size: true },
                    other => return Err(Damage::new("operation", "how to allocate", other, "0 to 4")),
                },
                offset: from.u64("offset")?,
                len: from.u64("length")?,
            },
            10 => Self::SetXattr {
                ino: from.u64("ino")?,
                name: from.sized("name")?.to_vec(),
                value: from.sized("value")?.to_vec(),
                how: match from.u8("how")? {
                    0 => SetXattrMode::Any,
                    1 => SetXattrMode::Create,
                    2 => SetXattrMode::Replace,
                    other => return Err(Damage::new("operation", "how to set", other, "0 to 2")),
                },
                file: from.u64("file")?,
            },
            11 => Self::RemoveXattr { ino: from.u64("ino")?, name: from.sized("name")?.to_vec() },
            12 => Self::Reap { ino: from.u64("ino")? },
            13 => Self::CloneRange {
                from: from.u64("ino")?,
                from_offset: from.u64("offset")?,
                to: from.u64("target's ino")?,
                to_offset: from.u64("target's offset")?,
                len: from.u64("length")?,
            },
            other => return Err(Damage::new("operation", "act", other, "1 to 13")),
        })
    }
}

fn time(from: &mut Reader<'_>) -> Decoded<Timestamp> {
    Ok(Timestamp { seconds: from.u64("seconds")? as i64, nanoseconds: from.u32("nanoseconds")? })
}

fn node(from: &mut Reader<'_>) -> Decoded<NewNode> {
    let kind = from.u8("kind")?;
    let kind = number_kind(kind).ok_or_else(|| Damage::new("operation", "kind", kind, "1 to 7"))?;
    Ok(NewNode { kind, permissions: from.u32("permissions")?, device: from.u32("device")? })
}

fn change(from: &mut Reader<'_>) -> Decoded<SetAttributes> {
    let bits = from.u8("change")?;
    let has = |at: u32| bits >> at & 1 == 1;
    Ok(SetAttributes {
        permissions: has(0).then(|| from.u32("permissions")).transpose()?,
        uid: has(1).then(|| from.u32("uid")).transpose()?,
        gid: has(2).then(|| from.u32("gid")).transpose()?,
        size: has(3).then(|| from.u64("size")).transpose()?,
        accessed: has(4).then(|| time(from)).transpose()?,
        modified: has(5).then(|| time(from)).transpose()?,
        changed: has(6).then(|| time(from)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Act<'static>> {
        let name = || b"name".to_vec();
        let time = Timestamp { seconds: -5, nanoseconds: 6 };
        let change = SetAttributes { uid: Some(3), size: Some(9), changed: Some(time), ..SetAttributes::default() };
        let node = NewNode { device: 7, ..NewNode::directory(0o755) };
        vec![
            Act::SetAttributes { ino: 1, change },
            Act::MakeNode { directory: 1, name: name(), node, ino: 16 },
            Act::Symlink { directory: 1, name: name(), target: b"to".to_vec(), ino: 17 },
            Act::Link { ino: 16, directory: 1, name: name() },
            Act::Unlink { directory: 1, name: name(), held: true },
            Act::Rmdir { directory: 1, name: name(), held: false },
            Act::Rename { from: 1, name: name(), to: 2, new_name: name(), how: RenameMode::Exchange, held: true },
            Act::Write { ino: 16, offset: 5, data: [1, 2, 3][..].into() },
            Act::Allocate { ino: 16, how: FallocateMode::Zero { keep_size: true }, offset: 1, len: 2 },
            Act::SetXattr { ino: 16, name: name(), value: vec![9], how: SetXattrMode::Create, file: 18 },
            Act::RemoveXattr { ino: 16, name: name() },
            Act::Reap { ino: 16 },
            Act::CloneRange { from: 16, from_offset: 4096, to: 17, to_offset: 8192, len: 5000 },
        ]
    }

    #[test]
    fn operations_are_decoded_and_keep_their_bytes() {
        let caller = Caller { uid: 1000, gid: 100, now: Timestamp { seconds: 7, nanoseconds: 8 } };
        let mut sums = Vec::new();
        for act in all() {
            let operation = Operation { volume: 3, caller, act };
            let body = operation.encode();
            let bytes = [&body.head, body.data.bytes].concat();
            assert_eq!(Operation::decode(&bytes).unwrap(), operation);
            for cut in 0..bytes.len() {
                Operation::decode(&bytes[..cut]).unwrap_err();
            }
            sums.push(crc32c::crc32c(&bytes));
        }
        assert_eq!(sums, GOLDEN);
    }
    const GOLDEN: [u32; 13] = [
        3270579769, 2300734541, 2272896279, 2365054166, 3542081016, 818894982, 2242043446, 3554925136, 4014699952,
        3898322359, 1340334074, 1549089763, 2298888024,
    ];
}
