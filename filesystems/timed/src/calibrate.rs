//! The table of processor times: a fit to experiment E4 without cleaning, and to nothing else.
//!
//! The paper has one number for it: 3.0 ms at the highest load. Two numbers are free: the factor of
//! all assumed times, and the highest load, which the paper does not state. The load is set once,
//! as [`MAXIMUM_PER_SECOND`], from another statement of load; then the factor is fitted. So the fit
//! only says that 20 cores are busy at that load. The proportions of the table are assumptions, and
//! the core counts of other experiments scale with the chosen load.

use senesce_sim::{CpuEvents, CpuOrigin, CpuProfile, storage::compute_storage};
use senesce_trials::{Setup, tell_count};
use serde::{Deserialize, Serialize};

use crate::{Result, Window, published_machines};

/// The highest load of E4, operations a second. **A choice**: E3 has 100,000 a second on 12 drives,
/// and E4 has 21.
pub const MAXIMUM_PER_SECOND: u64 = 175_000;
/// The published latency at that load without cleaning, ns.
const PUBLISHED: f64 = 3.0e6;
/// The resolution of the factor: parts of 1.
const PARTS: u64 = 1000;

/// The result of the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The factor of the assumed times, in thousandths.
    pub factor_per_mille: u64,
    /// The table.
    pub profile: CpuProfile,
    /// The mean latency with it at the highest load, ns.
    pub latency: f64,
}

/// Finds the factor for a window of E4 without cleaning, by bisection, since latency grows with it.
/// Cost: thirteen simulations.
pub fn calibrate(setup: &Setup, window: &Window) -> Result<Calibration> {
    let (mut low, mut high) = (PARTS / 10, 4 * PARTS);
    let at = |factor: u64| -> Result<(CpuProfile, f64)> {
        let profile = scale(factor);
        let system = published_machines::flash(setup, profile.clone())?;
        let load = published_machines::open(MAXIMUM_PER_SECOND, window.operations());
        Ok((profile, compute_storage(&system, &window.trace, &load)?.latency.mean))
    };
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if at(middle)?.1 < PUBLISHED { low = middle } else { high = middle }
    }
    let (profile, latency) = at(low)?;
    Ok(Calibration { factor_per_mille: low, profile, latency })
}

/// A table in words: the source of its times, and the factor of the assumed ones if it was fitted.
pub fn tell_profile(profile: &CpuProfile) -> String {
    let name = &profile.name;
    match profile.origin {
        CpuOrigin::Assumed => format!("{name}: round numbers, no results"),
        CpuOrigin::Measured => format!("{name} on one host"),
        CpuOrigin::Calibrated => {
            let factor = profile.times.front_end as f64 / CpuProfile::assumed().times.front_end as f64;
            format!(
                "{name}: assumed times x {factor:.3}, a fit of two free numbers (this factor, and the load of {} operations a second) to one published \
                 figure, {:.1} ms of E4 without cleaning, at scale eighth",
                tell_count(MAXIMUM_PER_SECOND),
                PUBLISHED / 1e6
            )
        }
    }
}

fn scale(factor: u64) -> CpuProfile {
    let assumed = CpuProfile::assumed();
    let CpuEvents {
        front_end,
        cache_hit,
        log_append,
        block_clean,
        chain_issue,
        xor,
        context_check,
        map_lookup,
        relocation,
        compression,
        decompression,
        fix_up,
    } = assumed.times;
    let by = |time: u64| (time * factor + PARTS / 2) / PARTS;
    let times = CpuEvents {
        front_end: by(front_end),
        cache_hit: by(cache_hit),
        log_append: by(log_append),
        block_clean: by(block_clean),
        chain_issue: by(chain_issue),
        xor: by(xor),
        context_check: by(context_check),
        map_lookup: by(map_lookup),
        relocation: by(relocation),
        compression: by(compression),
        decompression: by(decompression),
        fix_up: by(fix_up),
    };
    CpuProfile { name: "paper20".into(), origin: CpuOrigin::Calibrated, times }
}
