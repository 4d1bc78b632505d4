//! Arguments of `schema`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The kind of file or output; --help lists all. Default: plan.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = SchemaOf::Plan, hide_default_value = true, hide_possible_values = true)]
    pub of: SchemaOf,
    /// Print the keys of a plan as Markdown.
    #[arg(long, conflicts_with = "of")]
    pub markdown: bool,
}

/// All kinds, one in a line. The short help of clap would list them, too.
pub fn list_kinds() -> String {
    let values = SchemaOf::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.fold("Kinds:\n".to_owned(), |list, value| {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        list + &format!("  {:24}  {help}\n", value.get_name())
    })
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
    /// The grid of `campaign plan`.
    Grid,
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
    /// The file `manifest.json` of a bundle.
    Bundle,
    /// `verify-bundle --json`.
    BundleCheck,
    /// `campaign status --json`.
    CampaignStatus,
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
    /// The file of `fs mount --figures`.
    EvergreenFigures,
    /// `inspect --tree --json`.
    EvergreenTree,
    /// The file `figures.json` of `report --figures`.
    Figures,
    /// `forecast --json`.
    Forecast,
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
    /// `fs check --json` of a garden.
    FsCheck,
    /// `fs check --json` of an evergreen.
    FsCheckEvergreen,
    /// `fs clean --json`.
    FsClean,
    /// `fs clone --json`.
    FsClone,
    /// `fs dedup --json`.
    FsDedup,
    /// `fs defrag --json` of a garden.
    FsDefrag,
    /// `fs defrag --json` of an evergreen.
    FsDefragEvergreen,
    /// `fs diff --json`.
    FsDiff,
    /// `fs dump --json`.
    FsDump,
    /// `fs figures`.
    FsFigures,
    /// `fs replace --json` and `fs rebuild --json`.
    FsRebuild,
    /// `fs recompact --json`.
    FsRecompact,
    /// `fs check --repair --json` of an evergreen.
    FsRepairEvergreen,
    /// `fs check --repair --json` of a garden.
    FsRepairGarden,
    /// `fs scrub --json`.
    FsScrub,
    /// `fs snapshot create --json`, also `delete` and `restore`.
    FsSnapshot,
    /// `fs snapshot list --json`.
    FsSnapshots,
    /// `fs stat --json` of a garden.
    FsStat,
    /// `fs stat --json` of an evergreen.
    FsStatEvergreen,
    /// `fs tier --json`.
    FsTier,
    /// `fs volume delete --json`.
    FsVolume,
    /// `fs volume list --json`.
    FsVolumes,
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
    /// `garden reproduce --json`.
    Reproduction,
    /// `rerun --json`.
    Rerun,
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

impl SchemaOf {
    /// Whether the output is one of a file system of this project.
    pub fn is_of_engine(self) -> bool {
        matches!(
            self,
            Self::EvergreenFigures
                | Self::EvergreenTree
                | Self::FsCheck
                | Self::FsCheckEvergreen
                | Self::FsClean
                | Self::FsClone
                | Self::FsDedup
                | Self::FsDefrag
                | Self::FsDefragEvergreen
                | Self::FsDiff
                | Self::FsDump
                | Self::FsFigures
                | Self::FsRebuild
                | Self::FsRecompact
                | Self::FsRepairEvergreen
                | Self::FsRepairGarden
                | Self::FsScrub
                | Self::FsSnapshot
                | Self::FsSnapshots
                | Self::FsStat
                | Self::FsStatEvergreen
                | Self::FsTier
                | Self::FsVolume
                | Self::FsVolumes
                | Self::Reproduction
        )
    }
}
