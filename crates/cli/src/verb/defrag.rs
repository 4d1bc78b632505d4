//! `senesce defrag`: the order of files and the pieces of large ones, restored.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use senesce_core::{Bytes, Clock, Nanos, Printable};
use senesce_defrag::{
    Advice, Applied, ApplyOptions, Gain, Left, LeftWhy, Order, Plan, Share, Skip, StepFigures, Strategy, Tree, Worth,
    apply_plan, collect_tree, compute_advice, find_mover, place_moves, plan_moves, predict_costs,
};
use senesce_device::DeviceSpec;
use senesce_inspect::{ModelOptions, MoveCost};
use senesce_volume::{install_signal_cleanup, interrupted};
use serde::Serialize;

use super::{
    defrag_space::defrag_space,
    inspect::choose_devices,
    pressure::{InFlight, is_quiet_for_a_pause},
};
use crate::{
    args::DefragArgs,
    clock::SystemClock,
    exit::{failed, usage},
    fit::fit,
    machine::count_threads,
    progress::{Counter, Stretch},
    table::render_table,
};

/// Bytes that move between two pauses.
const PAUSE_EVERY_BYTES: u64 = 8 << 20;
/// Below this share of the predicted gain, the result explains why.
const LEAST_REACHED: f64 = 0.8;
/// Bytes that count for a step that moves none, such as a reservation.
const LEAST_STEP_BYTES: u64 = 4096;

/// Plans the moves, prints the gain, and moves the files if that is worth it.
pub fn defrag(args: DefragArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    check_directory(&args.path)?;
    if args.idle {
        senesce_volume::set_idle_priority().context("cannot lower the I/O priority")?;
    }
    if args.free_space {
        return defrag_space(&args, quiet);
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let (mut mover, mut options) = find_mover(&args.path, args.programs)?;
    let (judge, devices) = choose_devices(&args.device, &args.path)?;
    let threads = count_threads(args.threads);
    let stop = || interrupted().is_some();
    let counter = Counter::for_stderr(quiet, "entries", None);
    let tree = collect_tree(&args.path, threads, &stop).map_err(interrupted_or)?;
    counter.finish();
    let files = args.order.apply(&tree)?;
    options.piece_bytes = args.piece_size.0;
    options = options.with_strategies(&args.strategy);
    let whole = args.budget.map(|_| plan_moves(&tree.entries, &files, &options));
    if let Some(budget) = args.budget {
        // A batch that is larger than the budget could not move at all.
        options.batch_bytes =
            options.batch_bytes.min(budget.0 - budget.0 % options.block_bytes).max(options.block_bytes);
    }
    let mut plan = plan_moves(&tree.entries, &files, &options);
    if let Some(budget) = args.budget {
        plan.limit(budget.0);
    }
    let model = Model { devices: &devices, threads };
    let reading = args.order.reading(&tree, &files);
    let mut advice = advise(&tree, &plan, (&model, &reading), judge.models())?;
    // A part of a large tree gains little. Runs with a budget would never begin.
    if let (Worth::No, Some(whole)) = (advice.worth, &whole) {
        advice.worth = advise(&tree, whole, (&model, &reading), judge.models())?.worth;
    }
    if !args.json {
        print!("{}", fit(&advice_screen(&args, &advice, files.len())));
    }
    warn_of(&tree);
    let is_wanted = advice.worth == Worth::Yes || args.force || args.resume;
    let stays = args.dry_run || advice.worth == Worth::NothingToMove || !is_wanted;
    if stays {
        let worth = advice.worth;
        if args.json {
            print_json(&Report { advice, applied: None })?;
        }
        return if args.dry_run { Ok(()) } else { explain_stay(worth, &args) };
    }
    let applied = {
        let mut bar = Stretch::for_stderr(quiet, "moving", "MiB", plan.bytes() >> 20);
        let mut pace = Pace::new(&args, &*clock);
        let options = ApplyOptions {
            pace: &mut |bytes| pace.may_continue(bytes),
            progress: &mut |bytes| bar.reach(bytes >> 20),
            clock: &*clock,
        };
        apply_plan(&tree, &plan, &mut *mover, options)?
    };
    // The report is not lost if the tree cannot be listed again, or if a signal stops that.
    let after = collect_tree(&args.path, threads, &stop).map_err(interrupted_or).and_then(|after| {
        let files = args.order.apply(&after)?;
        model.costs(&after, &args.order.reading(&after, &files), &[])
    });
    let seconds = clock.now().as_secs_f64();
    let (after, failure) = match after {
        Ok(after) => (after, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    // Files that changed, or for which there is no space, are no failure of the file system.
    let is_refusal = |why: &Skip| matches!(why, Skip::NotSupported | Skip::Refused | Skip::Failed);
    let is_in_vain = applied.files == 0 && !applied.skipped.is_empty() && applied.skipped.keys().all(is_refusal);
    let applied = Done { applied, seconds, after };
    if args.json {
        print_json(&Report { advice, applied: Some(applied) })?;
    } else {
        print!("{}", fit(&done_screen(&advice, &applied)));
    }
    if let Some(signal) = interrupted() {
        return Err(senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into());
    }
    if is_in_vain {
        return Err(failed("no file could be moved"));
    }
    failure.map_or(Ok(()), Err)
}

/// Reports what of the tree could not be read.
pub(super) fn warn_of(tree: &Tree) {
    let figures = &tree.figures;
    if let Some(first) = figures.errors.first() {
        eprintln!(
            "senesce: warning: {} entries could not be read and stay, the first: cannot {} {}: {}",
            figures.errors_count,
            first.operation,
            Printable::new(&first.path),
            Printable::new(&first.message)
        );
    }
    if figures.mounts_passed > 0 {
        eprintln!("senesce: warning: {} other mounts below were not entered", figures.mounts_passed);
    }
}

/// The whole result as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Report {
    #[serde(flatten)]
    advice: Advice,
    /// The result of the moves. `None` if nothing was moved: a dry run, a refusal, nothing to move.
    applied: Option<Done>,
}

/// The result of the moves.
#[derive(Serialize, JsonSchema)]
struct Done {
    #[serde(flatten)]
    applied: Applied,
    /// Wall time of the whole command, seconds.
    seconds: f64,
    /// The modelled cost of a cold read after the moves, for each device. Empty if the tree could
    /// not be read again.
    after: Vec<MoveCost>,
}

/// How costs are modelled.
struct Model<'a> {
    devices: &'a [DeviceSpec],
    threads: usize,
}

impl Model<'_> {
    /// The costs of reading the entries of the tree in this order.
    fn costs(&self, tree: &Tree, reading: &[usize], pieces: &[senesce_defrag::Piece]) -> Result<Vec<MoveCost>> {
        let stop = || interrupted().is_some();
        let options = ModelOptions {
            devices: self.devices,
            read_ahead_kib: senesce_inspect::DEFAULT_READ_AHEAD_KIB,
            volume_bytes: 0,
            map_order: 0,
            threads: self.threads,
            stop: &stop,
        };
        predict_costs(tree, reading, pieces, &options).map_err(interrupted_or)
    }
}

