//! `senesce campaign status`: the progress of a campaign on one screen.

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use senesce_core::Printable;
use senesce_experiment::campaign::{Campaign, Progress};
use serde::Serialize;

use super::{missing_text, shell_word, slurm};
use crate::{
    clock::{SystemClock, tell_utc},
    fit::fit,
    schema::document,
    table::render_table,
    verb::run::world,
};

/// The version of the JSON output.
pub const CAMPAIGN_STATUS_SCHEMA: &str = "senesce-campaign-status/1";

/// A list on the screen has at most this number of tasks.
const MOST_LISTED: usize = 10;

/// The progress of a campaign.
#[derive(Serialize, JsonSchema)]
pub struct StatusDocument {
    name: String,
    tasks: u64,
    done: u64,
    /// Finished tasks with invalid cells. A merge leaves out the figures of these cells.
    invalid: Vec<InvalidTask>,
    running: Vec<RunningTask>,
    failed: Vec<FailedTask>,
    /// Tasks in the queue of Slurm that are not running. `None`: the campaign was not submitted, or
    /// Slurm does not answer.
    queued: Option<u64>,
    /// Tasks without a result that neither run nor failed.
    waiting: u64,
    /// Mean duration of finished tasks. `None`: no task is finished.
    mean_seconds: Option<f64>,
    /// Seconds until the last task finishes, if the number of running tasks stays the same. `None`:
    /// unknown.
    remaining_seconds: Option<f64>,
}

/// A task that runs.
#[derive(Serialize, JsonSchema)]
struct RunningTask {
    task: u64,
    host: String,
    begun_unix_seconds: u64,
}

/// A finished task with invalid cells.
#[derive(Serialize, JsonSchema)]
struct InvalidTask {
    task: u64,
    /// The number of invalid cells.
    cells: u64,
}

/// A task whose last attempt failed.
#[derive(Serialize, JsonSchema)]
struct FailedTask {
    task: u64,
    host: String,
    reason: String,
}

/// Prints the progress.
pub fn status(dir: &Path, json: bool) -> Result<()> {
    let campaign = Campaign::open(dir)?;
    let mut progress = Progress::collect(&campaign, &world(false)?)?;
    // Without a submission, the queue has no task of the campaign.
    let is_submitted = campaign.paths.logs().join("merge.sh").exists();
    let queue = is_submitted.then(|| slurm::queue(&campaign)).and_then(Result::ok);
    if let Some(queue) = &queue {
        let before = progress.running.len();
        // A node that was lost has left the states of its tasks.
        progress.running.retain(|running| {
            running.is_alive == Some(true) || queue.tasks.iter().any(|queued| queued.task == running.task)
        });
        progress.waiting += (before - progress.running.len()) as u64;
    }
    let document = StatusDocument {
        name: campaign.name().to_owned(),
        tasks: progress.tasks,
        done: progress.done,
        invalid: progress
            .invalid
            .iter()
            .map(|invalid| InvalidTask { task: invalid.task, cells: invalid.cells })
            .collect(),
        queued: queue.map(|queue| queue.tasks.iter().filter(|queued| queued.state != "RUNNING").count() as u64),
        waiting: progress.waiting,
        mean_seconds: progress.mean_seconds,
        remaining_seconds: progress.remaining_seconds(),
        running: progress
            .running
            .into_iter()
            .map(|running| RunningTask {
                task: running.task,
                host: running.host,
                begun_unix_seconds: running.begun_unix_seconds,
            })
            .collect(),
        failed: progress
            .failed
            .into_iter()
            .map(|failed| FailedTask { task: failed.task, host: failed.host, reason: failed.reason })
            .collect(),
    };
    if json {
        println!("{:#}", to_json(&document));
        return Ok(());
    }
    let dir = shell_word(&campaign.paths.dir);
    let missing = progress.missing;
    let missing = (!missing.is_empty()).then(|| fit(&missing_text(&campaign, &missing, missing.len() as u64)));
    let missing = missing.as_deref().map(str::trim_end);
    // Tables have commands to copy, of which no column may go.
    print!("{}", render(&document, missing, &dir, SystemClock::unix_time().seconds));
    Ok(())
}

fn to_json(status: &StatusDocument) -> serde_json::Value {
    document(CAMPAIGN_STATUS_SCHEMA, status)
}

