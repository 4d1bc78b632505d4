//! Reads a tree on all devices at once: requests are planned once, and each device serves them on a
//! thread of its own.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use senesce_core::{BlockRequest, Extent, SECTOR_BYTES};
use senesce_device::{DeviceModel, Readahead, add_cold_reads};

use crate::cost::{Meter, Reads};

/// The limits of a batch: entries and requests.
const ENTRIES: usize = 1024;
const REQUESTS: usize = 16 << 10;
/// Batches that may wait for a device.
const WAITING: usize = 4;

/// The requests to read an entry of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryReads<'a> {
    /// The requests before the content.
    pub metadata: &'a [BlockRequest],
    /// The content in file order, as extents on the device.
    pub extents: &'a [Extent],
    /// The content if the file were in one piece. `None` if that is the same.
    pub in_one_piece: Option<&'a [Extent]>,
    /// The content at the places of the best order, or of a plan. `None` if it does not move.
    pub moved: Option<&'a [Extent]>,
    /// The metadata requests before the moved content. `None` if they are those of `metadata`.
    pub moved_metadata: Option<&'a [BlockRequest]>,
    /// Size of the entry, bytes.
    pub size_bytes: u64,
}

/// The layouts that are read besides the fresh copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layouts {
    /// The found, the defragmented and the best order layout. The first device records the time of
    /// each entry.
    All,
    /// The found layout, and contents at the places of the best order or of a plan. Only the totals
    /// of the devices are recorded.
    WithMoved,
}

impl Layouts {
    fn has_defragmented(self) -> bool {
        self == Self::All
    }
}

/// Devices that all read the same.
pub(crate) struct Meters {
    devices: Vec<(SyncSender<Arc<Batch>>, JoinHandle<ReadMeter>)>,
    layouts: Layouts,
    readahead: Readahead,
    batch: Batch,
}

/// The result of a device.
pub(crate) struct ReadMeter {
    pub meter: Meter,
    /// Nanoseconds of each entry in the found layout, in the order of the tree. Empty if times are
    /// not recorded.
    pub as_it_lies: Vec<u64>,
    /// Nanoseconds of each entry of the fresh copy, in the order of reading. Empty if times are not
    /// recorded.
    pub fresh_copy: Vec<u64>,
}

/// Entries that are read one after the other.
#[derive(Default)]
struct Batch {
    is_fresh_copy: bool,
    requests: Vec<BlockRequest>,
    entries: Vec<Parts>,
}

/// The ends of the request ranges of an entry. Each range starts where the previous one ends.
struct Parts {
    metadata: usize,
    content: usize,
    /// The content if it is defragmented; empty if that is the same.
    defragmented: usize,
    /// The content if it is moved; empty if that is the same.
    moved: usize,
    /// The metadata if it is moved.
    moved_metadata: usize,
    /// Whether the metadata is moved.
    has_moved_metadata: bool,
    /// The sectors to which defragmenting moves content, as first and end.
    joined_sectors: (u64, u64),
}

impl Meters {
    /// Devices that have read nothing, one for each of `makers`.
    ///
    /// Errors: a device cannot be made.
    pub fn new<M, E>(makers: impl IntoIterator<Item = M>, readahead: Readahead, layouts: Layouts) -> Result<Self, E>
    where
        M: Fn(Reads) -> Result<Box<dyn DeviceModel>, E>,
    {
        let mut devices = Vec::new();
        for make in makers {
            let meter = Meter::new(make)?;
            let (sender, receiver) = sync_channel(WAITING);
            // Two numbers per entry for every device need too much memory in a tree of millions of
            // entries. Only those of the first device are used.
            let keeps_times = devices.is_empty() && layouts == Layouts::All;
            devices.push((sender, std::thread::spawn(move || serve(meter, layouts, keeps_times, &receiver))));
        }
        Ok(Self { devices, layouts, readahead, batch: Batch::default() })
    }

    /// Reads the next entry of the tree in all layouts except the fresh copy.
    ///
    /// Errors: extents overlap or are out of order. Then no layout reads the entry.
    pub fn read(&mut self, entry: &EntryReads<'_>) -> Result<(), senesce_device::Error> {
        self.begin(false);
        let requests = &mut self.batch.requests;
        let start = requests.len();
        requests.extend_from_slice(entry.metadata);
        let metadata = requests.len();
        let mut planned = add_cold_reads(entry.size_bytes, entry.extents, &self.readahead, requests);
        let content = requests.len();
        if let (Ok(()), Some(joined), true) = (&planned, entry.in_one_piece, self.layouts.has_defragmented()) {
            planned = add_cold_reads(entry.size_bytes, joined, &self.readahead, requests);
        }
        let defragmented = requests.len();
        if let (Ok(()), Some(moved)) = (&planned, entry.moved) {
            planned = add_cold_reads(entry.size_bytes, moved, &self.readahead, requests);
        }
        if planned.is_err() {
            requests.truncate(start);
            return planned;
        }
        let moved = requests.len();
        requests.extend_from_slice(entry.moved_metadata.unwrap_or(&[]));
        let (moved_metadata, has_moved_metadata) = (requests.len(), entry.moved_metadata.is_some());
        let joined_sectors = entry.in_one_piece.map_or((0, 0), |joined| moved_sectors(entry.extents, joined));
        self.batch.entries.push(Parts {
            metadata,
            content,
            defragmented,
            moved,
            moved_metadata,
            has_moved_metadata,
            joined_sectors,
        });
        Ok(())
    }

