//! Plans of suites: personalities, file systems, and the profiles that age them.

use std::path::Path;

use schemars::JsonSchema;
use senesce_core::{Bytes, Seed};
use senesce_device::DeviceSpec;
use senesce_volume::FileSystemKind;
use senesce_workload::personality::{Personality, PersonalityOptions, plan_script};
use serde::{Deserialize, Serialize};

use crate::{
    Until,
    description::read_description,
    personality::{contradiction, read_personality},
    plan::{
        FileSystem, FileSystemName, GardeningName, Plan, PlanError, ScheduleName, Size, find_device, is_name,
        parse_format,
    },
    plan_aging, volumes,
};

/// The version this program reads.
pub const SUITE_FORMAT: &str = "senesce-suite/1";
/// The state of an unused volume.
pub const FRESH: &str = "fresh";

/// Personalities on file systems in several states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuitePlan {
    /// Version of the format: `senesce-suite/1`.
    pub format: String,
    /// Short name.
    pub name: String,
    /// The purpose, for readers.
    #[serde(default)]
    pub description: String,
    /// Aging and runs follow from this number.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Runs of each personality on each file system in each state.
    #[serde(default = "default_runs")]
    pub runs: u32,
    /// `fresh`, and profiles to age by: built-in ones (`senesce profile list`) or files.
    pub states: Vec<String>,
    /// The volumes.
    pub volume: SuiteVolume,
    /// The aging of the volumes.
    #[serde(default)]
    pub aging: SuiteAging,
    /// The personalities to measure.
    #[serde(rename = "personality")]
    pub personalities: Vec<SuitePersonality>,
    /// The file systems to measure. The first one, fresh, is the baseline of all others.
    #[serde(rename = "file_system")]
    pub file_systems: Vec<FileSystem>,
}

/// The volumes of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuiteVolume {
    /// Their size.
    pub size: Size,
    /// A device to model: runs are then on disks in virtual time, and rates are operations per
    /// second of that time. A built-in one (`senesce device list`) or a description in TOML. By
    /// default the machine's time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Keeps volumes in memory (/dev/shm) while they are aged and run. This spares the real device,
    /// and does not change the time of a modelled one.
    #[serde(default)]
    pub memory: bool,
}

/// The aging of a suite's volumes: the keys of `[workload.profile]` in plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuiteAging {
    /// The share of the volume that is used, percent.
    pub fullness_percent: f64,
    /// Births and deaths.
    pub schedule: ScheduleName,
    /// Births after the filling over files, in the virtual schedule.
    pub churn: f64,
    /// Operations between synchronisations of the whole file system; 0: none.
    pub sync_every_operations: u64,
}

impl Default for SuiteAging {
    fn default() -> Self {
        Self { fullness_percent: 65.0, schedule: ScheduleName::Virtual, churn: 4.0, sync_every_operations: 2000 }
    }
}

/// A personality of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuitePersonality {
    /// A built-in one (`senesce bench personality list`) or a file.
    pub name: String,
    /// Multiplies its sets of files.
    #[serde(default = "default_scale")]
    pub scale: f64,
    /// File operations of a run; by default its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
}

fn default_seed() -> u64 {
    1
}

fn default_runs() -> u32 {
    5
}

fn default_scale() -> f64 {
    1.0
}

