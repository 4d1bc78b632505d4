//! Refuses keys that a plan sets and that have no effect with its workload, edition or volumes.
//!
//! Such a key requests something that does not happen. A key with its default value is accepted,
//! because the copy of a plan in a run's directory has every key.

use std::collections::BTreeMap;

use senesce_store::Role;
use serde_json::Value;

use super::{
    AutoSize, Edition, Engine, FileSystemName, FsfbPlan, History, InterfilePlan, IntrafilePlan, MailPlan, Measure,
    OverwritePlan, PatternPlan, Plan, ProfilePlan, RenamesPlan, ReplayPlan, Scanner, ScheduleName, VolumePlan, Volumes,
    WorkloadKind, WorkloadPlan,
};

/// A key, and the reason why it has no effect in a plan. `None` if it has an effect.
type Rule = (&'static str, fn(&Plan) -> Option<&'static str>);

/// Keys that have no effect in some plans. Every other key has an effect in every plan, or `check`
/// checks it.
const RULES: &[Rule] = &[
    ("history.tip", of_repository),
    ("history.first_parent", of_repository),
    ("history.start", of_repository),
    ("workload.gc", |plan| {
        plan.history.trace.is_some().then_some("has no effect on a trace, which has no repository to repack")
    }),
    ("workload.fill_percent", |plan| {
        (!plan.is_of(Edition::FullDiskPaper)).then_some("is allowed with edition = \"full-disk-paper\" only")
    }),
    ("workload.copies", of_scripts),
    ("workload.keep_free", of_scripts),
    ("workload.settle_every_operations", |plan| {
        let is_place = |role: &Role| plan.volume(*role).is_directory();
        match () {
            () if plan.is_of_git_binary() => Some("has no effect on engine = [\"git\"], which writes by itself"),
            () if plan.roles().iter().any(is_place) => Some("is not for directories: their file system is in use"),
            () => None,
        }
    }),
    ("workload.profile.churn", |plan| {
        let schedule = plan.workload.profile.as_ref().map(|profile| profile.schedule);
        (schedule == Some(ScheduleName::Classic)).then_some("is allowed with schedule = \"virtual\" only")
    }),
    ("workload.profile.most_lives", |plan| {
        let schedule = plan.workload.profile.as_ref().map(|profile| profile.schedule);
        (schedule == Some(ScheduleName::Virtual)).then_some("is allowed with schedule = \"classic\" only")
    }),
    ("workload.overwrite.size", |plan| {
        let is_percent = plan.workload.overwrite.as_ref().is_some_and(|table| table.fill_percent.is_some());
        is_percent.then_some("has no effect beside fill_percent, which sets the size")
    }),
    ("workload.overwrite.files", of_patterns),
    ("workload.overwrite.request", of_patterns),
    ("workload.overwrite.read_percent", of_patterns),
    ("workload.replay.keep", |plan| {
        let is_once = plan.workload.replay.as_ref().is_some_and(|table| table.repeat < 2);
        is_once.then_some("is allowed with repeat = 2 or more")
    }),
    ("measure.order", |plan| {
        (plan.measure.scanner == Scanner::Grep)
            .then_some("has no effect on scanner = \"grep\", which has its own order")
    }),
    ("measure.repeat_disturbed", |plan| {
        let is_virtual = plan.volumes.device.is_some() && !plan.volumes.real_time;
        (is_virtual && plan.measure.repeat_disturbed > 0)
            .then_some("has no effect with volumes.device: no load disturbs virtual time")
    }),
    ("volumes.backend", of_images),
    ("volumes.dir", of_images),
    ("volumes.read_ahead_kib", |plan| {
        let all = plan.roles().iter().all(|&role| plan.volume(role).is_directory());
        all.then_some("has no effect on directories, which have no block device of their own")
    }),
    ("volumes.full", |plan| {
        (!plan.has_full()).then_some("has no effect: edition = \"single\" makes no full volume (full-disk-paper does)")
    }),
];

fn of_repository(plan: &Plan) -> Option<&'static str> {
    plan.history.trace.is_some().then_some("has no effect on a trace, which has no repository")
}

fn of_scripts(plan: &Plan) -> Option<&'static str> {
    (!plan.is_of(Edition::FullDiskCode)).then_some("is allowed with edition = \"full-disk-code\" only")
}

fn of_patterns(plan: &Plan) -> Option<&'static str> {
    let pattern = plan.workload.overwrite.as_ref().map(|table| table.pattern);
    (pattern == Some(PatternPlan::Oltp)).then_some("is allowed with pattern = \"random\" and \"streams\" only")
}

fn of_images(plan: &Plan) -> Option<&'static str> {
    let is_place = |role: &Role| matches!(plan.volume(*role), VolumePlan::Place(_));
    plan.roles().iter().all(is_place).then_some("has no effect: every volume is a place, and none is an image")
}