    /// Reads the next file of the fresh copy: metadata, and `length_bytes` in one piece.
    pub fn read_fresh_copy(
        &mut self,
        metadata: &[BlockRequest],
        start_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), senesce_device::Error> {
        self.begin(true);
        let requests = &mut self.batch.requests;
        requests.extend_from_slice(metadata);
        let metadata = requests.len();
        if length_bytes > 0 {
            let extent = Extent { logical: 0, physical: start_bytes, length: length_bytes };
            add_cold_reads(length_bytes, &[extent], &self.readahead, requests)?;
        }
        let content = self.batch.requests.len();
        let joined_sectors = (0, 0);
        self.batch.entries.push(Parts {
            metadata,
            content,
            defragmented: content,
            moved: content,
            moved_metadata: content,
            has_moved_metadata: false,
            joined_sectors,
        });
        Ok(())
    }

    /// Waits until all requests are served, and removes all devices.
    pub fn finish(&mut self) -> Vec<ReadMeter> {
        self.hand_over();
        let (senders, threads): (Vec<_>, Vec<_>) = std::mem::take(&mut self.devices).into_iter().unzip();
        drop(senders);
        let read = |thread: JoinHandle<_>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        threads.into_iter().map(read).collect()
    }

    /// Starts the next batch if the current one is full, or has another layout.
    fn begin(&mut self, is_fresh_copy: bool) {
        let Batch { entries, requests, .. } = &self.batch;
        if entries.len() >= ENTRIES || requests.len() >= REQUESTS || self.batch.is_fresh_copy != is_fresh_copy {
            self.hand_over();
            self.batch.is_fresh_copy = is_fresh_copy;
        }
    }

    fn hand_over(&mut self) {
        let batch = Arc::new(std::mem::take(&mut self.batch));
        for (sender, _) in &self.devices {
            // A closed channel means that the thread panicked. `finish` resumes that panic.
            let _ = sender.send(batch.clone());
        }
    }
}

/// Serves all batches.
fn serve(meter: Meter, layouts: Layouts, keeps_times: bool, batches: &Receiver<Arc<Batch>>) -> ReadMeter {
    let mut this = ReadMeter { meter, as_it_lies: Vec::new(), fresh_copy: Vec::new() };
    for batch in batches {
        let mut start = 0;
        for parts in &batch.entries {
            let part = |from: usize, to: usize| &batch.requests[from..to];
            let (metadata, content) = (part(start, parts.metadata), part(parts.metadata, parts.content));
            start = parts.moved_metadata;
            if batch.is_fresh_copy {
                let took = this.meter.read_fresh_copy(metadata, content);
                this.fresh_copy.extend(keeps_times.then_some(took.0));
                continue;
            }
            let took = this.meter.read_as_it_lies(metadata, content);
            this.as_it_lies.extend(keeps_times.then_some(took.0));
            if layouts.has_defragmented() {
                let apart = part(parts.content, parts.defragmented);
                let content = if apart.is_empty() { content } else { apart };
                this.meter.read_defragmented(metadata, content, parts.joined_sectors);
            }
            let apart = part(parts.defragmented, parts.moved);
            let metadata = if parts.has_moved_metadata { part(parts.moved, parts.moved_metadata) } else { metadata };
            this.meter.read_best_order(metadata, if apart.is_empty() { content } else { apart });
        }
    }
    this
}

/// The sectors that the file of `extents` has in the layout `joined` and not at its own start, as
/// first and end.
fn moved_sectors(extents: &[Extent], joined: &[Extent]) -> (u64, u64) {
    let (Some(first), Some(last)) = (joined.first(), joined.last()) else { return (0, 0) };
    // An extent that directly follows its predecessor does not move.
    let keep = |start: u64, kept: &Extent| if kept.physical == start { Ok(kept.end()) } else { Err(start) };
    let (Ok(start) | Err(start)) = extents.iter().try_fold(first.physical, keep);
    let end = last.end();
    (start.div_ceil(SECTOR_BYTES), end.div_ceil(SECTOR_BYTES).max(start.div_ceil(SECTOR_BYTES)))
}

#[cfg(test)]
mod tests {
    use senesce_core::Nanos;

    use super::*;
    use crate::cost::LayoutCosts;

    fn extent(logical: u64, physical: u64, length: u64) -> Extent {
        Extent { logical, physical, length }
    }

    /// A device whose requests each take a second, and one more if it is not adjacent to the last
    /// one.
    struct Steps(u64);

    impl DeviceModel for Steps {
        fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
            let seconds = 1 + u64::from(request.sector != self.0);
            self.0 = request.end();
            Nanos(arrival.0 + seconds * 1_000_000_000)
        }

