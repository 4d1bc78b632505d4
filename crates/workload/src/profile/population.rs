//! The existing files, and the target number of files of each size and depth.

use senesce_core::Rng;

use super::distribution::apportion;

/// An existing file.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub serial: u64,
    pub directory: u32,
    pub size_bin: u16,
    pub depth_bin: u16,
    pub bytes: u64,
    /// Time of birth, in the schedule's time.
    pub born: u64,
    /// Age bin (classic schedule) or window (virtual schedule).
    pub age_bin: u16,
    alive: bool,
}

/// A file by its slot. Slots are reused, serial numbers are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    slot: u32,
    serial: u64,
}

/// The existing and the target number of files of each bin.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    pub weights: Vec<u64>,
    pub target: Vec<u64>,
    pub count: Vec<u64>,
    deficits: Vec<u64>,
}

impl Quota {
    fn new(weights: Vec<u64>) -> Self {
        let bins = weights.len();
        Self { weights, target: vec![0; bins], count: vec![0; bins], deficits: vec![0; bins] }
    }

    fn retarget(&mut self, files: u64) {
        self.target = apportion(&self.weights, files);
    }

    /// Draws a bin in proportion to its missing files. If no bin misses files, returns the bin that
    /// grows next.
    fn draw(&mut self, rng: &mut Rng) -> usize {
        for bin in 0..self.count.len() {
            self.deficits[bin] = self.target[bin].saturating_sub(self.count[bin]);
        }
        if self.deficits.iter().any(|&deficit| deficit > 0) {
            return rng.weighted(&self.deficits);
        }
        let seat = |bin: usize| self.weights[bin] as f64 / (2 * self.count[bin] + 1) as f64;
        (0..self.count.len()).max_by(|&a, &b| seat(a).total_cmp(&seat(b))).expect("a distribution has bins")
    }
}

/// All existing files.
pub(super) struct Population {
    slots: Vec<File>,
    free: Vec<u32>,
    next_serial: u64,
    pub live: u64,
    /// The target number of files.
    pub wanted: u64,
    pub size: Quota,
    pub depth: Quota,
}

impl Population {
    pub fn new(size_weights: Vec<u64>, depth_weights: Vec<u64>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            live: 0,
            wanted: 0,
            size: Quota::new(size_weights),
            depth: Quota::new(depth_weights),
        }
    }

    /// Sets the target number of files, and so that of each bin.
    pub fn retarget(&mut self, files: u64) {
        self.wanted = files;
        self.size.retarget(files);
        self.depth.retarget(files);
    }

    /// The number of missing files.
    pub fn missing(&self) -> u64 {
        self.wanted.saturating_sub(self.live)
    }

    /// Bins of size and depth for the next file.
    pub fn draw_bins(&mut self, rng: &mut Rng) -> (usize, usize) {
        (self.size.draw(rng), self.depth.draw(rng))
    }

    /// Adds a file. Returns its slot and serial number.
    pub fn add(&mut self, mut file: File) -> FileId {
        file.serial = self.next_serial;
        file.alive = true;
        self.next_serial += 1;
        self.live += 1;
        self.size.count[usize::from(file.size_bin)] += 1;
        self.depth.count[usize::from(file.depth_bin)] += 1;
        let serial = file.serial;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = file;
                slot
            }
            None => {
                self.slots.push(file);
                self.slots.len() as u32 - 1
            }
        };
        FileId { slot, serial }
    }

    /// The file, if it exists.
    pub fn get(&self, id: FileId) -> Option<&File> {
        self.slots.get(id.slot as usize).filter(|file| file.alive && file.serial == id.serial)
    }

    /// The file, if it exists, for changes.
    pub fn get_mut(&mut self, id: FileId) -> Option<&mut File> {
        self.slots.get_mut(id.slot as usize).filter(|file| file.alive && file.serial == id.serial)
    }

    /// Removes a file; none if it was removed before.
    pub fn remove(&mut self, id: FileId) -> Option<File> {
        let file = self.get_mut(id)?;
        file.alive = false;
        let file = file.clone();
        self.free.push(id.slot);
        self.live -= 1;
        self.size.count[usize::from(file.size_bin)] -= 1;
        self.depth.count[usize::from(file.depth_bin)] -= 1;
        Some(file)
    }

    /// All files, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &File)> {
        let places = self.slots.iter().enumerate().filter(|(_, file)| file.alive);
        places.map(|(slot, file)| (FileId { slot: slot as u32, serial: file.serial }, file))
    }
}

impl File {
    /// A file without a serial number; [`Population::add`] assigns it.
    pub fn new(directory: u32, bins: (usize, usize), bytes: u64, born: u64) -> Self {
        let (size_bin, depth_bin) = (bins.0 as u16, bins.1 as u16);
        Self { serial: 0, directory, size_bin, depth_bin, bytes, born, age_bin: 0, alive: false }
    }
}
