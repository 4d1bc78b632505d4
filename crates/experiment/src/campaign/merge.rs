//! Joins the results of tasks into one run, in the order of the grid.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use senesce_store::{CircumstanceRow, Merger, ResultStore, Results, RunInfo, is_of_execution};

use super::{Campaign, Task, attempt::is_finished, comparable::Comparison};
use crate::{
    Error,
    durable_files::sync_entry,
    paths::RunPaths,
    plan::Plan,
    run::{plan_hash, plan_text},
};

/// The outcome lists at most this number of missing tasks.
const MOST_LISTED: usize = 20;

/// The outcome of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Tasks in the merged run.
    pub tasks: u64,
    /// Tasks without a result: the numbers of the first ones, and the count of all.
    pub missing: (Vec<u64>, u64),
    /// Circumstances that make wall times incomparable, one sentence each.
    pub unlike_times: Vec<String>,
    /// Circumstances that make all figures incomparable, one sentence each. Then nothing is merged.
    pub conflicts: Vec<String>,
}

impl Merged {
    /// Whether a merge joins the tasks into one run.
    fn is_joined(&self, partial: bool) -> bool {
        self.conflicts.is_empty() && (self.missing.1 == 0 || partial) && self.tasks > 0
    }

    fn miss(&mut self, number: u64) {
        self.missing.1 += 1;
        if self.missing.0.len() < MOST_LISTED {
            self.missing.0.push(number);
        }
    }
}

/// Tasks that a merge compared, and the circumstances that all of them have.
#[derive(Default)]
struct Compared {
    tasks: Vec<u64>,
    common: BTreeMap<String, String>,
    senesce_version: String,
}

/// Merges the finished tasks of a campaign into one run in `merged/`.
///
/// Two merges of equal results have equal bytes, for every order in which the tasks ran. If tasks
/// are missing, it merges only with `partial`. If circumstances make the figures incomparable, it
/// merges nothing.
///
/// Errors: a result is of another plan, or is damaged; another merge of the campaign runs. Memory:
/// the results of one task, and a bounded number of rows.
pub fn merge(campaign: &Campaign, partial: bool) -> Result<Merged, Error> {
    let path = campaign.paths.merge_lock();
    let _lock = lock(campaign, File::create(&path).map_err(Error::io("create", &path))?)?;
    let (merged, compared) = compare(campaign)?;
    if merged.is_joined(partial) {
        join(campaign, &compared)?;
    }
    Ok(merged)
}