        fn name(&self) -> &str {
            "steps"
        }
    }

    fn steps(layouts: Layouts) -> Meters {
        let make = |_| Ok::<_, ()>(Box::new(Steps(0)) as Box<dyn DeviceModel>);
        Meters::new([make, make], Readahead::default(), layouts).unwrap()
    }

    fn request(sector: u64) -> BlockRequest {
        BlockRequest { issued: Nanos(0), op: senesce_core::BlockOp::Read, sector, sectors: 8 }
    }

    #[test]
    fn loss_has_three_parts() {
        let mut meters = steps(Layouts::All);
        // Two files of two blocks: the first in two pieces, the second in one, far away. Each has
        // metadata before it.
        let pieces = [extent(0, 40960, 4096), extent(4096, 81920, 4096)];
        let joined = [extent(0, 40960, 8192)];
        let best = [[extent(0, 1 << 20, 8192)], [extent(0, (1 << 20) + 8192, 8192)]];
        let first = EntryReads {
            metadata: &[request(1 << 30)],
            extents: &pieces,
            in_one_piece: Some(&joined),
            moved: Some(&best[0]),
            moved_metadata: None,
            size_bytes: 8192,
        };
        let whole = [extent(0, 1 << 30, 8192)];
        let second = EntryReads {
            metadata: &[request(1 << 31)],
            extents: &whole,
            in_one_piece: None,
            moved: Some(&best[1]),
            ..first
        };
        [first, second].iter().for_each(|entry| meters.read(entry).unwrap());
        // In the fresh copy one request, before the contents, reads the metadata of both files.
        for (metadata, at) in [(&[request(0)][..], 4096), (&[], 12288)] {
            meters.read_fresh_copy(metadata, at, 8192).unwrap();
        }
        let read = meters.finish();
        assert_eq!(read.len(), 2);
        // The first device records the time of each entry.
        let times = [(vec![6, 4], vec![2, 1]), (vec![], vec![])];
        for (ReadMeter { meter, as_it_lies, fresh_copy }, times) in read.into_iter().zip(times) {
            let seconds = |times: &[u64]| times.iter().map(|time| time / 1_000_000_000).collect::<Vec<_>>();
            assert_eq!((seconds(&as_it_lies), seconds(&fresh_copy)), times);
            assert_eq!(
                meter.seconds(),
                LayoutCosts { as_it_lies: 10.0, defragmented: 8.0, best_order: 8.0, fresh_copy: 3.0 }
            );
            assert_eq!(
                meter.metadata_seconds(),
                LayoutCosts { as_it_lies: 4.0, defragmented: 4.0, best_order: 4.0, fresh_copy: 1.0 }
            );
            assert_eq!(meter.requests(), LayoutCosts { as_it_lies: 5, defragmented: 4, best_order: 4, fresh_copy: 3 });
            assert_eq!((meter.bytes(), meter.content_bytes()), (16384 + 8192, 16384));
        }
    }

    #[test]
    fn batches_stay_in_order_without_contradictory_files() {
        for layouts in [Layouts::WithMoved, Layouts::All] {
            let mut meters = steps(layouts);
            let count = 3 * ENTRIES as u64 + 7;
            for number in 0..count {
                // Each extent is adjacent to the previous one, except every tenth.
                let at = number * 4096 + number / 10 * 8192;
                let entry = EntryReads {
                    metadata: &[],
                    extents: &[extent(0, at, 4096)],
                    in_one_piece: None,
                    moved: None,
                    moved_metadata: None,
                    size_bytes: 4096,
                };
                meters.read(&entry).unwrap();
                let overlapping = [extent(0, at, 4096), extent(10, 7, 4096)];
                let wrong = EntryReads {
                    metadata: &[request(3)],
                    extents: &overlapping,
                    in_one_piece: None,
                    moved: None,
                    moved_metadata: None,
                    size_bytes: 9999,
                };
                meters.read(&wrong).unwrap_err();
            }
            let is_inspection = layouts == Layouts::All;
            let defragmented = if is_inspection { count } else { 0 };
            for (number, ReadMeter { meter, as_it_lies, fresh_copy }) in meters.finish().into_iter().enumerate() {
                assert_eq!(
                    meter.requests(),
                    LayoutCosts { as_it_lies: count, defragmented, best_order: count, fresh_copy: 0 }
                );
                let seconds = (count + (count - 1) / 10) as f64;
                assert_eq!(meter.seconds().as_it_lies, seconds, "one more for each jump");
                if !(is_inspection && number == 0) {
                    assert_eq!((as_it_lies.len(), fresh_copy.len()), (0, 0));
                    continue;
                }
                assert_eq!((as_it_lies.len() as u64, fresh_copy.len()), (count, 0));
                let jumps = as_it_lies.iter().enumerate().filter(|(_, time)| **time == 2_000_000_000);
                assert!(jumps.map(|(number, _)| number as u64).eq((10..count).step_by(10)));
            }
        }
    }
}
