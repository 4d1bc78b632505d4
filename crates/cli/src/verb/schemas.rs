//! The JSON schemas of all outputs of the laboratory.

use senesce_bundle::{BUNDLE_FORMAT, Manifest};
use senesce_defrag::DEFRAG_SCHEMA;
use senesce_experiment::suite::{SUITE_RESULTS_SCHEMA, SuiteResults};
use senesce_fragment::{FilePlan, FileReport, FreePlan, FreeReport, TreePlan, TreeReport};
use senesce_inspect::INSPECT_SCHEMA;
use senesce_oplog::LogSummary;
use senesce_store::{FORMAT, RunInfo};
use serde_json::Value;

use super::{
    age::{AGE_SCHEMA, AgeDocument},
    bench, bundle, campaign, compare, defrag, defrag_space, device, export, forecast,
    fragment::{self, Planned, Reached},
    gate,
    grep::{GREP_SCHEMA, GrepDocument},
    image::{IMAGE_LIST_SCHEMA, ImageListDocument},
    inspect::InspectionDocument,
    kernels,
    log::LOG_STAT_SCHEMA,
    profile::{PROFILE_DIFF_SCHEMA, ProfileDiffDocument},
    report::{RUN_OF_FIGURES_FORMAT, RunOfFigures},
    trace::{TRACE_SCHEMA, TraceDocument},
};
use crate::{
    args::SchemaOf,
    schema::{Versioned, schema_of},
};

/// The JSON schema of an output. `None` for inputs, and for outputs of the file systems of this
/// project.
pub fn output_schema(of: SchemaOf) -> Option<Value> {
    Some(match of {
        SchemaOf::Age => schema_of::<Versioned<AgeDocument<'static>>>(AGE_SCHEMA),
        SchemaOf::Baseline => schema_of::<gate::BaselineDocument>(gate::BASELINE_FORMAT),
        SchemaOf::Bench => schema_of::<Versioned<bench::BenchDocument>>(bench::SCHEMA),
        SchemaOf::Bmf => schema_of::<gate::BencherMetrics>("Bencher Metric Format"),
        SchemaOf::Bundle => schema_of::<Manifest>(BUNDLE_FORMAT),
        SchemaOf::BundleCheck => schema_of::<Versioned<bundle::CheckDocument>>(bundle::CHECK_SCHEMA),
        SchemaOf::CampaignStatus => schema_of::<Versioned<campaign::StatusDocument>>(campaign::CAMPAIGN_STATUS_SCHEMA),
        SchemaOf::Compare => schema_of::<Versioned<compare::ComparisonDocument<'static>>>(compare::COMPARE_SCHEMA),
        SchemaOf::Defrag => schema_of::<defrag::Report>(DEFRAG_SCHEMA),
        SchemaOf::DefragSpace => schema_of::<defrag_space::Report>(defrag_space::SCHEMA),
        SchemaOf::Devices => schema_of::<Versioned<device::DevicesDocument>>(device::DEVICES_SCHEMA),
        SchemaOf::Events => export::events_schema(),
        SchemaOf::Figures => schema_of::<RunOfFigures>(RUN_OF_FIGURES_FORMAT),
        SchemaOf::Forecast => schema_of::<Versioned<forecast::ForecastDocument>>(forecast::FORECAST_SCHEMA),
        SchemaOf::FragmentFile => schema_of::<Versioned<Reached<FileReport>>>(fragment::FILE_SCHEMA),
        SchemaOf::FragmentFilePlan => schema_of::<Versioned<Planned<FilePlan>>>(fragment::FILE_PLAN_SCHEMA),
        SchemaOf::FragmentFreeSpace => schema_of::<Versioned<Reached<FreeReport>>>(fragment::FREE_SPACE_SCHEMA),
        SchemaOf::FragmentFreeSpacePlan => schema_of::<Versioned<Planned<FreePlan>>>(fragment::FREE_SPACE_PLAN_SCHEMA),
        SchemaOf::FragmentTree => schema_of::<Versioned<Reached<TreeReport>>>(fragment::TREE_SCHEMA),
        SchemaOf::FragmentTreePlan => schema_of::<Versioned<Planned<TreePlan>>>(fragment::TREE_PLAN_SCHEMA),
        SchemaOf::Gate => schema_of::<Versioned<gate::GateDocument<'static>>>(gate::GATE_SCHEMA),
        SchemaOf::Grep => schema_of::<Versioned<GrepDocument>>(GREP_SCHEMA),
        SchemaOf::ImageList => schema_of::<Versioned<ImageListDocument>>(IMAGE_LIST_SCHEMA),
        SchemaOf::Inspect => schema_of::<InspectionDocument>(INSPECT_SCHEMA),
        SchemaOf::Kernels => schema_of::<Versioned<kernels::Listing>>(kernels::KERNELS_SCHEMA),
        SchemaOf::LogStat => schema_of::<Versioned<LogSummary>>(LOG_STAT_SCHEMA),
        SchemaOf::ProfileDiff => schema_of::<Versioned<ProfileDiffDocument>>(PROFILE_DIFF_SCHEMA),
        SchemaOf::Rerun => schema_of::<Versioned<bundle::RerunDocument<'static>>>(bundle::RERUN_SCHEMA),
        SchemaOf::Results => export::results_schema(),
        SchemaOf::Run => schema_of::<RunInfo>(FORMAT),
        SchemaOf::SmallIsBetter => schema_of::<Vec<gate::SmallIsBetter>>("github-action-benchmark, smaller is better"),
        SchemaOf::SuiteResults => schema_of::<SuiteResults>(SUITE_RESULTS_SCHEMA),
        SchemaOf::Trace => schema_of::<Versioned<TraceDocument>>(TRACE_SCHEMA),
        SchemaOf::Transfer => schema_of::<Versioned<device::TransferDocument>>(device::TRANSFER_SCHEMA),
        _ => return None,
    })
}
