//! The promises about files in the order of the marks of a recording, and whether a state keeps
//! them.

use std::{collections::BTreeMap, sync::Mutex};

use senesce_block::Recording;

/// The unit in which a file that is written in place may mix its versions.
const BLOCK: usize = 4096;

/// How a program changes a path. The kind of change decides which mixtures of the previous and the
/// new version a loss of power may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By rename(2): a loss of power leaves one of the versions.
    Replace,
    /// By write(2), link(2) or unlink(2): a loss of power may leave some of the blocks.
    Write,
    /// By stores through a mapping: a loss of power may leave some of the bytes. The kernel may
    /// write a page back between any two stores, and memcpy(3) stores in any order. Only msync(2)
    /// and fsync(2) wait for all stores.
    Store,
}

/// A state that a program gave a path. Without contents, it removed the path.
struct Version {
    contents: Option<Vec<u8>>,
    change: Change,
    /// The mark of its promise, if it was promised.
    promised: Option<u64>,
}

/// The states of a path in order. The first one is its absence, which needs no promise.
#[derive(Default)]
struct History {
    versions: Vec<Version>,
}

/// The histories of all paths, and the marks.
pub struct Promises {
    recording: Recording,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    marks: u64,
    histories: BTreeMap<String, History>,
}

impl Promises {
    pub fn new(recording: Recording) -> Self {
        Self { recording, state: Mutex::default() }
    }

    /// A program begins to give a path these contents.
    pub fn begin(&self, path: &str, change: Change, contents: Option<Vec<u8>>) {
        let mut state = self.state.lock().unwrap();
        let history = state.histories.entry(path.to_owned()).or_default();
        history.versions.push(Version { contents, change, promised: None });
    }

    /// From now on, the last versions of paths that `is_meant` selects are promised.
    pub fn keep(&self, is_meant: impl Fn(&str) -> bool) {
        let mut state = self.state.lock().unwrap();
        state.marks += 1;
        let mark = state.marks;
        for (path, history) in &mut state.histories {
            if let Some(last) = history.versions.last_mut().filter(|last| last.promised.is_none() && is_meant(path)) {
                last.promised = Some(mark);
            }
        }
        // Under the same lock, so that marks rise in the recording.
        self.recording.mark(mark);
    }

    /// The number of promised versions.
    pub fn kept(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.histories.values().flat_map(|history| &history.versions).filter(|one| one.promised.is_some()).count()
    }

    /// The promises up to a mark that a state breaks. `read` returns the contents of a path, `None`
    /// if it does not exist.
    pub fn broken(
        &self,
        mark: Option<u64>,
        mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>, String>,
    ) -> Option<String> {
        let state = self.state.lock().unwrap();
        state.histories.iter().find_map(|(path, history)| {
            let found = match read(path) {
                Ok(found) => found,
                Err(error) => return Some(format!("{path}: {error}")),
            };
            history.objection(mark, found.as_deref()).map(|what| format!("{path}: {what}"))
        })
    }
}

impl History {
    /// Why a state is impossible after a mark.
    fn objection(&self, mark: Option<u64>, found: Option<&[u8]>) -> Option<String> {
        let is_promised = |version: &Version| version.promised.is_some_and(|promised| Some(promised) <= mark);
        let base = self.versions.iter().rposition(is_promised);
        // Without a promise, the path may still be absent.
        let absent = [None];
        let possible = self.versions[base.unwrap_or(0)..].iter().map(|version| version.contents.as_deref());
        let possible: Vec<Option<&[u8]>> = absent.into_iter().filter(|_| base.is_none()).chain(possible).collect();
        if possible.contains(&found) {
            return None;
        }
        let promise = match base {
            Some(base) => format!("version {base} of {} was promised", self.versions.len()),
            None => "no version was promised".to_owned(),
        };
        let Some(found) = found else { return Some(format!("it does not exist, and {promise}")) };
        let is_replaced = self.versions.last().is_some_and(|last| last.change == Change::Replace);
        if is_replaced || possible.len() == 1 {
            return Some(format!("its {} bytes are no version of it, and {promise}", found.len()));
        }
        let possible: Vec<&[u8]> = possible.into_iter().map(Option::unwrap_or_default).collect();
        let later = self.versions.iter().skip(base.map_or(0, |base| base + 1));
        let changes: Vec<Change> = later.map(|version| version.change).collect();
        // Up to this offset every byte was promised, in this version or a later one.
        let whole = base.map_or(0, |_| possible[0].len());
        let wrong = found.chunks(BLOCK).enumerate().position(|(at, block)| {
            let part = |of: &[u8]| of[(at * BLOCK).min(of.len())..((at + 1) * BLOCK).min(of.len())].to_vec();
            let is_whole = (at + 1) * BLOCK <= whole;
            let is_version = possible.iter().any(|version| match is_whole {
                true => block == part(version),
                false => is_beginning(block, &part(version)),
            });
            // A page has all earlier changes, so stores mix only the previous version with theirs.
            let is_between = |pair: &[&[u8]]| is_mix(block, &part(pair[0]), &part(pair[1]));
            !is_version && !possible.windows(2).zip(&changes).any(|(pair, by)| *by == Change::Store && is_between(pair))
        });
        match wrong {
            Some(block) => Some(format!("block {block} of {} bytes is of no version, and {promise}", found.len())),
            None if found.len() < whole => Some(format!("it has {} bytes of {whole}, and {promise}", found.len())),
            None => None,
        }
    }
}

