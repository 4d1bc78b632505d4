//! One attempt at a task: its working directory, the cleanup after an earlier attempt, and the
//! result.

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use senesce_store::ResultStore;
use senesce_volume::{CleanMode, Error as VolumeError, Host, Registry, clean};
use serde::{Deserialize, Serialize};

use super::{Campaign, Task};
use crate::{
    Error, World,
    durable_files::{sync_entry, sync_tree, write_durably},
    error::chain_text,
    journal::{Entry, JOURNAL_FORMAT},
    paths::RunPaths,
    plan::Plan,
    run::{plan_hash, plan_text},
};

/// The number of letters of the boot ID in file names.
const BOOT_LETTERS: usize = 12;

/// The machine and the times of an attempt that runs, failed or finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskState {
    /// The task.
    pub task: u64,
    /// The name of the machine.
    pub host: String,
    /// The boot of the machine.
    pub boot: String,
    /// The process.
    pub pid: u32,
    /// Start of the process, ticks. It distinguishes a later process with the same PID.
    pub start_ticks: u64,
    /// Start of the attempt.
    pub begun_unix_seconds: u64,
    /// End of the attempt. `None`: it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_seconds: Option<u64>,
    /// Why it failed. `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of invalid cells of the result. `None`: the task is not finished, its cells
    /// cannot be read, or an earlier version wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_cells: Option<u64>,
}

/// An attempt at a task.
pub struct Attempt<'a> {
    campaign: &'a Campaign,
    world: &'a World,
    task: Task,
    plan: Plan,
    work: PathBuf,
    state: TaskState,
    running: PathBuf,
    lock_path: PathBuf,
    /// The lock of the task on this machine. The kernel releases it after a kill.
    _lock: File,
}

/// The start of an attempt.
pub enum Begun<'a> {
    /// The task is already finished.
    Finished,
    /// The task is not finished. [`Attempt::is_resumable`] says whether a run exists to resume.
    Work(Box<Attempt<'a>>),
}

impl<'a> Attempt<'a> {
    /// Starts an attempt at a task. Unfinished work is below `scratch`, or in the directory of the
    /// campaign. Cleans up after an earlier attempt on this machine, and keeps its finished part.
    ///
    /// Errors: the task does not exist; another process of this machine runs it.
    pub fn begin(
        campaign: &'a Campaign,
        number: u64,
        scratch: Option<&Path>,
        world: &'a World,
    ) -> Result<Begun<'a>, Error> {
        let task = campaign.task(number)?;
        let plan = campaign.task_plan(&task)?;
        fs::create_dir_all(campaign.paths.work()).map_err(Error::io("create", campaign.paths.work()))?;
        let process = world.host.this_process()?;
        let boot = boot_name(&process.boot_id);
        let lock_path = campaign.paths.work().join(format!("{number}.{boot}.lock"));
        let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
        let running = campaign.paths.state().join(format!("{number}.{boot}.running.json"));
        match lock.try_lock() {
            Ok(()) => {}
            // Its process removes what it has.
            Err(TryLockError::WouldBlock) if is_finished(campaign, number) => return Ok(Begun::Finished),
            Err(TryLockError::WouldBlock) => {
                let pid = read_state(&running).map_or(0, |state| state.pid);
                return Err(VolumeError::OwnerAlive { journal: lock_path, pid }.into());
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", lock_path)(error)),
        }
        let work = campaign.paths.work().join(format!("{number}.{boot}"));
        let state = TaskState {
            task: number,
            host: host_name(),
            boot: process.boot_id,
            pid: process.pid,
            start_ticks: process.start_ticks,
            begun_unix_seconds: world.clock.unix_seconds(),
            ended_unix_seconds: None,
            reason: None,
            invalid_cells: None,
        };
        let mut attempt = Self { campaign, world, task, plan, work, state, running, lock_path, _lock: lock };
        let begun = attempt.prepare(scratch);
        let is_finished = attempt.record(begun)?;
        Ok(if is_finished { Begun::Finished } else { Begun::Work(Box::new(attempt)) })
    }

    /// Cleans what an earlier attempt left. Returns whether the task is finished: then none stays.
    fn prepare(&mut self, scratch: Option<&Path>) -> Result<bool, Error> {
        let number = self.task.number;
        // Under the lock, because another process may have finished the task before.
        let is_finished = is_finished(self.campaign, number);
        if let Some(scratch) = scratch {
            match fs::canonicalize(scratch) {
                Err(error) if is_finished && error.kind() == io::ErrorKind::NotFound => {}
                scratch_dir => {
                    let scratch_dir = scratch_dir.map_err(Error::io("look up", scratch))?;
                    let boot = boot_name(&self.state.boot);
                    self.work = scratch_dir.join(format!("senesce-{}-{number}.{boot}", self.campaign.id()));
                }
            }
        }
        self.clean_work(is_finished)?;
        if !is_finished {
            self.write_state(&self.running, &self.state)?;
            remove_file(&self.failed())?;
        }
        Ok(is_finished)
    }

