//! The directory of a campaign.
//!
//! ```text
//! campaign.json      the description: name, hash of the grid, number of tasks; written last
//! grid.toml          a copy of the grid
//! plans/WORKLOAD     copies of its plans
//! tasks.tsv          a line for each task, for readers and schedulers; checked at each use
//! tasks/N            the finished run of task N; its name is written once, by a rename
//! work/N.BOOT        unfinished work of task N on the machine with this boot
//! state/N.*.json     the running attempt at task N, or its last failure
//! logs/              job scripts and their output
//! merged/            the merged run
//! merged.lock        held by a merge
//! ```

mod planning;

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Axes, Grid, Task, grid::read_text};
use crate::{
    Error,
    durable_files::{sync_entry, write_durably},
    plan::{Plan, PlanError},
};

/// The version of `campaign.json`.
pub const CAMPAIGN_FORMAT: &str = "senesce-campaign/1";

/// The number of letters of the ID of a campaign.
const ID_LETTERS: usize = 12;

/// A campaign has at most this number of tasks.
const MOST_TASKS: u64 = 1_000_000;

/// The hint for a file that was changed by hand.
const PLAN_AGAIN: &str = "restore it, or change the grid and plan a new campaign in another directory";

/// The paths in the directory of a campaign.
#[derive(Clone, Debug)]
pub struct CampaignPaths {
    /// The directory itself.
    pub dir: PathBuf,
}

impl CampaignPaths {
    /// The paths of the campaign in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// The description.
    pub fn description(&self) -> PathBuf {
        self.dir.join("campaign.json")
    }

    /// The copy of the grid.
    pub fn grid(&self) -> PathBuf {
        self.dir.join("grid.toml")
    }

    /// The list of tasks.
    pub fn list(&self) -> PathBuf {
        self.dir.join("tasks.tsv")
    }

    /// The directory of finished tasks.
    pub fn tasks(&self) -> PathBuf {
        self.dir.join("tasks")
    }

    /// The finished run of a task.
    pub fn task(&self, number: u64) -> PathBuf {
        self.tasks().join(number.to_string())
    }

    /// The directory of unfinished work.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// The directory of states.
    pub fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// The directory of job scripts and their output.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Locked by a merge.
    pub fn merge_lock(&self) -> PathBuf {
        self.dir.join("merged.lock")
    }

    /// The merged run.
    pub fn merged(&self) -> PathBuf {
        self.dir.join("merged")
    }

    fn plans(&self) -> PathBuf {
        self.dir.join("plans")
    }
}

/// The description of a campaign, in `campaign.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    format: String,
    name: String,
    /// Names this campaign in jobs and directories. A campaign of the same grid in another
    /// directory has another ID.
    id: String,
    /// Hash of the grid and its plans.
    hash: String,
    tasks: u64,
    /// The directory in which the campaign was planned. Relative paths of its plans start there.
    begun_in: PathBuf,
    senesce: String,
}

/// A planned campaign.
pub struct Campaign {
    /// Its paths.
    pub paths: CampaignPaths,
    grid: Grid,
    axes: Axes,
    id: String,
    hash: String,
    begun_in: PathBuf,
}

impl Campaign {
    fn write(&self, text: &str, texts: &[String], senesce: &str) -> Result<(), Error> {
        let paths = &self.paths;
        for dir in [paths.plans(), paths.tasks(), paths.work(), paths.state(), paths.logs()] {
            fs::create_dir_all(&dir).map_err(Error::io("create", dir))?;
        }
        write_durably(&paths.grid(), text.as_bytes())?;
        for (named, text) in self.grid.plans.iter().zip(texts) {
            write_durably(&paths.plans().join(named.label()), text.as_bytes())?;
        }
        let list = paths.list();
        self.write_list(&list).map_err(Error::io("write", &list))?;
        sync_entry(&list)?;
        let description = Description {
            format: CAMPAIGN_FORMAT.to_owned(),
            name: self.grid.name.clone(),
            id: self.id.clone(),
            hash: self.hash.clone(),
            tasks: self.count(),
            begun_in: self.begun_in.clone(),
            senesce: senesce.to_owned(),
        };
        let mut json = serde_json::to_vec_pretty(&description).expect("a plain structure");
        json.push(b'\n');
        write_durably(&paths.description(), &json)
    }

