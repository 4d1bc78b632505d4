//! The runs of a suite, interleaved and resumable.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use senesce_core::Seed;
use senesce_probe::score::{Load, LoadSample};
use senesce_volume::{CleanMode, Custodian, Outcome, Registry, Slot, Uuid, Volume, check_place, clean};
use senesce_workload::personality::Personality;

use super::{
    SuitePersonality, SuitePlan, SuiteResults, SuiteRun, SuiteState,
    images::{Images, needed, volume_spec},
    plan::state_name,
    results::compute_results,
};
use crate::{
    Error, World,
    drive_meter::DriveMeter,
    durable_files::write_durably,
    error::chain_text,
    personality::{PersonalityRun, measure_personality},
};

/// A suite with its directory.
pub struct Suite {
    plan: SuitePlan,
    dir: PathBuf,
    world: World,
    /// The complete description of the modelled device, so that all runs have the same device.
    device: Option<String>,
    runs: Vec<SuiteRun>,
}

impl Suite {
    /// Starts a suite in a new or empty directory. With `is_resumed`, continues the suite of the
    /// same plan.
    ///
    /// `path` is the plan's path, for messages. Errors: not root; the directory is not empty, or
    /// has a suite of another plan or version; no such device.
    pub fn open(plan: SuitePlan, path: &Path, dir: &Path, is_resumed: bool, world: World) -> Result<Self, Error> {
        let (device, text) = check(&plan, path, dir, is_resumed, &world)?;
        if !is_resumed {
            fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
            check_place(dir)?;
            write_durably(&dir.join("suite.json"), text.as_bytes())?;
        }
        let images = dir.join("images");
        fs::create_dir_all(&images).map_err(Error::io("create", &images))?;
        Ok(Self { plan, dir: dir.to_owned(), world, device, runs: Vec::new() })
    }

    /// Checks what [`open`](Self::open) checks, and writes nothing.
    pub fn check(plan: &SuitePlan, path: &Path, dir: &Path, is_resumed: bool, world: &World) -> Result<(), Error> {
        check(plan, path, dir, is_resumed, world).map(drop)
    }

    fn runs_path(&self) -> PathBuf {
        self.dir.join("runs.ndjson")
    }

