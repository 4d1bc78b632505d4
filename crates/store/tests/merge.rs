//! Merged results: bounded memory, and the same tables as their parts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use senesce_store::{
    CellKey, CellResults, CellRow, CircumstanceRow, FreeSpaceRow, Merger, ResultStore, Results, Role, RunInfo,
};

/// Counts the bytes in use and their peak.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Other tests must not allocate while one measures.
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: every call goes to the allocator of the system with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(IN_USE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The results of a task with one arm.
fn results(task: u64) -> Results {
    let key = CellKey { arm: "ext4".into(), file_system: "ext4".into(), role: Role::Empty, pulls: 1 };
    let free =
        |bucket: u64| FreeSpaceRow { key: key.clone(), bucket_bytes: 4096 << bucket, extents: task, bytes: task };
    let circumstance = CircumstanceRow { arm: "ext4".into(), key: "campaign.task".into(), value: task.to_string() };
    Results {
        cells: vec![CellRow { files: task, ..CellRow::without_figures(key.clone(), "") }],
        free_space: (0..3).map(free).collect(),
        circumstances: vec![circumstance],
        ..Results::default()
    }
}

/// Merges this number of tasks. Returns the peak of memory.
fn merge(tasks: u64) -> usize {
    let temp = tempfile::tempdir().unwrap();
    let before = IN_USE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut merger = Merger::create(&temp.path().join("results")).unwrap();
    for task in 0..tasks {
        let mut results = results(task);
        results.rename_arms(|arm| format!("{arm}.s{task}"));
        merger.push(results).unwrap();
    }
    merger.finish(&RunInfo::default()).unwrap();
    PEAK.load(Relaxed) - before
}

#[test]
fn merge_memory_does_not_grow_with_tasks() {
    let _alone = ALONE.lock().unwrap();
    // Enough for several groups of rows in every table.
    let (few, many) = (merge(20_000), merge(100_000));
    println!("peak: {few} bytes for 20,000 tasks, {many} for 100,000");
    // Only the description of the groups at the end of a file grows.
    assert!(many < few + few / 10, "{few} bytes for 20,000 tasks, {many} for 100,000");
    assert!(many < 64 << 20, "{many} bytes");
}

#[test]
fn merged_results_are_the_sum_of_their_parts() {
    let _alone = ALONE.lock().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("results");
    let mut merger = Merger::create(&dir).unwrap();
    // More rows than a group has.
    let tasks = 9_000;
    for task in 0..tasks {
        let mut results = results(task);
        results.rename_arms(|arm| format!("{arm}.s{task:05}"));
        merger.push(results).unwrap();
    }
    merger.finish(&RunInfo { run_name: "g".into(), ..RunInfo::default() }).unwrap();
    let merged = ResultStore::open_read_only(&dir).unwrap().read_all().unwrap();
    assert_eq!((merged.run.run_name.as_str(), merged.cells.len() as u64), ("g", tasks));
    for task in 0..tasks {
        let expected = results(task);
        let arm = format!("ext4.s{task:05}");
        let at = task as usize;
        assert_eq!((&merged.cells[at].key.arm, merged.cells[at].files), (&arm, task));
        let free: Vec<_> =
            merged.free_space[3 * at..3 * at + 3].iter().map(|row| (row.bucket_bytes, row.bytes)).collect();
        assert_eq!(free, expected.free_space.iter().map(|row| (row.bucket_bytes, row.bytes)).collect::<Vec<_>>());
        assert_eq!(
            (&merged.circumstances[at].arm, merged.circumstances[at].value.as_str()),
            (&arm, task.to_string().as_str())
        );
    }
}

#[test]
fn a_merge_of_one_run_is_that_run() {
    let _alone = ALONE.lock().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let (one, merged) = (temp.path().join("one"), temp.path().join("merged"));
    let mut store = ResultStore::create(&one, "run").unwrap();
    let Results { cells, free_space, circumstances, .. } = results(7);
    store.put_circumstances(&circumstances).unwrap();
    store.append_cell(&CellResults { free_space, ..CellResults::of(cells[0].clone()) }).unwrap();
    store.compact().unwrap();
    let mut merger = Merger::create(&merged).unwrap();
    merger.push(store.read_all().unwrap()).unwrap();
    merger.finish(store.run_info()).unwrap();
    for entry in fs::read_dir(&one).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_file()) {
        let other = fs::read(merged.join(entry.file_name())).unwrap();
        assert!(fs::read(entry.path()).unwrap() == other, "{:?} differs", entry.file_name());
    }
}