    fn write_list(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for line in self.list() {
            file.write_all(line.as_bytes())?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// Opens the campaign in `dir`, and checks its files against the grid.
    ///
    /// Errors: there is no campaign; a file was changed by hand.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let wrong = |path: &Path, problem: String, hint| Error::RunDirectory { path: path.to_owned(), problem, hint };
        let dir = fs::canonicalize(dir).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                wrong(dir, "does not exist".into(), "name the directory of `senesce campaign plan --out`")
            }
            _ => Error::io("look up", dir)(error),
        })?;
        check_text(&dir)?;
        let paths = CampaignPaths::new(&dir);
        let none = "name the directory of `senesce campaign plan --out`";
        let text = match fs::read_to_string(paths.description()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(wrong(&dir, "holds no campaign (no campaign.json)".into(), none));
            }
            found => found.map_err(Error::io("read", paths.description()))?,
        };
        let damaged = |problem: String| wrong(&paths.description(), problem, PLAN_AGAIN);
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| damaged(format!("is damaged: {error}")))?;
        let format = value["format"].as_str().unwrap_or_default();
        if format != CAMPAIGN_FORMAT {
            let problem = format!("is of format {format:?}; this version reads {CAMPAIGN_FORMAT:?}");
            return Err(wrong(&paths.description(), problem, "use the version of senesce that planned the campaign"));
        }
        let described: Description =
            serde_json::from_value(value).map_err(|error| damaged(format!("is damaged: {error}")))?;
        // It becomes part of names of directories and of job scripts.
        if !is_id(&described.id) {
            return Err(damaged(format!("has the id {:?}, which is not {ID_LETTERS} hex digits", described.id)));
        }
        let text = read_text(&paths.grid())?;
        let grid = Grid::parse(&paths.grid(), &text)?;
        let sources: Vec<PathBuf> = grid.plans.iter().map(|named| paths.plans().join(named.label())).collect();
        let texts = sources.iter().map(|path| read_text(path)).collect::<Result<Vec<_>, _>>()?;
        if hash_of(&text, &texts) != described.hash {
            return Err(wrong(
                &paths.grid(),
                "or a file in plans/ was changed after the campaign was planned".into(),
                PLAN_AGAIN,
            ));
        }
        let grid_path = paths.grid();
        let campaign = Self::of(
            paths,
            (grid, &grid_path),
            (&texts, &sources),
            (described.id, described.hash),
            described.begun_in,
        )?;
        campaign.check_list()?;
        Ok(campaign)
    }

    fn of(
        paths: CampaignPaths,
        (grid, path): (Grid, &Path),
        (texts, sources): (&[String], &[PathBuf]),
        (id, hash): (String, String),
        begun_in: PathBuf,
    ) -> Result<Self, Error> {
        let plans = texts.iter().zip(sources).map(|(text, source)| Plan::parse(source, text));
        let axes = Axes::of(&grid, plans.collect::<Result<_, _>>()?, path)?;
        Ok(Self { paths, grid, axes, id, hash, begun_in })
    }

    /// Refuses a list of tasks that differs from the grid. A missing list is no error, because no
    /// command needs it.
    fn check_list(&self) -> Result<(), Error> {
        let path = self.paths.list();
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file.map_err(Error::io("open", &path))?,
        };
        let changed = |line: usize| Error::RunDirectory {
            path: path.clone(),
            problem: format!("differs from the grid in line {line}: it was changed by hand"),
            hint: "remove the list (no command needs it), or restore it; the grid determines the tasks",
        };
        let mut file = BufReader::new(file);
        let mut found = Vec::new();
        for (index, line) in self.list().enumerate() {
            found.clear();
            // Bounded, because a changed file may have a line of any length.
            let limit = line.len() as u64 + 1;
            io::Read::take(&mut file, limit).read_until(b'\n', &mut found).map_err(Error::io("read", &path))?;
            if found != line.as_bytes() {
                return Err(changed(index + 1));
            }
        }
        match file.fill_buf().map_err(Error::io("read", &path))?.is_empty() {
            true => Ok(()),
            false => Err(changed(self.count() as usize + 2)),
        }
    }

    /// The name of the campaign.
    pub fn name(&self) -> &str {
        &self.grid.name
    }

    /// The purpose of the campaign.
    pub fn description(&self) -> &str {
        &self.grid.description
    }

    /// A hash of the grid and its plans, hex.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// A short text that names this campaign in directories and jobs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of tasks.
    pub fn count(&self) -> u64 {
        self.axes.count()
    }

    /// All tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + '_ {
        (0..self.count()).filter_map(|number| self.axes.task(number))
    }

    /// A task.
    ///
    /// Errors: there is no task of this number.
    pub fn task(&self, number: u64) -> Result<Task, Error> {
        self.axes.task(number).ok_or_else(|| Error::RunDirectory {
            path: self.paths.dir.clone(),
            problem: format!("has no task {number}; its tasks are 0 to {}", self.count() - 1),
            hint: "tasks.tsv lists them",
        })
    }

    /// A task in words: `btrfs, mail, HDD 7.2K`.
    pub fn words(&self, task: &Task) -> String {
        self.axes.words(task)
    }

    /// The plan of a task, with absolute paths.
    pub fn task_plan(&self, task: &Task) -> Result<Plan, Error> {
        Ok(self.axes.plan(task)?.seen_from(&self.begun_in))
    }

    /// The lines of the list of tasks.
    fn list(&self) -> impl Iterator<Item = String> + '_ {
        let head = "task\tworkload\tfile_system\tkernel\tdevice\tseed\n".to_owned();
        std::iter::once(head).chain(self.tasks().map(|task| {
            let Task { number, workload, file_system, kernel, device, seed, suffix: _ } = task;
            let device = device.unwrap_or_default();
            format!("{number}\t{workload}\t{file_system}\t{}\t{device}\t{seed}\n", kernel.as_str())
        }))
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LETTERS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a path that JSON and job scripts cannot hold.
fn check_text(path: &Path) -> Result<(), Error> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Error::RunDirectory {
            path: path.to_owned(),
            problem: "is not UTF-8; job scripts cannot name it".to_owned(),
            hint: "use a directory whose path is UTF-8",
        }),
    }
}

