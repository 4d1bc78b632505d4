//! Opening a log: what it holds since a consistency point, and what of it cannot be read.

use std::{fmt, ops::Range, sync::Arc};

use super::{
    Copies, Log, Place, Unfinished,
    halves::{Halves, SILENT, Silent},
    mirror::{Mirror, unbelieved, why_unbelieved},
};
use crate::{
    error::{Error, Result},
    format::{
        Damage,
        half::Half,
        lap::Durable,
        record::NO_RECORD,
        superblock::{LogState, Superblock},
    },
};

/// What cannot be read of a log that was opened all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLoss {
    /// The consistency point that was opened.
    pub point: u64,
    /// Why the log cannot be read.
    pub why: Vec<String>,
    /// Operations behind the point that could be read, and are there.
    pub kept: u64,
    /// The first and the last operation that are known to have been acknowledged, and are lost; `None` if nothing tells.
    pub lost: Option<(u64, u64)>,
    /// The aggregate was closed: nothing was acknowledged behind the point.
    pub was_closed: bool,
}

impl fmt::Display for LogLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { point, why, kept, lost, was_closed } = self;
        write!(f, "opened at consistency point {point} without the whole log ({}): ", why.join("; "))?;
        match (was_closed, lost) {
            (true, _) => write!(f, "it was closed there, and nothing is lost"),
            (false, Some((first, last))) => write!(
                f,
                "{kept} later operations were read; {} acknowledged ones, {first} to {last}, and all after them are lost",
                last - first + 1
            ),
            (false, None) if *kept > 0 => {
                write!(f, "{kept} later operations were read; all that were acknowledged after them are lost")
            }
            (false, None) => {
                write!(f, "all operations acknowledged since then are lost; their number is unknown")
            }
        }
    }
}

/// What a log held when it was opened.
pub(crate) struct Found {
    /// Operations behind the last consistency point, in order.
    pub operations: Vec<(u64, Vec<u8>)>,
    /// What a consistency point that did not end was writing.
    pub unfinished: Unfinished,
    /// A commit was begun since the last consistency point, whether it ended or not.
    pub begun: bool,
    /// A later consistency point was durable, of which no superblock can be read.
    pub later_point: Option<u64>,
    /// The same, if there was more in it than these operations, or behind it.
    pub lost_point: Option<u64>,
    /// What cannot be read, if that was accepted.
    pub loss: Option<LogLoss>,
    /// What all copies have damaged, in bytes of a copy. It may hold records that are whole.
    pub unsettled: Vec<Range<u64>>,
}

/// What may be lost when an aggregate is opened. [`Garden::log_loss`](crate::Garden::log_loss) says what was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// A later consistency point than that of any superblock that can be read, and all that came behind it: **what was done from that one
    /// on is lost**, and what was written over since the older one is damaged.
    pub later_point: bool,
    /// Operations that no copy of the log gives. The log is made again on the devices that are given. After a loss of power the parity of
    /// stripes that were being written may be wrong: a scrub repairs it.
    pub operations: bool,
}

impl Accepted {
    /// What was acknowledged is there, or opening fails.
    pub const NOTHING: Self = Self { later_point: false, operations: false };
    /// Operations may be lost.
    pub const OPERATIONS: Self = Self { later_point: false, operations: true };
    /// A later point may be lost, and operations.
    pub const LATER_POINT: Self = Self { later_point: true, operations: true };
}

