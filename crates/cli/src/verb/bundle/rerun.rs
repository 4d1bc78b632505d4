//! `senesce rerun`: runs the plan of a bundle again, and compares the results figure by figure.

use std::{env, path::Path};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::Printable;
use senesce_experiment::{
    Run,
    plan::{Plan, VolumePlan},
};
use senesce_store::Results;
use senesce_volume::install_signal_cleanup;
use serde::Serialize;

use super::{
    is_built_in,
    open::{Opened, open},
    planned::plan_again,
};
use crate::{
    args::RerunArgs,
    exit::{different, undecided, usage},
    fit::fit,
    schema::document,
    table::{render_table, tell_p},
    verb::{
        compare::{
            figures::{Kind, Missing},
            unlike::Unlike,
        },
        gate::{Again, JudgedFigure, Verdict, compare_again},
        run::{Ended, create_scratch, dry_run, execute, remove_scratch, world},
        show::read_results,
    },
};

/// The schema of the JSON output.
pub(in crate::verb) const RERUN_SCHEMA: &str = "senesce-rerun/1";

/// The JSON output of `rerun`.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct RerunDocument<'a> {
    /// The bundle.
    bundle: &'a Path,
    /// The directory of the run that is compared with it.
    run: &'a Path,
    /// The outcome.
    outcome: Outcome,
    /// The outcome in a sentence.
    text: &'a str,
    /// Circumstances in which the bundle (A) and the run (B) differ.
    unlike: &'a [Unlike],
    /// The number of figures of each kind.
    counts: Counts,
    /// Each figure of the bundle (A) and of the run (B).
    figures: Vec<Repeated<'a>>,
    /// Cells and figures that the run lacks.
    missing: &'a [Missing],
}

/// The outcome over all figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// All deterministic figures are equal.
    Equal,
    /// All deterministic figures are equal or within their tolerance.
    Within,
    /// A deterministic figure differs beyond its tolerance.
    Different,
    /// The run lacks figures, or the values of a figure do not decide.
    Undecided,
}

/// How a figure of the bundle and of the run compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// All values are equal.
    Equal,
    /// The difference is within the tolerance.
    Within,
    /// A wall time, or a figure that writeback changes. It does not decide the outcome.
    NotJudged,
    /// The values do not decide.
    Undecided,
    /// The difference is beyond the tolerance.
    Different,
}

impl State {
    fn of(figure: &JudgedFigure) -> Self {
        match figure.verdict {
            None => Self::NotJudged,
            Some(Verdict::Equal) => Self::Equal,
            Some(Verdict::Within) => Self::Within,
            Some(Verdict::Undecided) => Self::Undecided,
            // A better figure is another figure, too.
            Some(Verdict::Improved | Verdict::Regressed) => Self::Different,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Within => "within",
            Self::NotJudged => "not judged",
            Self::Undecided => "undecided",
            Self::Different => "DIFFERENT",
        }
    }
}

/// A figure of the bundle and of the run.
#[derive(Serialize, JsonSchema)]
struct Repeated<'a> {
    /// How both compare.
    state: State,
    /// The values, as of `gate`.
    #[serde(flatten)]
    figure: &'a JudgedFigure,
}

/// The number of figures of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
struct Counts {
    /// Deterministic figures that are equal.
    equal: usize,
    /// Deterministic figures within their tolerance.
    within: usize,
    /// Deterministic figures beyond their tolerance.
    different: usize,
    /// Deterministic figures whose values do not decide.
    undecided: usize,
    /// Wall times.
    wall_times: usize,
    /// Free extents, which differ between any two runs.
    free_extents: usize,
}

impl Counts {
    fn of(figures: &[JudgedFigure]) -> Self {
        let mut counts = Self::default();
        for figure in figures {
            match (State::of(figure), figure.row.kind) {
                (State::Equal, _) => counts.equal += 1,
                (State::Within, _) => counts.within += 1,
                (State::Different, _) => counts.different += 1,
                (State::Undecided, _) => counts.undecided += 1,
                (State::NotJudged, Kind::Measured) => counts.wall_times += 1,
                (State::NotJudged, _) => counts.free_extents += 1,
            }
        }
        counts
    }

    fn deterministic(self) -> usize {
        self.equal + self.within + self.different + self.undecided
    }

