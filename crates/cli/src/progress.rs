//! Progress on stderr: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

mod eta;
mod watch;

use std::{
    cell::Cell,
    io::IsTerminal,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use senesce_core::Printable;
use senesce_experiment::{Event, GrepCost, Observer, Phase};
use senesce_store::Role;

use self::{
    eta::{Kind, Work},
    watch::Watch,
};
use crate::fit::stderr_columns;

/// Shows the events of a run.
pub enum Progress {
    /// Nothing.
    Quiet,
    /// A bar that is redrawn.
    Bar(Bar),
    /// A line now and then.
    Lines(Lines),
}

/// The state of the bar.
pub struct Bar {
    bar: ProgressBar,
    /// Whether the current work comes first: a narrow terminal cuts the end of the message.
    is_narrow: bool,
    work: Work,
    last_cost: String,
}

/// The state of plain lines.
pub struct Lines {
    last: Option<Instant>,
    watch: Watch,
    work: Work,
    last_cost: String,
}

/// Between two plain lines about steps.
const LINE_PAUSE: Duration = Duration::from_secs(5);
/// A narrower terminal has no bar.
const WIDE: usize = 100;
/// The length of the bar of a run.
const THOUSANDTHS: u64 = 1000;

impl Progress {
    /// What fits the place that stderr goes to.
    pub fn for_stderr(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        let now = Instant::now();
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(THOUSANDTHS), ProgressDrawTarget::stderr());
            // A narrow terminal has no space for the bar and the current work.
            let is_narrow = stderr_columns().is_some_and(|columns| columns < WIDE);
            let template = if is_narrow { "{prefix}  {wide_msg}" } else { "{prefix} {bar:12} {wide_msg}" };
            bar.set_style(ProgressStyle::with_template(template).expect("the template is fixed and right"));
            bar.enable_steady_tick(Duration::from_millis(200));
            *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
            return Self::Bar(Bar { bar, is_narrow, work: Work::new(now), last_cost: String::new() });
        }
        Self::Lines(Lines { last: None, watch: Watch::new(now), work: Work::new(now), last_cost: String::new() })
    }
}

/// The bar of the run on the terminal of this process.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

