//! The tables: their meaning, their columns, and the conversion between rows and columns.

use serde::Serialize;

use crate::{
    AgingRow, CellKey, CellRow, CircumstanceRow, CureRow, Error, FreeSpaceRow, GrepRow, LatencyRow, LayoutRow, LoadRow,
    MapRow, ModelledRow, Role, StepRow, TraceBucketRow, TraceRow,
};

pub(crate) use crate::parquet_file::{Budget, decode, decode_plain, encode, encode_plain};

/// A table of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// One row per cell.
    Cells,
    /// One row per repetition of the grep test.
    Grep,
    /// One row per repetition of the grep test: the other work of the machine.
    Load,
    /// One row per cell: static layout.
    Layout,
    /// One row per cell, device and method: modelled cost.
    Modelled,
    /// One row per cell and access: the requests of a traced grep test.
    Trace,
    /// One row per cell, access, histogram and bucket of a trace.
    TraceBuckets,
    /// One row per cell of a volume's map.
    Maps,
    /// One row per cell and bucket of free extents.
    FreeSpace,
    /// One row per cell of an aged volume: its aging.
    Aging,
    /// One row per cell of an aged volume and kind of operation: latencies.
    Latency,
    /// One row per step that aged a volume.
    Steps,
    /// One row per cure of a volume and modelled device.
    Cures,
    /// Keys and values.
    Circumstances,
}

impl Table {
    /// Every table.
    pub const ALL: [Table; 14] = [
        Table::Cells,
        Table::Grep,
        Table::Load,
        Table::Layout,
        Table::Modelled,
        Table::Trace,
        Table::TraceBuckets,
        Table::Maps,
        Table::FreeSpace,
        Table::Aging,
        Table::Latency,
        Table::Steps,
        Table::Cures,
        Table::Circumstances,
    ];
    /// The tables with rows for a cell.
    pub(crate) const OF_CELLS: [Table; 13] = [
        Table::Cells,
        Table::Grep,
        Table::Load,
        Table::Layout,
        Table::Modelled,
        Table::Trace,
        Table::TraceBuckets,
        Table::Maps,
        Table::FreeSpace,
        Table::Aging,
        Table::Latency,
        Table::Steps,
        Table::Cures,
    ];

    /// The table's name, which is also the stem of its file.
    pub fn name(self) -> &'static str {
        match self {
            Table::Cells => "cells",
            Table::Grep => "grep",
            Table::Load => "load",
            Table::Layout => "layout",
            Table::Modelled => "modelled",
            Table::Trace => "trace",
            Table::TraceBuckets => "trace_buckets",
            Table::Maps => "maps",
            Table::FreeSpace => "free_space",
            Table::Aging => "aging",
            Table::Latency => "latency",
            Table::Steps => "steps",
            Table::Cures => "cures",
            Table::Circumstances => "circumstances",
        }
    }

    /// The meaning of a row.
    pub fn description(self) -> &'static str {
        match self {
            Table::Cells => "One row per cell, valid or not.",
            Table::Grep => "One row per repetition of the grep test on a cell.",
            Table::Load => {
                "One row per repetition of the grep test: the other work of the machine during it. A repetition is disturbed \
                 if one of these causes lasted for at least 0.05 s. Other processes used more than 20% of all processors. \
                 Tasks waited for a processor for over 10% of the time, beyond the waiting that senesce and the kernel explain. \
                 The hypervisor took more than 5% of a processor. Tasks waited for memory for more than 5% of the time. \
                 A repetition is also disturbed if the drives moved more than 10% of the test's own bytes, and 4 MiB, for others."
            }
            Table::Layout => "One row per cell: the static layout of its files, from their extents.",
            Table::Modelled => {
                "One row per cell, device and method: what a cold read costs on a described device. A model, not a \
                 measurement."
            }
            Table::Trace => {
                "Two rows per cell, reads and writes: the requests to the block device in one cold grep test. Only if \
                 the plan asks for it (`measure.trace`)."
            }
            Table::TraceBuckets => "The histograms of table `trace`; buckets without requests may be absent.",
            Table::Maps => "One row per cell of the map of a volume that has anything in it.",
            Table::FreeSpace => "One row per cell and bucket of free extents; buckets without extents may be absent.",
            Table::Aging => "One row per cell of an aged volume: what was done since the checkpoint before.",
            Table::Latency => {
                "One row per cell of an aged volume and kind of operation: how long the operations took since the \
                 checkpoint before, as the issuing thread saw them. None if the git binary did them."
            }
            Table::Steps => {
                "One row per step since the checkpoint before, of every aged volume; those that only synchronise have none."
            }
            Table::Cures => {
                "One row per cure of a volume and modelled device: what the tool did, and the cost of a cold read before and after. Only if the plan has cures (`file_system.cure`)."
            }
            Table::Circumstances => "Everything a figure depends on, as keys and values.",
        }
    }

    /// The table's columns, in order.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Table::Cells => columns_of::<CellRow>(),
            Table::Grep => columns_of::<GrepRow>(),
            Table::Load => columns_of::<LoadRow>(),
            Table::Layout => columns_of::<LayoutRow>(),
            Table::Modelled => columns_of::<ModelledRow>(),
            Table::Trace => columns_of::<TraceRow>(),
            Table::TraceBuckets => columns_of::<TraceBucketRow>(),
            Table::Maps => columns_of::<MapRow>(),
            Table::FreeSpace => columns_of::<FreeSpaceRow>(),
            Table::Aging => columns_of::<AgingRow>(),
            Table::Latency => columns_of::<LatencyRow>(),
            Table::Steps => columns_of::<StepRow>(),
            Table::Cures => columns_of::<CureRow>(),
            Table::Circumstances => columns_of::<CircumstanceRow>(),
        }
    }
}

