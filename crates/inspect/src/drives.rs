//! Several drives in one address space, each modelled as a device of its own.

use senesce_core::{BlockRequest, Nanos, SECTOR_BYTES};
use senesce_device::{DeviceModel, DeviceSpec};

use crate::cost::Reads;

/// The devices to model: each description, for every drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Modelled<'a> {
    /// The descriptions of the devices.
    pub specs: &'a [DeviceSpec],
    /// The lengths of the drives in the address space, bytes. One device if the list is empty.
    pub drives: &'a [u64],
    /// Bytes of a fresh copy that go to one drive before the next drive follows.
    pub turn_bytes: u64,
}

impl<'a> Modelled<'a> {
    /// Each description, for one device.
    pub fn one(specs: &'a [DeviceSpec]) -> Self {
        Self { specs, drives: &[], turn_bytes: 0 }
    }

    /// Makes the device of a description, or one such device for each drive.
    pub fn build(&self, spec: &DeviceSpec, reads: Reads) -> Result<Box<dyn DeviceModel>, senesce_device::Error> {
        if self.drives.len() < 2 {
            return spec.build();
        }
        let mut end = 0;
        let mut drives = Vec::new();
        for bytes in self.drives {
            end += bytes / SECTOR_BYTES;
            drives.push((end, spec.build()?));
        }
        let name = drives[0].1.name();
        let name = match name.strip_prefix("model: ") {
            Some(device) => format!("model: {} × {device}", drives.len()),
            None => format!("{} × {name}", drives.len()),
        };
        let turn_sectors = (self.turn_bytes / SECTOR_BYTES).max(1);
        Ok(Box::new(Drives { drives, in_turn: (reads == Reads::FreshCopy).then_some(turn_sectors), name }))
    }
}

/// Several drives. Each drive that a request touches serves its part, one after the other. A cold
/// reader waits for each of its requests, so no two drives ever work at once.
struct Drives {
    /// Each drive with its end, in sectors of the address space. The drives are adjacent in it.
    drives: Vec<(u64, Box<dyn DeviceModel>)>,
    /// Sectors of each drive in turn, if positions alternate between the drives. `None` if they do
    /// not.
    in_turn: Option<u64>,
    name: String,
}

impl Drives {
    /// The drive of a position, the sector on that drive, and the number of sectors that follow
    /// there. Positions after the last drive belong to it.
    fn place(&self, at: u64) -> (usize, u64, u64) {
        if let Some(turn) = self.in_turn {
            let (number, within) = (at / turn, at % turn);
            let count = self.drives.len() as u64;
            return ((number % count) as usize, number / count * turn + within, turn - within);
        }
        let last = self.drives.len() - 1;
        let number = self.drives.partition_point(|(end, _)| *end <= at).min(last);
        let start = if number == 0 { 0 } else { self.drives[number - 1].0 };
        let rest = if number == last { u64::MAX } else { self.drives[number].0 - at };
        (number, at - start, rest)
    }
}

impl DeviceModel for Drives {
    fn serve(&mut self, request: &BlockRequest, arrival: Nanos) -> Nanos {
        let (mut now, mut at) = (arrival, request.sector);
        while at < request.end() {
            let (number, sector, rest) = self.place(at);
            let sectors = rest.min(request.end() - at);
            let part = BlockRequest { sector, sectors: sectors as u32, ..*request };
            now = self.drives[number].1.serve(&part, now);
            at += sectors;
        }
        now
    }

    fn forget_sectors(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let (number, sector, rest) = self.place(at);
            let sectors = rest.min(end - at);
            self.drives[number].1.forget_sectors(sector, sector + sectors);
            at += sectors;
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use senesce_core::BlockOp;
    use senesce_device::find_preset;

    use super::*;

    fn read(sector: u64) -> BlockRequest {
        BlockRequest { issued: Nanos(0), op: BlockOp::Read, sector, sectors: 64 }
    }

    /// Two sequences of adjacent requests, read alternately, cost seeks on one disk. If each
    /// sequence has its own disk, they cost none.
    #[test]
    fn each_drive_has_its_own_position() {
        let spec = find_preset("hdd-7200").unwrap().clone();
        let drive_bytes = 100 << 30;
        let sectors = drive_bytes / SECTOR_BYTES;
        let seconds = |drives: &[u64]| {
            let mut device = Modelled { specs: &[], drives, turn_bytes: 0 }.build(&spec, Reads::Found).unwrap();
            let requests = (0..200).flat_map(|number| [read(number * 64), read(sectors + number * 64)]);
            requests.fold(Nanos(0), |now, request| device.serve(&request, now)).as_secs_f64()
        };
        let (one, two) = (seconds(&[2 * drive_bytes]), seconds(&[drive_bytes, drive_bytes]));
        assert!(two * 1.3 < one, "{two} {one}");
        let device = Modelled { specs: &[], drives: &[drive_bytes, drive_bytes], turn_bytes: 0 };
        let device = device.build(&spec, Reads::Found).unwrap();
        assert_eq!(device.name(), "model: 2 × HDD 7.2K");
    }

    /// A request across the end of a drive takes the sum of both parts.
    #[test]
    fn request_across_drives_is_split() {
        let spec = find_preset("nvme").unwrap().clone();
        let modelled = Modelled { specs: &[], drives: &[1 << 30, 1 << 30], turn_bytes: 256 << 10 };
        let build = || modelled.build(&spec, Reads::Found).unwrap();
        let end = (1 << 30) / SECTOR_BYTES;
        let whole = build().serve(&BlockRequest { sectors: 128, ..read(end - 64) }, Nanos(0));
        let mut parts = build();
        let first = parts.serve(&read(end - 64), Nanos(0));
        assert_eq!(whole, parts.serve(&read(end), first));
        // A position after the last drive is served too.
        assert!(build().serve(&read(5 * end), Nanos(0)) > Nanos(0));
    }

    #[test]
    fn fresh_copy_alternates_between_drives() {
        let spec = find_preset("nvme").unwrap().clone();
        let drives = |in_turn| Drives {
            drives: [1000, 1500].map(|end| (end, spec.build().unwrap())).into(),
            in_turn,
            name: String::new(),
        };
        let turns = drives(Some(512));
        let found = [0, 511, 512, 1024, 1500, 1536].map(|at| turns.place(at));
        assert_eq!(found, [(0, 0, 512), (0, 511, 1), (1, 0, 512), (0, 512, 512), (0, 988, 36), (1, 512, 512)]);
        let row = drives(None);
        let found = [0, 999, 1000, 1700].map(|at| row.place(at));
        assert_eq!(found, [(0, 0, 1000), (0, 999, 1), (1, 0, u64::MAX), (1, 700, u64::MAX)]);
    }
}