    /// Records the reason of a failure that is no interruption, unless the task has its result.
    fn record<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && error.interrupted().is_none()
            && !is_finished(self.campaign, self.task.number)
        {
            // The error itself is more important than one that prevents its record.
            let _ = self.write_failure(&chain_text(error));
        }
        result
    }

    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The plan of the task.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The directory of the run.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Whether the directory has a run to resume.
    pub fn is_resumable(&self) -> bool {
        self.work.exists()
    }

    /// The path of a plan file, for programs that read the plan from a file.
    pub fn plan_file(&self) -> PathBuf {
        let mut name = self.work.as_os_str().to_owned();
        name.push(".toml");
        name.into()
    }

    /// Writes the plan to [`plan_file`](Self::plan_file).
    pub fn write_plan(&self) -> Result<(), Error> {
        let path = self.plan_file();
        fs::write(&path, plan_text(&self.plan, &path)?).map_err(Error::io("write", path))
    }

    /// Releases what a killed attempt on this machine holds. Removes its work unless the task can
    /// continue there.
    fn clean_work(&self, is_finished: bool) -> Result<(), Error> {
        remove_tree(&self.unpublished())?;
        if self.work.exists() {
            release(&self.work, self.world)?;
            if is_finished || !self.can_continue() {
                forget(&self.work, self.world)?;
            }
        }
        if is_finished { remove_file(&self.plan_file()) } else { Ok(()) }
    }

    /// Whether this version started a run of this plan in the directory.
    fn can_continue(&self) -> bool {
        let paths = RunPaths::new(&self.work);
        let Ok(expected) = plan_text(&self.plan, &self.work).map(|text| plan_hash(&text)) else { return false };
        let journal = fs::read_to_string(paths.journal()).unwrap_or_default();
        let first = journal.lines().next().and_then(|line| serde_json::from_str(line).ok());
        matches!(first, Some(Entry::RunStarted { format, plan_hash, senesce })
            if format == JOURNAL_FORMAT && plan_hash == expected && senesce == self.world.senesce_version)
    }

    /// Publishes the complete run in [`work`](Self::work) as the result of the task. If another
    /// machine finished the task first, its result stays.
    pub fn finish(mut self) -> Result<(), Error> {
        let published = self.publish();
        self.record(published)
    }

    fn publish(&mut self) -> Result<(), Error> {
        let paths = RunPaths::new(&self.work);
        for dir in [paths.volumes(), paths.spool()] {
            remove_tree(&dir)?;
        }
        self.state.ended_unix_seconds = Some(self.world.clock.unix_seconds());
        self.state.invalid_cells = count_invalid(&paths).ok();
        self.write_state(&self.work.join("task.json"), &self.state)?;
        sync_tree(&self.work)?;
        let place = self.campaign.paths.task(self.task.number);
        match fs::rename(&self.work, &place) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy_to(&place)?,
            Err(error) if is_taken(&error) => {}
            Err(error) => return Err(Error::io("rename", &self.work)(error)),
        }
        sync_entry(&place)?;
        remove_tree(&self.work)?;
        remove_file(&self.plan_file())
    }

    /// Copies the run into the directory of results under a temporary name, then renames it.
    fn copy_to(&self, place: &Path) -> Result<(), Error> {
        let copy = self.unpublished();
        copy_tree(&self.work, &copy).map_err(Error::io("copy", &self.work))?;
        sync_tree(&copy)?;
        match fs::rename(&copy, place) {
            Err(error) if is_taken(&error) => remove_tree(&copy),
            renamed => renamed.map_err(Error::io("rename", copy)),
        }
    }

    /// Records why the attempt failed. The next one continues its work.
    pub fn fail(self, reason: &str) -> Result<(), Error> {
        self.write_failure(reason)
    }

    fn write_failure(&self, reason: &str) -> Result<(), Error> {
        let ended_unix_seconds = Some(self.world.clock.unix_seconds());
        let state = TaskState { ended_unix_seconds, reason: Some(reason.to_owned()), ..self.state.clone() };
        self.write_state(&self.failed(), &state)
    }

    fn failed(&self) -> PathBuf {
        self.campaign.paths.state().join(format!("{}.failed.json", self.task.number))
    }

    /// The temporary path of the result of this machine, before the rename.
    fn unpublished(&self) -> PathBuf {
        self.campaign.paths.tasks().join(format!(".{}.{}.new", self.task.number, boot_name(&self.state.boot)))
    }

    fn write_state(&self, path: &Path, state: &TaskState) -> Result<(), Error> {
        let mut json = serde_json::to_vec(state).expect("a plain structure");
        json.push(b'\n');
        write_durably(path, &json)
    }
}