    /// Reads the completed runs, and removes a line that a kill cut off. Failed runs are repeated.
    ///
    /// Only the owner of the directory may call this. Errors: a complete line is no run.
    fn read_runs(&self) -> Result<Vec<SuiteRun>, Error> {
        let path = self.runs_path();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            result => result.map_err(Error::io("read", &path))?,
        };
        let (mut kept, mut lines) = (Vec::new(), String::new());
        for (number, line) in text.split_inclusive('\n').filter(|line| line.ends_with('\n')).enumerate() {
            let run: SuiteRun = serde_json::from_str(line).map_err(|error| Error::RunDirectory {
                path: path.clone(),
                problem: format!("is damaged: line {} is no run of a suite: {error}", number + 1),
                hint: "remove the line by hand, or start the suite in another directory",
            })?;
            if run.failed.is_none() {
                kept.push(run);
                lines.push_str(line);
            }
        }
        if lines != text {
            write_durably(&path, lines.as_bytes())?;
        }
        Ok(kept)
    }

    /// Makes the missing images and the missing runs. Calls `tell` with messages on the progress.
    ///
    /// Errors: no space for the images, another process at work in the directory, a signal. An
    /// image that cannot be made, and a run that fails, are recorded with their reasons, and the
    /// others continue. Cost: ages every image once, then restores, sets up and runs for each
    /// figure.
    pub fn execute(&mut self, tell: &mut dyn FnMut(String)) -> Result<SuiteResults, Error> {
        let host = self.world.host.clone();
        clean(&*host, &self.dir, CleanMode::Act)?;
        let registry = Registry::new(&self.world.registry_dir);
        registry.add(&self.dir)?;
        let custodian = Custodian::open(host, &self.dir)?;
        let result = self.read_runs().and_then(|runs| {
            self.runs = runs;
            self.execute_in(&custodian, tell)
        });
        let left = custodian.release_all();
        drop(custodian);
        let is_free = !left.iter().any(|action| matches!(action.outcome, Outcome::Failed { .. }));
        if is_free {
            registry.remove(&self.dir)?;
        }
        fs::remove_dir_all(self.dir.join("spool")).ok();
        result
    }

    fn execute_in(&mut self, custodian: &Custodian, tell: &mut dyn FnMut(String)) -> Result<SuiteResults, Error> {
        let personalities: Vec<(Personality, SuitePersonality)> =
            self.plan.personalities()?.into_iter().map(|(found, entry)| (found, entry.clone())).collect();
        let available = custodian.host().free_bytes(&self.dir)?;
        let images_at = self.dir.join("images");
        let present = fs::read_dir(&images_at).map_err(Error::io("list", &images_at))?.next().is_some();
        let needed = needed(&self.plan);
        if !present && available < needed {
            return Err(senesce_volume::Error::NotEnoughSpace { dir: self.dir.clone(), available, needed }.into());
        }
        let plan = self.plan.clone();
        let dir = self.dir.clone();
        let world = self.world.clone();
        let images = Images { plan: &plan, dir: &dir, custodian, world: &world };
        let mut states = Vec::new();
        let mut places = Vec::new();
        for number in 0..plan.file_systems.len() {
            for state in &plan.states {
                tell(format!("image of {}, {}", plan.file_system_names()[number], state_name(state)));
                let made = images.provide(number, state, tell)?;
                if made.failed.is_none() {
                    places.push((number, states.len()));
                }
                states.push(made);
            }
        }
        let names: Vec<String> = personalities.iter().map(|(personality, _)| personality.name.clone()).collect();
        let total = plan.runs as usize * personalities.len() * places.len();
        for round in 0..plan.runs {
            for (personality, entry) in &personalities {
                let mut turns = places.clone();
                // Every other round is in reverse order, so that load from other work affects all
                // alike.
                if round % 2 == 1 {
                    turns.reverse();
                }
                for (number, at) in turns {
                    let state: &SuiteState = &states[at];
                    let is_it = |run: &SuiteRun| {
                        (&*run.personality, &*run.file_system, &*run.state, run.run)
                            == (&*personality.name, &*state.file_system, &*state.state, round + 1)
                    };
                    if self.runs.iter().any(is_it) {
                        continue;
                    }
                    let image = images.path(&state.file_system, &state.state);
                    let run = self.do_run(custodian, number, state, &image, (personality, entry), round + 1)?;
                    let done = self.runs.len() + 1;
                    let what = format!("{} {} {}, run {}", run.personality, run.file_system, run.state, run.run);
                    tell(match (&run.figures, &run.failed) {
                        (Some(figures), _) => format!("{done}/{total} {what}: {:.1} operations/s", figures.rate()),
                        (None, reason) => format!("{done}/{total} {what}: failed: {}", reason.as_deref().unwrap_or("")),
                    });
                    self.append(&run)?;
                    self.runs.push(run);
                }
            }
        }
        let results = compute_results(&plan, &names, states, self.runs.clone(), &self.world.senesce_version);
        let path = self.dir.join("results.json");
        let text = serde_json::to_vec_pretty(&results).map_err(|error| Error::io("write", &path)(error.into()))?;
        write_durably(&path, &text)?;
        Ok(results)
    }

    fn append(&self, run: &SuiteRun) -> Result<(), Error> {
        let path = self.runs_path();
        let write = || -> std::io::Result<()> {
            let mut file: File = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all((serde_json::to_string(run)? + "\n").as_bytes())?;
            file.sync_data()
        };
        write().map_err(Error::io("write", &path))
    }

    fn do_run(
        &self,
        custodian: &Custodian,
        number: usize,
        state: &SuiteState,
        image: &Path,
        (personality, entry): (&Personality, &SuitePersonality),
        run: u32,
    ) -> Result<SuiteRun, Error> {
        let spec = volume_spec(&self.plan, &self.dir, number, self.device.as_deref());
        let slot = Slot {
            name: format!("run-{}", state.file_system),
            uuid: Uuid::from_seed(Seed(0)), // the image has its own
            mount_dir: self.dir.clone(),
            needed: self.plan.size(),
        };
        let clock = &*self.world.clock;
        // Runs with the same number do the same operations on every file system. Other numbers do
        // others.
        let seed = Seed(self.plan.seed).derive(&format!("run {run}"));
        let how = PersonalityRun { options: entry.options(seed), time: None, sync: true };
        let mut circumstances = None;
        let mut disturbance = String::new();
        let mut measure = || -> Result<_, Error> {
            let (mut volume, _) = Volume::restore(custodian, &spec, &slot, image, clock)?;
            circumstances = Some(volume.circumstances()?);
            let drive = DriveMeter::of(&volume);
            let sample = |volume: &Volume| -> Result<LoadSample, Error> {
                Ok(LoadSample { drive: drive.sample(volume)?, ..self.world.load.sample() })
            };
            let (begun, before) = (clock.now(), sample(&volume)?);
            let measured = measure_personality(&mut volume, personality, &how, clock);
            let load = Load::between(&before, &sample(&volume)?, clock.now().since(begun).as_secs_f64());
            // Load does not change the time of a modelled device.
            if self.device.is_none() {
                disturbance = load.describe_disturbances();
            }
            let destroyed = volume.destroy();
            let figures = measured?;
            destroyed?;
            Ok(figures)
        };
        let (figures, failed) = match measure() {
            Ok(figures) => (Some(figures), None),
            Err(error) if error.interrupted().is_some() => return Err(error),
            Err(error) => (None, Some(chain_text(&error))),
        };
        Ok(SuiteRun {
            personality: personality.name.clone(),
            file_system: state.file_system.clone(),
            state: state.state.clone(),
            run,
            figures,
            failed,
            disturbance,
            circumstances: circumstances.unwrap_or_default(),
        })
    }
}

