//! Progress on stderr: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use senesce_core::Printable;
use senesce_experiment::{Event, Observer, Phase};

/// Shows the events of a run.
pub enum Progress {
    /// Nothing.
    Quiet,
    /// A bar that is redrawn.
    Bar(Bar),
    /// A line now and then.
    Lines(Lines),
}

/// What the bar knows.
pub struct Bar {
    bar: ProgressBar,
    heading: String,
    last_cost: String,
}

/// What plain lines know.
pub struct Lines {
    last: Option<Instant>,
    started: Instant,
    arm_started: Instant,
    from_pulls: u64,
    pulls: u64,
    last_cost: String,
}

/// Between two plain lines about steps.
const LINE_PAUSE: Duration = Duration::from_secs(5);

impl Progress {
    /// What fits the place that stderr goes to.
    pub fn for_stderr(quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
            let template = "{prefix} {bar:12} {pos}/{len} pulls  {per_sec}  ETA {eta}  {wide_msg}";
            bar.set_style(ProgressStyle::with_template(template).expect("the template is fixed and right"));
            bar.enable_steady_tick(Duration::from_millis(200));
            return Self::Bar(Bar { bar, heading: String::new(), last_cost: String::new() });
        }
        let now = Instant::now();
        Self::Lines(Lines {
            last: None,
            started: now,
            arm_started: now,
            from_pulls: 0,
            pulls: 0,
            last_cost: String::new(),
        })
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
        match event {
            Event::ArmStarted { arm, number, of, from_pulls, pulls } => {
                self.heading = format!("{arm} ({number}/{of})");
                self.last_cost.clear();
                self.bar.set_prefix(Printable::new(&self.heading).to_string());
                self.bar.reset();
                self.bar.set_length(*pulls);
                self.bar.set_position(*from_pulls);
                self.bar.reset_eta();
            }
            Event::Doing { what, role, .. } => {
                let on = role.map(|role| format!(" on {}", role.name())).unwrap_or_default();
                self.say(&format!("{what}{on}{}", self.last_cost));
            }
            Event::Step { label, pulls, capacity_bytes, free_bytes, .. } => {
                self.bar.set_position(*pulls);
                let full = fullness_percent(capacity_bytes.0, free_bytes.0);
                self.say(&format!("{label}  {full}% full{}", self.last_cost));
            }
            Event::CellDone { key, reason, grep_seconds_per_gib } => {
                self.last_cost = cost_text(key.role.name(), *grep_seconds_per_gib);
                if !reason.is_empty() {
                    self.line(&format!("{} {} at {}: invalid: {reason}", key.arm, key.role.name(), key.pulls));
                }
            }
            Event::CureStarted { role, tool, .. } => self.say(&format!("cure by {tool} on {}", role.name())),
            Event::CheckpointDone { arm, pulls, cured, phases } => {
                self.line(&checkpoint_text(arm, *pulls, *cured, phases));
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
    /// Shows a message in the bar. The text is escaped here, because the bar writes to the terminal
    /// itself.
    fn say(&self, text: &str) {
        self.bar.set_message(Printable::new(text).to_string());
    }

    /// Prints a line above the bar.
    fn line(&self, text: &str) {
        self.bar.println(Printable::new(text).to_string());
    }
}

impl Lines {
    fn show(&mut self, event: &Event) {
        match event {
            Event::ArmStarted { arm, number, of, from_pulls, pulls } => {
                self.arm_started = Instant::now();
                (self.from_pulls, self.pulls) = (*from_pulls, *pulls);
                self.last_cost.clear();
                self.line(&format!("{arm} ({number}/{of}): from pull {from_pulls} to {pulls}"));
            }
            Event::Doing { .. } => {}
            Event::Step { arm, label, pulls, capacity_bytes, free_bytes, .. } => {
                if self.last.is_some_and(|last| last.elapsed() < LINE_PAUSE) {
                    return;
                }
                let done = pulls.saturating_sub(self.from_pulls);
                let seconds = self.arm_started.elapsed().as_secs_f64();
                let rate = done as f64 / seconds.max(0.001);
                let eta = if done > 0 { format!("{:.0} s", (self.pulls - pulls) as f64 / rate) } else { "?".into() };
                let full = fullness_percent(capacity_bytes.0, free_bytes.0);
                let (total, cost) = (self.pulls, self.last_cost.clone());
                self.line(&format!(
                    "{arm}: {label}, {pulls}/{total} pulls, {rate:.1}/s, ETA {eta}, {full}% full{cost}"
                ));
            }
            Event::CellDone { key, reason, grep_seconds_per_gib } => {
                self.last_cost = cost_text(key.role.name(), *grep_seconds_per_gib);
                let what = match (reason.as_str(), grep_seconds_per_gib) {
                    ("", Some(cost)) => format!("grep {cost:.2} s/GiB"),
                    ("", None) => "measured".to_owned(),
                    (reason, _) => format!("invalid: {reason}"),
                };
                self.line(&format!("{} {} at {} pulls: {what}", key.arm, key.role.name(), key.pulls));
            }
            Event::CureStarted { arm, role, tool, pulls } => {
                self.line(&format!("{arm} {} at {pulls} pulls: cure by {tool}", role.name()));
            }
            Event::CheckpointDone { arm, pulls, cured, phases } => {
                self.line(&checkpoint_text(arm, *pulls, *cured, phases));
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
        let seconds = self.started.elapsed().as_secs_f64();
        eprintln!("[{seconds:>5.0} s] {}", Printable::new(text));
    }
}

fn fullness_percent(capacity: u64, free: u64) -> u64 {
    (capacity.saturating_sub(free) * 100).checked_div(capacity).unwrap_or(0)
}

fn cost_text(role: &str, cost: Option<f64>) -> String {
    cost.map(|cost| format!("  (last grep: {role} {cost:.2} s/GiB)")).unwrap_or_default()
}

/// Where the time since the checkpoint before went: phases of all volumes together, the longest
/// first.
fn checkpoint_text(arm: &str, pulls: u64, cured: bool, phases: &[Phase]) -> String {
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
    format!("{arm} checkpoint at {pulls} pulls{after}: {total:.0} s since the last{parts}")
}

/// A number that grows, on a terminal only: for work that is over in seconds to minutes.
pub struct Counter {
    bar: Option<ProgressBar>,
}

impl Counter {
    /// Shown if stderr is a terminal, unless the user wants no progress. `what` is counted.
    pub fn for_stderr(quiet: bool, what: &str) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = format!("{{spinner}} {{human_pos}} {what}  {{per_sec}}  {{elapsed}}");
            bar.set_style(ProgressStyle::with_template(&template).expect("the template is fixed and right"));
            bar
        });
        Self { bar }
    }

    /// Shows the count.
    pub fn show(&self, count: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(count);
        }
    }

    /// The work is over; the line goes.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A way with an end: a bar on a terminal, a line now and then elsewhere, for work of seconds to
/// hours.
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
            let template = format!("{{prefix}} {{bar:24}} {{pos}}/{{len}} {unit}  {{per_sec}}  ETA {{eta}}");
            bar.set_style(ProgressStyle::with_template(&template).expect("the template is fixed and right"));
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
                eprintln!("[{seconds:>5.0} s] {what}: {done}/{of}");
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
    fn a_checkpoint_line_sums_the_volumes_and_omits_short_phases() {
        let phase = |what: &str, seconds| Phase { what: what.into(), role: None, seconds };
        let phases = [phase("aging", 0.2), phase("grep test", 10.0), phase("hashing", 15.0), phase("grep test", 20.0)];
        let text = checkpoint_text("ext4", 100, false, &phases);
        assert_eq!(text, "ext4 checkpoint at 100 pulls: 45 s since the last (grep test 30 s, hashing 15 s)");
        assert!(checkpoint_text("ext4", 7, true, &[]).starts_with("ext4 checkpoint at 7 pulls, after the cure: "));
    }
}
