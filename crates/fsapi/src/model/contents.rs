//! The contents of a file: pages, and holes between them.

use std::collections::BTreeMap;

/// The unit of space and of holes, in bytes.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The contents of a file. Missing pages read as zeros. No data is after the end, not even in the
/// last page.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// Splits a range into pages: page, first byte in it, bytes.
fn parts(offset: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, first) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let bytes = (PAGE_BYTES - first).min(end - at);
            at += bytes;
            (page, first as usize, bytes as usize)
        })
    })
}

impl Contents {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The number of pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The number of pages that a write of this range would add.
    pub(super) fn missing(&self, offset: u64, end: u64) -> u64 {
        if offset >= end {
            return 0;
        }
        let (first, last) = (offset / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        last - first + 1 - self.pages.range(first..=last).count() as u64
    }

    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let end = self.len.min(offset.saturating_add(out.len() as u64));
        let mut done = 0;
        for (page, first, bytes) in parts(offset, end) {
            match self.pages.get(&page) {
                Some(data) => out[done..done + bytes].copy_from_slice(&data[first..first + bytes]),
                None => out[done..done + bytes].fill(0),
            }
            done += bytes;
        }
        done
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        for (page, first, bytes) in parts(offset, offset + data.len() as u64) {
            self.page(page)[first..first + bytes].copy_from_slice(&data[done..done + bytes]);
            done += bytes;
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    /// Adds all missing pages of a range, filled with zeros.
    pub(super) fn reserve(&mut self, offset: u64, end: u64) {
        for (page, ..) in parts(offset, end) {
            self.page(page);
        }
    }

    fn page(&mut self, page: u64) -> &mut [u8] {
        self.pages.entry(page).or_insert_with(|| vec![0; PAGE_BYTES as usize].into())
    }

    /// Makes a range read as zeros, and removes whole pages in it.
    pub(super) fn clear(&mut self, offset: u64, end: u64) {
        let touched: Vec<u64> = match offset < end {
            true => self.pages.range(offset / PAGE_BYTES..=(end - 1) / PAGE_BYTES).map(|(page, _)| *page).collect(),
            false => Vec::new(),
        };
        for page in touched {
            let start = page * PAGE_BYTES;
            let first = offset.saturating_sub(start) as usize;
            let last = (end - start).min(PAGE_BYTES) as usize;
            if last - first == PAGE_BYTES as usize {
                self.pages.remove(&page);
            } else {
                self.page(page)[first..last].fill(0);
            }
        }
    }

    /// The pages of a range with their offsets in it, and the length of the range.
    pub(super) fn copy_pages(&self, offset: u64, len: u64) -> Self {
        let first = offset / PAGE_BYTES;
        let pages = self.pages.range(first..(offset + len).div_ceil(PAGE_BYTES));
        let mut copy = Self { len, pages: pages.map(|(page, data)| (page - first, data.clone())).collect() };
        copy.clear(len, len.next_multiple_of(PAGE_BYTES));
        copy
    }

    /// The number of pages that `put_pages` adds.
    pub(super) fn missing_for(&self, offset: u64, other: &Self) -> u64 {
        let first = offset / PAGE_BYTES;
        other.pages.keys().filter(|page| !self.pages.contains_key(&(first + *page))).count() as u64
    }

    /// Replaces a range by `other` with its holes; `offset` is the start of a page.
    pub(super) fn put_pages(&mut self, offset: u64, other: Self) {
        let (end, is_last) = (offset + other.len, offset + other.len >= self.len);
        let whole = if is_last { end.next_multiple_of(PAGE_BYTES) } else { end };
        self.clear(offset, whole);
        for (page, data) in other.pages {
            let start = page * PAGE_BYTES;
            let bytes = (other.len - start).min(PAGE_BYTES) as usize;
            self.page(offset / PAGE_BYTES + page)[..bytes].copy_from_slice(&data[..bytes]);
        }
        self.len = self.len.max(end);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.clear(len, self.len.next_multiple_of(PAGE_BYTES));
            // Frees space that is reserved after the end.
            self.pages.split_off(&len.div_ceil(PAGE_BYTES));
        }
        self.len = len;
    }

    /// The first byte in a page from `offset` on, before the end.
    pub(super) fn next_data(&self, offset: u64) -> Option<u64> {
        let (page, _) = self.pages.range(offset / PAGE_BYTES..).next()?;
        Some(offset.max(page * PAGE_BYTES)).filter(|&at| at < self.len)
    }

    /// The first byte in a hole from `offset` on; the end counts as one.
    pub(super) fn next_hole(&self, offset: u64) -> u64 {
        let mut page = offset / PAGE_BYTES;
        while self.pages.contains_key(&page) {
            page += 1;
        }
        offset.max(page * PAGE_BYTES).min(self.len)
    }
}