    fn outcome(self, missing: &[Missing]) -> Outcome {
        match self {
            Self { different: 1.., .. } => Outcome::Different,
            Self { undecided: 1.., .. } => Outcome::Undecided,
            _ if !missing.is_empty() || self.deterministic() == 0 => Outcome::Undecided,
            Self { within: 1.., .. } => Outcome::Within,
            _ => Outcome::Equal,
        }
    }
}

/// Verifies the bundle, runs its plan, and compares the results.
pub fn rerun(args: RerunArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let mut opened = open(&args.bundle, true)?;
    if args.dry_run {
        return preview_again(&mut opened, &args);
    }
    let planned = opened.plan.arms().into_iter().map(|arm| arm.name).collect();
    let (dir, results, checked) = match &args.against {
        Some(run) => (run.clone(), read_results(run)?, Ok(())),
        None => {
            let ended = run_again(&mut opened, &args, quiet)?;
            let checked = ended.check();
            (ended.dir, ended.results, checked)
        }
    };
    let first = without_input_paths(opened.results);
    let again = compare_again(first, &without_input_paths(results), &planned, "the run")?;
    let counts = Counts::of(&again.judged);
    let outcome = counts.outcome(&again.missing);
    let text = describe(counts, outcome, &again);
    match args.json {
        true => {
            let figures = again.judged.iter().map(|figure| Repeated { state: State::of(figure), figure }).collect();
            let (unlike, missing) = (&again.unlike[..], &again.missing[..]);
            let (bundle, run, text) = (&*args.bundle, &*dir, &*text);
            let parts = RerunDocument { bundle, run, outcome, text, unlike, counts, figures, missing };
            println!("{}", document(RERUN_SCHEMA, parts));
        }
        false => print!("{}", fit(&screen(&again, &text, outcome))),
    }
    // The user sees what can be compared, also if a cell of the new run is invalid.
    checked?;
    match outcome {
        Outcome::Equal | Outcome::Within => Ok(()),
        Outcome::Different => Err(different(text)),
        Outcome::Undecided => Err(undecided(text)),
    }
}

/// Removes the paths of input files and the hash of the plan from results. `rerun` writes its own
/// paths into the plan, so paths and hash differ between equal runs. The hashes of the inputs stay.
fn without_input_paths(mut results: Results) -> Results {
    let is_path = |key: &str, value: &str| match key {
        "plan.hash" | "workload.replay.log" | "workload.replay.repo" => true,
        "history.origin" => !value.starts_with("synthetic "),
        _ => false,
    };
    results.circumstances.retain(|row| !(row.arm.is_empty() && is_path(&row.key, &row.value)));
    results
}

/// Prints what the plan of the bundle would do. Its files are in a temporary directory meanwhile.
fn preview_again(opened: &mut Opened, args: &RerunArgs) -> Result<()> {
    let planned = plan_again(opened, args)?;
    let scratch = create_scratch(&env::temp_dir())?;
    let files = planned.write_files(opened, &scratch);
    let plan = planned.with_files_in(&scratch);
    let previewed = files.and_then(|()| dry_run(&plan, &args.bundle, &planned.out, (false, args.trust_repo)));
    remove_scratch(&scratch);
    previewed
}

/// Runs the plan of the bundle.
fn run_again(opened: &mut Opened, args: &RerunArgs, quiet: bool) -> Result<Ended> {
    let planned = plan_again(opened, args)?;
    let out = &planned.out;
    let place = std::path::absolute(out).with_context(|| format!("cannot look up {}", out.display()))?;
    let run = Run::create(planned.with_files_in(&place), &args.bundle, out, false, world(args.trust_repo)?)?;
    planned.write_files(opened, &place)?;
    let ended = execute(run, quiet)?;
    if !args.json {
        ended.print();
        println!();
    }
    Ok(ended)
}

