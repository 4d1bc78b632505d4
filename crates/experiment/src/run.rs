//! A run: one plan executed in one directory.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use senesce_core::Bytes;
use senesce_device::DeviceSpec;
use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, PUBLISHED, ResultStore, RunInfo};
use senesce_volume::{CleanMode, Custodian, Outcome, Registry, VirtualDevice, check_place, check_run_dir, clean};

use crate::{
    Error, World,
    arm::{ArmContext, ArmPulls, PhaseTimer, check_source, drop_snapshots, run_arm},
    circumstances::add_circumstances,
    durable_files::write_durably,
    error::{chain_text, classify},
    journal::{ArmState, Entry, JOURNAL_FORMAT, Journal},
    observer::{Event, Observer},
    paths::RunPaths,
    plan::{Arm, Plan, with_titles},
    prepare::{Place, Prepared, prepare},
    sizing::Sizes,
    source::Source,
};

/// A new or resumed run.
pub struct Run {
    paths: RunPaths,
    plan: Plan,
    /// The file that the plan was read from, for messages.
    plan_path: PathBuf,
    plan_hash: String,
    world: World,
    force: bool,
    journal: Journal,
    store: ResultStore,
    /// Whether this process made the run's directory.
    created: bool,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Arms that could not be finished, with their reasons.
    pub failed_arms: Vec<(String, String)>,
}

/// Creates a directory and its missing parents. `mode` is reduced by the umask. An existing
/// directory keeps its mode.
fn create_dir(dir: &Path, mode: u32) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(dir).map_err(Error::io("create", dir))
}

impl Run {
    /// Starts a run of `plan`, which was read from `path`, in `dir`, which must not exist or be
    /// empty. With `force` it also formats a named device that is not empty.
    pub fn create(plan: Plan, path: &Path, dir: &Path, force: bool, world: World) -> Result<Self, Error> {
        check_new(dir)?;
        // The report of a repository or trace names its commits and files, which may be private.
        let is_private = plan.history.repo.is_some() || plan.history.trace.is_some();
        let mode = if is_private { 0o700 } else { 0o777 };
        create_dir(dir, mode)?;
        check_place(dir)?;
        let paths = RunPaths::new(&fs::canonicalize(dir).map_err(Error::io("look up", dir))?);
        for dir in [paths.volumes(), paths.spool()] {
            create_dir(&dir, 0o700)?;
        }
        let text = plan_text(&plan, &paths.plan())?;
        let begun_in = fs::canonicalize(".").map_err(Error::io("look up", "."))?;
        write_durably(&paths.begun_in(), begun_in.as_os_str().as_bytes())?;
        write_durably(&paths.plan(), text.as_bytes())?;
        let plan_hash = plan_hash(&text);
        let plan = plan.seen_from(&begun_in);
        let mut journal = Journal::open(&paths.journal()).map_err(Error::io("create", paths.journal()))?;
        let mut store = ResultStore::create(&paths.results(), &run_name(&paths.dir))?;
        store.put_run_info(&RunInfo {
            plan_name: plan.name.clone(),
            plan_hash: plan_hash.clone(),
            senesce_version: world.senesce_version.clone(),
            ..store.run_info().clone()
        })?;
        let started = Entry::RunStarted {
            format: JOURNAL_FORMAT.to_owned(),
            plan_hash: plan_hash.clone(),
            senesce: world.senesce_version.clone(),
        };
        journal.append(started).map_err(Error::io("write", paths.journal()))?;
        let plan_path = path.to_owned();
        Ok(Self { paths, plan, plan_path, plan_hash, world, force, journal, store, created: true })
    }

