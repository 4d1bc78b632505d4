//! Arguments of `schema`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The kind of file or output. Default: plan.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = SchemaOf::Plan, hide_default_value = true)]
    pub of: SchemaOf,
    /// Print the keys of a plan as Markdown.
    #[arg(long, conflicts_with = "of")]
    pub markdown: bool,
}

/// The kinds of files and outputs that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// The plan of `run`.
    Plan,
    /// The plan of `bench --suite`.
    Suite,
    /// The personality of `bench --personality`.
    Personality,
    /// The metrics of `inspect --metrics`, as Markdown.
    Metrics,
    /// `age --json`.
    Age,
    /// The baseline of `gate --save-baseline`.
    Baseline,
    /// `bench --json`.
    Bench,
    /// `gate --bmf`, the format of Bencher.
    Bmf,
    /// `compare --json`.
    Compare,
    /// `defrag --json`.
    Defrag,
    /// `defrag --free-space --json`.
    DefragSpace,
    /// `device list --json`.
    Devices,
    /// A line of a run's `events.ndjson`.
    Events,
    /// The file `figures.json` of `report --figures`.
    Figures,
    /// `fragment --json` of a file.
    FragmentFile,
    /// `fragment --dry-run --json` of a file.
    FragmentFilePlan,
    /// `fragment --free-space --json`.
    FragmentFreeSpace,
    /// `fragment --free-space --dry-run --json`.
    FragmentFreeSpacePlan,
    /// `fragment --json` of a directory.
    FragmentTree,
    /// `fragment --dry-run --json` of a directory.
    FragmentTreePlan,
    /// `gate --json`.
    Gate,
    /// A line of `grep --json`.
    Grep,
    /// `image list --json`.
    ImageList,
    /// `inspect --json`.
    Inspect,
    /// `kernels --json`.
    Kernels,
    /// `log stat --json`.
    LogStat,
    /// `profile diff --json`.
    ProfileDiff,
    /// `export --json` and `show --json`.
    Results,
    /// The file `run.json` of a run.
    Run,
    /// `gate --small-is-better`, the format of github-action-benchmark.
    SmallIsBetter,
    /// The file `results.json` of `bench --suite`.
    SuiteResults,
    /// `trace --json`.
    Trace,
    /// `device calibrate --json`.
    Transfer,
}
