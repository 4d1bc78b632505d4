//! Parses plan files.

use std::path::Path;

use senesce_store::Role;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::{description::read_description, volumes::check_words};

use super::{
    Edition, Engine, FileSystemName, GardeningName, PLAN_FORMAT, Plan, PlanError, VolumePlan, WorkloadKind,
    did_you_mean::nearest_known, messages::explain, published::find_fault,
};

/// Mount options of our engines. The gardening of a garden has its own key.
const ENGINE_OPTIONS: [&str; 3] = ["threads", "cache", "point-every"];

impl Plan {
    /// Reads a plan file. Relative paths in it start at the working directory.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        Self::parse(path, &read_text(path)?)
    }

    /// Reads the copy of a plan in a run's directory. Keys without effect are accepted, as by the
    /// version that started the run.
    pub fn read_kept(path: &Path) -> Result<Self, PlanError> {
        Self::parse_kept(path, &read_text(path)?)
    }

    /// Parses the copy of a plan in a run's directory. Keys without effect are accepted: an earlier
    /// version may have accepted them, and the run must be able to continue.
    pub fn parse_kept(path: &Path, text: &str) -> Result<Self, PlanError> {
        let plan: Plan = parse_format(path, text, PLAN_FORMAT)?;
        plan.check_values(path)?;
        Ok(plan)
    }

    /// Parses a text as a plan. `path` is for messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, PlanError> {
        let plan: Plan = parse_format(path, text, PLAN_FORMAT)?;
        plan.checked(path)
    }

    /// Returns the plan if its values are consistent. `path` is for messages.
    pub fn checked(self, path: &Path) -> Result<Self, PlanError> {
        self.check(path)?;
        Ok(self)
    }

    fn check(&self, path: &Path) -> Result<(), PlanError> {
        self.check_values(path)?;
        match self.find_unused() {
            Some((key, problem)) => Err(PlanError::Contradiction {
                path: path.to_owned(),
                key: key.to_owned(),
                problem: problem.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_values(&self, path: &Path) -> Result<(), PlanError> {
        let wrong = |key: &str, problem: &str| {
            Err(PlanError::Contradiction { path: path.to_owned(), key: key.to_owned(), problem: problem.to_owned() })
        };
        let history = &self.history;
        let sources =
            [history.repo.is_some(), history.synthetic.is_some(), history.like.is_some(), history.trace.is_some()];
        let of_history = self.workload.kind == WorkloadKind::History;
        if of_history && sources.iter().filter(|&&given| given).count() != 1 {
            return wrong("history", "needs exactly one of repo, synthetic, like and trace");
        }
        if !of_history {
            if self.history != Default::default() {
                return wrong("history", "is allowed with workload.kind = \"history\" only");
            }
            let published = super::WorkloadPlan::default();
            if (self.workload.edition, &self.workload.engine, &self.workload.gc)
                != (published.edition, &published.engine, &published.gc)
            {
                return wrong("workload", "edition, engine and gc are allowed with kind = \"history\" only");
            }
        }
        let workload = &self.workload;
        for (kind, given) in [
            (WorkloadKind::Fsfb, workload.fsfb.is_some()),
            (WorkloadKind::Mail, workload.mail.is_some()),
            (WorkloadKind::Intrafile, workload.intrafile.is_some()),
            (WorkloadKind::Interfile, workload.interfile.is_some()),
            (WorkloadKind::Renames, workload.renames.is_some()),
            (WorkloadKind::Overwrite, workload.overwrite.is_some()),
            (WorkloadKind::Replay, workload.replay.is_some()),
        ] {
            if given && kind != workload.kind {
                let name = kind.as_str();
                return wrong(&format!("workload.{name}"), &format!("is allowed with workload.kind = {name:?} only"));
            }
        }
        if self.workload.profile.is_some() && self.workload.kind != WorkloadKind::Profile {
            return wrong("workload.profile", "is allowed with workload.kind = \"profile\" only");
        }
        if workload.kind == WorkloadKind::Replay && workload.replay.as_ref().is_none_or(|table| table.log.is_empty()) {
            return wrong("workload.replay.log", "is missing; name an operation log");
        }
        if let Some(synthetic) = &self.history.synthetic
            && synthetic.model != "linux-like"
        {
            return wrong("history.synthetic.model", "is unknown; the one model is \"linux-like\"");
        }
        const NAMES: &str =
            "must be letters, digits, '-', '_' and '.' and not begin with '.', because directories are named after it";
        if !is_name(&self.name) {
            return wrong("name", NAMES);
        }
        if self.file_systems.iter().filter_map(|fs| fs.name.as_ref()).any(|name| !is_name(name)) {
            return wrong("file_system.name", NAMES);
        }
        if self.file_systems.iter().any(|fs| fs.gardening != GardeningName::Off && fs.kind != FileSystemName::Garden) {
            return wrong("file_system.gardening", "is allowed with kind = \"garden\" only");
        }
        let engines = self.file_systems.iter().filter(|fs| fs.kind.is_engine());
        for (kind, option) in engines
            .filter_map(|fs| Some((fs.kind.as_str(), fs.mount.as_ref()?)))
            .flat_map(|(kind, options)| options.split(',').map(move |option| (kind, option)))
            .filter(|(_, option)| !option.is_empty())
        {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if !ENGINE_OPTIONS.contains(&name) || value.is_empty() {
                let known = ENGINE_OPTIONS.map(|name| format!("{name}=…")).join(", ");
                return wrong("file_system.mount", &format!("has {option:?}; the mount of {kind} takes {known}"));
            }
        }
        for file_system in &self.file_systems {
            let cure = file_system.cure.as_ref().map_or(Ok(()), |cure| cure.check(file_system));
            if let Err((key, problem)) = check_words(file_system).and(cure) {
                return wrong(key, &problem);
            }
        }
        if self.file_systems.is_empty() {
            return wrong("file_system", "names no file system; add [[file_system]] with kind = \"ext4\"");
        }
        if self.measure.every == 0 {
            return wrong("measure.every", "is 0; write the number of steps between two checkpoints, 1 or more");
        }
        if self.measure.repetitions == 0 {
            return wrong("measure.repetitions", "is 0; write the number of grep tests at a checkpoint, 1 or more");
        }
        if self.history.pulls == Some(0) {
            return wrong("history.pulls", "is 0: the range of commits would be empty");
        }
        if self.workload.engine.is_empty() || self.workload.gc.is_empty() {
            return wrong("workload", "engine and gc need at least one value each");
        }
        if !(1..=98).contains(&self.workload.fill_percent) {
            return wrong("workload.fill_percent", "must be between 1 and 98");
        }
        let full_disk = self.workload.edition != Edition::Single;
        if full_disk && self.history.pulls.is_none() {
            return wrong("history.pulls", "must be given for a full-disk edition, whose pulls never end");
        }
        if full_disk && self.workload.engine.contains(&Engine::Git) {
            return wrong("workload.engine", "\"git\" runs with edition = \"single\" only");
        }
        if self.history.trace.is_some() && (full_disk || self.workload.engine != [Engine::Native]) {
            return wrong("history.trace", "is allowed with edition = \"single\" and engine = [\"native\"]");
        }
        for (key, volume) in [
            ("volumes.full", &self.volumes.full),
            ("volumes.empty", &self.volumes.empty),
            ("volumes.unaged", &self.volumes.unaged),
        ] {
            if let VolumePlan::Place(place) = volume
                && place.device.is_some() == place.directory.is_some()
            {
                return wrong(key, "needs exactly one of device and directory");
            }
        }
        if self.volumes.unaged.is_directory() {
            return wrong(
                "volumes.unaged",
                "cannot be a directory: a fresh copy needs a fresh file system; write unaged = \"none\"",
            );
        }
        for (key, volume) in [("volumes.full", &self.volumes.full), ("volumes.empty", &self.volumes.empty)] {
            if matches!(volume, VolumePlan::Absent(_)) {
                return wrong(key, "cannot be left out; only the unaged volume can");
            }
        }
        if self.volumes.real_time && self.volumes.device.is_none() {
            return wrong("volumes.real_time", "needs volumes.device: without a modelled device all times are real");
        }
        let is_place = |role: &&Role| matches!(self.volume(**role), VolumePlan::Place(_));
        if let Some(role) = self.roles().iter().find(is_place).filter(|_| self.volumes.device.is_some()) {
            let key = format!("volumes.{}", role.name());
            return wrong(&key, "is a place with times of its own; volumes.device models images only");
        }
        if self.measure.trace
            && let Some(role) = self.roles().iter().find(|&&role| self.volume(role).is_directory())
        {
            let problem = format!(
                "needs a block device to trace, and volumes.{} is a directory of another file system",
                role.name()
            );
            return wrong("measure.trace", &problem);
        }
        let directories = self.roles().iter().filter(|&&role| self.volume(role).is_directory()).count();
        let on_host = self.file_systems.iter().filter(|fs| fs.kind == FileSystemName::Host).count();
        if directories > 0 && on_host < self.file_systems.len() {
            return wrong(
                "file_system.kind",
                "must be \"host\" if a volume is a directory: nothing is formatted there",
            );
        }
        if on_host > 0 && directories < self.roles().len() {
            return wrong(
                "file_system.kind",
                "is \"host\", so every volume must be { directory = \"…\" }, and unaged = \"none\"",
            );
        }
        if let Some((key, problem)) = self.published.iter().find_map(|published| find_fault(published, self)) {
            return wrong(key, &problem);
        }
        let mut names: Vec<String> = self.arms().into_iter().map(|arm| arm.name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong("file_system", &format!("gives two arms the name {:?}; set name = \"…\"", pair[0]));
        }
        Ok(())
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, PlanError> {
    read_description(path).map_err(|source| PlanError::Read { path: path.to_owned(), source })
}

/// Parses a text as a table of that format. `path` is for messages.
pub(crate) fn parse_format<T: DeserializeOwned>(path: &Path, text: &str, reads: &'static str) -> Result<T, PlanError> {
    if let Ok(table) = text.parse::<Table>() {
        check_format(path, &table, reads)?;
    }
    toml::from_str(text).map_err(|error| syntax(path, &error))
}

/// Reads a plan from a table. Its values are not checked. `path` is for messages.
pub(super) fn parse_table(path: &Path, table: Table) -> Result<Plan, PlanError> {
    check_format(path, &table, PLAN_FORMAT)?;
    table.try_into().map_err(|error| syntax(path, &error))
}

/// Checks the version before any key: an unknown key of a later version must not be reported as
/// misspelt.
fn check_format(path: &Path, table: &Table, reads: &'static str) -> Result<(), PlanError> {
    let path = path.to_owned();
    match table.get("format").and_then(|format| format.as_str()) {
        Some(found) if found == reads => Ok(()),
        Some(found) => Err(PlanError::Version { path, found: found.to_owned(), reads }),
        None => {
            let problem = format!("is missing; write format = {reads:?} as the first line");
            Err(PlanError::Contradiction { path, key: "format".into(), problem })
        }
    }
}

fn syntax(path: &Path, error: &toml::de::Error) -> PlanError {
    PlanError::Syntax { path: path.to_owned(), problem: explain(error), hint: nearest_known(error.message()) }
}

/// Whether a text may name a directory of the run. It cannot name a place outside.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[[file_system]]\nkind = \"ext4\"\n";

    fn error(text: &str) -> String {
        Plan::parse(Path::new("p.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn the_smallest_plan_has_defaults() {
        let plan = Plan::parse(Path::new("p.toml"), SMALL).unwrap();
        assert_eq!(plan.measure.every, 100);
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_nearest_name() {
        let said = error(&SMALL.replace("repo =", "repoo ="));
        assert!(said.contains("did you mean `repo`?") && said.contains("line 4"), "{said}");
    }

    #[test]
    fn a_wrongly_typed_key_names_its_line() {
        let said = error(&SMALL.replace("\"/r\"", "7"));
        assert!(said.contains("line 4") && said.contains("expected a string"), "{said}");
    }

    #[test]
    fn a_message_cuts_a_long_line() {
        let said = error(&format!("{SMALL}x = {}", "[".repeat(1_000_000)));
        assert!(said.contains("line 7") && said.len() < 1000, "{} bytes", said.len());
    }

    #[test]
    fn later_versions_are_refused_by_version() {
        let said = error(&SMALL.replace("plan/1", "plan/2").replace("repo =", "future ="));
        assert!(said.contains("senesce-plan/2"), "{said}");
    }

    #[test]
    fn contradictions_name_their_key() {
        for (from, to, key) in [
            ("repo = \"/r\"", "repo = \"/r\"\ntrace = \"x\"", "history"),
            ("repo = \"/r\"", "repo = \"/r\"\npulls = 0", "history.pulls"),
            ("name = \"t\"", "name = \"a/b\"", "name"),
            ("kind = \"ext4\"", "kind = \"ext4\"\nname = \"/home/me\"", "file_system.name"),
            ("kind = \"ext4\"", "kind = \"ext4\"\nname = \"..\"", "file_system.name"),
            ("[[file_system]]", "[measure]\nevery = 0\n[[file_system]]", "measure.every"),
            ("[[file_system]]", "[volumes]\nreal_time = true\n[[file_system]]", "volumes.real_time"),
            (
                "[[file_system]]",
                "[volumes]\ndevice = \"nvme\"\nempty = {device=\"/dev/x\"}\n[[file_system]]",
                "volumes.empty",
            ),
            ("[[file_system]]", "[volumes]\nunaged = {directory=\"/x\"}\n[[file_system]]", "volumes.unaged"),
            ("[[file_system]]", "[volumes]\nempty = \"none\"\n[[file_system]]", "volumes.empty"),
            ("[[file_system]]", "[volumes]\nempty = {directory=\"/x\"}\n[[file_system]]", "file_system.kind"),
            (
                "[[file_system]]\nkind = \"ext4\"",
                "[measure]\ntrace = true\n[volumes]\nempty = {directory=\"/x\"}\nunaged = \"none\"\n\
                 [[file_system]]\nkind = \"host\"",
                "measure.trace",
            ),
            ("kind = \"ext4\"", "kind = \"host\"", "file_system.kind"),
            ("kind = \"ext4\"", "kind = \"ext4\"\ngardening = \"all\"", "file_system.gardening"),
            ("kind = \"ext4\"", "kind = \"garden\"\nmount = \"cache=1MiB,noatime\"", "file_system.mount"),
            ("kind = \"ext4\"", "kind = \"garden\"\nmount = \"threads\"", "file_system.mount"),
            ("kind = \"ext4\"", "kind = \"evergreen\"\nmount = \"noatime\"", "file_system.mount"),
            ("kind = \"ext4\"", "kind = \"ext4\"\nmkfs = [\"-d\", \"/etc\"]", "file_system.mkfs"),
            ("kind = \"ext4\"", "kind = \"xfs\"\nmkfs = [\"-l\", \"logdev=/dev/x\"]", "file_system.mkfs"),
            ("kind = \"ext4\"", "kind = \"btrfs\"\nmkfs = [\"-m\", \"dup\", \"/dev/x\"]", "file_system.mkfs"),
            ("kind = \"ext4\"", "kind = \"garden\"\nmkfs = [\"--drive\", \"/dev/x\"]", "file_system.mkfs"),
            ("kind = \"ext4\"", "kind = \"xfs\"\nmount = \"logdev=/dev/x\"", "file_system.mount"),
            ("kind = \"ext4\"", "kind = \"evergreen\"\ngardening = \"csc\"", "file_system.gardening"),
            ("kind = \"ext4\"", "kind = \"garden\"\ncure = {by=\"senesce\"}", "file_system.cure"),
            ("kind = \"ext4\"", "kind = \"evergreen\"\ncure = {by=\"senesce\"}", "file_system.cure"),
            ("kind = \"ext4\"", "kind = \"xfs\"\ncure = {by=\"e4defrag\"}", "file_system.cure.by"),
            ("kind = \"ext4\"", "kind = \"ext4\"\ncure = {by=\"btrfs\"}", "file_system.cure.by"),
            ("kind = \"ext4\"", "kind = \"ext4\"\ncure = {by=\"senesce\",at=5,every=5}", "file_system.cure"),
            ("kind = \"ext4\"", "kind = \"ext4\"\ncure = {by=\"senesce\",at=0}", "file_system.cure.at"),
            ("kind = \"ext4\"", "kind = \"ext4\"\ncure = {by=\"senesce\",every=0}", "file_system.cure.every"),
            (
                "kind = \"ext4\"",
                "kind = \"ext4\"\ncure = {by=\"e4defrag\",strategies=[\"order\"]}",
                "file_system.cure.strategies",
            ),
            (
                "kind = \"ext4\"",
                "kind = \"ext4\"\ncure = {by=\"senesce\",strategies=[]}",
                "file_system.cure.strategies",
            ),
            ("kind = \"ext4\"", "kind = \"xfs\"\ncure = {by=\"senesce\",programs=true}", "file_system.cure.programs"),
            ("kind = \"ext4\"", "kind = \"ext4\"\n[[file_system]]\nkind = \"ext4\"", "file_system"),
        ] {
            let said = error(&SMALL.replace(from, to));
            assert!(said.contains(&format!(": {key}: ")), "{to}: {said}");
        }
    }

    #[test]
    fn the_mkfs_words_of_our_plans_are_allowed() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
        let mut with_words = 0;
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            if path.extension().is_some_and(|ending| ending == "toml") && text.contains(PLAN_FORMAT) {
                let plan = Plan::parse(&path, &text).unwrap_or_else(|error| panic!("{error}"));
                with_words += plan.file_systems.iter().filter(|fs| !fs.mkfs.is_empty()).count();
            }
        }
        assert!(with_words > 10, "{with_words}");
    }

    #[test]
    fn an_unknown_cure_lists_the_known_ones() {
        let cured = |cure: &str| error(&SMALL.replace("\"ext4\"", &format!("\"ext4\"\ncure = {cure}")));
        for (cure, says) in [
            ("{by = \"xfs_frs\"}", "did you mean `xfs_fsr`?"),
            ("{by = \"senesce\", strategies = [\"oder\"]}", "did you mean `order`?"),
            ("{by = \"senesce\", at = \"last\"}", "expected the number of a step, or \"end\""),
            ("{by = \"senesce\", evry = 5}", "did you mean `every`?"),
            ("{at = 5}", "missing field `by`"),
        ] {
            let said = cured(cure);
            assert!(said.contains(says), "{cure}: {said}");
        }
    }

    #[test]
    fn gardens_are_named_after_their_gardening() {
        let named = |gardening| {
            let kind = format!("kind = \"garden\"\nmount = \"threads=1,point-every=2\"\ngardening = \"{gardening}\"");
            Plan::parse(Path::new("p.toml"), &SMALL.replace("kind = \"ext4\"", &kind)).unwrap().file_systems[0].name()
        };
        assert_eq!(["off", "csc", "war", "all"].map(named), ["garden", "garden-csc", "garden-war", "garden-all"]);
    }

    #[test]
    fn workloads_without_history_refuse_foreign_tables() {
        let made = "format = \"senesce-plan/1\"\nname = \"t\"\n[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n";
        let plan = Plan::parse(Path::new("p.toml"), made).unwrap();
        assert_eq!(plan.roles().len(), 3);
        for (from, to, key) in [
            ("[workload]", "[history]\nrepo = \"/r\"\n[workload]", "history"),
            ("kind = \"fsfb\"", "kind = \"fsfb\"\nengine = [\"git\"]", "workload"),
            ("kind = \"fsfb\"", "kind = \"fsfb\"\nedition = \"full-disk-paper\"", "workload"),
            ("kind = \"fsfb\"", "kind = \"mail\"\n[workload.fsfb]", "workload.fsfb"),
            ("kind = \"fsfb\"", "kind = \"fsfb\"\n[workload.overwrite]", "workload.overwrite"),
            ("kind = \"fsfb\"", "kind = \"fsfb\"\n[workload.replay]\nlog = \"x\"", "workload.replay"),
            ("kind = \"fsfb\"", "kind = \"replay\"", "workload.replay.log"),
            ("kind = \"fsfb\"", "kind = \"replay\"\n[workload.replay]\nrepeat = 2", "workload.replay.log"),
        ] {
            let said = error(&made.replace(from, to));
            assert!(said.contains(&format!(": {key}: ")), "{to}: {said}");
        }
        let said = error(&made.replace("\"fsfb\"", "\"fsfb\"\n[workload.fsfb]\nround = 3"));
        assert!(said.contains("did you mean `rounds`?"), "{said}");
        let mail = made.replace("\"fsfb\"", "\"mail\"");
        let roles = |text: &str| Plan::parse(Path::new("p.toml"), text).unwrap().roles().len();
        assert_eq!(roles(&mail), 2);
        assert_eq!(roles(&mail.replace("[[file_system]]", "[volumes]\nfull = \"1GiB\"\n[[file_system]]")), 3);
    }

    #[test]
    fn invalid_sizes_are_refused() {
        let said = error(&SMALL.replace("[[file_system]]", "[workload]\nkeep_free = \"5 bananas\"\n[[file_system]]"));
        assert!(said.contains("5 bananas"), "{said}");
    }
}