    /// Opens the run in `dir` to continue it. Removes the resources of a killed process. `force` is
    /// as in [`Run::create`], and is not stored.
    pub fn resume(dir: &Path, force: bool, world: World) -> Result<Self, Error> {
        let wrong = |path: PathBuf, problem: &str, hint| Error::RunDirectory { path, problem: problem.into(), hint };
        let dir = match fs::canonicalize(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(wrong(dir.to_owned(), "does not exist", "name the directory of a run"));
            }
            found => found.map_err(Error::io("look up", dir))?,
        };
        let paths = RunPaths::new(&dir);
        check_run_dir(&dir, &[paths.volumes()])?;
        let text = fs::read_to_string(paths.plan()).map_err(|_| {
            wrong(dir.clone(), "holds no run (no plan.toml)", "name the directory of a run, or start a new run")
        })?;
        // Runs of earlier versions did not record it.
        let begun_in = fs::read(paths.begun_in()).unwrap_or_else(|_| b".".to_vec());
        let plan = Plan::parse_kept(&paths.plan(), &text)?.seen_from(Path::new(OsStr::from_bytes(&begun_in)));
        let journal = Journal::open(&paths.journal()).map_err(Error::io("open", paths.journal()))?;
        let plan_hash = plan_hash(&text);
        match journal.entries().first() {
            Some(Entry::RunStarted { format, senesce, .. }) if format != JOURNAL_FORMAT => {
                let problem =
                    format!("is of format {format} (senesce {senesce}); this version continues {JOURNAL_FORMAT}");
                return Err(wrong(paths.journal(), &problem, "continue with the version that started it"));
            }
            Some(Entry::RunStarted { plan_hash: started, .. }) if *started == plan_hash => {}
            Some(Entry::RunStarted { .. }) => {
                return Err(wrong(
                    paths.plan(),
                    "was changed after the run was started",
                    "restore it, or start a new run with the changed plan",
                ));
            }
            _ => return Err(wrong(dir, "holds a run that never started", "remove the directory and start a new run")),
        }
        clean(&*world.host, &dir, CleanMode::Act)?;
        let store = ResultStore::open(&paths.results())?;
        let plan_path = paths.plan();
        Ok(Self { paths, plan, plan_path, plan_hash, world, force, journal, store, created: false })
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.paths.dir
    }

    /// The path of the report.
    pub fn report_path(&self) -> PathBuf {
        self.paths.report()
    }

    /// Runs all arms that are not complete, also those that failed in an earlier process. Then
    /// merges the results into one file per table.
    ///
    /// Errors: an interruption, and errors of all arms (no history, no results). If an arm fails,
    /// the reason is recorded and the others continue.
    pub fn execute(&mut self, observer: &mut dyn Observer) -> Result<RunEnd, Error> {
        if !self.world.host.is_root() && self.needs_root() {
            let error = senesce_volume::Error::NotRoot { operation: "make and mount the plan's volumes" }.into();
            self.forget_if_unbegun(&error, &Registry::new(&self.world.registry_dir));
            return Err(error);
        }
        let begun = self.world.clock.now();
        let registry = Registry::new(&self.world.registry_dir);
        let opened = registry.add(&self.paths.dir).and_then(|()| {
            let host = self.world.host.clone();
            Custodian::open(host, &self.paths.dir)
        });
        let custodian = opened.map_err(Error::from).inspect_err(|error| self.forget_if_unbegun(error, &registry))?;
        let result = self.execute_arms(&custodian, observer);
        let left = custodian.release_all();
        drop(custodian);
        // A file system that is still mounted below the directory must not be deleted with it, and
        // `clean` needs its journal.
        let is_free = !left.iter().any(|action| matches!(action.outcome, Outcome::Failed { .. }));
        for action in left {
            // A run without errors holds nothing here. After an error this is the cleanup.
            let appended =
                self.store.append_event("released", &serde_json::json!({ "resource": format!("{action:?}") }));
            // On a full disk this fails too. The caller receives the first error.
            if result.is_ok() {
                appended?;
            }
        }
        let end = result.inspect_err(|error| {
            if is_free {
                self.forget_if_unbegun(error, &registry);
            }
        })?;
        if self.created && end.failed_arms.is_empty() {
            let seconds = (self.world.clock.now().0.saturating_sub(begun.0)) / 1_000_000_000;
            let (arm, key) = (String::new(), TOOK_SECONDS.to_owned());
            add_circumstances(&mut self.store, vec![CircumstanceRow { arm, key, value: seconds.to_string() }])?;
        }
        self.store.compact()?;
        self.journal.append(Entry::RunDone).map_err(Error::io("write", self.paths.journal()))?;
        if !is_free {
            return Err(Error::RunDirectory {
                path: self.paths.dir.clone(),
                problem: "is complete, but not everything that it made could be removed".into(),
                hint: "see what still uses it, then run: senesce clean",
            });
        }
        registry.remove(&self.paths.dir)?;
        Ok(end)
    }

    fn execute_arms(&mut self, custodian: &Custodian, observer: &mut dyn Observer) -> Result<RunEnd, Error> {
        let arms = self.plan.arms();
        // An arm that failed in an earlier process of the run starts again.
        let open: Vec<&Arm> = arms.iter().filter(|arm| self.journal.arm_state(&arm.name) != ArmState::Done).collect();
        if !open.is_empty() {
            let (volumes, spool) = (self.paths.volumes(), self.paths.spool());
            let place = Place {
                plan: &self.plan_path,
                volumes: &volumes,
                spool: &spool,
                entries: self.journal.entries(),
                force: self.force,
            };
            let Prepared { devices, virtual_device, source, sizes, .. } = prepare(&self.plan, &place, &self.world)?;
            check_source(&self.plan, &source, &self.paths)?;
            let devices = (&devices[..], virtual_device.as_ref());
            self.put_circumstances(&source, &sizes, devices.0)?;
            for arm in open {
                self.execute_arm(arm, &source, &sizes, devices, custodian, observer)?;
            }
        }
        for arm in &arms {
            // These snapshots are of no more use, also if the arm failed or was killed at its end.
            drop_snapshots(&self.paths.arm(&arm.name), &[])?;
        }
        let failed = arms.into_iter().filter_map(|arm| match self.journal.arm_state(&arm.name) {
            ArmState::Failed(reason) => Some((arm.name, reason)),
            _ => None,
        });
        Ok(RunEnd { failed_arms: failed.collect() })
    }

    fn execute_arm(
        &mut self,
        arm: &Arm,
        source: &Source,
        sizes: &Sizes,
        (devices, virtual_device): (&[DeviceSpec], Option<&VirtualDevice>),
        custodian: &Custodian,
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        let pulls = source.pulls(&self.plan);
        let mut context = ArmContext {
            plan: &self.plan,
            arm,
            pulls: ArmPulls(pulls),
            sizes,
            source,
            devices,
            virtual_device,
            paths: &self.paths,
            world: &self.world,
            custodian,
            force: self.force,
            store: &mut self.store,
            journal: &mut self.journal,
            observer: PhaseTimer::new(observer, &*self.world.clock),
        };
        let reason = match run_arm(&mut context) {
            Ok(()) => String::new(),
            Err(error) => match error.interrupted() {
                Some(interrupted) => return Err(interrupted.into()),
                // An error of the machine before any work affects all arms.
                None if self.concerns_all_arms(&error) => return Err(error),
                None => match self.find_full_dir(&error) {
                    // The arm did not cause this. It can continue when there is space again.
                    Some(dir) => {
                        let run = self.paths.dir.clone();
                        return Err(Error::HostFull { dir, run, source: Box::new(error) });
                    }
                    None => self.record_failure(arm, pulls, &error)?,
                },
            },
        };
        observer.on_event(&Event::ArmDone { arm: arm.name.clone(), reason });
        Ok(())
    }

    /// Whether the other arms would have the same error, if nothing was measured yet.
    fn concerns_all_arms(&self, error: &Error) -> bool {
        use senesce_volume::Error as Volume;
        let Error::Volume(volume) = error else { return false };
        let of_one_file_system = matches!(volume, Volume::ToolMissing { .. } | Volume::FileSystemNotInKernel { .. });
        volume.is_environment() && self.is_unbegun() && (self.plan.arms().len() == 1 || !of_one_file_system)
    }

    /// The directory of results or images whose file system has no space left. If the host of an
    /// image is full, a write fails inside the volume, with an I/O error that does not name the
    /// cause.
    fn find_full_dir(&self, error: &Error) -> Option<PathBuf> {
        if error.is_host_full() {
            return Some(self.paths.dir.clone());
        }
        const LEAST: Bytes = Bytes(256 * Bytes::KIB);
        let images = self.plan.volumes.dir.as_ref().map_or_else(|| self.paths.volumes(), PathBuf::from);
        let is_full = |dir: &PathBuf| self.world.host.free_bytes(dir).is_ok_and(|free| free < LEAST);
        [self.paths.dir.clone(), images].into_iter().find(is_full)
    }

    /// Whether nothing was measured and no arm has failed.
    fn is_unbegun(&self) -> bool {
        self.journal.entries().iter().all(|entry| {
            matches!(entry, Entry::RunStarted { .. } | Entry::ArmStarted { .. } | Entry::Formatting { .. })
        })
    }

    /// Removes the directory of a run that could not start, so that the user can repeat the command
    /// after a repair. Keeps a finished clone, and the data of an interrupted run.
    fn forget_if_unbegun(&self, error: &Error, registry: &Registry) {
        let has_clone = self.paths.spool().join("clone.git/.complete").exists();
        // When there is space again, the run continues at the last checkpoint.
        let is_resumable = error.interrupted().is_some() || matches!(error, Error::HostFull { .. });
        if self.created && self.is_unbegun() && !is_resumable && !has_clone {
            // The caller receives the error that led here.
            let _ = registry.remove(&self.paths.dir);
            let _ = fs::remove_dir_all(&self.paths.dir);
        }
    }

    /// Marks the missing cells as invalid, with the reason. Returns the reason.
    fn record_failure(&mut self, arm: &Arm, pulls: u64, error: &Error) -> Result<String, Error> {
        let mut reason = chain_text(error);
        if let Some((_, Some(hint))) = classify(error) {
            reason.push_str(&format!("; hint: {hint}"));
        }
        let (is_repeated, checkpoints) = (self.journal.is_repeated(&arm.name), self.journal.checkpoints(&arm.name));
        for key in self.plan.cells(arm, pulls) {
            let is_of_this_attempt = !is_repeated || checkpoints.contains(&(key.pulls, key.role.is_cured()));
            if !is_of_this_attempt || !self.store.contains(&key) {
                self.store.append_cell(&invalid_cell(key, &reason))?;
            }
        }
        let failed = Entry::ArmFailed { arm: arm.name.clone(), reason: reason.clone() };
        self.journal.append(failed).map_err(Error::io("write", self.paths.journal()))?;
        Ok(reason)
    }

    fn needs_root(&self) -> bool {
        !self.plan.roles().iter().all(|&role| self.plan.volume(role).is_directory())
    }

    fn put_circumstances(&mut self, source: &Source, sizes: &Sizes, devices: &[DeviceSpec]) -> Result<(), Error> {
        let plan = &self.plan;
        let mut pairs = vec![
            ("plan.name".to_owned(), plan.name.clone()),
            ("plan.description".to_owned(), plan.description.clone()),
            ("plan.hash".to_owned(), self.plan_hash.clone()),
            ("plan.seed".to_owned(), plan.seed.0.to_string()),
            ("senesce.version".to_owned(), self.world.senesce_version.clone()),
            (BEGUN_UNIX_SECONDS.to_owned(), self.world.clock.unix_seconds().to_string()),
            ("workload.step_unit".to_owned(), plan.step_unit().to_owned()),
            ("volumes.first_state_bytes".to_owned(), sizes.clone_bytes.to_string()),
        ];
        pairs.extend(source.circumstances());
        let workload = serde_json::to_value(&plan.workload).unwrap_or_default();
        for (key, value) in workload.as_object().into_iter().flatten() {
            pairs.push((format!("workload.{key}"), value.to_string()));
        }
        let measure = serde_json::to_value(&plan.measure).unwrap_or_default();
        for (key, value) in measure.as_object().into_iter().flatten() {
            pairs.push((format!("measure.{key}"), value.to_string()));
        }
        // The results use these names. The plan has other names, in the same order.
        let names: Vec<_> = devices.iter().map(DeviceSpec::model_name).collect();
        pairs.push(("measure.device_names".to_owned(), serde_json::to_value(names).unwrap_or_default().to_string()));
        if !plan.published.is_empty() {
            let values = serde_json::to_value(with_titles(&plan.published)).unwrap_or_default();
            pairs.push((PUBLISHED.to_owned(), values.to_string()));
        }
        if let Some(device) = &plan.volumes.device {
            pairs.push(("volumes.device".to_owned(), device.clone()));
            pairs.push(("volumes.real_time".to_owned(), plan.volumes.real_time.to_string()));
        }
        let rows = pairs.into_iter().map(|(key, value)| CircumstanceRow { arm: String::new(), key, value });
        add_circumstances(&mut self.store, rows.collect())
    }
}

