//! Plans a defrag from unchecked maps of extents and lists of files. It must move only bytes that a
//! file has, each byte once, within the budget. The sum of the free space must not change.
//!
//! Most numbers are small multiples of a block, as those of a kernel, so that sums do not overflow.
//! Some extents have arbitrary numbers; a file with such an extent must not move. Files and free
//! space may overlap, as on a damaged volume.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use senesce_core::{Extent, RelPath};
use senesce_defrag::{
    Order, Plan, PlanOptions, Tree, measure_pieces, merge_segments, place_batches, plan_moves, plan_space,
};
use senesce_probe::{
    collect::{EntryKind, Surveyed},
    map::{ExtentFlags, Placement, RawExtent},
};

const BLOCK: u64 = 4096;

struct Input {
    entries: Vec<Surveyed>,
    options: PlanOptions,
    budget: u64,
    free: Vec<(u64, u64)>,
    /// The lines of a list of files.
    list: Vec<u8>,
}

fn extent(u: &mut Unstructured<'_>, after: u64) -> Result<RawExtent> {
    let flags = ExtentFlags(if u.ratio(1, 16)? { u.arbitrary()? } else { 0 });
    let extent = if u.ratio(1, 32)? {
        Extent { logical: u.arbitrary()?, physical: u.arbitrary()?, length: u.arbitrary()? }
    } else {
        let hole = if u.ratio(1, 8)? { u.int_in_range(0..=40)? } else { 0 };
        let physical = u64::from(u.arbitrary::<u16>()?) * BLOCK;
        Extent { logical: after + hole * BLOCK, physical, length: u.int_in_range(0..=300)? * BLOCK }
    };
    Ok(RawExtent { extent, flags })
}

fn file(u: &mut Unstructured<'_>, number: usize) -> Result<Surveyed> {
    let mut extents: Vec<RawExtent> = Vec::new();
    let mut after = 0;
    for _ in 0..u.int_in_range(0..=12)? {
        let raw = extent(u, after)?;
        after = raw.extent.logical.saturating_add(raw.extent.length) % (1 << 40);
        extents.push(raw);
    }
    let size_bytes = if u.ratio(1, 16)? { u.arbitrary()? } else { after };
    Ok(Surveyed {
        path: RelPath::new(format!("d{}/{number}", number % 3).as_bytes()).expect("it is relative"),
        kind: EntryKind::File,
        inode: u64::from(u.arbitrary::<u8>()?),
        links: 1,
        is_executable: u.ratio(1, 8)?,
        size_bytes,
        allocated_bytes: size_bytes,
        modified_unix_seconds: 0,
        born_unix_seconds: None,
        extents,
    })
}

fn input(u: &mut Unstructured<'_>) -> Result<Input> {
    let options = PlanOptions {
        align_bytes: BLOCK << u.int_in_range(0..=4)?,
        keep_bytes: u.int_in_range(1..=500)? * BLOCK,
        batch_bytes: u.int_in_range(1..=500)? * BLOCK,
        batch_files: u.int_in_range(1..=20)?,
        moves_shared: u.arbitrary()?,
        moves_programs: u.arbitrary()?,
        orders: u.arbitrary()?,
        piece_bytes: u.int_in_range(0..=300)? * BLOCK,
        ..PlanOptions::for_blocks(BLOCK)
    };
    let budget = u64::from(u.arbitrary::<u16>()?) * BLOCK;
    let mut free = Vec::new();
    for _ in 0..u.int_in_range(0..=12)? {
        free.push((u64::from(u.arbitrary::<u16>()?) * BLOCK, u.int_in_range(0..=500)? * BLOCK));
    }
    let mut entries = Vec::new();
    for number in 0..u.int_in_range(0..=24)? {
        entries.push(file(u, number)?);
    }
    let list = u.bytes(u.len())?.to_vec();
    Ok(Input { entries, options, budget, free, list })
}

