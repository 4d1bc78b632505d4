//! Opening a log: reading its contents since a consistency point, and judging what cannot be read.

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
        log_half::Half,
        log_lap::Durable,
        log_record::NO_RECORD,
        superblock::{LogState, Superblock},
    },
};

/// The loss of a log that was opened although it could not be read completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLoss {
    /// The consistency point that was opened.
    pub point: u64,
    /// Why the log cannot be read.
    pub why: Vec<String>,
    /// Operations after the point that were read and replayed.
    pub kept: u64,
    /// The first and the last lost operation that are known to have been acknowledged; `None` if
    /// that is unknown.
    pub lost: Option<(u64, u64)>,
    /// Whether the aggregate was closed: no operation was acknowledged after the point.
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

/// The contents of a log at its opening.
pub(crate) struct Found {
    /// Operations after the last consistency point, in order.
    pub operations: Vec<(u64, Vec<u8>)>,
    /// The stripes that an unfinished consistency point was writing.
    pub unfinished: Unfinished,
    /// Whether a commit was started since the last consistency point, complete or not.
    pub begun: bool,
    /// A later consistency point that was durable and has no readable superblock.
    pub later_point: Option<u64>,
    /// A later point that these operations cannot recreate.
    pub lost_point: Option<u64>,
    /// The loss, if it was accepted.
    pub loss: Option<LogLoss>,
    /// Ranges that are damaged in all copies, in bytes of a copy. They may hold whole records.
    pub unsettled: Vec<Range<u64>>,
}

/// The losses that an opening accepts. [`Garden::log_loss`](crate::Garden::log_loss) reports the
/// actual loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Accepts the loss of a consistency point that is later than all readable superblocks. **All
    /// changes from that point on are lost.** Blocks that were overwritten since the older point
    /// are damaged.
    pub later_point: bool,
    /// Accepts the loss of operations that no copy of the log has. The log is made again on the
    /// given devices. After a loss of power the parity of stripes that were being written may be
    /// wrong; a scrub repairs it.
    pub operations: bool,
}

impl Accepted {
    /// Opening fails if an acknowledged operation is lost.
    pub const NOTHING: Self = Self { later_point: false, operations: false };
    /// Operations may be lost.
    pub const OPERATIONS: Self = Self { later_point: false, operations: true };
    /// A later point and operations may be lost.
    pub const LATER_POINT: Self = Self { later_point: true, operations: true };
}

impl Log {
    /// Opens a log, and reads the records after `applied`, the last one that the consistency point
    /// `sb` includes.
    ///
    /// Errors: `Damaged` with the number of an acknowledged record that cannot be read, unless it
    /// belongs to a [later point](Found::lost_point) that is lost too, or the loss is accepted; no
    /// copy can be read, or no copy of a part that may hold a record.
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
        // A closed aggregate has no operations that could be lost.
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
        // Keeps the operations that follow each other from the point on.
        let follows =
            |(number, (sequence, _)): &(u64, &(u64, Vec<u8>))| applied.checked_add(1 + number) == Some(*sequence);
        let whole = (0..).zip(&operations).take_while(follows).count();
        operations.truncate(whole);
        let last = operations.last().map_or(applied, |(sequence, _)| *sequence);
        let stamped = halves.operations.iter().filter_map(Half::last_stamped).max();
        // Copies that are only trusted because a loss is accepted may lack operations that another
        // device has.
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
                    // The number of lost operations is unknown.
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
        // If no record proves the point yet, one may be written. Whether operations alone made the
        // point is unknown.
        log.durable = (!begun && marked.is_none()).then_some(Durable { point, is_logged: false });
        log.half = half as u64;
        // A started lap ends with a consistency point before any append, so nothing is written
        // after its records.
        log.position = match (begun, marked) {
            (true, _) => log.half_bytes,
            (false, Some(_)) => log.unit as u64,
            (false, None) => 0,
        };
        // Lost records keep their numbers; new records have higher ones.
        log.next = loss.as_ref().and_then(|loss| loss.lost).map_or(last, |(_, lost)| lost.min(NO_RECORD - 2)) + 1;
        log.first_waiting = log.next;
        log.chain = marked.map_or(log.lap(false).seed(), |marked| halves.operations[marked].chain);
        let unfinished = halves.unfinished();
        let unsettled = log.find_unsettled(&halves);
        Ok((log, Found { operations, unfinished, begun, later_point, lost_point, loss, unsettled }, halves))
    }

    /// Judges the loss of all copies. It costs nothing if the aggregate was closed. Otherwise the
    /// caller must accept it.
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

/// Why the copies on the given devices are not trusted.
fn why_copies(copies: &Copies, state: &LogState) -> Vec<String> {
    let here = copies.places.iter().enumerate().filter(|(_, place)| matches!(place, Place::Here(_)));
    here.map(|(number, _)| format!("copy {number} of the log is {}", why_unbelieved(copies, state, number))).collect()
}

impl Found {
    /// The result if no copy can be read.
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

/// The field of a damage that stands for the loss of all copies of the log.
pub const LOST_LOG: &str = "copies";

/// The damage of an acknowledged record that cannot be read.
pub(crate) fn lost_record(record: u64) -> Damage {
    Damage::new(
        "log",
        "record",
        format!("damaged ({record})"),
        "whole: its commit, or a later one, was written to the end",
    )
}

/// The damage if both halves hold operations after one consistency point.
pub(crate) fn two_halves() -> Damage {
    Damage::new("log", "halves with operations", 2, 1)
}

/// The damage if operations before the first readable one are missing. `applied` is the last one
/// that the superblock includes.
pub(crate) fn first_operation(first: u64, applied: u64) -> Damage {
    Damage::new("log", "first operation", first, applied + 1)
}

/// The damage of a record number beyond the limit.
pub(crate) fn high_record(last: u64) -> Damage {
    Damage::new("log", "last record", last, format!("less than {NO_RECORD}"))
}