/// Reads the results that [`merge`] would join. Writes nothing.
///
/// Errors and memory: those of [`merge`].
pub fn preview_merge(campaign: &Campaign, partial: bool) -> Result<Merged, Error> {
    let path = campaign.paths.merge_lock();
    // A shared lock, so that several previews can run. It is released immediately, so that a merge
    // can start during the preview.
    match File::open(&path) {
        Ok(file) => {
            locked(campaign, file.try_lock_shared())?;
            check_writable(&path, &path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_writable(&campaign.paths.dir, &path)?,
        Err(error) => return Err(Error::io("open", &path)(error)),
    }
    let (merged, compared) = compare(campaign)?;
    if merged.is_joined(partial) {
        let merged = campaign.paths.merged();
        let existing = if merged.is_dir() { &merged } else { &campaign.paths.dir };
        check_writable(existing, &merged)?;
        for number in &compared.tasks {
            open_results(campaign, &campaign.task(*number)?)?.read_all()?;
        }
    }
    Ok(merged)
}

/// Locks a merge: two merges would write the same files. The kernel releases the lock after a kill.
fn lock(campaign: &Campaign, file: File) -> Result<File, Error> {
    locked(campaign, file.try_lock())?;
    Ok(file)
}

/// Errors: this process may not write `path`, or create files in it. The error is that of a failed
/// creation of `made`.
fn check_writable(path: &Path, made: &Path) -> Result<(), Error> {
    let checked = accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    checked.map_err(|error| Error::io("create", made)(error.into()))
}

fn locked(campaign: &Campaign, result: Result<(), TryLockError>) -> Result<(), Error> {
    match result {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::RunDirectory {
            path: campaign.paths.dir.clone(),
            problem: "is being merged by another process".to_owned(),
            hint: "wait for its end, then merge again",
        }),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", campaign.paths.merge_lock())(error)),
    }
}

/// Compares the circumstances of the finished tasks.
fn compare(campaign: &Campaign) -> Result<(Merged, Compared), Error> {
    let mut merged = Merged::default();
    let mut compared = Compared::default();
    let mut comparison = Comparison::default();
    let mut common: Option<BTreeMap<String, String>> = None;
    for task in campaign.tasks() {
        if !is_finished(campaign, task.number) {
            merged.miss(task.number);
            continue;
        }
        let store = open_results(campaign, &task)?;
        let mut rows = store.read_circumstances()?;
        rows.retain(|row| !is_of_execution(&row.key));
        comparison.add(&task, &rows);
        compared.senesce_version.clone_from(&store.run_info().senesce_version);
        keep_common(&mut common, &rows);
        compared.tasks.push(task.number);
        merged.tasks += 1;
    }
    merged.unlike_times = comparison.unlike_times();
    merged.conflicts = comparison.conflicts();
    compared.common = common.unwrap_or_default();
    Ok((merged, compared))
}

/// Joins the results of the tasks that were compared. A task that finished later is left out.
fn join(campaign: &Campaign, Compared { tasks, common, senesce_version }: &Compared) -> Result<(), Error> {
    let new = campaign.paths.merged().join("results.new");
    remove_dir(&new)?;
    let mut merger = Merger::create(&new)?;
    // Results are joined in the order of the grid, not of the directory.
    merger.push_circumstances(run_circumstances(campaign, common))?;
    for number in tasks {
        let task = campaign.task(*number)?;
        let results = open_results(campaign, &task)?.read_all()?;
        merger.push(in_campaign(results, &task, common))?;
    }
    merger.finish(&RunInfo {
        run_name: campaign.name().to_owned(),
        plan_name: campaign.name().to_owned(),
        plan_hash: campaign.hash().to_owned(),
        senesce_version: senesce_version.clone(),
        ..RunInfo::default()
    })?;
    replace_dir(&new, &RunPaths::new(&campaign.paths.merged()).results())
}

/// Opens the results of a finished task.
///
/// Errors: they are those of another plan.
fn open_results(campaign: &Campaign, task: &Task) -> Result<ResultStore, Error> {
    let dir = campaign.paths.task(task.number);
    let results = RunPaths::new(&dir).results();
    let store = ResultStore::open_read_only(&results)?;
    let plan: Plan = campaign.task_plan(task)?;
    let expected = plan_hash(&plan_text(&plan, &dir)?);
    if store.run_info().plan_hash != expected {
        return Err(Error::RunDirectory {
            path: dir,
            problem: format!("holds a run of another plan than that of task {}", task.number),
            hint: "remove it, then run the task again",
        });
    }
    Ok(store)
}

/// Keeps the circumstances of whole runs that all tasks have with one value.
fn keep_common(common: &mut Option<BTreeMap<String, String>>, rows: &[CircumstanceRow]) {
    let of_run = rows.iter().filter(|row| row.arm.is_empty());
    match common {
        None => *common = Some(of_run.map(|row| (row.key.clone(), row.value.clone())).collect()),
        Some(common) => {
            let found: BTreeMap<&str, &str> = of_run.map(|row| (row.key.as_str(), row.value.as_str())).collect();
            common.retain(|key, value| found.get(key.as_str()) == Some(&value.as_str()));
        }
    }
}

/// The circumstances of the merged run.
fn run_circumstances(campaign: &Campaign, common: &BTreeMap<String, String>) -> Vec<CircumstanceRow> {
    let mut pairs = common.clone();
    let mut add = |key: &str, value: &str| drop(pairs.insert(key.to_owned(), value.to_owned()));
    add("plan.name", campaign.name());
    add("plan.description", campaign.description());
    add("plan.hash", campaign.hash());
    // A report of the merged run names the tasks that it lacks.
    add("campaign.tasks", &campaign.count().to_string());
    if !common.contains_key("workload.step_unit") {
        add("workload.step_unit", "steps");
    }
    let row = |(key, value)| CircumstanceRow { arm: String::new(), key, value };
    pairs.into_iter().map(row).collect()
}

/// Returns the results of a task under the names of the campaign. If not all tasks share a
/// circumstance of the run, it becomes a circumstance of each arm.
fn in_campaign(mut results: Results, task: &Task, common: &BTreeMap<String, String>) -> Results {
    let own_names: BTreeSet<String> = results.cells.iter().map(|cell| cell.key.arm.clone()).collect();
    let rename = |arm: &str| format!("{arm}{}", task.suffix);
    results.rename_arms(rename);
    results.circumstances.retain(|row| !is_of_execution(&row.key));
    let (of_run, of_arms): (Vec<_>, Vec<_>) = results.circumstances.into_iter().partition(|row| row.arm.is_empty());
    let mut rows = of_arms;
    let own = [
        ("campaign.task", task.number.to_string()),
        ("campaign.file_system", task.file_system.clone()),
        ("campaign.workload", task.workload.clone()),
        ("campaign.kernel", task.kernel.as_str().to_owned()),
        ("campaign.device", task.device.clone().unwrap_or_default()),
        ("campaign.seed", task.seed.to_string()),
    ];
    for own_name in &own_names {
        let arm = rename(own_name);
        let unshared = of_run.iter().filter(|row| common.get(&row.key) != Some(&row.value));
        rows.extend(unshared.map(|row| CircumstanceRow { arm: arm.clone(), ..row.clone() }));
        let row = |(key, value): &(&str, String)| CircumstanceRow {
            arm: arm.clone(),
            key: (*key).to_owned(),
            value: value.clone(),
        };
        rows.extend(own.iter().map(row));
        rows.push(row(&("campaign.arm", own_name.clone())));
    }
    rows.sort_by(|a, b| (&a.arm, &a.key).cmp(&(&b.arm, &b.key)));
    results.circumstances = rows;
    results
}

fn remove_dir(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", dir)(error)),
        _ => Ok(()),
    }
}