impl Drop for Bar {
    fn drop(&mut self) {
        // Otherwise a later note would draw the bar again.
        *BAR.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Prints that this process waits for another process. Prints it even if the user wants no
/// progress, because only the user can end that process.
pub fn note_wait(text: &str) {
    let print = || eprintln!("senesce: {}", Printable::new(text));
    match &*BAR.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

impl Progress {
    /// Shows a line that is no event of the run.
    pub fn note(&self, text: &str) {
        match self {
            Self::Quiet => {}
            Self::Bar(bar) => bar.line(text),
            Self::Lines(lines) => lines.print(text),
        }
    }

    /// Shows work outside of the arms that can take long.
    pub fn begin(&self, what: &str) {
        match self {
            Self::Quiet => {}
            Self::Bar(bar) => bar.say(what),
            Self::Lines(lines) => {
                lines.watch.set_doing(format!("run: {what}"));
                lines.print(what);
            }
        }
    }
}

impl Observer for Progress {
    fn on_event(&mut self, event: &Event) {
        match self {
            Self::Quiet => {}
            Self::Bar(bar) => bar.show(event),
            Self::Lines(lines) => lines.show(event),
        }
    }
}

impl Bar {
    fn show(&mut self, event: &Event) {
        self.work.count(event, Instant::now());
        match event {
            Event::ArmStarted { arm, number, of, .. } => {
                self.last_cost.clear();
                self.bar.set_prefix(Printable::new(&format!("{arm} ({number}/{of})")).to_string());
                self.say("");
            }
            Event::Doing { what, role, .. } => {
                self.say(&format!("{}{}", doing_text(what, *role), self.last_cost));
            }
            Event::Step { label, capacity_bytes, free_bytes, .. } => {
                let full = fullness_percent(capacity_bytes.0, free_bytes.0);
                self.say(&format!("{label}, {full}% full{}", self.last_cost));
            }
            Event::CellDone { key, reason, grep } => {
                self.last_cost = last_cost_text(key.role.name(), *grep);
                if !reason.is_empty() {
                    let unit = self.work.unit;
                    self.line(&format!("{} {} at {} {unit}: invalid: {reason}", key.arm, key.role.name(), key.pulls));
                }
            }
            Event::CureStarted { role, tool, .. } => self.say(&format!("cure by {tool} on {}", role.name())),
            Event::CheckpointDone { arm, pulls, cured, phases } => {
                self.line(&checkpoint_text(arm, (*pulls, self.work.unit), *cured, phases));
            }
            Event::Warning { arm, message } => self.line(&format!("{arm}: warning: {message}")),
            Event::ArmDone { arm, reason } => {
                let how = if reason.is_empty() { "done".to_owned() } else { format!("failed: {reason}") };
                self.line(&format!("{arm}: {how}"));
            }
        }
    }
}

impl Bar {
    /// Shows the counters and a message in the bar. The text is escaped here, because the bar
    /// writes to the terminal itself.
    fn say(&self, text: &str) {
        self.bar.set_position((self.work.share() * THOUSANDTHS as f64) as u64);
        let message = match self.is_narrow {
            true if text.is_empty() => self.work.text(),
            true => format!("{text}, {}", self.work.text()),
            false => format!("{}  {text}", self.work.text()),
        };
        self.bar.set_message(Printable::new(&message).to_string());
    }

    /// Prints a line above the bar.
    fn line(&self, text: &str) {
        self.bar.println(Printable::new(text).to_string());
    }
}

impl Lines {
    fn show(&mut self, event: &Event) {
        self.work.count(event, Instant::now());
        let unit = self.work.unit;
        if let Some(doing) = doing_after(event) {
            self.watch.set_doing(doing);
        }
        match event {
            Event::ArmStarted { arm, number, of, from_pulls, pulls, cells, .. } => {
                self.last_cost.clear();
                self.line(&format!("{arm} ({number}/{of}): {unit} {from_pulls} to {pulls}, {cells} measurements"));
            }
            Event::Doing { .. } => {}
            Event::Step { arm, label, capacity_bytes, free_bytes, .. } => {
                if self.last.is_some_and(|last| last.elapsed() < LINE_PAUSE) {
                    return;
                }
                let full = fullness_percent(capacity_bytes.0, free_bytes.0);
                let (work, cost) = (self.work.text(), self.last_cost.clone());
                self.line(&format!("{arm}: {label}, {work}, {full}% full{cost}"));
            }
            Event::CellDone { key, reason, grep } => {
                self.last_cost = last_cost_text(key.role.name(), *grep);
                let what = match (reason.as_str(), grep) {
                    ("", Some(cost)) => format!("grep {}", cost_text(*cost)),
                    ("", None) => "measured".to_owned(),
                    (reason, _) => format!("invalid: {reason}"),
                };
                let work = self.work.text();
                self.line(&format!("{} {} at {} {unit}: {what} ({work})", key.arm, key.role.name(), key.pulls));
            }
            Event::CureStarted { arm, role, tool, pulls } => {
                self.line(&format!("{arm} {} at {pulls} {unit}: cure by {tool}", role.name()));
            }
            Event::CheckpointDone { arm, pulls, cured, phases } => {
                self.line(&checkpoint_text(arm, (*pulls, unit), *cured, phases));
            }
            Event::Warning { arm, message } => self.line(&format!("{arm}: warning: {message}")),
            Event::ArmDone { arm, reason } => {
                let how = if reason.is_empty() { "done".to_owned() } else { format!("failed: {reason}") };
                self.line(&format!("{arm}: {how}"));
            }
        }
    }

    fn line(&mut self, text: &str) {
        self.last = Some(Instant::now());
        self.print(text);
    }

    fn print(&self, text: &str) {
        self.watch.print(text);
    }
}

/// `mkfs on full`.
fn doing_text(what: &str, role: Option<Role>) -> String {
    let on = role.map(|role| format!(" on {}", role.name())).unwrap_or_default();
    format!("{what}{on}")
}

/// Returns the work of the run after an event. `None`: the event does not change it.
fn doing_after(event: &Event) -> Option<String> {
    match event {
        Event::ArmStarted { arm, .. } => Some(format!("{arm}: preparing the volumes")),
        Event::Doing { arm, what, role } => Some(format!("{arm}: {}", doing_text(what, *role))),
        Event::Step { arm, .. } | Event::CheckpointDone { arm, .. } => Some(format!("{arm}: aging")),
        Event::CureStarted { arm, role, tool, .. } => Some(format!("{arm}: cure by {tool} on {}", role.name())),
        Event::ArmDone { .. } => Some("run: writing the results".to_owned()),
        Event::CellDone { .. } | Event::Warning { .. } => None,
    }
}

/// `12 s`, `3 min 5 s`, `2 h 7 min`.
pub fn format_eta(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn fullness_percent(capacity: u64, free: u64) -> u64 {
    (capacity.saturating_sub(free) * 100).checked_div(capacity).unwrap_or(0)
}

fn last_cost_text(role: &str, cost: Option<GrepCost>) -> String {
    cost.map(|cost| format!("  (last grep: {role} {})", cost_text(cost))).unwrap_or_default()
}

/// A cost and its clock.
fn cost_text(cost: GrepCost) -> String {
    let clock = if cost.is_virtual { "virtual" } else { "wall" };
    format!("{:.2} s/GiB of {clock} time", cost.seconds_per_gib)
}

/// Where the time since the checkpoint before went: phases of all volumes together, the longest
/// first.
fn checkpoint_text(arm: &str, (pulls, unit): (u64, &str), cured: bool, phases: &[Phase]) -> String {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for phase in phases {
        match sums.iter_mut().find(|(what, _)| *what == phase.what) {
            Some((_, seconds)) => *seconds += phase.seconds,
            None => sums.push((&phase.what, phase.seconds)),
        }
    }
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let total: f64 = sums.iter().map(|(_, seconds)| seconds).sum();
    // What takes less than half a second is not worth its place in the line.
    let parts: Vec<_> = sums.iter().filter(|sum| sum.1 >= 0.5).map(|(what, s)| format!("{what} {s:.0} s")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let after = if cured { ", after the cure" } else { "" };
    format!("{arm} checkpoint at {pulls} {unit}{after}: {total:.0} s since the last{parts}")
}

/// A growing number: a bar on a terminal, a line at most every [`LINE_PAUSE`] elsewhere.
pub struct Counter {
    what: String,
    of: Option<u64>,
    bar: Option<ProgressBar>,
    /// When the last line was printed. `None` on a terminal and if the user wants no progress.
    last: Option<Cell<Instant>>,
}

/// Units per second, without decimals.
fn rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = write!(text, "{}/s", HumanCount(state.per_sec().round() as u64));
}

impl Counter {
    /// Shown unless the user wants no progress. `what` names the counted things. `of` is the
    /// approximate total if it is known; the bar then has an ETA.
    pub fn for_stderr(quiet: bool, what: &str, of: Option<u64>) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && is_terminal).then(|| {
            let bar = ProgressBar::with_draw_target(of, ProgressDrawTarget::stderr());
            let template = match of {
                Some(_) => format!("{{bar:12}} {{human_pos}} of about {{human_len}} {what}  {{rate}}  ETA {{eta}}"),
                None => format!("{{spinner}} {{human_pos}} {what}  {{rate}}  {{elapsed}}"),
            };
            let style = ProgressStyle::with_template(&template).expect("the template is fixed and right");
            bar.set_style(style.with_key("rate", rate));
            bar
        });
        let last = (!quiet && !is_terminal).then(|| Cell::new(Instant::now()));
        Self { what: what.to_owned(), of, bar, last }
    }

    /// Shows the count.
    pub fn show(&self, count: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(count);
        }
        if let Some(last) = self.last.as_ref().filter(|last| last.get().elapsed() >= LINE_PAUSE) {
            last.set(Instant::now());
            eprintln!("{}", self.line(count));
        }
    }

    /// `1,200 of about 46,750 entries`.
    fn line(&self, count: u64) -> String {
        let of = self.of.map(|of| format!(" of about {}", HumanCount(of))).unwrap_or_default();
        format!("{}{of} {}", HumanCount(count), self.what)
    }

    /// Removes the line.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Work with a known total: a bar on a terminal, a line now and then elsewhere.
pub struct Stretch {
    what: String,
    done: u64,
    of: u64,
    shown: Shown,
}

enum Shown {
    Nothing,
    Bar(ProgressBar),
    Lines { started: Instant, last: Instant },
}

impl Stretch {
    /// Of `of` that are counted in `unit`; `what` is done to them.
    pub fn for_stderr(quiet: bool, what: &str, unit: &str, of: u64) -> Self {
        let now = Instant::now();
        let shown = if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(of), ProgressDrawTarget::stderr());
            let template = format!("{{prefix}} {{bar:24}} {{pos}}/{{len}} {unit}  {{rate}}  ETA {{eta}}");
            let style = ProgressStyle::with_template(&template).expect("the template is fixed and right");
            bar.set_style(style.with_key("rate", rate));
            bar.set_prefix(what.to_owned());
            Shown::Bar(bar)
        } else {
            Shown::Lines { started: now, last: now }
        };
        Self { what: format!("{what}, {unit}"), done: 0, of, shown }
    }