impl std::str::FromStr for Table {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self, Error> {
        Table::ALL
            .into_iter()
            .find(|table| table.name() == name)
            .ok_or_else(|| Error::UnknownTable { name: name.to_owned(), known: Table::ALL.map(Table::name).join(", ") })
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8.
    Text,
    /// The same; null if there is no text.
    OptionalText,
    /// Unsigned 64-bit integer.
    UInt64,
    /// The same; null if there is no value.
    OptionalUInt64,
    /// 64-bit floating point; null if there is no value (NaN in rows).
    Float64,
    /// True or false.
    Boolean,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; ends in the unit if it has one.
    pub name: &'static str,
    /// Its type.
    pub column_type: ColumnType,
    /// Its unit; `1` for counts and shares; empty for text and booleans.
    pub unit: &'static str,
    /// Its meaning.
    pub description: &'static str,
}

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    OptionalText(Option<String>),
    UInt64(u64),
    OptionalUInt64(Option<u64>),
    Float64(f64),
    Boolean(bool),
}

/// A row type of a table.
pub(crate) trait TableRow: Sized {
    const TABLE: Table;
    /// The columns after those of the key.
    const COLUMNS: &'static [Column];
    /// The cell of the row; none for a table without cells.
    fn key(&self) -> Option<&CellKey>;
    /// The cell of the row, to change it.
    fn key_mut(&mut self) -> Option<&mut CellKey>;
    /// The values of `COLUMNS`.
    fn values(&self) -> Vec<Value>;
    /// The row from its values; `key` is given if the table has cells.
    fn from_values(key: Option<CellKey>, values: &mut Values) -> Option<Self>;
}

/// The values of one row, read one after the other; `None` if a value has another type.
pub(crate) struct Values(pub(crate) std::vec::IntoIter<Value>);

impl Values {
    pub(crate) fn text(&mut self) -> Option<String> {
        if let Some(Value::Text(value)) = self.0.next() { Some(value) } else { None }
    }
    pub(crate) fn optional_text(&mut self) -> Option<Option<String>> {
        if let Some(Value::OptionalText(value)) = self.0.next() { Some(value) } else { None }
    }
    pub(crate) fn uint(&mut self) -> Option<u64> {
        if let Some(Value::UInt64(value)) = self.0.next() { Some(value) } else { None }
    }
    pub(crate) fn optional_uint(&mut self) -> Option<Option<u64>> {
        if let Some(Value::OptionalUInt64(value)) = self.0.next() { Some(value) } else { None }
    }
    pub(crate) fn float(&mut self) -> Option<f64> {
        if let Some(Value::Float64(value)) = self.0.next() { Some(value) } else { None }
    }
    pub(crate) fn boolean(&mut self) -> Option<bool> {
        if let Some(Value::Boolean(value)) = self.0.next() { Some(value) } else { None }
    }
}

