//! One more cold grep test of a volume with a trace of its block requests. The trace is scored, and
//! replayed on the plan's devices.

use std::{fs, path::PathBuf};

use senesce_core::{BlockOp, BlockRequest};
use senesce_device::{DeviceSpec, QueuePolicy, compute_cost};
use senesce_probe::{
    collect::BlockTracer,
    score::{AccessFigures, compute_trace_figures},
};
use senesce_store::{CellKey, CellResults, ModelledRow, TraceBucketRow, TraceRow};
use senesce_vdisk::read_log;
use senesce_volume::Volume;

use super::{
    super::{state::ArmContext, virtual_time::seconds_per_gib},
    grep::{IsTraced, scan_cold},
};
use crate::{Error, observer::Event};

/// The unit of distances between requests, bytes.
const DISTANCE_BLOCK_BYTES: u64 = 4096;

/// A running recording.
pub(super) enum Recorder {
    /// By the kernel.
    Tracefs(BlockTracer),
    /// By the disk in virtual time, into this file.
    VirtualDisk(PathBuf),
}

/// The requests of one grep test.
pub(super) struct Traced {
    source: &'static str,
    /// In issue order.
    requests: Vec<BlockRequest>,
    lost_events: u64,
}

impl Recorder {
    /// Starts a recording of the requests to the volume's device.
    ///
    /// Errors: a directory has no device; the kernel refuses; the disk's server is gone.
    pub(super) fn start(context: &ArmContext<'_>, volume: &Volume) -> Result<Self, Error> {
        let path = context.paths.arm(&context.arm.name).join("requests.vdlog");
        // A killed process may have left a log, and a log is never overwritten.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(error));
            }
            _ => {}
        }
        if volume.start_request_log(&path)? {
            return Ok(Self::VirtualDisk(path));
        }
        match volume.device() {
            Some(device) => Ok(Self::Tracefs(BlockTracer::start(device)?)),
            None => Err(Error::Unverified {
                what: "the trace".into(),
                problem: format!("{} has no block device", volume.root().display()),
            }),
        }
    }

    /// Stops the recording.
    pub(super) fn stop(self, volume: &Volume) -> Result<Traced, Error> {
        match self {
            Self::Tracefs(tracer) => {
                let trace = tracer.stop()?;
                let requests = trace.block_requests().collect();
                Ok(Traced { source: "tracefs", requests, lost_events: trace.lost })
            }
            Self::VirtualDisk(path) => {
                volume.stop_request_log()?;
                let log = read_log(&path).map_err(|error| Error::Unverified {
                    what: "the log of requests".into(),
                    problem: error.to_string(),
                })?;
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                let requests = log.requests.into_iter().map(|(request, _)| request).collect();
                Ok(Traced { source: "virtual-disk", requests, lost_events: 0 })
            }
        }
    }
}

/// Runs a traced grep test on the volume and adds its rows.
pub(super) fn trace_volume(
    context: &mut ArmContext<'_>,
    key: &CellKey,
    volume: &mut Volume,
    results: &mut CellResults,
) -> Result<(), Error> {
    context.doing("traced grep test", key.role);
    let scanned = scan_cold(context, volume, IsTraced::Yes)?;
    let Some(traced) = scanned.trace else { return Ok(()) };
    if traced.lost_events > 0 {
        context.observer.on_event(&Event::Warning {
            arm: key.arm.clone(),
            message: format!(
                "the trace of the {} volume at {} {} lost at least {} events: its figures cover the other events",
                key.role.name(),
                key.pulls,
                context.plan.step_unit(),
                traced.lost_events
            ),
        });
    }
    (results.trace, results.trace_buckets) = compute_rows(key, &traced);
    results.modelled.extend(compute_modelled(key, &traced, context.devices, scanned.figures.allocated_bytes)?);
    Ok(())
}

/// The rows of tables `trace` and `trace_buckets`.
fn compute_rows(key: &CellKey, traced: &Traced) -> (Vec<TraceRow>, Vec<TraceBucketRow>) {
    let figures = compute_trace_figures(traced.requests.iter().copied());
    let accesses = [("read", &figures.reads), ("write", &figures.writes)];
    let row = |(access, figures): (&str, &AccessFigures)| TraceRow {
        key: key.clone(),
        source: traced.source.to_owned(),
        access: access.to_owned(),
        requests: figures.requests,
        bytes: figures.bytes,
        blocks: figures.blocks,
        discontinuities: figures.discontinuities,
        dynamic_layout_score: figures.dynamic_layout_score.unwrap_or(f64::NAN),
        seek_bytes: figures.seek_sectors.saturating_mul(senesce_core::SECTOR_BYTES),
        blocks_per_request: figures.blocks_per_request.unwrap_or(f64::NAN),
        chains: figures.chains,
        blocks_per_chain: figures.blocks_per_chain.unwrap_or(f64::NAN),
        lost_events: traced.lost_events,
    };
    let mut buckets = Vec::new();
    for (access, figures) in accesses {
        let bucket = |histogram: &str, bucket_bytes, requests, bytes| TraceBucketRow {
            key: key.clone(),
            access: access.to_owned(),
            histogram: histogram.to_owned(),
            bucket_bytes,
            requests,
            bytes,
        };
        let sizes = figures.request_sizes.iter().filter(|size| size.requests > 0);
        buckets.extend(sizes.map(|size| bucket("request-size", size.at_least_bytes, size.requests, Some(size.bytes))));
        for seek in &figures.seeks {
            let (least, requests) = (seek.at_least_blocks * DISTANCE_BLOCK_BYTES, seek.forward + seek.backward);
            if requests > 0 {
                buckets.push(bucket("seek-distance", least, requests, None));
            }
        }
    }
    (accesses.into_iter().map(row).collect(), buckets)
}

