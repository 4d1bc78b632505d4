//! The places of sectors: zones, cylinders, tracks, and the angle of each.
//!
//! All angles and times come from one function, [`Geometry::course`]. It returns how far the
//! platter turns while a reader that starts at sector 0 and never stops reaches a sector, with
//! switches of track. Its remainder by a turn is the angle of the sector. Its difference between
//! two sectors is the time to read from one to the other. So a reader that continues without a
//! pause never waits, whatever borders it crosses. Skewed tracks have this purpose.
//!
//! Model: cylinders are filled one after the other, the outermost first, each head after head. All
//! zones have the same number of cylinders. The first zone has the outer rate, the last one the
//! inner rate, with linear steps in between.

use senesce_core::SECTOR_BYTES;

use crate::{DeviceSpec, Error};

/// A full turn in the unit of angles: nanoseconds times turns per minute, so that `time * rpm` is
/// an exact angle.
pub const TURN: u128 = 60_000_000_000;

/// Cylinders with the same number of sectors per track.
#[derive(Clone, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

/// The place of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder, 0 outermost.
    pub cylinder: u64,
    /// Head.
    pub head: u64,
    /// The number of the sector on its track.
    pub sector: u64,
    /// The number of sectors of that track.
    pub sectors_per_track: u64,
}

/// The layout of a disk.
#[derive(Clone, Debug)]
pub struct Geometry {
    rpm: u64,
    heads: u64,
    zones: Vec<Zone>,
    sectors: u64,
    cylinders: u64,
    /// The angles that the platter turns during a switch to the next head and to the next cylinder.
    head_skew: u128,
    cylinder_skew: u128,
}

impl Geometry {
    /// The layout with the described capacity and sequential rates.
    ///
    /// A track holds the data of one turn and one mean switch at the rate. The capacity determines
    /// the number of cylinders. Errors: the inner rate is above the outer rate; a track has no
    /// sectors; there are fewer than 10 cylinders.
    pub fn new(spec: &DeviceSpec) -> Result<Self, Error> {
        let rpm = spec.value("rotation") as u64;
        let heads = spec.value("heads") as u64;
        let zones = spec.value("zones") as u64;
        let (outer, inner) = (spec.value("outer_rate"), spec.value("inner_rate"));
        if inner > outer {
            let problem =
                format!("{inner} MB/s is above the outer rate of {outer} MB/s; at most that would be possible");
            return Err(spec.absurd("inner_rate", problem));
        }
        let turn_ms = 60_000.0 / rpm as f64;
        // The skew must also fit writes, whose switch is the longer one.
        let cylinder_ms = spec.value("track_to_track_read").max(spec.value("track_to_track_write"));
        let head_ms = spec.value("head_switch");
        let mean_switch_ms = ((heads - 1) as f64 * head_ms + cylinder_ms) / heads as f64;
        let capacity_sectors = spec.capacity_bytes() / SECTOR_BYTES;

        let sectors_per_track: Vec<u64> = (0..zones)
            .map(|zone| {
                let rate = outer - (outer - inner) * zone as f64 / (zones - 1) as f64;
                // MB/s times ms are thousands of bytes.
                (rate * (turn_ms + mean_switch_ms) * 1000.0 / SECTOR_BYTES as f64).round() as u64
            })
            .collect();
        if sectors_per_track.contains(&0) {
            let problem = format!("{inner} MB/s leaves less than a sector on a track at {rpm} rpm");
            return Err(spec.absurd("inner_rate", problem));
        }
        let per_zone_cylinder: u64 = sectors_per_track.iter().sum::<u64>() * heads;
        let cylinders_per_zone = capacity_sectors.div_ceil(per_zone_cylinder);
        let mut first_sector = 0;
        let zones: Vec<Zone> = sectors_per_track
            .into_iter()
            .zip(0..)
            .map(|(sectors_per_track, index)| {
                let zone = Zone { first_sector, first_cylinder: index * cylinders_per_zone, sectors_per_track };
                first_sector += cylinders_per_zone * heads * sectors_per_track;
                zone
            })
            // Rounding up may leave the last zones of a small disk empty.
            .take_while(|zone| zone.first_sector < capacity_sectors)
            .collect();
        let angle = |ms: f64| u128::from((ms * 1e6).round() as u64) * u128::from(rpm);
        let mut geometry = Self {
            rpm,
            heads,
            zones,
            sectors: capacity_sectors,
            cylinders: 0,
            head_skew: angle(head_ms),
            cylinder_skew: angle(cylinder_ms),
        };
        geometry.cylinders = geometry.place(capacity_sectors - 1).cylinder + 1;
        if geometry.cylinders < 10 {
            let (gb, cylinders) = (spec.value("capacity"), geometry.cylinders);
            let problem =
                format!("{gb} GB are {cylinders} cylinders at this rate and speed; at least 10 would be possible");
            return Err(spec.absurd("capacity", problem));
        }
        Ok(geometry)
    }

    /// Sectors of the device.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders of the device.
    pub fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Turns per minute.
    pub fn rpm(&self) -> u64 {
        self.rpm
    }

    /// The place of a sector. For a sector after the end, the place of the last one.
    pub fn place(&self, sector: u64) -> Place {
        let sector = sector.min(self.sectors - 1);
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let (track, in_track) = {
            let offset = sector - zone.first_sector;
            (offset / zone.sectors_per_track, offset % zone.sectors_per_track)
        };
        Place {
            cylinder: zone.first_cylinder + track / self.heads,
            head: track % self.heads,
            sector: in_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// The angle that the platter turns from sector 0 to the start of `sector` for a reader that
    /// never stops; a turn is [`TURN`].
    pub fn course(&self, sector: u64) -> u128 {
        let place = self.place(sector);
        self.track_course(place) + u128::from(place.sector) * TURN / u128::from(place.sectors_per_track)
    }

    /// The angle to the end of the sector before `end`. It differs from `course(end)` by the switch
    /// if a track ends there.
    pub fn course_end(&self, end: u64) -> u128 {
        let place = self.place(end.clamp(1, self.sectors) - 1);
        self.track_course(place) + u128::from(place.sector + 1) * TURN / u128::from(place.sectors_per_track)
    }

    fn track_course(&self, place: Place) -> u128 {
        let cylinder = TURN * u128::from(self.heads) + self.head_skew * u128::from(self.heads - 1) + self.cylinder_skew;
        u128::from(place.cylinder) * cylinder + u128::from(place.head) * (TURN + self.head_skew)
    }

    /// The first sector from `from` on, at most `limit`, whose end is not reached at the point
    /// `course`.
    pub fn sector_at(&self, from: u64, limit: u64, course: u128) -> u64 {
        let (mut low, mut high) = (from, limit.min(self.sectors).max(from));
        while low < high {
            let middle = low + (high - low) / 2 + 1;
            if self.course_end(middle) <= course {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}
