//! The images at the start of runs: a fresh one and aged ones of each file system, made once and
//! kept.

use std::{
    fs,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use senesce_core::{Bytes, Seed};
use senesce_probe::score::FreeSpaceFigures;
use senesce_volume::{Backend, Custodian, Existing, Pace, Slot, Uuid, VirtualDevice, Volume, VolumeSpec};
use serde::{Deserialize, Serialize};

use super::{FRESH, SuitePlan, plan::state_name};
use crate::{
    AgeOptions, Error, Onto, Source, Until, World, age_into,
    arm::{check_signal, collect_free_space},
    durable_files::write_durably,
    error::chain_text,
    volumes::{MEMORY_DIR, create_untaken, hash_seed},
};

/// An image and its circumstances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteState {
    /// The file system's name.
    pub file_system: String,
    /// `fresh`, or the profile's name.
    pub state: String,
    /// All inputs of the image. If they are the same, the image can be used again.
    pub recipe: serde_json::Value,
    /// The result of the aging. `None` for a fresh image.
    pub reached: Option<serde_json::Value>,
    /// Free space by size of the free extents. `None` without an image.
    pub free_space: Option<FreeSpaceFigures>,
    /// The reason why there is no image, and no run of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Whether the free space was trimmed.
    pub is_trimmed: bool,
    /// The circumstances of the volume at its creation.
    pub circumstances: Vec<(String, String)>,
}

/// The directory of the images.
pub(super) struct Images<'a> {
    pub plan: &'a SuitePlan,
    pub dir: &'a Path,
    pub custodian: &'a Custodian,
    pub world: &'a World,
}