    /// Shows nothing, for what is over at once.
    pub fn hidden() -> Self {
        Self::for_stderr(true, "", "", 0)
    }

    /// Adds to the units that are done.
    pub fn add(&mut self, more: u64) {
        self.reach(self.done + more);
    }

    /// Sets the units that are done.
    pub fn reach(&mut self, done: u64) {
        self.done = done;
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar.set_position(done),
            Shown::Lines { started, last } if last.elapsed() >= LINE_PAUSE => {
                *last = Instant::now();
                let (what, of, seconds) = (&self.what, self.of, started.elapsed().as_secs_f64());
                let left = Kind::at(done, of, seconds).seconds_left();
                let eta = left.map_or("?".to_owned(), format_eta);
                eprintln!("[{seconds:>5.0} s] {what}: {done}/{of}, ETA {eta}");
            }
            Shown::Lines { .. } => {}
        }
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_names_its_clock() {
        let cost = |is_virtual| cost_text(GrepCost { seconds_per_gib: 27.987, is_virtual });
        assert_eq!(cost(true), "27.99 s/GiB of virtual time");
        assert_eq!(cost(false), "27.99 s/GiB of wall time");
    }

    #[test]
    fn counter_has_a_line_off_a_terminal() {
        let counter = |of| Counter::for_stderr(true, "entries", of);
        assert_eq!(counter(Some(46_750)).line(1200), "1,200 of about 46,750 entries");
        assert_eq!(counter(None).line(7), "7 entries");
    }

