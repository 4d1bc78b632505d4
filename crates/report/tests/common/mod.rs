//! A made-up run: three file systems, three volumes, eleven checkpoints; with invalid cells, a
//! missing score, a single repetition here and three there.

use senesce_store::{
    AgingRow, CellKey, CellRow, CircumstanceRow, FORMAT, FreeSpaceRow, GrepRow, LayoutRow, MapRow, ModelledRow,
    Results, Role, RunInfo,
};

/// The run. The same every time.
pub fn results() -> Results {
    let run = RunInfo {
        format: FORMAT.to_owned(),
        run_name: "Git on a full disk <quick start>".to_owned(),
        plan_name: "quick-start".to_owned(),
        plan_hash: "3f9a0c51d2e87b640123456789abcdef".to_owned(),
        senesce_version: "0.1.0".to_owned(),
    };
    let mut results = Results { run, ..Results::default() };
    // Grep cost unaged, growth of it when empty and when full.
    let arms = [("btrfs", 3.1, 0.35, 1.3), ("ext4", 4.2, 0.55, 0.9), ("xfs", 3.6, 1.1, 1.25)];
    for (arm, unaged, empty, full) in arms {
        for (role, growth) in [(Role::Full, full), (Role::Empty, empty), (Role::Unaged, 0.0)] {
            for checkpoint in 0..=10u64 {
                let key = CellKey { arm: arm.into(), file_system: arm.into(), role, pulls: checkpoint * 20 };
                add_cell(&mut results, &key, unaged, growth, checkpoint);
            }
        }
        let facts = [
            ("fs.mkfs.command", format!("mkfs.{arm} -q /dev/loop0")),
            ("fs.mount.options", "noatime".to_owned()),
            ("device.kind", "loop image with direct I/O, 5 GiB".to_owned()),
        ];
        for (name, value) in facts {
            results.circumstances.push(CircumstanceRow { arm: arm.into(), key: name.into(), value });
        }
    }
    for (name, value) in [
        ("kernel.release", "6.12.9-amd64"),
        ("seed", "42"),
        ("workload.first_commit", "1da177e4c3f41524e886b7f1b8a0c1fc7321cac2"),
        ("workload.odd", "</script><b>\"markup\" & more"),
    ] {
        results.circumstances.push(CircumstanceRow { arm: String::new(), key: name.into(), value: value.into() });
    }
    results
}