impl Drop for Attempt<'_> {
    /// Removes the state and the lock. After a kill, both files stay, but their process does not
    /// exist.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.running);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// The part of a name that distinguishes machines and their boots.
fn boot_name(boot_id: &str) -> String {
    boot_id.chars().filter(char::is_ascii_alphanumeric).take(BOOT_LETTERS).collect()
}

/// Reads a state. `None`: the file does not exist, or it is damaged.
pub(super) fn read_state(path: &Path) -> Option<TaskState> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The number of invalid cells in the results of a run.
pub(super) fn count_invalid(paths: &RunPaths) -> Result<u64, Error> {
    let cells = ResultStore::open_read_only(&paths.results())?.read_cells()?;
    Ok(cells.iter().filter(|cell| !cell.valid).count() as u64)
}

/// Whether a task has its result.
pub(super) fn is_finished(campaign: &Campaign, number: u64) -> bool {
    campaign.paths.task(number).is_dir()
}

/// Releases what a killed attempt on this machine holds in its work.
fn release(work: &Path, world: &World) -> Result<(), Error> {
    let actions = clean(&*world.host, work, CleanMode::Act)?;
    match actions.iter().find(|action| action.is_failure()) {
        None => Ok(()),
        Some(left) => Err(Error::RunDirectory {
            path: work.to_owned(),
            problem: format!("has something that a killed attempt left: {left}"),
            hint: "see what still uses it, then run: senesce clean",
        }),
    }
}

/// Removes work that holds nothing, also from the list of runs.
fn forget(work: &Path, world: &World) -> Result<(), Error> {
    Registry::new(&world.registry_dir).remove(work)?;
    remove_tree(work)
}

/// Removes what lost attempts left in the directory of the campaign for tasks that are finished.
/// Attempts that run keep theirs.
///
/// Errors: something could not be released or removed; the rest is removed.
pub fn remove_leftovers(campaign: &Campaign, world: &World) -> Result<(), Error> {
    let work = campaign.paths.work();
    let own_boot = boot_name(&world.host.this_process()?.boot_id);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&work).map_err(Error::io("list", &work))? {
        let name = entry.map_err(Error::io("list", &work))?.file_name();
        names.extend(name.to_str().and_then(attempt_of));
    }
    let mut result = Ok(());
    for (number, boot) in names.into_iter().filter(|(number, _)| is_finished(campaign, *number)) {
        let lock_path = work.join(format!("{number}.{boot}.lock"));
        let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
        if lock.try_lock().is_err() {
            continue;
        }
        let dir = work.join(format!("{number}.{boot}"));
        // What other machines or boots held is not on this machine.
        let released = if boot == own_boot && dir.exists() { release(&dir, world) } else { Ok(()) };
        let removed = released
            .and_then(|()| forget(&dir, world))
            .and_then(|()| remove_file(&work.join(format!("{number}.{boot}.toml"))))
            .and_then(|()| remove_file(&lock_path));
        result = result.and(removed);
    }
    result
}

/// The task and the boot in a name of an attempt: of its work, its plan, or its lock.
fn attempt_of(name: &str) -> Option<(u64, String)> {
    let mut parts = name.splitn(3, '.');
    let (number, boot) = (parts.next()?, parts.next()?);
    let is_of_kind = matches!(parts.next(), None | Some("toml" | "lock"));
    let is_boot = !boot.is_empty() && boot.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let parsed: u64 = number.parse().ok()?;
    (is_of_kind && is_boot && number == parsed.to_string()).then(|| (parsed, boot.to_owned()))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether the process of a state runs. `None`: it is of another machine.
pub(super) fn is_running(state: &TaskState, host: &dyn Host) -> Option<bool> {
    let own = host.this_process().ok()?;
    let process =
        senesce_volume::ProcessId { pid: state.pid, start_ticks: state.start_ticks, boot_id: state.boot.clone() };
    match own.boot_id == state.boot {
        true => Some(host.is_alive(&process)),
        // This machine was started again.
        false => (state.host == host_name()).then_some(false),
    }
}

/// Whether a rename failed because the new name has a directory with content.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

fn remove_tree(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Copies a tree of a run: directories and files.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_tree(&entry.path(), &to)?,
            false => {
                fs::copy(entry.path(), &to)?;
                File::open(&to)?.sync_all()?;
            }
        }
    }
    Ok(())
}