impl Log {
    /// Opens a log and reads what lies behind the record `applied`, the last that the consistency point `sb` includes.
    ///
    /// Errors: `Damaged` with the number of a record that was acknowledged and cannot be read, unless a
    /// [later point](Found::lost_point) has gone with it, or that is accepted; no copy can be read, or none where a record may be.
    pub fn open(copies: &Copies, sb: &Superblock, accepted: Accepted) -> Result<(Self, Found, Halves)> {
        let Superblock { uuid, point, applied, .. } = *sb;
        let without = unbelieved(copies, &sb.logs, accepted.operations);
        let mirror = Arc::new(Mirror::new(copies, without, &sb.logs));
        let halves = Halves::read(copies, without, uuid, point);
        let mut log = Self::new(copies, mirror, sb, halves.copies[0].unit);
        if halves.copies[0].is_empty() {
            let loss = log.judge_loss(copies, sb, accepted)?;
            return Ok((log, Found::nothing(loss), halves));
        }
        let live = halves.live(applied);
        let marked = halves.operations.iter().position(|half| half.only_durable().is_some());
        let in_use = marked.or_else(|| live.iter().position(|live| !live.is_empty()));
        let half = in_use.unwrap_or_else(|| halves.find_idle(applied));
        let later_point = halves.later_point();
        let lost_point = halves.find_lost_point(applied);
        // A closed aggregate has no operations that anything could have happened to.
        let damage = if sb.closed {
            None
        } else if !live[0].is_empty() && !live[1].is_empty() {
            Some(two_halves())
        } else if lost_point.is_some() {
            None
        } else {
            let first = live.iter().flatten().map(|record| record.sequence).next();
            let lost = || halves.find_damaged(applied).map(lost_record);
            let first = first.filter(|first| *first != applied + 1).map(|first| first_operation(first, applied));
            first.or_else(lost).or_else(|| halves.find_silent().map(Silent::damage))
        };
        let mut operations: Vec<_> =
            live.into_iter().flatten().map(|record| (record.sequence, record.body.clone())).collect();
        operations.sort_unstable_by_key(|(sequence, _)| *sequence);
        // Those that follow each other from the point on.
        let follows =
            |(number, (sequence, _)): &(u64, &(u64, Vec<u8>))| applied.checked_add(1 + number) == Some(*sequence);
        let whole = (0..).zip(&operations).take_while(follows).count();
        operations.truncate(whole);
        let last = operations.last().map_or(applied, |(sequence, _)| *sequence);
        let stamped = halves.operations.iter().filter_map(Half::last_stamped).max();
        // Copies that are believed only because that is accepted may lack what another device has.
        let unaccepted = unbelieved(copies, &sb.logs, false);
        let is_doubtful = !sb.closed && (0..copies.places.len()).all(|number| unaccepted >> number & 1 == 1);
        let doubts = if is_doubtful { why_copies(copies, &sb.logs) } else { Vec::new() };
        let loss = match damage {
            None if doubts.is_empty() => None,
            None => Some(LogLoss { point, why: doubts, kept: operations.len() as u64, lost: None, was_closed: false }),
            Some(damage) if accepted.operations => Some(LogLoss {
                point,
                why: [format!("the log: {damage}")].into_iter().chain(doubts).collect(),
                kept: operations.len() as u64,
                lost: match stamped.filter(|stamped| *stamped > last) {
                    Some(stamped) => Some((last.saturating_add(1), stamped)),
                    // Nothing tells what was there.
                    None if damage.field == SILENT => None,
                    None => Some((last.saturating_add(1), last.saturating_add(1))),
                },
                was_closed: false,
            }),
            Some(damage) => return Err(Error::damaged(copies.name(), damage)),
        };
        if last >= NO_RECORD {
            return Err(Error::damaged(copies.name(), high_record(last)));
        }
        let begun =
            later_point.is_some() || loss.is_some() || marked.is_none() && halves.operations.iter().any(Half::is_begun);
        // Where nothing tells of the point yet, it may be told; what made it is not known any more.
        log.durable = (!begun && marked.is_none()).then_some(Durable { point, is_logged: false });
        log.half = half as u64;
        // What was begun ends with a consistency point before anything is appended: nothing is written behind it.
        log.position = match (begun, marked) {
            (true, _) => log.half_bytes,
            (false, Some(_)) => log.unit as u64,
            (false, None) => 0,
        };
        // Records behind those that are lost have numbers of their own.
        log.next = loss.as_ref().and_then(|loss| loss.lost).map_or(last, |(_, lost)| lost.min(NO_RECORD - 2)) + 1;
        log.first_waiting = log.next;
        log.chain = marked.map_or(log.lap(false).seed(), |marked| halves.operations[marked].chain);
        let unfinished = halves.unfinished();
        let unsettled = log.find_unsettled(&halves);
        Ok((log, Found { operations, unfinished, begun, later_point, lost_point, loss, unsettled }, halves))
    }

    /// No copy can be read: that costs nothing if the aggregate was closed, else it has to be accepted.
    fn judge_loss(&self, copies: &Copies, sb: &Superblock, accepted: Accepted) -> Result<LogLoss> {
        let mut why = copies.why_lost();
        why.extend(why_copies(copies, &sb.logs));
        if !sb.closed && !accepted.operations {
            let found = if why.is_empty() { "none".to_owned() } else { why.join("; ") };
            return Err(Error::damaged("log", Damage::new("log", LOST_LOG, found, "one at least")));
        }
        if !copies.places.iter().any(|place| place.device().is_some()) {
            return Err(Error::invalid("there is no device for the log: name one that may be overwritten"));
        }
        if sb.applied >= NO_RECORD {
            return Err(Error::damaged("log", high_record(sb.applied)));
        }
        Ok(LogLoss { point: sb.cp, why, kept: 0, lost: None, was_closed: sb.closed })
    }
}

/// Why the copies that are here are not believed.
fn why_copies(copies: &Copies, state: &LogState) -> Vec<String> {
    let here = copies.places.iter().enumerate().filter(|(_, place)| matches!(place, Place::Here(_)));
    here.map(|(number, _)| format!("copy {number} of the log is {}", why_unbelieved(copies, state, number))).collect()
}

impl Found {
    /// What is found where no copy can be read.
    fn nothing(loss: LogLoss) -> Self {
        let (operations, unfinished) = (Vec::new(), Unfinished::default());
        Self {
            operations,
            unfinished,
            begun: !loss.was_closed,
            later_point: None,
            lost_point: None,
            loss: Some(loss),
            unsettled: Vec::new(),
        }
    }
}

/// What an error names if no copy of the log can be read.
pub const LOST_LOG: &str = "copies";

/// What is wrong with a record that was acknowledged and cannot be read.
pub(crate) fn lost_record(record: u64) -> Damage {
    Damage::new(
        "log",
        "record",
        format!("damaged ({record})"),
        "whole: its commit, or a later one, was written to the end",
    )
}

/// What is wrong where both halves hold operations behind one consistency point.
pub(crate) fn two_halves() -> Damage {
    Damage::new("log", "halves with operations", 2, 1)
}

/// What is wrong if others were in front of the first operation. `applied`: the last one before, which is less.
pub(crate) fn first_operation(first: u64, applied: u64) -> Damage {
    Damage::new("log", "first operation", first, applied + 1)
}

/// What is wrong with a number of a record that nothing counts to.
pub(crate) fn high_record(last: u64) -> Damage {
    Damage::new("log", "last record", last, format!("less than {NO_RECORD}"))
}
