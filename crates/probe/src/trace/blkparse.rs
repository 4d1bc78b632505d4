//! Parses the text of `blkparse` in its default format, for traces from other machines.
//!
//! A line is `device cpu sequence seconds pid action letters`, followed by fields of the action.
//! The parser uses issues (`D`), completions (`C`) and requeues (`R`). It skips queueing, merging,
//! plugging and messages. Of the summary at the end it uses only the number of lost events.

use std::io::{BufRead, Read};

use senesce_core::{BlockOp, Nanos};

use super::{Action, BlockEvent, BlockTrace, DeviceNumber, compute_requests, event::parse_letters};
use crate::Error;

/// Actions of blkparse that are no event of a request on its device.
const PASSED_OVER: &[u8] = b"ABFGIMPQSTUXm";

/// Longer than any line of blkparse. A file with a longer line is another file, perhaps an endless
/// one.
const LONGEST_LINE_BYTES: u64 = 64 << 10;

/// The most sectors of a request: its length is a 32-bit number of bytes in the kernel. A model
/// would simulate longer ones for minutes.
const MOST_SECTORS: u32 = 1 << 23;

/// Parses the trace of the only device in a text of `blkparse`.
///
/// In: the text from its start; the first event has the time in the text. Out: times in nanoseconds
/// on the text's own clock. Errors: a malformed line or a second device, with the line number; a
/// read error. Cost: one pass, memory for every event.
pub fn import_blkparse(text: impl BufRead) -> Result<BlockTrace, Error> {
    import(text, None)
}

/// Parses the trace of one device in a text with several devices.
pub fn import_blkparse_of(text: impl BufRead, device: DeviceNumber) -> Result<BlockTrace, Error> {
    import(text, Some(device))
}

fn import(mut text: impl BufRead, wanted: Option<DeviceNumber>) -> Result<BlockTrace, Error> {
    let mut events = Vec::new();
    let mut trace = BlockTrace { device: wanted, ..BlockTrace::default() };
    let mut in_summary = false;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = text.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut line);
        match read.map_err(|error| bad(number, format!("it cannot be read: {error}")))? {
            0 => break,
            length if length as u64 == LONGEST_LINE_BYTES => {
                return Err(bad(number, format!("it is longer than {LONGEST_LINE_BYTES} bytes")));
            }
            _ => {}
        }
        // Names of processes can have any bytes.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        let first = line.split_whitespace().next().unwrap_or_default();
        if let Ok(device) = first.parse::<DeviceNumber>() {
            match (trace.device, wanted) {
                (Some(known), None) if known != device => {
                    let problem =
                        format!("it is about device {device}, but earlier lines are about {known}; name one device");
                    return Err(bad(number, problem));
                }
                (Some(known), Some(_)) if known != device => continue,
                _ => trace.device = Some(device),
            }
            events.extend(parse_event(line).map_err(|problem| bad(number, format!("{problem}, in {line:?}")))?);
        } else if let Some(rest) = line.strip_prefix("Skips:") {
            in_summary = true;
            // `Skips: 2 forward (17 -   0.1%)`: the number in parentheses counts events.
            let count = rest.split_once('(').and_then(|(_, rest)| rest.split_whitespace().next());
            let count = count.and_then(|count| count.parse::<u64>().ok());
            let count = count.ok_or_else(|| bad(number, format!("it has no number of skipped events: {line:?}")))?;
            trace.lost = trace.lost.saturating_add(count);
        } else if line.is_empty()
            || in_summary
            || ["CPU", "Total", "Throughput", "Input"].iter().any(|w| first.starts_with(w))
        {
            in_summary |= !line.is_empty();
        } else {
            return Err(bad(number, format!("{line:?} is neither an event nor part of a summary")));
        }
    }
    events.sort_by_key(|event: &BlockEvent| (event.at, event.action));
    let paired = compute_requests(events);
    trace.requests = paired.requests;
    trace.requeued = paired.requeued;
    trace.others = paired.others;
    trace.unmatched_completions = paired.unmatched_completions;
    Ok(trace)
}

fn bad(line: u64, problem: String) -> Error {
    Error::BadFormat { format: "text of blkparse", unit: "line", position: line, problem }
}

/// Parses an event's line; none for a skipped action.
fn parse_event(line: &str) -> Result<Option<BlockEvent>, String> {
    let mut fields = line.split_whitespace().skip(1);
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("the {what} is missing"));
    let number = |what: &str, text: &str| text.parse::<u64>().map_err(|_| format!("the {what} {text:?} is no number"));
    number("CPU", next("CPU")?)?;
    number("sequence", next("sequence")?)?;
    let at = parse_seconds(next("time")?)?;
    let pid = number("process", next("process")?)? as u32;
    let action = next("action")?;
    let action = match action.as_bytes() {
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        b"R" => Action::Requeue,
        // The letters and the rest of the line depend on the action.
        [letter] if PASSED_OVER.contains(letter) => return Ok(None),
        b"UT" => return Ok(None),
        _ => return Err(format!("the action {action:?} is not known")),
    };
    let (mut op, flags) = parse_letters(next("letters")?.as_bytes());
    let rest: Vec<&str> = fields.collect();
    // `1000 + 8 [grep]`, `1000 + 8 ( 123) [0]`; a request without sectors lacks the plus.
    let (sector, sectors) = match rest[..] {
        [sector, "+", sectors, ..] => {
            let count = number("count of sectors", sectors)?;
            let sectors = u32::try_from(count).ok().filter(|sectors| *sectors <= MOST_SECTORS);
            let sectors = sectors.ok_or_else(|| format!("{count} sectors are more than a request can have"))?;
            (number("sector", sector)?, sectors)
        }
        // Commands of drivers: `0 (12 00 ..) [name]`.
        [_, second, ..] if second.starts_with('(') => (0, 0),
        [first, ..] if first.starts_with(['[', '(']) => (0, 0),
        [_, second, ..] if second.starts_with('[') => (0, 0),
        _ => return Err("sector and count of sectors are missing".to_owned()),
    };
    if sectors == 0 && op != Some(BlockOp::Flush) {
        op = None; // a command of a driver
    }
    let sector = if op == Some(BlockOp::Flush) { 0 } else { sector };
    let error = match (action, rest.last()) {
        (Action::Complete, Some(last)) => {
            let number = last.strip_prefix('[').and_then(|last| last.strip_suffix(']'));
            let number = number.and_then(|number| number.parse::<i32>().ok());
            number.ok_or_else(|| format!("the error {last:?} is no number in brackets"))?.unsigned_abs()
        }
        _ => 0,
    };
    Ok(Some(BlockEvent { at, sector, sectors, pid, error, action, op, flags }))
}

/// Parses seconds with up to nine decimals.
fn parse_seconds(text: &str) -> Result<Nanos, String> {
    let bad = || format!("the time {text:?} is not seconds with up to nine places");
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if seconds.is_empty() || fraction.len() > 9 || !digits(seconds) || !digits(fraction) {
        return Err(bad());
    }
    let seconds: u64 = seconds.parse().map_err(|_| bad())?;
    let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| bad())?;
    let all = seconds.checked_mul(1_000_000_000).and_then(|all| all.checked_add(nanos));
    // Times above 2^63 ns are refused, so that sums with other times do not overflow.
    all.filter(|&all| i64::try_from(all).is_ok()).map(Nanos).ok_or_else(bad)
}

#[cfg(test)]
#[path = "blkparse_tests.rs"]
mod tests;