/// The plan with the repository of the user, and with its images in the directory of the run. The
/// plan is a stranger's: it must not choose a device, a directory or a file of this machine.
///
/// Errors: the plan names a device, a directory, or a file that the bundle does not have.
pub(super) fn localize(mut plan: Plan, repo: Option<&str>, is_input: impl Fn(&str) -> bool) -> Result<Plan> {
    let volumes = &mut plan.volumes;
    volumes.dir = None;
    let places = [("full", &volumes.full), ("empty", &volumes.empty), ("unaged", &volumes.unaged)];
    if let Some((role, _)) = places.into_iter().find(|(_, volume)| matches!(volume, VolumePlan::Place(_))) {
        let message = format!("volumes.{role} of the plan is a device or a directory of the machine that ran it");
        let hint =
            "unpack plan.toml, name a device of this machine in it, and use `senesce run`; then `rerun --against RUN`";
        return Err(usage(message, Some(hint)));
    }
    if let (Some(ours), Some(replay)) = (repo, &mut plan.workload.replay) {
        // The log may name a repository that the plan does not.
        replay.repo.get_or_insert_with(|| ours.to_owned());
    }
    let mut repos: Vec<&mut String> = plan.history.repo.iter_mut().collect();
    repos.extend(plan.workload.replay.iter_mut().filter_map(|replay| replay.repo.as_mut()));
    match (repo, repos.first()) {
        (Some(_), None) => {
            let name = &plan.name;
            return Err(usage(format!("--repo: the plan {name} replays no repository"), Some("leave --repo out")));
        }
        (None, Some(theirs)) => {
            let message = format!("the plan replays the repository {theirs}, which is not in the bundle");
            return Err(usage(message, Some("name your copy of it with --repo")));
        }
        (Some(ours), Some(_)) => repos.into_iter().for_each(|repo| ours.clone_into(repo)),
        (None, None) => {}
    }
    let is_known = |text: &str| repo == Some(text) || is_input(text) || is_built_in(text);
    match plan.files().into_iter().find(|text| !is_known(text)) {
        Some(text) => {
            let message = format!("the plan reads {text}, which is not in the bundle");
            Err(usage(message, Some("make the bundle with --inputs")))
        }
        None => Ok(plan),
    }
}

/// The outcome in a sentence.
fn describe(counts: Counts, outcome: Outcome, again: &Again) -> String {
    let all = counts.deterministic();
    match outcome {
        Outcome::Equal => format!("all {all} deterministic figures are equal"),
        Outcome::Within => {
            format!(
                "of {all} deterministic figures, {} are equal and {} within their tolerance",
                counts.equal, counts.within
            )
        }
        Outcome::Different => {
            let worst = again.judged.iter().find(|figure| State::of(figure) == State::Different);
            let first = worst.map(|figure| format!(": {} {}", figure.row.name(), figure.change())).unwrap_or_default();
            let number = counts.different;
            format!("{number} of {all} deterministic figures differ by more than their tolerance{first}")
        }
        Outcome::Undecided => match again.missing.first() {
            Some(missing) => format!("the run lacks {} of the bundle. The first is {missing}", again.missing.len()),
            None if all == 0 => "the bundle has no deterministic figure".to_owned(),
            None => format!("the values of {} of {all} deterministic figures do not decide", counts.undecided),
        },
    }
}

/// The text for stdout: first the circumstances that differ, then the figures.
fn screen(again: &Again, outcome_text: &str, outcome: Outcome) -> String {
    let mut text = String::new();
    for unlike in &again.unlike {
        let line = unlike.text("the bundle", "the run");
        text.push_str(&format!("unlike: {}\n", Printable::new(&line)));
    }
    let mut lines = vec![["state", "figure", "bundle", "run", "change", "tolerance"].map(str::to_owned).to_vec()];
    let is_shown = |figure: &&JudgedFigure| figure.row.kind != Kind::Measured && State::of(figure) != State::Equal;
    let mut shown: Vec<&JudgedFigure> = again.judged.iter().filter(is_shown).collect();
    shown.sort_by_key(|figure| std::cmp::Reverse(State::of(figure)));
    for figure in shown {
        let (a, b) = figure.medians();
        let tolerance = match State::of(figure) {
            State::NotJudged => String::new(),
            _ => format!("{}%", figure.tolerance_percent),
        };
        let row =
            [State::of(figure).word().to_owned(), figure.row.name(), number(a), number(b), figure.change(), tolerance];
        lines.push(row.to_vec());
    }
    if lines.len() > 1 {
        text.push_str(&render_table(&lines));
        text.push('\n');
    }
    text.push_str(&wall_times(again));
    for missing in &again.missing {
        text.push_str(&format!("not compared: {missing}\n"));
    }
    let counts = Counts::of(&again.judged);
    text.push_str(&format!(
        "{} deterministic figures: {} equal, {} within their tolerance, {} undecided, {} different\n",
        counts.deterministic(),
        counts.equal,
        counts.within,
        counts.undecided,
        counts.different
    ));
    if matches!(outcome, Outcome::Equal | Outcome::Within) {
        text.push_str(&format!("rerun: {outcome_text}\n"));
    }
    text
}

