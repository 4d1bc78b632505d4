//! A drive: a queue and a model.

use senesce_core::{BlockOp, BlockRequest, Bytes, Nanos, SECTOR_BYTES};
use senesce_device::DeviceModel;

use super::setup::{Drives, Model, Spread, StorageSetup};
use crate::{Class, Discipline, Error, Order, Ssd, SsdCounts, Station, StationFigures, Ticket};

const SECTORS: u64 = 4096 / SECTOR_BYTES;

/// A request that waits at a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<O> {
    pub op: BlockOp,
    pub block: u64,
    pub blocks: u32,
    /// The receiver of its completion.
    pub owner: O,
}

/// A drive with its waiting requests.
pub(super) struct Drive<O> {
    pub group: usize,
    station: Station<Request<O>>,
    medium: Medium,
    /// Blocks of a unit that stays together, and the factor by which units move apart.
    stretch: (u64, u64),
    /// For an SSD: its counters at the start of the figures.
    before: SsdCounts,
}

enum Medium {
    Disk(Box<dyn DeviceModel>),
    Ssd(Box<Ssd>),
}

impl<O> Drive<O> {
    pub fn new(group: usize, number: usize, drives: &Drives, setup: &StorageSetup) -> Result<Self, Error> {
        let favour = Some(setup.favour);
        let (medium, stretch, depth, order) = match &drives.model {
            Model::Disk { spec, spread } => {
                let stretch = stretch(*spread, spec.capacity_bytes() / (4 * Bytes::KIB))?;
                (Medium::Disk(spec.build()?), stretch, 1, Order::Sweep { overdue: setup.overdue })
            }
            Model::Ssd { spec, fill, depth, spread } => {
                let medium = Medium::Ssd(Box::new(Ssd::new(spec, *fill)?));
                (medium, stretch(*spread, spec.blocks)?, (*depth).max(1), Order::Arrival)
            }
        };
        let station = Station::new(format!("drive {number}"), depth, Discipline { order, favour });
        Ok(Self { group, station, medium, stretch, before: SsdCounts::default() })
    }

    /// Writes blocks before the run, without using time.
    pub fn prime(&mut self, block: u64, blocks: u32) {
        let block = self.place(block);
        if let Medium::Ssd(ssd) = &mut self.medium {
            ssd.prime(block, blocks);
        }
    }

    /// The block on the drive for a block of the trace.
    fn place(&self, block: u64) -> u64 {
        let (unit, factor) = self.stretch;
        block / unit * unit * factor + block % unit
    }

    pub fn arrive(&mut self, now: Nanos, class: Class, request: Request<O>) {
        self.station.arrive(now, class, request.block, request);
    }

    /// Starts the next request if possible; returns its completion.
    pub fn start(&mut self, now: Nanos) -> Option<(Ticket, Request<O>, Nanos)> {
        let (ticket, request) = self.station.start(now)?;
        let block = self.place(request.block);
        let done = match &mut self.medium {
            Medium::Ssd(ssd) => ssd.serve(request.op, block, request.blocks, now),
            Medium::Disk(model) => {
                let (sector, sectors) = (block * SECTORS, request.blocks * SECTORS as u32);
                model.serve(&BlockRequest { issued: now, op: request.op, sector, sectors }, now)
            }
        };
        Some((ticket, request, done))
    }

    pub fn finish(&mut self, now: Nanos, ticket: Ticket) {
        self.station.finish(now, ticket);
    }

    pub fn restart(&mut self, now: Nanos) {
        self.station.restart(now);
        if let Medium::Ssd(ssd) = &self.medium {
            self.before = ssd.counts();
        }
    }

    /// The figures; for an SSD also its counters and the utilisation of its dies.
    pub fn figures(&self, now: Nanos, time: Nanos) -> Result<(StationFigures, Option<(SsdCounts, f64)>), Error> {
        let flash = match &self.medium {
            Medium::Ssd(ssd) => Some((ssd.counts().since(&self.before), ssd.die_utilisation(&self.before, time))),
            Medium::Disk(_) => None,
        };
        Ok((self.station.figures(now)?, flash))
    }
}

/// Blocks of a unit that stays together, and the factor by which units move apart.
fn stretch(spread: Option<Spread>, blocks: u64) -> Result<(u64, u64), Error> {
    match spread {
        None => Ok((1, 1)),
        Some(Spread { drive_blocks, unit_blocks }) if unit_blocks > 0 && (1..=blocks).contains(&drive_blocks) => {
            Ok((unit_blocks, blocks / drive_blocks.next_multiple_of(unit_blocks).min(blocks)))
        }
        Some(Spread { drive_blocks, unit_blocks }) => {
            let problem = format!(
                "{drive_blocks} blocks in units of {unit_blocks} cannot be spread over {blocks}; only 1 to {blocks} in units of \
                 at least 1 are possible"
            );
            Err(Error::absurd("drive", problem))
        }
    }
}