impl Plan {
    fn is_of(&self, edition: Edition) -> bool {
        self.workload.kind == WorkloadKind::History && self.workload.edition == edition
    }

    fn is_of_git_binary(&self) -> bool {
        self.workload.kind == WorkloadKind::History && self.workload.engine.contains(&Engine::Git)
    }

    /// The first key that the plan sets without effect, and the reason.
    pub(super) fn find_unused(&self) -> Option<(&'static str, &'static str)> {
        let (given, usual) = (keys_of(self), keys_of(&usual(self)));
        let is_given = |key: &str| given.get(key).is_some_and(|value| usual.get(key) != Some(value));
        let unused = RULES.iter().find_map(|(key, why)| Some((*key, why(self)?)).filter(|(key, _)| is_given(key)));
        unused.or_else(|| self.find_unused_of_file_systems())
    }

    fn find_unused_of_file_systems(&self) -> Option<(&'static str, &'static str)> {
        const WHY: &str = "has no effect on kind = \"host\": nothing is formatted or mounted";
        let host = || self.file_systems.iter().filter(|fs| fs.kind == FileSystemName::Host);
        match () {
            () if host().any(|fs| !fs.mkfs.is_empty()) => Some(("file_system.mkfs", WHY)),
            () if host().any(|fs| fs.mount.is_some()) => Some(("file_system.mount", WHY)),
            () => None,
        }
    }
}

/// The same plan with default values in history, workload, measure and volumes, and with the same
/// workload tables.
fn usual(plan: &Plan) -> Plan {
    let workload = &plan.workload;
    Plan {
        history: History::default(),
        workload: WorkloadPlan {
            fsfb: workload.fsfb.as_ref().map(|_| FsfbPlan::default()),
            profile: workload.profile.as_ref().map(|_| ProfilePlan::default()),
            mail: workload.mail.as_ref().map(|_| MailPlan::default()),
            intrafile: workload.intrafile.as_ref().map(|_| IntrafilePlan::default()),
            interfile: workload.interfile.as_ref().map(|_| InterfilePlan::default()),
            renames: workload.renames.as_ref().map(|_| RenamesPlan::default()),
            overwrite: workload.overwrite.as_ref().map(|_| OverwritePlan::default()),
            replay: workload.replay.as_ref().map(|_| ReplayPlan::default()),
            ..WorkloadPlan::default()
        },
        measure: Measure::default(),
        volumes: Volumes { full: VolumePlan::Size(AutoSize::Auto), ..Volumes::default() },
        ..plan.clone()
    }
}