/// Replaces a directory. After a crash, the old one can still exist under the extension `old`.
fn replace_dir(new: &Path, dir: &Path) -> Result<(), Error> {
    let old = dir.with_extension("old");
    remove_dir(&old)?;
    match fs::rename(dir, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("rename", dir)(error)),
        _ => {}
    }
    fs::rename(new, dir).map_err(Error::io("rename", new))?;
    sync_entry(dir)?;
    remove_dir(&old)
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellKey, CellResults, CellRow, Role, Table};

    use super::*;

    fn finish(campaign: &Campaign, number: u64) {
        let task = campaign.task(number).unwrap();
        let dir = campaign.paths.task(number);
        let mut store = ResultStore::create(&RunPaths::new(&dir).results(), &number.to_string()).unwrap();
        let text = plan_text(&campaign.task_plan(&task).unwrap(), &dir).unwrap();
        store.put_run_info(&RunInfo { plan_hash: plan_hash(&text), ..store.run_info().clone() }).unwrap();
        let key = CellKey { arm: "ext4".into(), file_system: "ext4".into(), role: Role::Empty, pulls: number };
        store.append_cell(&CellResults::of(CellRow::without_figures(key, ""))).unwrap();
    }

    /// A campaign of three tasks.
    fn campaign(temp: &Path) -> Campaign {
        let plan = "format = \"senesce-plan/1\"\nname = \"p\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n";
        fs::write(temp.join("p.toml"), plan).unwrap();
        let grid = "format = \"senesce-grid/1\"\nname = \"g\"\nseeds = [1, 2, 3]\n[[plan]]\npath = \"p.toml\"\n";
        fs::write(temp.join("grid.toml"), grid).unwrap();
        Campaign::plan(&temp.join("grid.toml"), &temp.join("out"), "0.1.0").unwrap()
    }

    /// The bytes of the merged tables.
    fn merged_tables(campaign: &Campaign) -> Vec<Vec<u8>> {
        assert_eq!(merge(campaign, false).unwrap().tasks, 3);
        let results = RunPaths::new(&campaign.paths.merged()).results();
        Table::ALL.iter().filter_map(|table| fs::read(results.join(format!("{}.parquet", table.name()))).ok()).collect()
    }

    #[test]
    fn times_of_executions_do_not_change_a_merge() {
        let temp = tempfile::tempdir().unwrap();
        let campaign = campaign(temp.path());
        (0..3).for_each(|number| finish(&campaign, number));
        let put = |number: u64, key: &str, value: &str| {
            let results = RunPaths::new(&campaign.paths.task(number)).results();
            let row = CircumstanceRow { arm: String::new(), key: key.into(), value: value.into() };
            ResultStore::open(&results).unwrap().put_circumstances(&[row]).unwrap();
        };
        let plain = merged_tables(&campaign);
        assert!(!plain.is_empty());
        put(0, crate::TOOK_SECONDS, "7");
        put(1, crate::BEGUN_UNIX_SECONDS, "1700000000");
        assert!(merged_tables(&campaign) == plain);
        put(1, "cpu_model", "x");
        assert!(merged_tables(&campaign) != plain);
    }

    #[test]
    fn a_task_that_was_not_compared_is_not_merged() {
        let temp = tempfile::tempdir().unwrap();
        let campaign = campaign(temp.path());
        [0, 2].iter().for_each(|number| finish(&campaign, *number));
        let (merged, compared) = compare(&campaign).unwrap();
        assert_eq!((merged.tasks, &merged.missing), (2, &(vec![1], 1)));
        finish(&campaign, 1);
        join(&campaign, &compared).unwrap();
        let results = RunPaths::new(&campaign.paths.merged()).results();
        let results = ResultStore::open_read_only(&results).unwrap().read_all().unwrap();
        assert_eq!(results.cells.iter().map(|cell| cell.key.pulls).collect::<Vec<_>>(), [0, 2]);
    }
}
