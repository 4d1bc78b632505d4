//! Result tables of a bundle with changed bytes: they are read, or refused, within bounded memory.
//!
//! The first byte of an input chooses the table that the changes apply to.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use senesce_fuzz::patches::patch;
use senesce_store::{
    CellKey, CellRow, CircumstanceRow, FORMAT, FileLimits, MapRow, Results, Role, RunInfo, Table, TableFile,
};

const LIMITS: FileLimits = FileLimits { rows: 10_000, text_bytes: 1 << 20 };

/// Tables with numbers, texts, texts that may be absent, and without rows.
fn tables() -> &'static (Vec<u8>, Vec<TableFile>) {
    static TABLES: OnceLock<(Vec<u8>, Vec<TableFile>)> = OnceLock::new();
    TABLES.get_or_init(|| {
        let key = || CellKey { arm: "a".into(), file_system: "ext4".into(), role: Role::Full, pulls: 3 };
        let map = |cell: u32| MapRow {
            key: key(),
            side: 4,
            cell_bytes: 4096,
            cell: cell.into(),
            used_bytes: 1,
            free_bytes: 2,
            extents: 3,
            place: 0.5,
            path: (cell % 2 == 0).then(|| format!("file {cell}")),
        };
        let circumstance =
            |number: u32| CircumstanceRow { arm: String::new(), key: format!("key {number}"), value: "v".into() };
        let results = Results {
            run: RunInfo { format: FORMAT.to_owned(), run_name: "r".into(), ..RunInfo::default() },
            cells: vec![CellRow::without_figures(key(), "why")],
            maps: (0..16).map(map).collect(),
            circumstances: (0..20).map(circumstance).collect(),
            ..Results::default()
        };
        let run = serde_json::to_vec(&results.run).expect("the description is good");
        (run, results.to_files().expect("the tables are good"))
    })
}

/// Calls the panic hook of libFuzzer, which aborts the program, only for panics that the store does
/// not catch.
fn pass_caught_panics() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !senesce_core::is_caught_panic() {
            end(panic);
        }
    }));
}

fuzz_target!(init: pass_caught_panics(), |input: &[u8]| {
    let Some((&choice, changes)) = input.split_first() else { return };
    let (run, files) = tables();
    let changed = Table::ALL[usize::from(choice) % Table::ALL.len()];
    let find = |table: Table| {
        let file = files.iter().find(|file| file.table == table)?;
        Some(if table == changed { patch(&file.bytes, changes) } else { file.bytes.clone() })
    };
    match Results::of_files(run, find, LIMITS) {
        Ok(results) => assert!(Table::ALL.into_iter().all(|table| results.count_rows(table) as u64 <= LIMITS.rows)),
        Err(error) => drop(error.to_string()),
    }
});