/// The values of a plan by key with dots (`volumes.full`). Keys that are missing in the text of a
/// plan are left out.
fn keys_of(plan: &Plan) -> BTreeMap<String, Value> {
    fn add(keys: &mut BTreeMap<String, Value>, prefix: &str, value: Value) {
        match value {
            // A volume at a place is a table, but counts as one key.
            Value::Object(table) if !prefix.starts_with("volumes.") => {
                for (name, value) in table {
                    let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                    add(keys, &key, value);
                }
            }
            value => {
                keys.insert(prefix.to_owned(), value);
            }
        }
    }
    let mut keys = BTreeMap::new();
    add(&mut keys, "", serde_json::to_value(plan).unwrap_or_default());
    keys
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;
    use crate::plan::plan_schema_json;

    /// Keys that have an effect in every plan, that are the choice themselves, or whose misuse
    /// `check` refuses.
    const USED: &[&str] = &[
        "description",
        "file_system.cure.at",
        "file_system.cure.by",
        "file_system.cure.every",
        "file_system.cure.programs",
        "file_system.cure.strategies",
        "file_system.gardening",
        "file_system.kind",
        "file_system.mkfs",
        "file_system.mount",
        "file_system.name",
        "format",
        "history.like",
        "history.pulls",
        "history.repo",
        "history.synthetic.commits",
        "history.synthetic.files",
        "history.synthetic.model",
        "history.trace",
        "measure.devices",
        "measure.every",
        "measure.read_at",
        "measure.repetitions",
        "measure.scanner",
        "measure.snapshots",
        "measure.sync_steps",
        "measure.trace",
        "measure.warmups",
        "name",
        "published.cost",
        "published.device",
        "published.file_systems",
        "published.from",
        "published.place",
        "published.ratio",
        "published.to",
        "published.value",
        "seed",
        "volumes.device",
        "volumes.empty",
        "volumes.real_time",
        "volumes.unaged",
        "workload.edition",
        "workload.engine",
        "workload.fsfb.children",
        "workload.fsfb.directories",
        "workload.fsfb.fill_percent",
        "workload.fsfb.replace_percent",
        "workload.fsfb.rounds",
        "workload.fsfb.variant",
        "workload.interfile.file_size",
        "workload.interfile.files",
        "workload.interfile.files_per_directory",
        "workload.interfile.step_percent",
        "workload.intrafile.append",
        "workload.intrafile.file_size",
        "workload.intrafile.files",
        "workload.intrafile.push",
        "workload.intrafile.rounds",
        "workload.intrafile.scale",
        "workload.kind",
        "workload.mail.cycles",
        "workload.mail.largest",
        "workload.mail.mailboxes",
        "workload.mail.messages",
        "workload.mail.operations",
        "workload.mail.users",
        "workload.overwrite.fill_percent",
        "workload.overwrite.io",
        "workload.overwrite.operations",
        "workload.overwrite.pattern",
        "workload.overwrite.rounds",
        "workload.profile.accuracy",
        "workload.profile.content",
        "workload.profile.fullness_percent",
        "workload.profile.profile",
        "workload.profile.schedule",
        "workload.profile.sizes",
        "workload.renames.directories",
        "workload.renames.file_size",
        "workload.renames.files_per_directory",
        "workload.renames.percent",
        "workload.renames.rounds",
        "workload.replay.log",
        "workload.replay.operations",
        "workload.replay.repeat",
        "workload.replay.repo",
        "workload.sync_every_operations",
    ];

    /// The keys of the schema, with dots.
    fn schema_keys() -> BTreeSet<String> {
        fn resolve<'s>(schema: &'s Value, value: &'s Value) -> &'s Value {
            let inner = value["anyOf"].as_array().and_then(|any| any.iter().find(|one| one.get("$ref").is_some()));
            let value = inner.unwrap_or(value);
            let value = if value.get("items").is_some() { &value["items"] } else { value };
            match value["$ref"].as_str() {
                Some(path) => &schema["$defs"][path.rsplit('/').next().unwrap()],
                None => value,
            }
        }
        fn add(schema: &Value, value: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
            let Some(properties) = resolve(schema, value)["properties"].as_object() else {
                keys.insert(prefix.to_owned());
                return;
            };
            for (name, value) in properties {
                let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                add(schema, value, &key, keys);
            }
        }
        let schema: Value = serde_json::from_str(&plan_schema_json()).unwrap();
        let mut keys = BTreeSet::new();
        add(&schema, &schema, "", &mut keys);
        keys
    }

    /// A plan with this workload table, and other tables after it.
    fn plan(workload: &str, others: &str) -> String {
        let fs = if others.contains("[[file_system]]") { "" } else { "[[file_system]]\nkind = \"ext4\"\n" };
        format!("format = \"senesce-plan/1\"\nname = \"t\"\n[workload]\n{workload}\n{others}\n{fs}")
    }

    const REPO: &str = "[history]\nrepo = \"/r\"\npulls = 5\n";
    const TRACE: &str = "[history]\ntrace = \"/t\"\n";
    const HOST: &str = "empty = { directory = \"/d\" }\nunaged = \"none\"\n[[file_system]]\nkind = \"host\"\n";

    /// For every rule, a plan that sets its key without effect.
    fn refused() -> Vec<(&'static str, String)> {
        let devices =
            "full = { device = \"/dev/a\" }\nempty = { device = \"/dev/b\" }\nunaged = { device = \"/dev/c\" }\n";
        vec![
            ("history.tip", plan("", &format!("{TRACE}tip = \"main\""))),
            ("history.first_parent", plan("", &format!("{TRACE}first_parent = true"))),
            ("history.start", plan("", &format!("{TRACE}start = 7"))),
            ("workload.gc", plan("gc = [true]", TRACE)),
            ("workload.fill_percent", plan("fill_percent = 80", REPO)),
            ("workload.fill_percent", plan("kind = \"fsfb\"\nfill_percent = 80", "")),
            ("workload.settle_every_operations", plan("engine = [\"git\"]\nsettle_every_operations = 9", REPO)),
            (
                "workload.settle_every_operations",
                plan("settle_every_operations = 9", &format!("{REPO}[volumes]\n{HOST}")),
            ),
            ("workload.copies", plan("edition = \"full-disk-paper\"\ncopies = 3", REPO)),
            ("workload.keep_free", plan("keep_free = \"1MiB\"", REPO)),
            (
                "workload.profile.churn",
                plan("kind = \"profile\"\n[workload.profile]\nschedule = \"classic\"\nchurn = 9", ""),
            ),
            ("workload.profile.most_lives", plan("kind = \"profile\"\n[workload.profile]\nmost_lives = 9", "")),
            (
                "workload.overwrite.size",
                plan("kind = \"overwrite\"\n[workload.overwrite]\nsize = \"2GiB\"\nfill_percent = 80", ""),
            ),
            ("workload.overwrite.files", plan("kind = \"overwrite\"\n[workload.overwrite]\nfiles = 3", "")),
            ("workload.overwrite.request", plan("kind = \"overwrite\"\n[workload.overwrite]\nrequest = \"8KiB\"", "")),
            (
                "workload.overwrite.read_percent",
                plan("kind = \"overwrite\"\n[workload.overwrite]\nread_percent = 3", ""),
            ),
            ("workload.replay.keep", plan("kind = \"replay\"\n[workload.replay]\nlog = \"l\"\nkeep = 3", "")),
            ("measure.order", plan("", &format!("{REPO}[measure]\nscanner = \"grep\"\norder = \"inode\""))),
            (
                "measure.repeat_disturbed",
                plan("", &format!("{REPO}[measure]\nrepeat_disturbed = 9\n[volumes]\ndevice = \"nvme\"")),
            ),
            ("volumes.backend", plan("kind = \"fsfb\"", &format!("[volumes]\nbackend = \"memory\"\n{devices}"))),
            ("volumes.dir", plan("kind = \"fsfb\"", &format!("[volumes]\ndir = \"/d\"\n{devices}"))),
            ("volumes.read_ahead_kib", plan("", &format!("{REPO}[volumes]\nread_ahead_kib = 7\n{HOST}"))),
            ("volumes.full", plan("", &format!("{REPO}[volumes]\nfull = \"330MiB\""))),
            ("volumes.full", plan("", &format!("{REPO}[volumes]\nfull = {{ device = \"/dev/a\" }}"))),
            ("file_system.mkfs", plan("", &format!("{REPO}[volumes]\n{HOST}mkfs = [\"-m\"]"))),
            ("file_system.mount", plan("", &format!("{REPO}[volumes]\n{HOST}mount = \"noatime\""))),
        ]
    }

    #[test]
    fn schema_keys_are_used_or_have_a_rule() {
        let known: BTreeSet<String> =
            USED.iter().copied().chain(RULES.iter().map(|(key, _)| *key)).map(str::to_owned).collect();
        assert_eq!(schema_keys(), known);
    }

    #[test]
    fn keys_without_effect_are_refused() {
        let refused = refused();
        for (key, text) in &refused {
            let said = Plan::parse(Path::new("p"), text).expect_err(text).to_string();
            assert!(said.contains(&format!(": {key}: ")), "{key}: {said}\n{text}");
        }
        let tried: BTreeSet<&str> = refused.iter().map(|(key, _)| *key).collect();
        let missing: Vec<_> = RULES.iter().map(|(key, _)| *key).filter(|key| !tried.contains(key)).collect();
        assert_eq!(missing, [""; 0], "rules without an example");
    }

    #[test]
    fn keys_with_effect_are_accepted() {
        for text in [
            plan("gc = [true]", &format!("{REPO}tip = \"main\"\nfirst_parent = true\nstart = 7")),
            plan("edition = \"full-disk-paper\"\nfill_percent = 80", &format!("{REPO}[volumes]\nfull = \"330MiB\"")),
            plan("edition = \"full-disk-code\"\ncopies = 3\nkeep_free = \"1MiB\"", REPO),
            plan("engine = [\"git\"]\nsync_every_operations = 7", REPO),
            plan("kind = \"profile\"\n[workload.profile]\nchurn = 9", ""),
            plan("kind = \"profile\"\n[workload.profile]\nschedule = \"classic\"\nmost_lives = 9", ""),
            plan(
                "kind = \"overwrite\"\n[workload.overwrite]\npattern = \"random\"\nfiles = 3\nrequest = \"8KiB\"\nread_percent = 3\nsize = \"1GiB\"",
                "",
            ),
            plan("kind = \"replay\"\n[workload.replay]\nlog = \"l\"\nkeep = 3\nrepeat = 4", ""),
            plan(
                "kind = \"mail\"",
                "[volumes]\nfull = \"2GiB\"\nbackend = \"memory\"\ndir = \"/d\"\nread_ahead_kib = 7",
            ),
            plan("", &format!("{REPO}[measure]\norder = \"inode\"\nrepeat_disturbed = 9")),
        ] {
            Plan::parse(Path::new("p"), &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }

    #[test]
    fn the_copy_of_a_plan_is_accepted() {
        for text in [plan("", REPO), plan("kind = \"fsfb\"", ""), plan("", TRACE)] {
            let read = Plan::parse(Path::new("p"), &text).unwrap();
            let copy = toml::to_string(&read).unwrap();
            assert_eq!(Plan::parse(Path::new("copy"), &copy).unwrap(), read, "{copy}");
        }
    }
}