/// Checks a suite without a write. Returns the description of its device, and the text of
/// `suite.json`.
fn check(
    plan: &SuitePlan,
    path: &Path,
    dir: &Path,
    is_resumed: bool,
    world: &World,
) -> Result<(Option<String>, String), Error> {
    let wrong =
        |problem: &str, hint| Err(Error::RunDirectory { path: dir.to_owned(), problem: problem.to_owned(), hint });
    if !world.host.is_root() {
        return Err(senesce_volume::Error::NotRoot { operation: "make and mount the suite's volumes" }.into());
    }
    let device = plan.device(path)?.map(|spec| spec.render()).transpose().map_err(|error| Error::Unverified {
        what: "the description of volume.device".into(),
        problem: error.to_string(),
    })?;
    let text = serde_json::to_string_pretty(
        &serde_json::json!({ "plan": plan, "device": device, "senesce": world.senesce_version }),
    )
    .map_err(|error| Error::Io { operation: "write", path: dir.join("suite.json"), source: error.into() })?;
    let kept = dir.join("suite.json");
    match (fs::read_to_string(&kept), is_resumed) {
        (Ok(found), true) if found == text => {}
        (Ok(_), true) => {
            return wrong(
                "was started with another plan, device or version",
                "name the same plan, or another directory",
            );
        }
        (Err(_), true) => return wrong("holds no suite", "leave out --resume to start one"),
        (_, false) if dir.symlink_metadata().is_ok() => {
            check_place(dir)?;
            if fs::read_dir(dir).map_err(Error::io("list", dir))?.next().is_some() {
                return wrong("holds something already", "name another directory, or continue its suite with --resume");
            }
        }
        (_, false) => {}
    }
    Ok((device, text))
}