const fn column(name: &'static str, t: ColumnType, unit: &'static str, description: &'static str) -> Column {
    Column { name, column_type: t, unit, description }
}

const KEY_COLUMNS: [Column; 4] = [
    column("arm", ColumnType::Text, "", "The arm: one file system with its options under one variant of the workload."),
    column(
        "file_system",
        ColumnType::Text,
        "",
        "The file system: `ext4`, `xfs`, `btrfs`, `garden`, `evergreen`; `host` for whatever holds a directory.",
    ),
    column(
        "role",
        ColumnType::Text,
        "",
        "Which volume: `full`, `empty` or `unaged`; after a cure `cured-full` or `cured-empty`.",
    ),
    column("pulls", ColumnType::UInt64, "1", "The checkpoint, as the number of counted steps (pulls) done before it."),
];

pub(crate) fn columns_of<R: TableRow>() -> Vec<Column> {
    let key: &[Column] = if R::TABLE == Table::Circumstances { &[] } else { &KEY_COLUMNS };
    key.iter().chain(R::COLUMNS).copied().collect()
}

pub(crate) fn values_of<R: TableRow>(row: &R) -> Vec<Value> {
    let mut values = Vec::new();
    if let Some(key) = row.key() {
        values.push(Value::Text(key.arm.clone()));
        values.push(Value::Text(key.file_system.clone()));
        values.push(Value::Text(key.role.name().to_owned()));
        values.push(Value::UInt64(key.pulls));
    }
    values.extend(row.values());
    values
}

pub(crate) fn row_of<R: TableRow>(values: Vec<Value>) -> Option<R> {
    let mut values = Values(values.into_iter());
    let key = if R::TABLE == Table::Circumstances {
        None
    } else {
        Some(CellKey {
            arm: values.text()?,
            file_system: values.text()?,
            role: Role::of_name(&values.text()?)?,
            pulls: values.uint()?,
        })
    };
    R::from_values(key, &mut values)
}

/// Declares a row type's columns next to each other: name, kind, unit, description.
macro_rules! table_row {
    ($row:ident, $table:ident, $($key:ident)?; $($field:ident: $kind:ident, $unit:literal, $description:literal;)*) => {
        impl TableRow for $row {
            const TABLE: Table = Table::$table;
            const COLUMNS: &'static [Column] =
                &[$(column(stringify!($field), table_row!(@type $kind), $unit, $description)),*];
            fn key(&self) -> Option<&CellKey> {
                table_row!(@key self $($key)?)
            }
            fn key_mut(&mut self) -> Option<&mut CellKey> {
                table_row!(@key_mut self $($key)?)
            }
            fn values(&self) -> Vec<Value> {
                vec![$(table_row!(@type_value $kind)(self.$field.clone())),*]
            }
            fn from_values(_key: Option<CellKey>, values: &mut Values) -> Option<Self> {
                Some($row { $($key: _key?,)? $($field: values.$kind()?),* })
            }
        }
    };
    (@key $self:ident key) => { Some(&$self.key) };
    (@key $self:ident) => { None };
    (@key_mut $self:ident key) => { Some(&mut $self.key) };
    (@key_mut $self:ident) => { None };
    (@type text) => { ColumnType::Text };
    (@type optional_text) => { ColumnType::OptionalText };
    (@type uint) => { ColumnType::UInt64 };
    (@type optional_uint) => { ColumnType::OptionalUInt64 };
    (@type float) => { ColumnType::Float64 };
    (@type boolean) => { ColumnType::Boolean };
    (@type_value text) => { Value::Text };
    (@type_value optional_text) => { Value::OptionalText };
    (@type_value uint) => { Value::UInt64 };
    (@type_value optional_uint) => { Value::OptionalUInt64 };
    (@type_value float) => { Value::Float64 };
    (@type_value boolean) => { Value::Boolean };
}