/// Wall times: with statistics, or the reason why they are not comparable.
fn wall_times(again: &Again) -> String {
    let times: Vec<&JudgedFigure> = again.judged.iter().filter(|figure| figure.row.kind == Kind::Measured).collect();
    if times.is_empty() {
        return String::new();
    }
    let of_machine = |unlike: &&Unlike| ["kernel", "machine", "device", "load"].contains(&unlike.group);
    if let Some(unlike) = again.unlike.iter().find(of_machine) {
        let key = Printable::new(&unlike.key);
        return format!("{} wall times are not comparable: {key} differs\n", times.len());
    }
    let is_enough = |figure: &&&JudgedFigure| figure.row.comparison.as_ref().is_some_and(|found| found.is_enough());
    let enough: Vec<_> = times.iter().filter(is_enough).collect();
    let mut text = String::new();
    if !enough.is_empty() {
        let mut lines = vec![["wall time", "run/bundle", "95% interval", "p"].map(str::to_owned).to_vec()];
        for figure in &enough {
            let Some(compared) = &figure.row.comparison else { continue };
            let interval = format!("{:.3}..{:.3}", compared.ratio_low, compared.ratio_high);
            lines.push(vec![figure.row.name(), format!("{:.3}", compared.ratio), interval, tell_p(compared)]);
        }
        text.push_str(&render_table(&lines));
        text.push('\n');
    }
    let few = times.len() - enough.len();
    if few > 0 {
        text.push_str(&format!("{few} wall times are not comparable: they have fewer than four values on a side\n"));
    }
    text
}

/// Formats a number with its important digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "format = \"senesce-plan/1\"\nname = \"x\"\n[history]\nHISTORY\n[measure]\ndevices = [\"DEVICE\"]\n\
                        [volumes]\nempty = EMPTY\ndir = \"/srv/theirs\"\n[[file_system]]\nkind = \"ext4\"\n";

    fn plan(history: &str, device: &str, empty: &str) -> Plan {
        let text = PLAN.replace("HISTORY", history).replace("DEVICE", device).replace("EMPTY", empty);
        Plan::parse_kept(Path::new("x.toml"), &text).unwrap_or_else(|error| panic!("{error}"))
    }

    const SYNTHETIC: &str = "synthetic = { files = 9, commits = 9 }";

    #[test]
    fn a_stranger_chooses_no_place_of_this_machine() {
        let refused = |plan: Plan, repo: Option<&str>| localize(plan, repo, |text| text == "slow.toml").unwrap_err();
        let said = |plan, repo| format!("{:#}", refused(plan, repo));
        let device = plan(SYNTHETIC, "hdd-7200", "{ device = \"/dev/sdb\" }");
        assert!(said(device, None).contains("volumes.empty of the plan is a device"));
        let file = plan(SYNTHETIC, "/etc/shadow", "\"1GiB\"");
        assert!(said(file, None).contains("reads /etc/shadow, which is not in the bundle"));
        let theirs = plan("repo = \"/root/secret\"", "hdd-7200", "\"1GiB\"");
        assert!(said(theirs.clone(), None).contains("replays the repository /root/secret"));
        let none = plan(SYNTHETIC, "hdd-7200", "\"1GiB\"");
        assert!(said(none.clone(), Some("mine")).contains("replays no repository"));

        let ours = localize(theirs, Some("mine"), |_| false).unwrap();
        assert_eq!((ours.history.repo.as_deref(), ours.volumes.dir), (Some("mine"), None));
        localize(none, None, |_| false).unwrap();
        localize(plan(SYNTHETIC, "slow.toml", "\"1GiB\""), None, |text| text == "slow.toml").unwrap();
    }

    #[test]
    fn a_lacking_figure_is_no_success() {
        let equal = Counts { equal: 3, ..Counts::default() };
        assert_eq!(equal.outcome(&[]), Outcome::Equal);
        assert_eq!(Counts { within: 1, ..equal }.outcome(&[]), Outcome::Within);
        assert_eq!(Counts { undecided: 1, ..equal }.outcome(&[]), Outcome::Undecided);
        assert_eq!(Counts { different: 1, undecided: 1, ..equal }.outcome(&[]), Outcome::Different);
        assert_eq!(Counts::default().outcome(&[]), Outcome::Undecided);
        let missing = Missing::new(&["xfs", "full", "40"], "the run did not measure it");
        assert_eq!(equal.outcome(&[missing]), Outcome::Undecided);
    }
}