/// The ranges of a file whose blocks have a known place, as (start, end).
fn ranges(entry: &Surveyed) -> Vec<(u64, u64)> {
    let placed = entry.extents.iter().filter(|raw| raw.placement() == Placement::Placed);
    placed.map(|raw| (raw.extent.logical, raw.extent.logical.saturating_add(raw.extent.length))).collect()
}

/// Every range that moves is in the file, and moves once.
fn check_moves(entries: &[Surveyed], plan: &Plan) {
    let mut moved: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
    for part in plan.parts() {
        assert!(part.length > 0 && part.length % BLOCK == 0 && part.logical % BLOCK == 0, "{part:?}");
        moved.entry(part.entry).or_default().push((part.logical, part.logical + part.length));
    }
    for (entry, mut parts) in moved {
        let entry = &entries[entry];
        assert!(entry.extents.iter().all(|raw| raw.placement() == Placement::Placed), "{entry:?}");
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "moves twice: {parts:?}");
        for (start, end) in parts {
            let inside = |&(from, to): &(u64, u64)| to.min(end).saturating_sub(from.max(start));
            let has: u64 = ranges(entry).iter().map(inside).sum();
            assert_eq!(has, end - start, "a hole moves: {entry:?}");
        }
    }
}

fn check(input: Input) {
    let Input { entries, options, budget, free, list } = input;
    let root = std::env::temp_dir();
    let tree = Tree::with_entries(&root, entries).expect("the directory exists");
    let lines = tempfile::NamedTempFile::new().expect("there is space");
    std::fs::write(lines.path(), list).expect("there is space");
    let order = match Order::List(lines.path().to_owned()).apply(&tree) {
        Ok(order) => order,
        Err(error) => {
            assert!(error.to_string().contains("line "), "an error names the line: {error}");
            Order::Sorted.apply(&tree).expect("it needs no list")
        }
    };
    let mut files = order.clone();
    files.sort_unstable();
    assert!(files == tree.files().collect::<Vec<_>>(), "each file is in the order once");

    let mut plan = plan_moves(&tree.entries, &order, &options);
    check_moves(&tree.entries, &plan);
    let stays = |plan: &Plan| plan.left.values().fold(0u64, |sum, left| sum.saturating_add(left.bytes));
    assert_eq!(plan.live_bytes, stays(&plan).saturating_add(plan.bytes()));
    let places = place_batches(&tree.entries, &plan.batches, free.iter().copied());
    for (batch, pieces) in plan.batches.iter().zip(places) {
        assert!(batch.bytes() <= options.batch_bytes);
        if let Some(pieces) = pieces {
            assert_eq!(pieces.iter().map(|piece| piece.extent.length).sum::<u64>(), batch.bytes());
            assert!(measure_pieces(batch, &pieces) < batch.pieces);
        }
    }
    plan.limit(budget);
    assert!(plan.bytes() <= budget);
    assert_eq!(plan.live_bytes, stays(&plan).saturating_add(plan.bytes()));

    // Half of the free space is held, as an empty file holds it.
    let (held, loose) = free.split_at(free.len() / 2);
    let mut offset = 0;
    let hold = |&(physical, length): &(u64, u64)| {
        offset += length;
        Extent { logical: offset - length, physical, length }
    };
    let held: Vec<Extent> = held.iter().map(hold).collect();
    let owned = order.iter().filter(|at| plan.parts().any(|part| part.entry == **at));
    let owned = owned.flat_map(|&at| tree.entries[at].extents.iter().map(move |raw| (at, raw.extent)));
    let segments = merge_segments(&held, loose, owned);
    let moves = plan_space(&segments, budget, options.align_bytes);
    assert!(moves.bytes() <= budget);
    let is_free = |segment: &&senesce_defrag::Segment| !matches!(segment.content, senesce_defrag::Content::Owned { .. });
    let before: u64 = segments.iter().filter(is_free).map(|segment| segment.length).sum();
    let after: u64 = moves.free_after(&segments).iter().map(|(_, length)| length).sum();
    assert_eq!(before, after, "free space is lost or won");
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(input) = input(&mut Unstructured::new(bytes)) {
        check(input);
    }
});