table_row! { CellRow, Cells, key;
    valid: boolean, "", "Whether every step of the cell was verified; if not, its measurements must not be used.";
    reason: text, "", "Why it is invalid; empty if valid.";
    tree_hash: text, "", "Hash (hex) over paths, types, modes, sizes and contents of the tree; equal for full, empty and unaged.";
    work_tree_hash: text, "", "The same hash without anything below a `.git` directory.";
    files: uint, "1", "Files in the tree.";
    directories: uint, "1", "Directories in the tree.";
    content_bytes: uint, "B", "Sum of the files' sizes.";
    capacity_bytes: uint, "B", "What the file system can hold.";
    used_bytes: uint, "B", "Space that is not free to users: in use, or reserved.";
}
table_row! { GrepRow, Grep, key;
    repetition: uint, "1", "Repetition, from 0.";
    scanner: text, "", "`senesce` (the scanner in this program) or `grep` (GNU grep).";
    order: text, "", "Order of the walk: `readdir`, `sorted`, `inode`.";
    cache: text, "", "How the cache was made cold; `warm` if it was not.";
    wall_seconds: float, "s", "Wall time.";
    allocated_bytes: uint, "B", "Allocated size of the tree, as `du -s` has it.";
    seconds_per_gib: float, "s/GiB", "The grep cost: wall seconds per GiB of allocated size.";
    read_bytes: uint, "B", "Bytes read from files.";
    files: uint, "1", "Files read.";
    user_seconds: float, "s", "CPU time in user mode.";
    system_seconds: float, "s", "CPU time in the kernel.";
    device_read_bytes: optional_uint, "B", "Bytes of read requests to the block device during the test, from its statistics; null in a directory.";
    device_read_requests: optional_uint, "1", "Read requests the block device got during the test; null in a directory.";
    cpu_bound: boolean, "", "Whether the CPU, not the device, set the pace.";
    fuse_floor_seconds: float, "s", "The FUSE floor: wall time of the same test of the same tree from memory, through the same FUSE adapter; null for a file system of the kernel, or if it was not measured.";
}
table_row! { LoadRow, Load, key;
    repetition: uint, "1", "Repetition, as in table `grep`.";
    disturbance: text, "", "The disturbances beyond the limits, in words; empty if there were none.";
    load_average: float, "1", "Load average of the last minute, at the end of the test; recorded, not judged.";
    cpu_pressure_seconds: float, "s", "Time in which some task waited for a processor (pressure stall information).";
    io_pressure_seconds: float, "s", "Time in which some task waited for a drive, as the test itself does; recorded, not judged.";
    memory_pressure_seconds: float, "s", "Time in which some task waited for memory.";
    steal_seconds: float, "s", "Time in which the hypervisor ran another machine while a processor had work, summed over all processors.";
    own_user_seconds: float, "s", "CPU time in user mode of senesce, of its disk and file system servers, and of the tools that it ran.";
    other_user_seconds: float, "s", "CPU time in user mode of all other processes.";
    kernel_seconds: float, "s", "CPU time of all processors in the kernel, for any process.";
    processors: uint, "1", "Processors that were online; 0 if unknown.";
    own_drive_bytes: float, "B", "Bytes that the volume's own device read and wrote.";
    other_drive_bytes: float, "B", "Bytes that the drives below it read and wrote for others; missing for a directory.";
}
table_row! { LayoutRow, Layout, key;
    space: text, "", "Address space of the extents: `device` or `btrfs-logical`.";
    files: uint, "1", "Files with at least one data extent.";
    fragmented_files: uint, "1", "Files with more than one extent.";
    extents: uint, "1", "Extents of all files, neighbours merged.";
    blocks: uint, "4 KiB", "Blocks of all files.";
    extents_per_file: float, "1", "Mean extents per file.";
    layout_score: float, "1", "Aggregate layout score (Smith and Seltzer 1997), 0..1; null if no file has two blocks.";
    adjacent_files_share: float, "1", "Share (0..1) of files that start where the file before them in directory order ends.";
    path_adjacent_files_share: float, "1", "The same share for files in the order of their paths, bytewise.";
}
table_row! { ModelledRow, Modelled, key;
    device: text, "", "The device: `model: HDD 7.2K`.";
    method: text, "", "Source of the requests. `extents`: predicted from the map of the tree. `trace`: the reads of a \
        traced grep test, replayed one by one. `virtual-time`: the grep test's own requests, served by a disk in virtual time; a row for each repetition.";
    seconds: float, "s", "Modelled time of a cold read of the tree.";
    best_order_seconds: float, "s", "The same if every content followed the content that is read before it, and metadata stayed; null for methods other than `extents`, and in results of earlier versions.";
    seconds_per_gib: float, "s/GiB", "The same per GiB of allocated size.";
    requests: uint, "1", "Requests.";
    read_bytes: uint, "B", "Bytes that they read.";
}
table_row! { TraceRow, Trace, key;
    source: text, "", "The recorder: `tracefs` (the kernel), or `virtual-disk` (the log of a disk in virtual time).";
    access: text, "", "`read` or `write`; the figures are of these requests among themselves, in issue order.";
    requests: uint, "1", "Requests.";
    bytes: uint, "B", "Their bytes.";
    blocks: uint, "4 KiB", "Their blocks, rounded up for each request.";
    discontinuities: uint, "1", "Requests that do not begin where the one before ended; the first is none.";
    dynamic_layout_score: float, "1", "1 - discontinuities / blocks (FAST 2017); null without requests.";
    seek_bytes: uint, "B", "Sum of the distances from the end of a request to the start of the next.";
    blocks_per_request: float, "4 KiB", "Chain length (FAST 2019): mean blocks of a request; null without requests.";
    chains: uint, "1", "Longest rows of requests of which each begins where the one before ended.";
    blocks_per_chain: float, "4 KiB", "Mean blocks of such a row; null without requests.";
    lost_events: uint, "1", "Events of the whole trace that were lost; if not 0, requests are missing.";
}
table_row! { TraceBucketRow, TraceBuckets, key;
    access: text, "", "`read` or `write`.";
    histogram: text, "", "`request-size`; or `seek-distance`, from the end of a request to the start of the next, up or down.";
    bucket_bytes: uint, "B", "Smallest value of the bucket, a power of two, or 0 for no distance; the bucket ends below twice this. Distances are rounded up to 4 KiB.";
    requests: uint, "1", "Requests in the bucket.";
    bytes: optional_uint, "B", "Of sizes, the bytes of these requests; of distances null.";
}
table_row! { MapRow, Maps, key;
    side: uint, "1", "Cells on each side of the picture, which is a Hilbert curve.";
    cell_bytes: uint, "B", "Bytes of a cell.";
    cell: uint, "1", "The cell, counted along the volume from 0.";
    used_bytes: uint, "B", "Bytes of files in it.";
    free_bytes: uint, "B", "Free bytes in it.";
    extents: uint, "1", "Extents that lie in it at least in part.";
    place: float, "1", "Place in the tree of the file with the most bytes in it: 0 the first, 1 the last; null of metadata alone.";
    path: optional_text, "", "The path of that file (or directory) from the volume's root; null of metadata alone, and in results from before there was this column.";
}
table_row! { FreeSpaceRow, FreeSpace, key;
    bucket_bytes: uint, "B", "Smallest extent of the bucket, a power of two; the bucket ends below twice this.";
    extents: uint, "1", "Free extents in the bucket.";
    bytes: uint, "B", "Their bytes.";
}
table_row! { AgingRow, Aging, key;
    steps: uint, "1", "Steps, counted and not.";
    operations: uint, "1", "Operations.";
    written_bytes: uint, "B", "Bytes of content written.";
    no_space_steps: uint, "1", "Steps that ended for lack of space.";
    copies: uint, "1", "Copies of the repository that exist at this checkpoint.";
    wall_seconds: float, "s", "Wall time of the steps.";
    user_seconds: float, "s", "CPU time of the whole process in user mode meanwhile.";
    system_seconds: float, "s", "CPU time of the whole process in the kernel meanwhile.";
    device_written_bytes: optional_uint, "B", "Bytes of write requests to the block device, from its statistics. They are counted from the end of the checkpoint before until the volume is unmounted after its steps and their measurement, so that no write waits in memory. Null in a directory, and in results of earlier versions.";
}
table_row! { LatencyRow, Latency, key;
    operation: text, "", "`create`, `write`, `truncate`, `mkdir`, `rmdir`, `rename`, `unlink`, `symlink`, `link`, `chmod`, `remove-tree`, `fsync`, `syncfs`, `allocate`, `set-modified`, `read`; `all` for all but `fsync` and `syncfs` together.";
    operations: uint, "1", "Operations.";
    total_seconds: float, "s", "Sum of their times.";
    p50_seconds: float, "s", "Half of them took at most this; like the next two within 0.1%.";
    p99_seconds: float, "s", "99 of 100 took at most this.";
    p99_9_seconds: float, "s", "999 of 1,000 took at most this.";
    max_seconds: float, "s", "The longest; exact.";
}
table_row! { StepRow, Steps, key;
    step: uint, "1", "Its number in the operation log, from 0.";
    counted: boolean, "", "Whether it counts towards checkpoints.";
    operations: uint, "1", "Operations; 0 if the git binary did it.";
    written_bytes: uint, "B", "Bytes of content written; 0 if the git binary did it.";
    no_space: boolean, "", "Whether it ended for lack of space.";
    wall_seconds: float, "s", "Wall time of the step itself; making the contents that are written is part of it, the syncfs after it is not.";
    operation_seconds: float, "s", "What of it passed within the operations but `fsync` and `syncfs`; null if the git binary did it.";
    sync_seconds: float, "s", "Time of its own `fsync` and `syncfs`, and of the syncfs that the plan may ask for after every step (`measure.sync_steps`); null if there was none of them.";
    disk_seconds: float, "s", "Modelled time that a disk in virtual time was at work during the step and the syncfs that the plan may ask for after it; what stays in memory then comes later. Null on other volumes.";
}
table_row! { CureRow, Cures, key;
    tool: text, "", "`senesce`, `e4defrag`, `xfs_fsr` or `btrfs`.";
    strategies: text, "", "The strategies of `senesce`, with commas; empty for other tools.";
    written_bytes: optional_uint, "B", "Bytes of write requests to the block device, from its statistics, from the start of the tool until the volume was unmounted after it.";
    wall_seconds: float, "s", "Wall time of the tool, and of the write-back and the unmount after it.";
    disk_seconds: float, "s", "Modelled time that a disk in virtual time was at work meanwhile; null on other volumes.";
    moved_files: optional_uint, "1", "Files that moved, in whole or in part; null if the tool does not report them.";
    skipped_files: optional_uint, "1", "Files that cannot move, and files that were to move and did not; null if the tool does not report them.";
    skipped: text, "", "Their reasons, each with its number of files; empty if there are none.";
    device: text, "", "The modelled device of the next three columns.";
    modelled_before_seconds: float, "s", "Modelled time of a cold read before the cure, from the map of the tree; null if it was not modelled.";
    predicted_seconds: float, "s", "The time after the cure that `senesce` predicted before it moved a file; null for other tools.";
    modelled_after_seconds: float, "s", "Modelled time of a cold read after the cure, from the map of the tree; null if it was not modelled.";
    read_before_seconds: float, "s", "Median time of the grep test before the cure: virtual time of a disk in virtual time, else wall time; null if it was not run.";
    read_after_seconds: float, "s", "The same after the cure.";
}
table_row! { CircumstanceRow, Circumstances, ;
    arm: text, "", "The arm it belongs to; empty if it holds for the whole run.";
    key: text, "", "Dotted key.";
    value: text, "", "The value as text.";
}
