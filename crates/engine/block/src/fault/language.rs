//! The language of faults: what goes wrong, with which requests.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use crate::BlockOperation;

/// One fault: what goes wrong with which requests.
///
/// In words: an effect, `read`, `write` or `flush`, and when.
///
/// | words | what happens |
/// |---|---|
/// | `fail read 3` | the third read fails, and reads nothing |
/// | `fail write 3..` | so do the third and all later writes |
/// | `fail read at 4096+512` | so does every read that touches these 512 bytes |
/// | `lose write 2` | the second write says that it was done, and writes nothing |
/// | `lose flush 1..` | flushes say that they were done, and are not |
/// | `tear write 2 keep 512` | only the first 512 bytes are written, and it says that all were |
/// | `misdirect write 2 to 8192` | it is written there (or read from there) instead |
/// | `flip read 2 bit 17` | bit 17 of what is read is the other one, this time |
/// | `flip write at 0+4096 bit 17` | bit 17 of what is written is the other one, for good |
///
/// Requests are counted from 1, each kind by itself, from when the device was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub effect: Effect,
    /// With reads, writes or flushes.
    pub operation: BlockOperation,
    /// With which of them.
    pub when: When,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request fails and does nothing.
    Fail,
    /// The request does nothing and says that it was done. Not with reads.
    Lose,
    /// A write ends early and says that it was done whole.
    Tear {
        /// Bytes that are written; if the write is shorter, all of it.
        keep: u64,
    },
    /// The request goes to another place. If it does not fit there, it is lost or, a read, gives zeros.
    Misdirect {
        /// The place, a byte of the device.
        to: u64,
    },
    /// One bit of the data is the other one; a bit behind the data's end counts from its beginning again.
    Flip {
        /// Which bit: 0 is the lowest of the first byte.
        bit: u64,
    },
}

/// With which requests it goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Those with these numbers, of their kind, from 1.
    Numbers(RangeInclusive<u64>),
    /// Those that touch this range. Not flushes.
    Touches {
        /// The first byte.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
}

impl When {
    /// Whether it is this request.
    pub(super) fn is(&self, number: u64, offset: u64, len: u64) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(&number),
            Self::Touches { offset: first, len: bytes } => {
                offset < first.saturating_add(*bytes) && *first < offset.saturating_add(len)
            }
        }
    }
}

/// Words that are no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no fault: {problem}; write for example \"fail read 3\", \"tear write at 4096+8192 keep 512\"")]
pub struct ParseFaultError {
    /// The words.
    pub text: String,
    /// What is wrong.
    pub problem: String,
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, ParseFaultError> {
        parse(text).map_err(|problem| ParseFaultError { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let mut words = text.split_whitespace();
    let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let effect = next("the effect")?;
    let operation = match next("the operation")? {
        "read" => BlockOperation::Read,
        "write" => BlockOperation::Write,
        "flush" => BlockOperation::Flush,
        other => return Err(format!("{other:?} is not read, write or flush")),
    };
    let when = match next("the number of the request")? {
        "at" => range(next("the range")?)?,
        numbers => When::Numbers(match numbers.strip_suffix("..") {
            Some(first) => number(first)?..=u64::MAX,
            None => number(numbers)?..=number(numbers)?,
        }),
    };
    let mut detail = |word: &str| match next(word)? {
        found if found == word => number(next("the number")?),
        found => Err(format!("{found:?} stands where {word:?} should")),
    };
    let effect = match effect {
        "fail" => Effect::Fail,
        "lose" => Effect::Lose,
        "tear" => Effect::Tear { keep: detail("keep")? },
        "misdirect" => Effect::Misdirect { to: detail("to")? },
        "flip" => Effect::Flip { bit: detail("bit")? },
        other => return Err(format!("{other:?} is not fail, lose, tear, misdirect or flip")),
    };
    if let Some(more) = words.next() {
        return Err(format!("{more:?} is too much"));
    }
    check(Fault { effect, operation, when })
}

/// Refuses what no request can do.
fn check(fault: Fault) -> Result<Fault, String> {
    let possible = match (fault.operation, fault.effect) {
        (_, Effect::Fail) | (BlockOperation::Write, _) => true,
        (BlockOperation::Read, effect) => matches!(effect, Effect::Misdirect { .. } | Effect::Flip { .. }),
        (_, effect) => effect == Effect::Lose,
    };
    if !possible {
        return Err(format!("a {} cannot do that", fault.operation));
    }
    match fault.when {
        When::Touches { .. } if fault.operation == BlockOperation::Flush => Err("a flush has no place".to_owned()),
        When::Numbers(ref numbers) if *numbers.start() == 0 => Err("requests are counted from 1".to_owned()),
        _ => Ok(fault),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn range(text: &str) -> Result<When, String> {
    let (offset, len) = text.split_once('+').ok_or(format!("{text:?} is no range such as 4096+512"))?;
    Ok(When::Touches { offset: number(offset)?, len: number(len)? })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, detail) = match self.effect {
            Effect::Fail => ("fail", String::new()),
            Effect::Lose => ("lose", String::new()),
            Effect::Tear { keep } => ("tear", format!(" keep {keep}")),
            Effect::Misdirect { to } => ("misdirect", format!(" to {to}")),
            Effect::Flip { bit } => ("flip", format!(" bit {bit}")),
        };
        write!(f, "{verb} {} ", self.operation)?;
        match &self.when {
            When::Numbers(numbers) if numbers.start() == numbers.end() => write!(f, "{}", numbers.start())?,
            When::Numbers(numbers) => write!(f, "{}..", numbers.start())?,
            When::Touches { offset, len } => write!(f, "at {offset}+{len}")?,
        }
        f.write_str(&detail)
    }
}