fn add_cell(results: &mut Results, key: &CellKey, unaged: f64, growth: f64, checkpoint: u64) {
    let arm = key.arm.as_str();
    let invalid = match (arm, key.role, checkpoint) {
        ("xfs", Role::Full, 6) => "tree differs from the empty volume: 3 paths, first `fs/ext4/inode.c`",
        ("ext4", Role::Unaged, 3) => "mkfs.ext4 failed with exit code 1",
        _ => "",
    };
    results.cells.push(CellRow {
        key: key.clone(),
        valid: invalid.is_empty(),
        reason: invalid.to_owned(),
        tree_hash: format!("{checkpoint:064x}"),
        work_tree_hash: format!("{:064x}", checkpoint + 1),
        files: 20_000 + checkpoint * 120,
        directories: 1_400,
        content_bytes: 280 << 20,
        capacity_bytes: 1 << 30,
        used_bytes: 700 << 20,
    });
    // A sawtooth stands in for noise: the same every time, and not smooth.
    let wobble = |salt: u64| ((checkpoint * 7 + salt * 5) % 11) as f64 / 11.0 - 0.5;
    let share = checkpoint as f64 / 10.0;
    let cost = unaged * (1.0 + growth * share.powf(0.7)) + 0.12 * wobble(arm.len() as u64);
    let repetitions = if arm == "btrfs" { 1 } else { 3 };
    for repetition in 0..repetitions {
        let seconds_per_gib = cost * (1.0 + 0.05 * wobble(repetition + 3));
        let allocated_bytes = 320u64 << 20;
        let wall_seconds = seconds_per_gib * allocated_bytes as f64 / (1u64 << 30) as f64;
        results.grep.push(GrepRow {
            key: key.clone(),
            repetition,
            scanner: "senesce".into(),
            order: "readdir".into(),
            cache: "remount+direct-io".into(),
            wall_seconds,
            allocated_bytes,
            seconds_per_gib,
            read_bytes: 280 << 20,
            files: 20_000 + checkpoint * 120,
            user_seconds: 0.1,
            system_seconds: 0.4,
            device_read_bytes: Some(300 << 20),
            device_read_requests: Some(24_000 + checkpoint * 900),
            cpu_bound: arm == "btrfs" && key.role == Role::Unaged && checkpoint < 2,
            fuse_floor_seconds: f64::NAN,
        });
    }
    for (device, factor) in [("model: HDD 7.2K", 11.0), ("model: NVMe", 0.3)] {
        results.modelled.push(ModelledRow {
            key: key.clone(),
            device: device.into(),
            method: "extents".into(),
            seconds: cost * factor * 0.3,
            best_order_seconds: cost * factor * 0.01,
            seconds_per_gib: unaged * factor * (1.0 + 3.0 * growth * share),
            requests: 24_000,
            read_bytes: 300 << 20,
        });
    }
    add_map(results, key, growth * share);
    let score = 1.0 - growth * 0.09 * share;
    results.layout.push(LayoutRow {
        key: key.clone(),
        space: if arm == "btrfs" { "btrfs-logical" } else { "device" }.into(),
        files: 20_000,
        fragmented_files: (1_200.0 * growth * share) as u64,
        extents: 20_000 + (2_600.0 * growth * share) as u64,
        blocks: 82_000,
        extents_per_file: 1.0 + 0.13 * growth * share,
        layout_score: if arm == "xfs" && key.role == Role::Empty && checkpoint == 4 { f64::NAN } else { score },
        adjacent_files_share: 0.47 - 0.3 * growth.min(1.0) * share,
        path_adjacent_files_share: 0.47 - 0.3 * growth.min(1.0) * share,
    });
    if key.role != Role::Unaged && arm != "btrfs" {
        add_free_space(results, key, checkpoint);
    }
    if key.role != Role::Unaged && checkpoint > 0 {
        results.aging.push(AgingRow {
            key: key.clone(),
            steps: 20,
            operations: 5_200,
            written_bytes: 61 << 20,
            no_space_steps: u64::from(key.role == Role::Full),
            copies: 2,
            wall_seconds: 0.35 * (1.0 + growth * 0.2) + 0.05 * wobble(2),
            user_seconds: 0.05,
            system_seconds: 0.25,
            device_written_bytes: Some(if arm == "btrfs" { 240 << 20 } else { 130 << 20 }),
        });
    }
}

/// A third of the volume is used; with age, more cells hold files that belong elsewhere.
fn add_map(results: &mut Results, key: &CellKey, age: f64) {
    for cell in 0..90u64 {
        let strays = (cell * 37 % 100) as f64 / 100.0 < age * 0.6;
        results.maps.push(MapRow {
            key: key.clone(),
            side: 16,
            cell_bytes: 1 << 20,
            cell,
            used_bytes: 1 << 19,
            free_bytes: 1 << 18,
            extents: if strays { 9 } else { 2 },
            place: if strays { (cell * 53 % 90) as f64 / 89.0 } else { cell as f64 / 89.0 },
            path: Some(format!("copy-1/src/<{}>.c", if strays { cell * 53 % 90 } else { cell })),
        });
    }
}

fn add_free_space(results: &mut Results, key: &CellKey, checkpoint: u64) {
    let free: u64 = if key.role == Role::Full { 48 << 20 } else { 620 << 20 };
    for power in 12..29u64 {
        // Free space moves from the large buckets to the small ones.
        let centre = 27.0 - checkpoint as f64 * if key.role == Role::Full { 1.1 } else { 0.35 };
        let weight = (-((power as f64 - centre) / 2.6).powi(2)).exp() / 4.6;
        let bytes = (free as f64 * weight) as u64 >> 12 << 12;
        if bytes > 0 {
            let extents = (bytes >> power).max(1);
            results.free_space.push(FreeSpaceRow { key: key.clone(), bucket_bytes: 1 << power, extents, bytes });
        }
    }
}