/// Whether a block is that of a version, or a prefix of it followed by zeros.
fn is_beginning(found: &[u8], version: &[u8]) -> bool {
    let same = found.iter().zip(version).take_while(|(a, b)| a == b).count();
    found[same..].iter().all(|&byte| byte == 0)
}

/// Whether each byte of a block is that of the earlier or of the later version. Bytes after the end
/// of a version are zeros.
fn is_mix(found: &[u8], earlier: &[u8], later: &[u8]) -> bool {
    let byte = |of: &[u8], at: usize| of.get(at).copied().unwrap_or(0);
    found.iter().enumerate().all(|(at, &found)| found == byte(earlier, at) || found == byte(later, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_before_a_promise_are_rejected() {
        let promises = Promises::new(Recording::new(Vec::new()).0);
        for (contents, is_kept) in [(1, true), (2, false), (3, true), (4, false)] {
            promises.begin("f", Change::Write, Some(vec![contents; 2 * BLOCK]));
            if is_kept {
                promises.keep(|path| path == "f");
            }
        }
        let accepts = |mark, found: Option<&[u8]>| promises.broken(mark, |_| Ok(found.map(<[u8]>::to_vec))).is_none();
        let whole = |byte| vec![byte; 2 * BLOCK];
        let mixed = |a, b| [vec![a; BLOCK], vec![b; BLOCK]].concat();
        // Nothing was promised before the first mark.
        for found in [None, Some(whole(0)), Some(whole(1)), Some(mixed(1, 2))] {
            assert!(accepts(None, found.as_deref()));
        }
        assert!(!accepts(Some(1), None) && !accepts(Some(1), Some(&whole(1)[..BLOCK])));
        assert!(accepts(Some(1), Some(&whole(1))) && accepts(Some(1), Some(&mixed(2, 1))));
        assert!(!accepts(Some(1), Some(&mixed(1, 0))), "zeros in the place of promised bytes");
        // The second promise is of the third version.
        assert!(!accepts(Some(2), Some(&whole(1))) && !accepts(Some(2), Some(&mixed(3, 2))));
        assert!(accepts(Some(2), Some(&whole(3))) && accepts(Some(2), Some(&mixed(3, 4))));
        assert!(!accepts(Some(2), Some(&mixed(5, 3))));
    }

    #[test]
    fn only_stores_leave_parts_of_blocks() {
        let promises = Promises::new(Recording::new(Vec::new()).0);
        // A store of ones, promised; a write of twos, not promised; a store of threes.
        let changes = [(1, Change::Store), (2, Change::Write), (3, Change::Store)];
        for (contents, change) in changes {
            promises.begin("f", change, Some(vec![contents; 2 * BLOCK]));
            if contents == 1 {
                promises.keep(|path| path == "f");
            }
        }
        let accepts = |mark, found: &[u8]| promises.broken(mark, |_| Ok(Some(found.to_vec()))).is_none();
        let torn = |first, then| [vec![first; 64], vec![then; BLOCK - 64], vec![then; BLOCK]].concat();
        assert!(accepts(None, &torn(0, 1)) && accepts(None, &torn(1, 0)), "nothing was promised");
        assert!(!accepts(None, &torn(0, 2)) && !accepts(None, &torn(0, 3)), "all ones were before");
        assert!(accepts(Some(1), &torn(2, 3)) && accepts(Some(1), &torn(3, 2)));
        assert!(!accepts(Some(1), &torn(0, 1)), "zeros in the place of promised bytes");
        assert!(!accepts(Some(1), &torn(1, 2)) && !accepts(Some(1), &torn(2, 1)), "a write leaves whole blocks");
        assert!(!accepts(Some(1), &torn(1, 3)), "all twos were between");
    }

    #[test]
    fn renames_leave_one_version_whole() {
        let promises = Promises::new(Recording::new(Vec::new()).0);
        for contents in [1, 2] {
            promises.begin("f", Change::Replace, Some(vec![contents; 2 * BLOCK]));
            promises.keep(|_| contents == 1);
        }
        let accepts = |found: &[u8]| promises.broken(Some(1), |_| Ok(Some(found.to_vec()))).is_none();
        assert!(accepts(&[1; 2 * BLOCK]) && accepts(&[2; 2 * BLOCK]));
        assert!(!accepts(&[vec![1; BLOCK], vec![2; BLOCK]].concat()) && !accepts(&[]));
    }
}
