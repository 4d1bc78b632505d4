//! Pairs issues and completions into requests.

use std::collections::{HashMap, VecDeque};

use senesce_core::{BlockOp, BlockRequest};

use super::{Action, BlockEvent, TracedRequest};

/// The result of pairing; the fields are those of [`super::BlockTrace`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paired {
    /// The requests in issue order.
    pub requests: Vec<TracedRequest>,
    /// Issues that the driver returned.
    pub requeued: u64,
    /// Issues of requests that [`BlockOp`] has no variant for.
    pub others: u64,
    /// Completions without an issue.
    pub unmatched_completions: u64,
}

/// A request that is not completely done.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: usize,
    sectors_left: u32,
}

/// Pairs issues with completions by operation and position.
///
/// In: events of one device in the order of time; at the same nanosecond issues come before
/// completions. A request may complete in parts from its start. Among open requests for the same
/// position, the first issued completes first. A requeued request is left out; its next issue
/// counts. Completions of zero sectors (the kernel's second event of a flushed write) are ignored.
/// Cost: one pass; a hash table of the open requests.
pub fn compute_requests(events: impl IntoIterator<Item = BlockEvent>) -> Paired {
    let mut paired = Paired::default();
    let mut open: HashMap<(BlockOp, u64), VecDeque<Open>> = HashMap::new();
    let mut handed_back: Vec<usize> = Vec::new();
    for event in events {
        let Some(op) = event.op else {
            paired.others += u64::from(event.action == Action::Issue);
            continue;
        };
        let is_flush = op == BlockOp::Flush;
        if event.sectors == 0 && !is_flush {
            continue;
        }
        let key = (op, if is_flush { 0 } else { event.sector });
        if event.action == Action::Issue {
            let sectors = if is_flush { 0 } else { event.sectors };
            open.entry(key).or_default().push_back(Open { index: paired.requests.len(), sectors_left: sectors });
            let request = BlockRequest { issued: event.at, op, sector: key.1, sectors };
            paired.requests.push(TracedRequest {
                request,
                completed: None,
                error: 0,
                pid: event.pid,
                flags: event.flags,
            });
            continue;
        }
        let first = open.get_mut(&key).and_then(|waiting| {
            // A requeue concerns the newest request, since it cannot have started; a completion
            // concerns the oldest.
            if event.action == Action::Requeue { waiting.pop_back() } else { waiting.pop_front() }
        });
        if open.get(&key).is_some_and(VecDeque::is_empty) {
            open.remove(&key);
        }
        match (event.action, first) {
            (Action::Requeue, first) => {
                paired.requeued += 1;
                handed_back.extend(first.map(|first| first.index));
            }
            (_, None) => paired.unmatched_completions += 1,
            (_, Some(first)) => {
                let traced = &mut paired.requests[first.index];
                if event.error != 0 {
                    traced.error = event.error;
                }
                let left = first.sectors_left.saturating_sub(event.sectors);
                if left == 0 {
                    traced.completed = Some(event.at);
                } else {
                    let next = event.sector.saturating_add(u64::from(event.sectors));
                    open.entry((op, next)).or_default().push_front(Open { sectors_left: left, ..first });
                }
            }
        }
    }
    if !handed_back.is_empty() {
        handed_back.sort_unstable();
        let mut gone = handed_back.into_iter().peekable();
        let mut index = 0;
        paired.requests.retain(|_| {
            let keep = gone.next_if_eq(&index).is_none();
            index += 1;
            keep
        });
    }
    paired
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use senesce_core::{Nanos, Rng, Seed};

    use super::*;
    use crate::trace::RequestFlags;

    fn event(at: u64, action: Action, op: BlockOp, sector: u64, sectors: u32) -> BlockEvent {
        let flags = RequestFlags::default();
        BlockEvent { at: Nanos(at), sector, sectors, pid: 7, error: 0, action, op: Some(op), flags }
    }

    fn ends(paired: &Paired) -> Vec<(u64, Option<u64>)> {
        paired.requests.iter().map(|r| (r.request.sector, r.completed.map(|at| at.0))).collect()
    }

    #[test]
    fn a_request_can_complete_in_parts() {
        let paired = compute_requests([
            event(1, Action::Issue, BlockOp::Read, 100, 24),
            event(2, Action::Complete, BlockOp::Read, 100, 8),
            event(3, Action::Complete, BlockOp::Read, 108, 16),
        ]);
        assert_eq!(ends(&paired), [(100, Some(3))]);
        assert_eq!(paired.unmatched_completions, 0);
    }

    #[test]
    fn requeued_issues_are_left_out() {
        let paired = compute_requests([
            event(1, Action::Issue, BlockOp::Write, 8, 8),
            event(2, Action::Issue, BlockOp::Write, 16, 8),
            event(3, Action::Requeue, BlockOp::Write, 8, 8),
            event(4, Action::Issue, BlockOp::Write, 8, 8),
            event(5, Action::Complete, BlockOp::Write, 8, 8),
        ]);
        assert_eq!(ends(&paired), [(16, None), (8, Some(5))]);
        assert_eq!(paired.requests[1].request.issued, Nanos(4));
        assert_eq!(paired.requeued, 1);
    }

    #[test]
    fn flushes_errors_and_unknown_operations_are_counted() {
        let mut failed = event(6, Action::Complete, BlockOp::Read, 40, 8);
        failed.error = 5;
        let mut stranger = event(7, Action::Issue, BlockOp::Read, 1, 1);
        stranger.op = None;
        let paired = compute_requests([
            event(1, Action::Complete, BlockOp::Read, 9, 8),
            event(2, Action::Issue, BlockOp::Flush, 0, 0),
            event(3, Action::Complete, BlockOp::Flush, 0, 0),
            event(4, Action::Complete, BlockOp::Write, 2, 0),
            event(5, Action::Issue, BlockOp::Read, 40, 8),
            failed,
            stranger,
        ]);
        assert_eq!(ends(&paired), [(0, Some(3)), (40, Some(6))]);
        assert_eq!(paired.requests[1].error, 5);
        assert_eq!((paired.unmatched_completions, paired.others), (1, 1));
    }

    #[test]
    fn the_first_of_two_equal_requests_completes_first() {
        let paired = compute_requests([
            event(1, Action::Issue, BlockOp::Read, 8, 8),
            event(2, Action::Issue, BlockOp::Read, 8, 8),
            event(3, Action::Complete, BlockOp::Read, 8, 8),
        ]);
        assert_eq!(ends(&paired), [(8, Some(3)), (8, None)]);
    }

    proptest! {
        #[test]
        fn every_request_finds_its_completion(seed: u64, count in 0u64..60) {
            // Requests for different positions, each completed some time after its issue in one to
            // three parts.
            let mut rng = Rng::for_purpose(Seed(seed), "requests");
            let mut events = Vec::new();
            let mut expected = Vec::new();
            for n in 0..count {
                let (issued, sectors) = (10 * n, 1 + rng.below(64) as u32);
                events.push(event(issued, Action::Issue, BlockOp::Read, n * 100, sectors));
                let (mut at, mut done) = (issued + 1, 0);
                while done < sectors {
                    let part = 1 + rng.below(u64::from(sectors - done)) as u32;
                    at += 1 + rng.below(500);
                    events.push(event(at, Action::Complete, BlockOp::Read, n * 100 + u64::from(done), part));
                    done += part;
                }
                expected.push((n * 100, Some(at)));
            }
            events.sort_by_key(|event| (event.at, event.action));
            let paired = compute_requests(events);
            prop_assert_eq!(ends(&paired), expected);
            prop_assert_eq!(paired.unmatched_completions, 0);
        }
    }
}