/// `missing` names the tasks without a result. `dir`: the directory of the campaign, quoted for a
/// shell.
fn render(status: &StatusDocument, missing: Option<&str>, dir: &str, now: i64) -> String {
    let mut text = format!("campaign {}: {} of {} tasks done", status.name, status.done, status.tasks);
    if !status.invalid.is_empty() {
        text.push_str(&format!(", {} with invalid results", status.invalid.len()));
    }
    text.push('\n');
    let mut lines = vec![vec!["running".to_owned(), status.running.len().to_string()]];
    lines.push(vec!["failed".to_owned(), status.failed.len().to_string()]);
    if let Some(queued) = status.queued {
        lines.push(vec!["queued".to_owned(), queued.to_string()]);
    }
    lines.push(vec!["waiting".to_owned(), status.waiting.to_string()]);
    let left = status.remaining_seconds.zip(status.mean_seconds).map(|(left, mean)| {
        let at = tell_utc(now + left as i64);
        format!("{}; the last task finishes about {at} (mean {} per task)", duration_text(left), duration_text(mean))
    });
    lines.extend(left.map(|left| vec!["time left".to_owned(), left]));
    text.push_str(&render_table(&lines));
    if let Some(missing) = missing {
        text.push_str(&format!("\n{missing}\n"));
    }
    if !status.running.is_empty() {
        let line = |running: &RunningTask| {
            let seconds = (now - running.begun_unix_seconds as i64).max(0) as f64;
            vec![
                format!("  {}", running.task),
                Printable::new(&running.host).to_string(),
                format!("for {}", duration_text(seconds)),
            ]
        };
        text.push_str("\nrunning tasks:\n");
        text.push_str(&render_table(&status.running.iter().take(MOST_LISTED).map(line).collect::<Vec<_>>()));
        text.push_str(&more(status.running.len()));
    }
    if !status.invalid.is_empty() {
        text.push_str("\ntasks with invalid results:\n");
        let line = |invalid: &InvalidTask| {
            let cells = if invalid.cells == 1 { "1 cell".to_owned() } else { format!("{} cells", invalid.cells) };
            vec![format!("  {}", invalid.task), cells, format!("senesce show {dir}/tasks/{}", invalid.task)]
        };
        text.push_str(&render_table(&status.invalid.iter().take(MOST_LISTED).map(line).collect::<Vec<_>>()));
        text.push_str(&more(status.invalid.len()));
    }
    if !status.failed.is_empty() {
        text.push_str("\nfailed tasks:\n");
        for failed in status.failed.iter().take(MOST_LISTED) {
            let reason = Printable::lines(&failed.reason).to_string().replace('\n', "\n    ");
            text.push_str(&format!("  {} on {}: {reason}\n", failed.task, Printable::new(&failed.host)));
        }
        text.push_str(&more(status.failed.len()));
    }
    text
}

fn more(all: usize) -> String {
    match all.saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!("  and {more} more\n"),
    }
}

fn duration_text(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_has_counts_reasons_and_the_time_left() {
        let running = |task| RunningTask { task, host: "n1".to_owned(), begun_unix_seconds: 940 };
        let failed = FailedTask { task: 7, host: "n2".to_owned(), reason: "ext4: no space\nhint: more".to_owned() };
        let status = StatusDocument {
            name: "atlas".to_owned(),
            tasks: 100,
            done: 40,
            invalid: vec![InvalidTask { task: 3, cells: 1 }, InvalidTask { task: 9, cells: 12 }],
            running: (0..12).map(running).collect(),
            failed: vec![failed],
            queued: Some(9),
            waiting: 47,
            mean_seconds: Some(30.0),
            remaining_seconds: Some(600.0),
        };
        let missing = "60 of 100 tasks have no result: 7 (xfs, mail); 59 more";
        let text = render(&status, Some(missing), "/c", 1_000);
        assert!(text.contains(&format!("\n\n{missing}\n\nrunning tasks:\n")), "{text}");
        let start = "campaign atlas: 40 of 100 tasks done, 2 with invalid results\nrunning    12\nfailed     1\n";
        assert!(text.starts_with(start), "{text}");
        for part in [
            "time left  10 min; the last task finishes about 1970-01-01 00:26:40 UTC (mean 30 s per task)\n",
            "  0  n1  for 60 s\n",
            "  and 2 more\n",
            "\ntasks with invalid results:\n  3  1 cell    senesce show /c/tasks/3\n  9  12 cells  senesce show /c/tasks/9\n",
            "  7 on n2: ext4: no space\n    hint: more\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