    #[test]
    fn work_changes_with_the_phase_and_the_arm() {
        let doing = Event::Doing { arm: "xfs".into(), what: "hashing the tree".into(), role: Some(Role::Full) };
        assert_eq!(doing_after(&doing), Some("xfs: hashing the tree on full".to_owned()));
        let checkpoint = Event::CheckpointDone { arm: "xfs".into(), pulls: 1, cured: false, phases: Vec::new() };
        assert_eq!(doing_after(&checkpoint), Some("xfs: aging".to_owned()));
        let done = Event::ArmDone { arm: "xfs".into(), reason: String::new() };
        assert_eq!(doing_after(&done), Some("run: writing the results".to_owned()));
        assert_eq!(doing_after(&Event::Warning { arm: "xfs".into(), message: "w".into() }), None);
    }

    #[test]
    fn a_checkpoint_line_sums_the_volumes_and_omits_short_phases() {
        let phase = |what: &str, seconds| Phase { what: what.into(), role: None, seconds };
        let phases = [phase("aging", 0.2), phase("grep test", 10.0), phase("hashing", 15.0), phase("grep test", 20.0)];
        let text = checkpoint_text("ext4", (100, "pulls"), false, &phases);
        assert_eq!(text, "ext4 checkpoint at 100 pulls: 45 s since the last (grep test 30 s, hashing 15 s)");
        assert!(
            checkpoint_text("ext4", (7, "pulls"), true, &[])
                .starts_with("ext4 checkpoint at 7 pulls, after the cure: ")
        );
    }
}
