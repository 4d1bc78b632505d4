//! The gate as a JUnit report: a suite for each arm, a test for each judged figure.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};
use senesce_core::Printable;

use super::{
    Report,
    judge::{Judged, Verdict},
    screen::number,
};

/// Renders the XML.
///
/// Errors: a fault of the XML writer.
pub(super) fn render(report: &Report<'_>) -> Result<String> {
    let mut document = JunitReport::new("senesce gate");
    let mut suites: BTreeMap<String, TestSuite> = BTreeMap::new();
    let mut add = |arm: Option<&String>, case: TestCase| {
        let arm = Printable::new(arm.map_or("", String::as_str)).to_string();
        suites.entry(arm.clone()).or_insert_with(|| TestSuite::new(arm)).add_test_case(case);
    };
    for figure in report.judged.iter().filter(|figure| figure.verdict.is_some()) {
        add(figure.row.of.first(), case(figure, report.passes_undecided));
    }
    for missing in &report.missing {
        let status = status_of(NonSuccessKind::Error, "missing", "not compared", report.passes_undecided);
        add(missing.of().first(), TestCase::new(missing.to_string(), status));
    }
    document.add_test_suites(suites.into_values());
    document.to_string().context("cannot write the JUnit report")
}

/// Renders an error that left the gate without a verdict, as one test.
///
/// Errors: a fault of the XML writer.
pub(super) fn render_failure(message: &str) -> Result<String> {
    let first = message.lines().next().unwrap_or_default();
    let mut status = status_of(NonSuccessKind::Error, "no verdict", first, false);
    status.set_description(message);
    let mut suite = TestSuite::new("senesce gate");
    suite.add_test_case(TestCase::new("the gate has a verdict", status));
    let mut document = JunitReport::new("senesce gate");
    document.add_test_suite(suite);
    document.to_string().context("cannot write the JUnit report")
}

fn status_of(kind: NonSuccessKind, ty: &str, message: &str, is_skipped: bool) -> TestCaseStatus {
    let mut status = if is_skipped { TestCaseStatus::skipped() } else { TestCaseStatus::non_success(kind) };
    status.set_message(message).set_type(ty);
    status
}

fn case(figure: &Judged, passes_undecided: bool) -> TestCase {
    let (a, b) = figure.medians();
    let word = figure.verdict.map_or("", Verdict::word).to_lowercase();
    let message = format!(
        "{word}: {} -> {} ({}, tolerance {}%)",
        number(a),
        number(b),
        figure.change(),
        figure.tolerance_percent
    );
    let status = match figure.verdict {
        Some(Verdict::Regressed) => status_of(NonSuccessKind::Failure, "regression", &message, false),
        Some(Verdict::Undecided) => status_of(NonSuccessKind::Error, "undecided", &message, passes_undecided),
        _ => TestCaseStatus::success(),
    };
    let (arm, cell) = figure
        .row
        .of
        .split_first()
        .map_or((String::new(), String::new()), |(arm, rest)| (Printable::new(arm).to_string(), rest.join(" ")));
    let mut case = TestCase::new(format!("{cell} {}", Printable::new(&figure.row.figure)), status);
    case.set_classname(arm);
    case.set_system_out(message);
    case
}