/// Places the batches into the free space, and models what that gains.
fn advise(tree: &Tree, plan: &Plan, (model, reading): (&Model<'_>, &[usize]), devices: usize) -> Result<Advice> {
    let places = place_moves(tree, plan, &|| interrupted().is_some()).map_err(interrupted_or)?;
    let costs_of = |strategy: Option<Strategy>| {
        let is_chosen = |at: &usize| strategy.is_none_or(|strategy| plan.batches[*at].strategy == strategy);
        let chosen = (0..places.len()).filter(is_chosen).filter_map(|at| places[at].as_ref());
        model.costs(tree, reading, &chosen.flatten().copied().collect::<Vec<_>>())
    };
    let mut strategies: Vec<Share> =
        Strategy::ALL.into_iter().filter_map(|strategy| Share::of(strategy, plan, &places)).collect();
    let costs = costs_of(None)?;
    match strategies.as_mut_slice() {
        [only] => only.costs.clone_from(&costs),
        several => {
            for share in several {
                share.costs = costs_of(Some(share.strategy))?;
            }
        }
    }
    Ok(compute_advice(plan, strategies, costs, devices))
}

/// Errors: the path is no directory. For an image or device, the file system that stores the file
/// would be judged instead.
fn check_directory(path: &Path) -> Result<()> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    if found.is_dir() {
        return Ok(());
    }
    let shown = Printable::new(path);
    let kind = if found.is_file() { "a file" } else { "a device" };
    let hint =
        format!("mount its file system, and name a directory of the mount; `senesce inspect {shown}` needs no mount");
    Err(usage(format!("cannot move the files of {shown}: it is {kind}, and a directory is needed"), Some(&hint)))
}

/// Plans a run with the default options, for `senesce inspect`.
///
/// Errors: the file system moves no files; the tree cannot be listed. Cost: one more survey, and
/// two models of a read.
pub(super) fn advise_on(path: &Path, devices: &[DeviceSpec], models: usize, threads: usize) -> Result<Advice> {
    let (_, options) = find_mover(path, false)?;
    let tree = collect_tree(path, threads, &|| interrupted().is_some()).map_err(interrupted_or)?;
    let files = Order::Readdir.apply(&tree)?;
    let plan = plan_moves(&tree.entries, &files, &options);
    let reading = Order::Readdir.reading(&tree, &files);
    advise(&tree, &plan, (&Model { devices, threads }, &reading), models)
}

