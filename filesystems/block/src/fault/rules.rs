//! The language of faults: an effect, and the requests that it applies to.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use crate::BlockOperation;

/// A fault: an effect, and the requests that it applies to.
///
/// As text: an effect, then `read`, `write` or `flush`, then the requests.
///
/// | text | effect |
/// |---|---|
/// | `fail read 3` | the third read fails, and reads nothing |
/// | `fail write 3..` | the third and all later writes fail |
/// | `fail read at 4096+512` | every read that touches these 512 bytes fails |
/// | `lose write 2` | the second write reports success, and writes nothing |
/// | `lose flush 1..` | flushes report success, and do nothing |
/// | `tear write 2 keep 512` | the write reports success, and writes only the first 512 bytes |
/// | `misdirect write 2 to 8192` | the write (or read) uses another offset |
/// | `flip read 2 bit 17` | the read returns bit 17 flipped, once |
/// | `flip write at 0+4096 bit 17` | the write stores bit 17 flipped |
///
/// Requests are counted from 1 since the device was made, each kind on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The effect.
    pub effect: Effect,
    /// Reads, writes or flushes.
    pub operation: BlockOperation,
    /// The requests.
    pub when: When,
}

/// The effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request fails and has no effect.
    Fail,
    /// The request reports success and has no effect. Not for reads.
    Lose,
    /// A write reports success, but writes only a part.
    Tear {
        /// The bytes to write; at most the whole write.
        keep: u64,
    },
    /// The request uses another offset. If it does not fit there, a write is lost, and a read
    /// returns zeros.
    Misdirect {
        /// The offset on the device.
        to: u64,
    },
    /// One bit of the data is flipped; bit numbers are taken modulo the length of the data.
    Flip {
        /// The bit: 0 is the lowest one of the first byte.
        bit: u64,
    },
}

/// The requests that a fault applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// The requests with these numbers, of one kind, from 1.
    Numbers(RangeInclusive<u64>),
    /// The requests that touch this range. Not for flushes.
    Touches {
        /// The first byte.
        offset: u64,
        /// The length in bytes.
        len: u64,
    },
}

impl When {
    /// Whether it applies to this request.
    pub(super) fn is(&self, number: u64, offset: u64, len: u64) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(&number),
            Self::Touches { offset: first, len: bytes } => {
                offset < first.saturating_add(*bytes) && *first < offset.saturating_add(len)
            }
        }
    }
}

/// A text that is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a fault: {problem}; write for example \"fail read 3\", \"tear write at 4096+8192 keep 512\"")]
pub struct ParseFaultError {
    /// The text.
    pub text: String,
    /// The problem.
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
        found => Err(format!("found {found:?}, expected {word:?}")),
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
        return Err(format!("unexpected {more:?}"));
    }
    check(Fault { effect, operation, when })
}

/// Refuses combinations that are impossible.
fn check(fault: Fault) -> Result<Fault, String> {
    let possible = match (fault.operation, fault.effect) {
        (_, Effect::Fail) | (BlockOperation::Write, _) => true,
        (BlockOperation::Read, effect) => matches!(effect, Effect::Misdirect { .. } | Effect::Flip { .. }),
        (_, effect) => effect == Effect::Lose,
    };
    if !possible {
        return Err(format!("this effect is impossible for a {}", fault.operation));
    }
    match fault.when {
        When::Touches { .. } if fault.operation == BlockOperation::Flush => Err("a flush has no range".to_owned()),
        When::Numbers(ref numbers) if *numbers.start() == 0 => Err("requests are counted from 1".to_owned()),
        _ => Ok(fault),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number"))
}

fn range(text: &str) -> Result<When, String> {
    let (offset, len) = text.split_once('+').ok_or(format!("{text:?} is not a range such as 4096+512"))?;
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