fn hash_of(grid: &str, plans: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in std::iter::once(grid).chain(plans.iter().map(String::as_str)) {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str =
        "format = \"senesce-plan/1\"\nname = \"p\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n";

    fn planned(dir: &Path, more: &str) -> Campaign {
        fs::write(dir.join("p.toml"), PLAN).unwrap();
        let grid = format!("format = \"senesce-grid/1\"\nname = \"g\"\n{more}[[plan]]\npath = \"p.toml\"\n");
        fs::write(dir.join("grid.toml"), grid).unwrap();
        Campaign::plan(&dir.join("grid.toml"), &dir.join("out"), "0.1.0").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_list_is_a_function_of_the_grid() {
        let temp = tempfile::tempdir().unwrap();
        let campaign = planned(temp.path(), "seeds = [3, 5]\n");
        let list = fs::read_to_string(campaign.paths.list()).unwrap();
        assert_eq!(
            list,
            "task\tworkload\tfile_system\tkernel\tdevice\tseed\n0\tp\text4\thost\t\t3\n1\tp\text4\thost\t\t5\n"
        );
        let out = campaign.paths.dir.clone();
        // Every edit is refused, and the message has its line.
        for (edited, line) in [
            (list.replace("\t5\n", "\t6\n"), "line 3"),
            (list.replace("1\tp", "2\tp"), "line 3"),
            (format!("{list}2\tp\text4\thost\t\t7\n"), "line 4"),
            (list.lines().take(2).map(|line| format!("{line}\n")).collect(), "line 3"),
            (list.replace("task", "TASK"), "line 1"),
            (String::new(), "line 1"),
        ] {
            fs::write(campaign.paths.list(), edited).unwrap();
            let error = Campaign::open(&out).err().unwrap().to_string();
            assert!(error.contains(line) && error.contains("by hand"), "{error}");
        }
        fs::remove_file(campaign.paths.list()).unwrap();
        Campaign::open(&out).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_changed_grid_or_plan_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let campaign = planned(temp.path(), "");
        for path in [campaign.paths.grid(), campaign.paths.plans().join("p")] {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{text}# more\n")).unwrap();
            let error = Campaign::open(&campaign.paths.dir).err().unwrap().to_string();
            assert!(error.contains("was changed after the campaign was planned"), "{error}");
            fs::write(&path, text).unwrap();
        }
        Campaign::open(&campaign.paths.dir).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn an_id_that_could_be_a_path_or_an_option_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let campaign = planned(temp.path(), "");
        let text = fs::read_to_string(campaign.paths.description()).unwrap();
        for id in ["", "../../../etc", "0123456789a", "0123456789abc", "0123456789aB", "0\\n#SBATCH -x"] {
            let changed = text.replace(campaign.id(), id);
            fs::write(campaign.paths.description(), changed).unwrap();
            let error = Campaign::open(&campaign.paths.dir).err().unwrap().to_string();
            assert!(error.contains("is not 12 hex digits"), "{error}");
        }
    }

    #[test]
    fn a_directory_that_is_not_utf_8_is_refused() {
        use std::os::unix::ffi::OsStrExt;
        let temp = tempfile::tempdir().unwrap();
        planned(temp.path(), "");
        let dir = temp.path().join(std::ffi::OsStr::from_bytes(b"o\xff"));
        let error = Campaign::plan(&temp.path().join("grid.toml"), &dir, "0.1.0").err().unwrap().to_string();
        assert!(error.contains("is not UTF-8") && !dir.exists(), "{error}");
        fs::rename(temp.path().join("out"), &dir).unwrap();
        let error = Campaign::open(&dir).err().unwrap().to_string();
        assert!(error.contains("is not UTF-8"), "{error}");
    }

    #[test]
    fn a_plan_never_leaves_the_directory() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("p.toml"), PLAN).unwrap();
        let grid = "format = \"senesce-grid/1\"\nname = \"g\"\n[[plan]]\npath = \"p.toml\"\nname = \"../../victim\"\n\
                    profiles = [\"agrawal\"]\n";
        fs::write(temp.path().join("grid.toml"), grid).unwrap();
        fs::write(temp.path().join("victim"), "mine").unwrap();
        let error = Campaign::plan(&temp.path().join("grid.toml"), &temp.path().join("out"), "0.1.0").err().unwrap();
        assert!(error.to_string().contains("plan.name"), "{error}");
        assert_eq!(fs::read_to_string(temp.path().join("victim")).unwrap(), "mine");
    }

    #[test]
    fn a_combination_without_sense_is_refused_when_it_is_planned() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("p.toml"), PLAN).unwrap();
        let grid = "format = \"senesce-grid/1\"\nname = \"g\"\n[[plan]]\npath = \"p.toml\"\nprofiles = [\"agrawal\"]\n";
        fs::write(temp.path().join("grid.toml"), grid).unwrap();
        let error = Campaign::plan(&temp.path().join("grid.toml"), &temp.path().join("out"), "0.1.0").err().unwrap();
        assert!(error.to_string().contains("workload.profile"), "{error}");
        assert!(!temp.path().join("out").exists());
    }

    #[test]
    fn a_hundred_thousand_tasks_are_listed_and_checked() {
        let temp = tempfile::tempdir().unwrap();
        let seeds: Vec<u64> = (0..100_000).collect();
        let campaign = planned(temp.path(), &format!("seeds = {seeds:?}\n"));
        assert_eq!(campaign.count(), 100_000);
        assert_eq!(campaign.task(99_999).unwrap().seed, 99_999);
        let error = campaign.task(100_000).unwrap_err().to_string();
        assert!(error.contains("0 to 99999"), "{error}");
    }
}
