//! `senesce campaign`: a grid of runs on many machines.

mod slurm;
mod status;
mod submit;
mod task;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_experiment::campaign::{Campaign, Merged, Task, merge, preview_merge, remove_leftovers};
use senesce_report::{MissingTask, PlannedTasks, merged_tasks, render_campaign, tell_missing_tasks};

pub use self::status::{CAMPAIGN_STATUS_SCHEMA, StatusDocument};
use crate::{
    args::{CampaignArgs, CampaignVerb},
    exit::{failed_with, usage},
    verb::{
        output::{check_files, check_output_directory, print_file_preview},
        place::check_run_directory,
        run::world,
        shell::shell_word,
        show::read_results,
    },
};

/// Plans, runs, submits or merges a campaign.
pub fn campaign(args: CampaignArgs, quiet: bool) -> Result<()> {
    match args.what {
        CampaignVerb::Plan { grid, out, dry_run } => plan(&grid, &out, dry_run),
        CampaignVerb::Task(args) => task::task(&args, quiet),
        CampaignVerb::Merge { dir, partial, dry_run } => merge_tasks(&dir, (partial, dry_run), quiet),
        CampaignVerb::Report { dir, out, force, dry_run } => report(&dir, out, (force, dry_run)),
        CampaignVerb::Submit(args) => submit::submit(&args, submit::Which::Missing),
        CampaignVerb::Status { dir, json } => status::status(&dir, json),
        CampaignVerb::Resume(args) => submit::submit(&args, submit::Which::NotQueued),
    }
}

fn plan(grid: &Path, out: &Path, dry_run: bool) -> Result<()> {
    check_run_directory(out)?;
    if dry_run {
        let campaign = Campaign::check(grid, out)?;
        println!(
            "{} tasks would be listed in {}; nothing was written",
            campaign.count(),
            Printable::new(&campaign.paths.list())
        );
        return Ok(());
    }
    let campaign = Campaign::plan(grid, out, crate::VERSION)?;
    let dir = shell_word(&campaign.paths.dir);
    let last = campaign.count() - 1;
    println!("{} tasks in {}", campaign.count(), Printable::new(&campaign.paths.list()));
    println!("\nrun one                senesce campaign task {dir} 0");
    println!("run all, two at a time seq 0 {last} | parallel --jobs 2 senesce campaign task {dir}");
    println!("run all on a cluster   senesce campaign submit --slurm {dir}");
    println!("then                   senesce campaign merge {dir}");
    Ok(())
}

fn merge_tasks(dir: &Path, (partial, dry_run): (bool, bool), quiet: bool) -> Result<()> {
    let campaign = Campaign::open(dir)?;
    check_output_directory(&campaign.paths.merged(), "merged", || true)?;
    let join = if dry_run { preview_merge } else { merge };
    let Merged { tasks, missing: (first, missing), unlike_times, conflicts } = join(&campaign, partial)?;
    let dir = shell_word(&campaign.paths.dir);
    if !conflicts.is_empty() {
        let message = format!(
            "cannot merge the tasks: their figures are not comparable, because these circumstances differ:\n  {}",
            conflicts.join("\n  ")
        );
        let hint = format!("remove DIR/tasks/N of the tasks with one value, then run: senesce campaign task {dir} N");
        return Err(failed_with(message, Some(&hint)));
    }
    if tasks == 0 && partial {
        return Err(usage("no task is finished", Some(&format!("senesce campaign status {dir}"))));
    }
    if missing > 0 {
        let message = missing_text(&campaign, &first, missing);
        if !partial {
            let hint = format!("senesce campaign status {dir} prints why; --partial merges the finished tasks");
            return Err(failed_with(message, Some(&hint)));
        }
        println!("{message}");
    }
    if !quiet {
        unlike_times.iter().for_each(|text| eprintln!("senesce: wall times are not comparable: {text}"));
    }
    let merged = campaign.paths.merged();
    if dry_run {
        println!("{tasks} tasks would be merged in {}; nothing was written", Printable::new(&merged));
        return Ok(());
    }
    println!("{tasks} tasks are merged in {}", Printable::new(&merged));
    if let Err(error) = remove_leftovers(&campaign, &world(false)?) {
        eprintln!("senesce: work of lost attempts stays: {}", Printable::lines(&error.to_string()));
    }
    Ok(())
}

/// `1 of 12 tasks has no result: 7 (btrfs, mail, HDD 7.2K)`. `first` has the numbers of the first
/// missing tasks.
fn missing_text(campaign: &Campaign, first: &[u64], missing: u64) -> String {
    let name = |number: &u64| Some(format!("{number} ({})", campaign.words(&campaign.task(*number).ok()?)));
    tell_missing_tasks(first.iter().filter_map(name), missing, campaign.count())
}

/// The planned tasks, and those that the merged results lack. Notes tasks that finished after the
/// merge.
fn find_missing(campaign: &Campaign, merged: &BTreeSet<u64>) -> Result<PlannedTasks> {
    let missing = |task: Task| MissingTask {
        words: campaign.words(&task),
        device_title: task.device_title().unwrap_or_default(),
        file_system: task.file_system,
        workload: task.workload,
        kernel: task.kernel.as_str().to_owned(),
        device: task.device.unwrap_or_default(),
    };
    let tasks = || campaign.tasks().filter(|task| !merged.contains(&task.number));
    let unfinished: BTreeSet<u64> = campaign.missing()?.into_iter().collect();
    let late = tasks().filter(|task| !unfinished.contains(&task.number)).count();
    let planned = PlannedTasks { all: campaign.count(), missing: tasks().map(missing).collect() };
    if late > 0 {
        eprintln!(
            "senesce: {late} of the missing tasks finished after the merge; merge again: senesce campaign merge {}",
            shell_word(&campaign.paths.dir)
        );
    }
    Ok(planned)
}

/// Writes the page of the merged run.
fn report(dir: &Path, out: Option<PathBuf>, (force, dry_run): (bool, bool)) -> Result<()> {
    let campaign = Campaign::open(dir)?;
    let merged = campaign.paths.merged();
    if !merged.join("results").exists() {
        let hint = format!("senesce campaign merge {}", shell_word(&campaign.paths.dir));
        return Err(usage("the campaign is not merged", Some(&hint)));
    }
    let out = out.unwrap_or_else(|| merged.join("campaign.html"));
    check_files([&Some(out.clone())], Some(force))?;
    let results = read_results(&merged)?;
    let page = render_campaign(&results, &find_missing(&campaign, &merged_tasks(&results))?)?;
    if dry_run {
        print_file_preview(&out);
        return Ok(());
    }
    fs::write(&out, page).with_context(|| format!("cannot write {}", Printable::new(&out)))?;
    println!("{}", Printable::new(&out));
    Ok(())
}