impl SuitePlan {
    /// Reads a plan. Relative paths in it start at the working directory.
    ///
    /// Errors: it cannot be read; a wrong key, with the problem.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let text = read_description(path).map_err(|source| PlanError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Parses a text as a plan. `path` is for messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, PlanError> {
        let plan: Self = parse_format(path, text, SUITE_FORMAT)?;
        plan.check(path)?;
        Ok(plan)
    }

    fn check(&self, path: &Path) -> Result<(), PlanError> {
        let wrong = |key: &str, problem: &str| Err(contradiction(path, key, problem));
        if !is_name(&self.name) {
            return wrong("name", "must be letters, digits, '-', '_' and '.'");
        }
        if !(1..=1000).contains(&self.runs) {
            return wrong("runs", "must be 1 to 1000");
        }
        for (key, count) in [
            ("states", self.states.len()),
            ("personality", self.personalities.len()),
            ("file_system", self.file_systems.len()),
        ] {
            if count == 0 {
                return wrong(key, "is empty; there is nothing to measure");
            }
        }
        if !self.states.iter().any(|state| state == FRESH) {
            return wrong("states", "is without \"fresh\", the baseline of all other states");
        }
        let names = self.states.iter().map(|state| state_name(state)).collect();
        for (key, names) in [("states", names), ("file_system", self.file_system_names())] {
            for (at, name) in names.iter().enumerate() {
                if !is_name(name) {
                    return wrong(key, &format!("has the name {name:?}; letters, digits, '-', '_' and '.' only"));
                }
                if names[..at].contains(name) {
                    return wrong(key, &format!("has {name:?} twice"));
                }
            }
        }
        for file_system in &self.file_systems {
            if file_system.kind == FileSystemName::Host {
                return wrong("file_system.kind", "is \"host\", which cannot be formatted");
            }
            if file_system.kind.is_engine() {
                let what =
                    format!("is {:?}, which plans of `senesce run` know, and suites do not", file_system.kind.as_str());
                return wrong("file_system.kind", &what);
            }
            if let Err((key, problem)) = volumes::check_words(file_system) {
                return wrong(key, &problem);
            }
            let (kind, size) = (volumes::kind(file_system.kind), self.volume.size.0);
            if size < kind.minimum_size() {
                return wrong("volume.size", &format!("is {size}; {kind} needs {}", kind.minimum_size()));
            }
        }
        let fullness = self.aging.fullness_percent;
        if !(1.0..=98.0).contains(&fullness) {
            return wrong("aging.fullness_percent", &format!("is {fullness}; it must be 1 to 98"));
        }
        // As in plans, keys without effect are refused.
        let aging = &self.aging;
        if self.states.len() == 1 && *aging != SuiteAging::default() {
            return wrong("aging", "has no effect: states has \"fresh\" only, and nothing is aged");
        }
        if aging.schedule == ScheduleName::Classic && aging.churn != SuiteAging::default().churn {
            return wrong("aging.churn", "is allowed with schedule = \"virtual\" only");
        }
        if self.file_systems.iter().any(|file_system| file_system.gardening != GardeningName::Off) {
            return wrong("file_system.gardening", "is allowed with kind = \"garden\" only, which suites do not know");
        }
        if self.file_systems.iter().any(|file_system| file_system.cure.is_some()) {
            return wrong("file_system.cure", "is allowed with plans of `run` only: a suite does not cure its volumes");
        }
        self.device(path)?;
        let aged = if self.states.len() > 1 { fullness / 100.0 } else { 0.0 };
        let free = Bytes((self.size().0 as f64 * (1.0 - aged)) as u64);
        let mut seen = Vec::new();
        for entry in &self.personalities {
            let personality = read_personality(&entry.name)?;
            let options = entry.options(Seed(self.seed));
            let planned = plan_script(&personality, &options)
                .map_err(|problem| contradiction(path, format!("personality.{}", problem.key), problem.problem))?;
            let needed = Bytes(planned.script.bytes());
            if needed > free {
                let name = &personality.name;
                let (free, needed) = Bytes::shortage(free, needed);
                let problem = format!("{name} begins with {needed} of files; an aged volume has at most {free} free");
                return wrong("personality.scale", &problem);
            }
            if seen.contains(&personality.name) {
                return wrong("personality", &format!("has {:?} twice", personality.name));
            }
            seen.push(personality.name);
        }
        for state in self.states.iter().filter(|state| *state != FRESH) {
            let aging = self.aging(state)?;
            let read = aging.workload.profile.unwrap_or_default().read();
            read.map_err(|error| contradiction(path, "states", error.to_string()))?;
        }
        Ok(())
    }

    /// Names of the file systems, in their order.
    pub fn file_system_names(&self) -> Vec<String> {
        self.file_systems.iter().map(|fs| fs.name.clone().unwrap_or_else(|| fs.kind.as_str().to_owned())).collect()
    }

    /// The modelled device. `None` if the machine's time counts.
    pub(super) fn device(&self, path: &Path) -> Result<Option<DeviceSpec>, PlanError> {
        self.volume.device.as_ref().map(|name| find_device("volume.device", name, path)).transpose()
    }

    /// The plan that ages a volume to a state.
    pub(super) fn aging(&self, state: &str) -> Result<Plan, PlanError> {
        let schedule = match self.aging.schedule {
            ScheduleName::Classic => "classic",
            ScheduleName::Virtual => "virtual",
        };
        let settings = [
            ("fullness_percent", format!("{:?}", self.aging.fullness_percent)),
            ("churn", format!("{:?}", self.aging.churn)),
            ("schedule", schedule.to_owned()),
            ("workload.sync_every_operations", self.aging.sync_every_operations.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        plan_aging(&format!("profile:{state}"), &settings, &Until::default(), Some(Seed(self.seed)))
    }

    /// The personalities with their parameters.
    pub(super) fn personalities(&self) -> Result<Vec<(Personality, &SuitePersonality)>, PlanError> {
        self.personalities.iter().map(|entry| Ok((read_personality(&entry.name)?, entry))).collect()
    }

    /// The size of each volume.
    pub fn size(&self) -> Bytes {
        self.volume.size.0
    }

    pub(super) fn kind(&self, file_system: usize) -> FileSystemKind {
        volumes::kind(self.file_systems[file_system].kind)
    }
}

impl SuitePersonality {
    pub(super) fn options(&self, seed: Seed) -> PersonalityOptions {
        PersonalityOptions { seed, scale: self.scale, operations: self.operations, endless: false }
    }
}

/// The name of a state in results. A profile in a file has the file's name.
pub(super) fn state_name(state: &str) -> String {
    let path = Path::new(state);
    match path.extension() {
        Some(_) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        None => state.to_owned(),
    }
}

/// The JSON schema of suites, with a final newline.
pub fn suite_schema_json() -> String {
    let schema = schemars::schema_for!(SuitePlan);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "format = \"senesce-suite/1\"\nname = \"t\"\nstates = [\"fresh\", \"agrawal\"]\n\
        [volume]\nsize = \"512MiB\"\n[[personality]]\nname = \"varmail\"\n[[file_system]]\nkind = \"ext4\"\n";

    fn error(text: &str) -> String {
        SuitePlan::parse(Path::new("s.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn misspelt_keys_are_refused_with_the_nearest_name() {
        let plan = SuitePlan::parse(Path::new("s.toml"), SMALL).unwrap();
        assert_eq!((plan.runs, plan.file_system_names()), (5, vec!["ext4".to_owned()]));
        let aging = plan.aging("agrawal").unwrap();
        assert_eq!(aging.workload.sync_every_operations, 2000);
        assert_eq!(aging.workload.profile.map(|profile| profile.fullness_percent), Some(65.0));
        let said = error(&SMALL.replace("states", "statess"));
        assert!(said.contains("did you mean `states`?"), "{said}");
        assert!(error(&SMALL.replace("suite/1", "suite/2")).contains("senesce-suite/2"));
        assert!(error("name = 1").contains("senesce-suite/1"));
    }

    #[test]
    fn problems_are_reported_with_their_key() {
        for (from, to, said) in [
            ("\"agrawal\"", "\"agraval\"", "agraval"),
            ("\"agrawal\"", "\"fresh\"", ": states: has \"fresh\" twice"),
            ("\"agrawal\"", "\"x/fresh.toml\"", ": states: has \"fresh\" twice"),
            ("\"fresh\", ", "", ": states: is without \"fresh\""),
            ("varmail\"", "varmail\"\nscale = 100.0", ": personality.scale: varmail begins with"),
            ("[\"fresh\", \"agrawal\"]", "[]", ": states: is empty"),
            ("name = \"t\"", "name = \"t\"\nruns = 0", ": runs: "),
            ("512MiB", "1MiB", ": volume.size: is 1 MiB"),
            ("\"512MiB\"", "\"512MiB\"\ndevice = \"floppy\"", ": volume.device: "),
            ("varmail\"", "varmale\"", "neither built in (varmail, fileserver"),
            ("varmail\"", "varmail\"\nscale = -1.0", ": personality.scale: is -1"),
            ("kind = \"ext4\"", "kind = \"host\"", ": file_system.kind: "),
            ("kind = \"ext4\"", "kind = \"ext4\"\nname = \"../x\"", ": file_system: has the name"),
            (
                "kind = \"ext4\"",
                "kind = \"ext4\"\n[[file_system]]\nkind = \"ext4\"",
                ": file_system: has \"ext4\" twice",
            ),
            (
                "[[personality]]",
                "[aging]\nfullness_percent = 150.0\n[[personality]]",
                ": aging.fullness_percent: is 150",
            ),
            ("\"fresh\", \"agrawal\"]", "\"fresh\"]\n[aging]\nchurn = 9.0", ": aging: has no effect"),
            (
                "[[personality]]",
                "[aging]\nschedule = \"classic\"\nchurn = 9.0\n[[personality]]",
                ": aging.churn: is allowed with schedule",
            ),
            ("kind = \"ext4\"", "kind = \"ext4\"\ngardening = \"csc\"", ": file_system.gardening: "),
            ("kind = \"ext4\"", "kind = \"ext4\"\ncure = { by = \"senesce\" }", ": file_system.cure: "),
        ] {
            let found = error(&SMALL.replace(from, to));
            assert!(found.contains(said), "{to}: {found}");
        }
    }

    #[test]
    fn published_schemas_are_current() {
        let published =
            |name: &str| std::fs::read_to_string(format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR")));
        let same = published("suite.schema.json").unwrap_or_default() == suite_schema_json();
        assert!(same, "old; run: senesce schema --of suite > docs/suite.schema.json");
        let same = published("personality.schema.json").unwrap_or_default() == crate::personality_schema_json();
        assert!(same, "old; run: senesce schema --of personality > docs/personality.schema.json");
    }
}