/// Prints why no file was moved. If there is nothing to do, that is no error.
///
/// Errors: the user must decide, because the kind of disk is not known.
fn explain_stay(worth: Worth, args: &DefragArgs) -> Result<()> {
    match worth {
        Worth::Yes | Worth::NothingToMove => Ok(()),
        Worth::No if args.json => Ok(()),
        Worth::No => {
            println!("nothing was moved; --force moves the files anyway");
            Ok(())
        }
        Worth::Undecided => Err(usage(
            "nothing was moved: the kind of this disk is not known, and the moves are worth it only on some kinds",
            Some("name the disk's model (--device hdd-7200), or move the files anyway (--force)"),
        )),
    }
}

/// When to continue, to wait and to stop.
pub(super) struct Pace<'a> {
    clock: &'a dyn Clock,
    end: Option<Nanos>,
    is_idle: bool,
    since_pause: u64,
    in_flight: InFlight,
}

impl<'a> Pace<'a> {
    /// `clock` counts from the start of the command.
    pub(super) fn new(args: &DefragArgs, clock: &'a dyn Clock) -> Self {
        let end = args.max_seconds.map(|seconds| Nanos(seconds.saturating_mul(1_000_000_000)));
        // The first step waits, too.
        Self { clock, end, is_idle: args.idle, since_pause: PAUSE_EVERY_BYTES, in_flight: InFlight::of(&args.path) }
    }

    /// Whether the next step may run, of `bytes`. Waits while others need the disk.
    pub(super) fn may_continue(&mut self, bytes: u64) -> bool {
        self.since_pause += bytes.max(LEAST_STEP_BYTES);
        while self.is_idle && self.since_pause >= PAUSE_EVERY_BYTES && self.may_run() {
            // Requests in flight are from other programs, or from the write-back of the last step.
            // Another step would delay both.
            if is_quiet_for_a_pause() && !self.in_flight.has_requests() {
                self.since_pause = 0;
            }
        }
        self.may_run()
    }

    fn may_run(&self) -> bool {
        interrupted().is_none() && self.end.is_none_or(|end| self.clock.now() < end)
    }
}

/// A stop that a signal caused is reported as the signal.
pub(super) fn interrupted_or(error: senesce_defrag::Error) -> anyhow::Error {
    match interrupted() {
        Some(signal) => senesce_experiment::Error::from(senesce_experiment::Interrupted { signal }).into(),
        None => error.into(),
    }
}

fn print_json(report: &Report) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(report)?);
    Ok(())
}

fn advice_screen(args: &DefragArgs, advice: &Advice, files: usize) -> String {
    let path = Printable::new(&args.path).to_string();
    let mut text = match advice.worth {
        Worth::NothingToMove if args.strategy.contains(&Strategy::Order) => {
            format!("{path}: no file to move in {} order\n", args.order)
        }
        Worth::NothingToMove => format!("{path}: no shattered range to move\n"),
        Worth::Yes if !advice.gains.iter().any(|gain| gain.is_worth) => {
            format!("{path}: worth it as a whole, and the budget moves a part\n")
        }
        Worth::Yes => format!("{path}: worth it\n"),
        Worth::No => format!("{path}: not worth it\n"),
        Worth::Undecided => format!("{path}: worth it on some kinds of disk, and the kind of this one is not known\n"),
    };
    if advice.worth != Worth::NothingToMove {
        text.push_str(&format!(
            "to move         {} of {} files, {} of {} ({:.2} bytes written for each live byte)\n                {} free space needed at a time; {} -> {} runs of adjacent blocks in {} order\n",
            advice.files,
            files,
            Bytes(advice.moved_bytes),
            Bytes(advice.live_bytes),
            advice.moved_bytes as f64 / advice.live_bytes.max(1) as f64,
            Bytes(advice.space_bytes),
            advice.pieces_now,
            advice.pieces_after,
            args.order,
        ));
        if advice.unplaced_bytes > 0 {
            text.push_str(&format!(
                "cannot move     {}: no free space is large enough to bring them into fewer pieces\n",
                Bytes(advice.unplaced_bytes)
            ));
        }
        if advice.strategies.len() > 1 {
            text.push_str(&strategy_table(&advice.strategies));
        }
        let mut lines =
            vec![words(["cold read (models)", "now", "after", "metadata", "moving", "pays back after", ""])];
        lines.extend(advice.gains.iter().map(gain_line));
        text.push_str(&render_table(&lines));
    }
    text + &left_lines(&advice.left)
}

