//! The windows in which the kernel fetches a file that is read from the first byte to the last.
//!
//! Linux's on-demand readahead (mm/readahead.c, as of version 6.12 and later):
//!
//! - A read that misses at the start of a file fetches an initial window: the requested pages
//!   rounded up to a power of two. That is multiplied by 4 if it is at most a 32nd of the maximum,
//!   and by 2 if at most a quarter. Otherwise the window is the maximum.
//! - Within a window one page has a mark. When the reader reaches it, the kernel fetches the next
//!   window, after this one. It is 4 times as long if this one is below a 16th of the maximum,
//!   twice if at most half of it, otherwise the maximum.
//! - In the first window the mark is on the first page after the requested ones, or in its middle
//!   if all pages were requested. In later windows it is on the first page.
//! - The maximum is the device's read_ahead_kb. For a read call that requests more, it is the
//!   requested size, up to the device's largest request.
//!
//! The requested size is the size of the reader's buffer, even if the file is shorter.
//!
//! Not modelled: large folios, which can move the end of a window by less than a folio; a congested
//! cgroup.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The sizes of reads and of read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readahead {
    /// The device's `read_ahead_kb`, in bytes. Below a page there is no readahead, and every page
    /// is a read of its own.
    pub read_ahead_bytes: u64,
    /// The buffer of each read call, bytes.
    pub read_bytes: u64,
    /// The device's largest request (`max_sectors_kb`), in bytes.
    pub max_request_bytes: u64,
    /// The page size, bytes.
    pub page_bytes: u64,
}

impl Default for Readahead {
    /// Linux's defaults (readahead 128 KiB, requests up to 1280 KiB, pages of 4 KiB), with read
    /// calls of 128 KiB as in the grep test.
    fn default() -> Self {
        Self { read_ahead_bytes: 128 << 10, read_bytes: 128 << 10, max_request_bytes: 1280 << 10, page_bytes: 4096 }
    }
}

impl Readahead {
    /// Refuses sizes with which nothing can be read.
    pub(super) fn check(&self) -> Result<(), Error> {
        let error = |problem| Err(Error::NotComputable { figure: "requests of a cold read", problem });
        if !self.page_bytes.is_power_of_two() || self.page_bytes < 512 {
            return error(format!("pages of {} bytes are not possible; a power of two from 512 is", self.page_bytes));
        }
        if self.read_bytes == 0 {
            return error("read calls of 0 bytes never end; 1 byte or more is possible".into());
        }
        if self.max_request_bytes < self.page_bytes || !self.max_request_bytes.is_multiple_of(self.page_bytes) {
            return error(format!(
                "a largest request of {} bytes is not possible; a multiple of the page of {} bytes is",
                self.max_request_bytes, self.page_bytes
            ));
        }
        Ok(())
    }

    /// The largest window for a read call that requests `asked` pages.
    fn max_pages(&self, asked: u64) -> u64 {
        let (pages, request) = (self.read_ahead_bytes / self.page_bytes, self.max_request_bytes / self.page_bytes);
        if asked > pages && request > pages { asked.min(request) } else { pages }
    }
}

/// The windows in which a file of `size_bytes` is fetched, in order, as byte ranges of the file.
/// Together they cover the file up to the end of its last page, each byte once.
pub fn compute_windows(size_bytes: u64, readahead: &Readahead) -> Vec<Range<u64>> {
    let mut windows = Vec::new();
    each_window(size_bytes, readahead, |window| windows.push(window));
    windows
}

/// Passes the windows of [`compute_windows`] to `visit`, one after the other.
pub(super) fn each_window(size_bytes: u64, readahead: &Readahead, mut visit: impl FnMut(Range<u64>)) {
    let page = readahead.page_bytes;
    let pages = size_bytes.div_ceil(page);
    if readahead.read_ahead_bytes < page {
        return (0..pages).for_each(|at| visit(at * page..(at + 1) * page));
    }
    let mut add = |start: u64, end: u64| {
        let end = end.min(pages);
        if start < end {
            visit(start * page..end * page);
        }
        end
    };
    // Pages before `fetched` are in memory. The page `mark` makes the kernel fetch the next window,
    // after one of `size` pages. Other pages have no effect.
    let (mut at, mut fetched, mut size, mut mark) = (0, 0, 0, None);
    while at < pages {
        // To the end of the read call that contains this page first. Calls need not start at pages.
        let calls = (at * page / readahead.read_bytes) + 1;
        let asked = calls.saturating_mul(readahead.read_bytes).div_ceil(page).max(at + 1) - at;
        let max = readahead.max_pages(asked);
        if at >= fetched {
            size = initial_window(asked, max);
            let ahead = if size > asked { size - asked } else { size / 2 };
            fetched = add(at, at + size);
            mark = (ahead > 0).then(|| at + size - ahead);
        }
        if mark == Some(at) {
            let start = fetched;
            size = next_window(size, max);
            fetched = add(start, start + size);
            mark = Some(start);
        }
        at = mark.filter(|mark| *mark > at).map_or(fetched, |mark| mark.min(fetched));
    }
}

fn initial_window(asked: u64, max: u64) -> u64 {
    let rounded = asked.next_power_of_two();
    if rounded <= max / 32 {
        rounded * 4
    } else if rounded <= max / 4 {
        rounded * 2
    } else {
        max
    }
}

fn next_window(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        size * 4
    } else if size <= max / 2 {
        size * 2
    } else {
        max
    }
}