/// The cost of the trace's reads on each device. Each request is issued when the previous one is
/// done.
fn compute_modelled(
    key: &CellKey,
    traced: &Traced,
    devices: &[DeviceSpec],
    allocated_bytes: u64,
) -> Result<Vec<ModelledRow>, Error> {
    let reads: Vec<BlockRequest> = traced.requests.iter().filter(|r| r.op == BlockOp::Read).copied().collect();
    let mut rows = Vec::new();
    for spec in devices {
        let mut device = spec.build().map_err(senesce_inspect::Error::from)?;
        let cost = compute_cost(&mut *device, &reads, QueuePolicy::default());
        rows.push(ModelledRow {
            key: key.clone(),
            device: cost.device,
            method: "trace".to_owned(),
            seconds: cost.seconds,
            best_order_seconds: f64::NAN,
            seconds_per_gib: seconds_per_gib(cost.seconds, allocated_bytes),
            requests: cost.requests,
            read_bytes: cost.read_bytes,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use senesce_core::{Bytes, Nanos};
    use senesce_device::find_preset;
    use senesce_store::Role;

    use super::*;

    /// Two adjacent reads (8 KiB and 4 KiB), a write elsewhere, a read of 64 KiB at a high address,
    /// a read of 4 KiB at 0, a flush.
    fn traced() -> Traced {
        let request = |op, sector, sectors| BlockRequest { issued: Nanos(0), op, sector, sectors };
        let requests = vec![
            request(BlockOp::Read, 0, 16),
            request(BlockOp::Read, 16, 8),
            request(BlockOp::Write, 4096, 8),
            request(BlockOp::Read, 2048, 128),
            request(BlockOp::Read, 0, 8),
            request(BlockOp::Flush, 0, 0),
        ];
        Traced { source: "tracefs", requests, lost_events: 3 }
    }

    fn key() -> CellKey {
        CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 7 }
    }

    #[test]
    fn rows_of_a_trace_match_hand_computed_values() {
        let (rows, buckets) = compute_rows(&key(), &traced());
        // Reads: 2 + 1 + 16 + 1 blocks. Two of the four do not start where the previous one ended.
        let reads = &rows[0];
        assert_eq!((reads.access.as_str(), reads.requests, reads.bytes, reads.blocks), ("read", 4, 81_920, 20));
        assert_eq!((reads.discontinuities, reads.dynamic_layout_score), (2, 0.9));
        // From sector 24 to 2048 and from 2176 to 0.
        assert_eq!(reads.seek_bytes, (2024 + 2176) * 512);
        assert_eq!((reads.blocks_per_request, reads.chains), (5.0, 3));
        assert_eq!(reads.blocks_per_chain, 20.0 / 3.0);
        assert_eq!((reads.lost_events, reads.source.as_str()), (3, "tracefs"));
        let writes = &rows[1];
        assert_eq!((writes.access.as_str(), writes.requests, writes.bytes, writes.chains), ("write", 1, 4096, 1));
        let of = |access: &str, histogram: &str| -> Vec<(u64, u64, Option<u64>)> {
            let of = buckets.iter().filter(|row| row.access == access && row.histogram == histogram);
            of.map(|row| (row.bucket_bytes, row.requests, row.bytes)).collect()
        };
        assert_eq!(
            of("read", "request-size"),
            [(4096, 2, Some(8192)), (8192, 1, Some(8192)), (65_536, 1, Some(65_536))]
        );
        // 0 blocks; 253 blocks; 272 blocks.
        assert_eq!(of("read", "seek-distance"), [(0, 1, None), (128 * 4096, 1, None), (256 * 4096, 1, None)]);
        assert_eq!(of("write", "request-size"), [(4096, 1, Some(4096))]);
        assert_eq!(of("write", "seek-distance"), []);
    }

    #[test]
    fn a_trace_without_requests_has_rows_without_scores() {
        let nothing = Traced { source: "tracefs", requests: Vec::new(), lost_events: 0 };
        let (rows, buckets) = compute_rows(&key(), &nothing);
        assert!(rows.len() == 2 && rows.iter().all(|row| row.requests == 0 && row.dynamic_layout_score.is_nan()));
        assert!(buckets.is_empty());
    }

    #[test]
    fn only_reads_are_replayed_on_every_device() {
        let devices = [find_preset("hdd-7200").unwrap(), find_preset("nvme").unwrap()];
        let rows = compute_modelled(&key(), &traced(), &devices, Bytes::GIB / 4).unwrap();
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert_eq!((row.method.as_str(), row.requests, row.read_bytes), ("trace", 4, 81_920));
            assert!((row.seconds_per_gib / row.seconds - 4.0).abs() < 1e-9);
        }
        // The disk seeks and rotates for two of the four, which needs milliseconds.
        assert!(rows[0].seconds > 0.002 && rows[0].seconds < 0.1, "{}", rows[0].seconds);
        assert!(rows[1].seconds < rows[0].seconds / 5.0, "{}", rows[1].seconds);
    }
}