/// A line for each reason why files stay.
pub(super) fn left_lines(left: &BTreeMap<LeftWhy, Left>) -> String {
    let line = |(why, left): (&LeftWhy, &Left)| format!("{} {} ({})", left.files, why.words(), Bytes(left.bytes));
    let lines: Vec<String> = left.iter().filter(|(_, left)| left.files > 0).map(line).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("left alone      {}\n", lines.join("\n                ")),
    }
}

/// The strategies, the best one first, with the gain on the first device if each were alone.
fn strategy_table(strategies: &[Share]) -> String {
    let mut lines = vec![words(["strategy", "to write", "pieces", "if alone"])];
    lines.extend(strategies.iter().map(|share| {
        let cost = share.costs.first();
        vec![
            share.strategy.to_string(),
            Bytes(share.moved_bytes).to_string(),
            format!("{} -> {}", share.pieces_now, share.pieces_after),
            cost.map_or(String::new(), |cost| {
                format!("{} s -> {} s", figure(cost.now_seconds), figure(cost.after_seconds))
            }),
        ]
    }));
    render_table(&lines)
}

fn words<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn gain_line(gain: &Gain) -> Vec<String> {
    let seconds = |seconds: f64| format!("{} s", figure(seconds));
    vec![
        gain.cost.device.clone(),
        seconds(gain.cost.now_seconds),
        seconds(gain.cost.after_seconds),
        gain.cost.metadata_seconds.map_or("–".to_owned(), seconds),
        seconds(gain.move_seconds),
        gain.reads_to_pay_back.map_or("never".to_owned(), |reads| format!("{} reads", figure(reads))),
        if gain.is_worth { "worth it" } else { "not worth it" }.to_owned(),
    ]
}

fn done_screen(advice: &Advice, done: &Done) -> String {
    let Done { applied, seconds, after } = done;
    let mut text = format!(
        "moved           {} files, {} written, {} s{}\n",
        applied.files,
        Bytes(applied.written_bytes),
        figure(*seconds),
        if applied.is_stopped { "; stopped early, --resume continues" } else { "" },
    );
    text.push_str(&steps_line(applied));
    let mut lines = vec![words(["cold read (models)", "before", "now", "predicted"])];
    for (gain, after) in advice.gains.iter().zip(after) {
        let seconds = |seconds: f64| format!("{} s", figure(seconds));
        lines.push(vec![
            gain.cost.device.clone(),
            seconds(gain.cost.now_seconds),
            seconds(after.now_seconds),
            seconds(gain.cost.after_seconds),
        ]);
    }
    text.push_str(&render_table(&lines));
    text.push_str(&skipped_lines(applied));
    if let Some(share) = reached_share(advice, after).filter(|share| *share < LEAST_REACHED)
        && applied.skipped.keys().any(|why| matches!(why, Skip::NoBetterSpace | Skip::NoSpace))
    {
        text.push_str(&format!(
            "reached         {:.0}% of the predicted gain: the free space is in too many pieces; free some space, or join it (--free-space)\n",
            share * 100.0
        ));
    }
    text
}

/// The gain that was reached, as a share of the predicted one, on the device of the tree. `None` if
/// no gain was predicted, or the tree was not read again.
fn reached_share(advice: &Advice, after: &[MoveCost]) -> Option<f64> {
    let (cost, after) = (&advice.gains.first()?.cost, after.first()?);
    let predicted = cost.now_seconds - cost.after_seconds;
    (predicted > 0.0).then(|| ((cost.now_seconds - after.now_seconds) / predicted).max(0.0))
}

/// Renders the number and the times of the steps that held the locks of a file.
pub(super) fn steps_line(applied: &Applied) -> String {
    let StepFigures { calls, p99_seconds, longest_seconds, .. } = applied.steps;
    let millis = |seconds: f64| format!("{} ms", figure(seconds * 1e3));
    match calls {
        0 => String::new(),
        _ => format!(
            "held locks      {calls} times, at most {}; 99% at most {}\n",
            millis(longest_seconds),
            millis(p99_seconds)
        ),
    }
}

/// A line for each reason why files were skipped.
pub(super) fn skipped_lines(applied: &Applied) -> String {
    let line = |(why, skipped): (&Skip, &senesce_defrag::Skipped)| {
        format!("skipped         {} {}: {}\n", skipped.files, why.words(), skipped.examples.join(", "))
    };
    applied.skipped.iter().map(line).collect()
}

/// Three digits.
pub(super) fn figure(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}