impl Images<'_> {
    pub fn path(&self, file_system: &str, state: &str) -> PathBuf {
        self.dir.join("images").join(format!("{file_system}-{state}.image"))
    }

    /// Returns the existing image if its inputs are the same. Otherwise makes it. If it cannot be
    /// made, the state has the reason.
    ///
    /// Errors: a signal.
    pub fn provide(&self, number: usize, state: &str, tell: &mut dyn FnMut(String)) -> Result<SuiteState, Error> {
        let error = match self.try_provide(number, state, tell) {
            Err(error) if error.interrupted().is_none() => error,
            result => return result,
        };
        let failed = Some(chain_text(&error));
        tell(format!("no image: {}", failed.as_deref().unwrap_or_default()));
        Ok(SuiteState {
            file_system: self.plan.file_system_names().swap_remove(number),
            state: state_name(state),
            recipe: self.recipe(number, state)?,
            reached: None,
            free_space: None,
            failed,
            is_trimmed: false,
            circumstances: Vec::new(),
        })
    }

    fn try_provide(&self, number: usize, state: &str, tell: &mut dyn FnMut(String)) -> Result<SuiteState, Error> {
        let file_system = self.plan.file_system_names().swap_remove(number);
        let name = state_name(state);
        let image = self.path(&file_system, &name);
        let record_path = image.with_extension("json");
        let recipe = self.recipe(number, state)?;
        if let Some(record) = read_record(&record_path).filter(|record| record.recipe == recipe)
            && image.is_file()
        {
            return Ok(record);
        }
        fs::remove_file(&record_path).ok();
        let spec = volume_spec(self.plan, self.dir, number, None);
        let seed = Seed(self.plan.seed).derive(&format!("suite {file_system} {name}"));
        let slot = Slot {
            name: format!("{file_system}-{name}"),
            uuid: Uuid::from_seed(seed),
            mount_dir: self.dir.to_owned(),
            needed: self.plan.size(),
        };
        let mut volume = create_untaken(self.custodian, &spec, slot)?;
        let reached = match state {
            FRESH => None,
            _ => Some(self.age(&volume, state, &format!("{file_system} {name}"), tell)?),
        };
        volume.sync()?;
        let free_space = Some(collect_free_space(self.plan.file_systems[number].kind, volume.root())?);
        let host = &*self.world.host;
        let is_trimmed = match host.find_tool("fstrim") {
            Some(fstrim) => host.run_tool(&fstrim, &[volume.root().to_string_lossy().into_owned()])?.success,
            None => false,
        };
        let circumstances = volume.circumstances()?;
        volume.unmount()?;
        volume.snapshot_to(&image, Existing::Replace, &*self.world.clock)?;
        volume.destroy()?;
        let record = SuiteState {
            file_system,
            state: name,
            recipe,
            reached,
            free_space,
            failed: None,
            is_trimmed,
            circumstances,
        };
        let text = serde_json::to_vec_pretty(&record).map_err(|error| self.broken(&record_path, error))?;
        write_durably(&record_path, &text)?;
        Ok(record)
    }

    fn age(
        &self,
        volume: &Volume,
        state: &str,
        what: &str,
        tell: &mut dyn FnMut(String),
    ) -> Result<serde_json::Value, Error> {
        let plan = self.plan.aging(state)?;
        let spool = self.dir.join("spool");
        fs::create_dir_all(&spool).map_err(Error::io("create", &spool))?;
        let mut reported = 0;
        let mut each = |ages: &crate::Ages| {
            if ages.counted_steps >= reported + 20 {
                reported = ages.counted_steps;
                tell(format!("{what}: fullness {:.1}%, turnover {:.2}", 100.0 * ages.fullness, ages.turnover));
            }
        };
        let options = AgeOptions {
            plan: &plan,
            onto: Onto::Directory(volume.root()),
            source: &Source::open(&plan, &spool, &self.world.owners)?,
            log: None,
            until: &Until::default(),
            apply_threads: 1,
            threads: self.world.threads,
            clock: &*self.world.clock,
        };
        // A profile ages one volume from start to end.
        let end = age_into(&options, &mut || Ok(()), &mut each);
        check_signal()?;
        serde_json::to_value(end?).map_err(|error| self.broken(&spool, error))
    }

    /// All inputs of the image.
    fn recipe(&self, number: usize, state: &str) -> Result<serde_json::Value, Error> {
        let aging = match state {
            FRESH => None,
            _ => Some(self.plan.aging(state)?.workload),
        };
        Ok(serde_json::json!({
            "senesce": self.world.senesce_version,
            "file_system": self.plan.file_systems[number],
            "size_bytes": self.plan.size().0,
            "seed": self.plan.seed,
            "aging": aging,
        }))
    }

    fn broken(&self, path: &Path, error: serde_json::Error) -> Error {
        Error::Io { operation: "write", path: path.to_owned(), source: error.into() }
    }
}

/// The volume of a file system of the plan, in memory or in `dir`. With a device, it is a disk in
/// virtual time.
pub(super) fn volume_spec(plan: &SuitePlan, dir: &Path, number: usize, device: Option<&str>) -> VolumeSpec {
    let memory = plan.volume.memory;
    let (dir, size) = (if memory { PathBuf::from(MEMORY_DIR) } else { dir.to_owned() }, plan.size());
    let backend = match device {
        Some(device) => {
            let device = VirtualDevice { device: device.to_owned(), pace: Pace::Device };
            Backend::Virtual { dir, size, memory, device }
        }
        None => Backend::Image { dir, size, memory },
    };
    let mut spec = VolumeSpec::new(backend, plan.kind(number));
    let file_system = &plan.file_systems[number];
    spec.mkfs_options.clone_from(&file_system.mkfs);
    if let Some(mount) = &file_system.mount {
        spec.mount_options.clone_from(mount);
    }
    spec.hash_seed = Some(hash_seed(Seed(plan.seed), "suite"));
    spec
}

/// Returns `None` if the record does not exist or is incomplete. The image is then made again.
fn read_record(path: &Path) -> Option<SuiteState> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The maximum of bytes of all images, and of one in work.
pub(super) fn needed(plan: &SuitePlan) -> Bytes {
    let states = (plan.file_systems.len() * plan.states.len()) as f64;
    let filled = plan.aging.fullness_percent / 100.0;
    Bytes((plan.size().0 as f64 * (states * filled + 1.0)) as u64)
}