/// Refuses a directory for a new run that is not empty.
pub(crate) fn check_new(dir: &Path) -> Result<(), Error> {
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::RunDirectory {
            path: dir.to_owned(),
            problem: "is not empty".into(),
            hint: "choose another directory with --out, or continue that run with --resume",
        });
    }
    Ok(())
}

/// A cell that could not be measured.
pub(crate) fn invalid_cell(key: CellKey, reason: &str) -> CellResults {
    CellResults::of(CellRow { valid: false, ..CellRow::without_figures(key, reason) })
}

/// The text of a plan in a run's directory. `path` is for messages.
pub(crate) fn plan_text(plan: &Plan, path: &Path) -> Result<String, Error> {
    toml::to_string(plan).map_err(|error| Error::RunDirectory {
        path: path.to_owned(),
        problem: format!("cannot be written: {error}"),
        hint: "this is a fault of senesce; please report it",
    })
}

/// The circumstance with the start of a run, in seconds since 1970.
pub const BEGUN_UNIX_SECONDS: &str = "run.begun_unix_seconds";
/// The circumstance of a run that one process executed without a failed arm: its wall time.
pub const TOOK_SECONDS: &str = "run.took_seconds";

/// The hash of a plan, as runs of it record it. `None`: it cannot be written.
pub fn hash_of_plan(plan: &Plan) -> Option<String> {
    plan_text(plan, Path::new("")).ok().map(|text| plan_hash(&text))
}

/// The hash of the text of a plan.
pub(crate) fn plan_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn run_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned())
}
