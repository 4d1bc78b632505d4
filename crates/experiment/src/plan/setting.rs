//! Changes of single keys of a plan, as `senesce run --set KEY=VALUE` requests them.

use std::{
    fmt::{self, Display, Formatter},
    path::Path,
    str::FromStr,
};

use toml::{Table, Value};

use super::{
    Plan, PlanError,
    parse::{parse_table, read_text},
};

/// A new value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key with dots, from the root of the plan.
    pub(crate) key: String,
    /// The value as it was written.
    pub(crate) value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if key.split('.').all(|part| !part.is_empty()) => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) => Err("a part of the key is empty".to_owned()),
            None => Err("write KEY=VALUE, such as measure.every=10".to_owned()),
        }
    }
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Setting {
    /// Sets the key in a plan, and makes the tables that are missing.
    ///
    /// Errors: a part of the key is a value, or no entry of a list.
    pub(crate) fn apply(&self, plan: &mut Table) -> Result<(), String> {
        // Text after the value would be further keys.
        let parsed = format!("v = {}", self.value).parse::<Table>().ok().filter(|table| table.len() == 1);
        let value = parsed.and_then(|mut table| table.remove("v")).unwrap_or_else(|| Value::String(self.value.clone()));
        insert(plan, &self.key, value)
    }
}

/// Sets a key with dots, and makes the tables that are missing. A number names an entry of a list.
pub(crate) fn insert(plan: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let mut place = plan.entry(first).or_insert_with(|| Value::Table(Table::new()));
    let mut path = first.to_owned();
    for part in rest.into_iter().flat_map(|rest| rest.split('.')) {
        place = match place {
            Value::Table(table) => table.entry(part).or_insert_with(|| Value::Table(Table::new())),
            Value::Array(list) => {
                let count = list.len();
                let entry = part.parse::<usize>().ok().and_then(|index| list.get_mut(index));
                entry.ok_or_else(|| match count {
                    0 => format!("{path} is an empty list"),
                    1 => format!("{path} is a list with one entry; write {path}.0"),
                    _ => format!("{path} is a list with {count} entries; write {path}.0 to {path}.{}", count - 1),
                })?
            }
            _ => return Err(format!("{path} is no table")),
        };
        path = format!("{path}.{part}");
    }
    *place = value;
    Ok(())
}

impl Plan {
    /// Reads a plan file, and changes keys in it. The description of the changed plan lists the
    /// changes.
    ///
    /// Errors: those of [`Plan::read`]; a setting that makes the plan wrong, with its text.
    pub fn read_with(path: &Path, settings: &[Setting]) -> Result<Self, PlanError> {
        Self::parse_with(path, &read_text(path)?, settings)
    }

    /// Parses a text as a plan, and changes keys in it. `path` is for messages.
    ///
    /// Errors: as of [`Plan::read_with`].
    pub fn parse_with(path: &Path, text: &str, settings: &[Setting]) -> Result<Self, PlanError> {
        let Some(table) = text.parse::<Table>().ok().filter(|_| !settings.is_empty()) else {
            return Self::parse(path, text);
        };
        // The keys first set. The whole plan is checked once, because settings may need each other.
        let changed = |count: usize| {
            let mut table = table.clone();
            for setting in &settings[..count] {
                setting.apply(&mut table).map_err(|problem| wrong(setting, &problem))?;
            }
            parse_table(path, table)?.checked(path)
        };
        let error = match changed(settings.len()) {
            Ok(plan) => return Ok(describe(plan, &table, settings)),
            Err(error) => error,
        };
        // The first setting with which the error occurs is the cause.
        let said = error.to_string();
        let is_it = |count: &usize| changed(*count).is_err_and(|error| error.to_string() == said);
        match (0..settings.len()).find(is_it) {
            // The message for the text names the line.
            Some(0) => Self::parse(path, text).and(Err(error)),
            count => {
                let setting = &settings[count.unwrap_or(settings.len()) - 1];
                Err(explain(setting, error, find_place(setting, path, &table)))
            }
        }
    }
}

fn wrong(setting: &Setting, problem: &str) -> PlanError {
    PlanError::Setting { setting: setting.to_string(), problem: problem.to_owned(), hint: None }
}

/// The error of a plan as one of the setting that causes it.
fn explain(setting: &Setting, error: PlanError, place: Option<String>) -> PlanError {
    let (problem, hint) = match error {
        PlanError::Syntax { problem, hint, .. } => {
            (problem, place.map(|place| format!("did you mean `--set {place}={}`?", setting.value)).or(hint))
        }
        PlanError::Contradiction { key, problem, .. } => (format!("{key} {problem}"), None),
        PlanError::Version { found, reads, .. } => (format!("the format {found:?} is not {reads:?}"), None),
        error @ (PlanError::Read { .. } | PlanError::Setting { .. }) => return error,
    };
    PlanError::Setting { setting: setting.to_string(), problem, hint }
}

/// The key of the same name in another table that accepts the value, if there is one.
fn find_place(setting: &Setting, path: &Path, plan: &Table) -> Option<String> {
    let name = setting.key.rsplit('.').next()?;
    let kind = plan.get("workload").and_then(|workload| workload.get("kind")).and_then(Value::as_str);
    let own = format!("workload.{}", kind.unwrap_or("history"));
    let tables = [own.as_str(), "workload", "history", "measure", "volumes"];
    tables.into_iter().map(|table| format!("{table}.{name}")).find(|key| {
        let mut plan = plan.clone();
        let moved = Setting { key: key.clone(), value: setting.value.clone() };
        moved.apply(&mut plan).is_ok() && parse_table(path, plan).is_ok()
    })
}

/// Adds the settings to the description of the changed plan, which readers of the report see. The
/// author's text may state old values.
fn describe(mut plan: Plan, old: &Table, settings: &[Setting]) -> Plan {
    let is_new = |setting: &&Setting| {
        let mut table = old.clone();
        setting.apply(&mut table).is_ok() && table != *old
    };
    let changes: Vec<String> = settings.iter().filter(is_new).map(Setting::to_string).collect();
    if !changes.is_empty() && settings.iter().all(|setting| setting.key != "description") {
        let changes = format!("Changed: {}.", changes.join(", "));
        plan.description = [plan.description.trim(), &changes].join(" ").trim_start().to_owned();
    }
    plan
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::{AutoSize, VolumePlan};

    const TEXT: &str = "format = \"senesce-plan/1\"\nname = \"t\"\ndescription = \"Ten rounds.\"\n[workload]\n\
                        kind = \"fsfb\"\n[workload.fsfb]\nrounds = 10\n[[file_system]]\nkind = \"ext4\"\n\
                        [[file_system]]\nkind = \"xfs\"\n";

    fn parse(settings: &[&str]) -> Result<Plan, PlanError> {
        let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
        Plan::parse_with(Path::new("p.toml"), TEXT, &settings)
    }

    #[test]
    fn settings_equal_the_same_edit_of_the_text() {
        for (setting, from, to) in [
            ("workload.fsfb.rounds=100", "rounds = 10", "rounds = 100"),
            ("seed=7", "[workload]", "seed = 7\n[workload]"),
            ("name=other", "\"t\"", "\"other\""),
            ("name=\"other\"", "\"t\"", "\"other\""),
            ("measure.devices=[\"nvme\"]", "[[file_system]]", "[measure]\ndevices = [\"nvme\"]\n[[file_system]]"),
            ("volumes.empty=1GiB", "[workload]", "[volumes]\nempty = \"1GiB\"\n[workload]"),
            ("file_system.1.mount=noatime", "kind = \"xfs\"", "kind = \"xfs\"\nmount = \"noatime\""),
            ("file_system.0.mkfs=[\"-m\", \"0\"]", "\"ext4\"", "\"ext4\"\nmkfs = [\"-m\", \"0\"]"),
            ("file_system=[{kind=\"xfs\"}]", "kind = \"ext4\"\n[[file_system]]\n", ""),
        ] {
            let edited = Plan::parse(Path::new("p.toml"), &TEXT.replacen(from, to, 1)).unwrap();
            let description = format!("Ten rounds. Changed: {setting}.");
            assert_eq!(parse(&[setting]).unwrap(), Plan { description, ..edited }, "{setting}");
        }
    }

    #[test]
    fn settings_without_a_change_leave_the_plan() {
        let plan = Plan::parse(Path::new("p.toml"), TEXT).unwrap();
        assert_eq!(parse(&[]).unwrap(), plan);
        assert_eq!(parse(&["workload.fsfb.rounds=10"]).unwrap(), plan);
        let described = parse(&["workload.fsfb.rounds=9", "description=Nine rounds."]).unwrap();
        assert_eq!(described.description, "Nine rounds.");
    }

    #[test]
    fn later_settings_win_and_may_need_each_other() {
        let rounds = |plan: Plan| plan.workload.fsfb.unwrap().rounds;
        assert_eq!(rounds(parse(&["workload.fsfb.rounds=3", "workload.fsfb.rounds=4"]).unwrap()), Some(4));
        let cured = parse(&["file_system.0.cure.at=5", "file_system.0.cure.by=senesce"]).unwrap();
        assert!(cured.file_systems[0].cure.is_some());
        assert!(matches!(parse(&["volumes.full=auto"]).unwrap().volumes.full, VolumePlan::Size(AutoSize::Auto)));
    }

    #[test]
    fn the_error_names_the_setting_that_causes_it() {
        for (settings, says) in [
            (&["seed=2", "workload.fsfb.round=3"][..], "cannot use --set workload.fsfb.round=3: unknown field `round`"),
            (&["workload.fsfb.round=3"], "did you mean `rounds`?"),
            (&["workload.rounds=3"], "did you mean `--set workload.fsfb.rounds=3`?"),
            (&["repetitions=3"], "did you mean `--set measure.repetitions=3`?"),
            (&["workload.fsfb.rounds=many", "seed=2"], "cannot use --set workload.fsfb.rounds=many: invalid type"),
            (&["seed=2", "measure.every=0"], "cannot use --set measure.every=0: measure.every is 0; write"),
            (&["name.x=1"], "name is no table"),
            (&["file_system.2.kind=xfs"], "file_system is a list with 2 entries; write file_system.0 to file_system.1"),
            (&["file_system.kind=xfs"], "file_system is a list with 2 entries"),
            (&["format=senesce-plan/2"], "cannot use --set format=senesce-plan/2"),
            (&["seed=1\nname=x"], "cannot use --set seed=1\nname=x: invalid type"),
        ] {
            let said = parse(settings).unwrap_err().to_string();
            assert!(said.contains(says), "{settings:?}: {said}");
        }
    }

    #[test]
    fn errors_of_the_text_keep_their_line() {
        let settings = ["seed=2".parse().unwrap()];
        for (from, to, says) in [("rounds =", "round =", "line 7"), ("[workload]", "[workload", "line 4")] {
            let error = Plan::parse_with(Path::new("p.toml"), &TEXT.replacen(from, to, 1), &settings).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_setting_needs_a_key_and_a_value() {
        for text in ["", "rounds", "=3", "a..b=3", ".a=3", "a.=3"] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
    }

    fn key() -> impl Strategy<Value = String> {
        const KNOWN: [&str; 6] =
            ["seed", "name", "measure.every", "measure.devices", "volumes.empty", "file_system.0.mount"];
        prop_oneof![prop::sample::select(&KNOWN).prop_map(str::to_owned), "[a-z_]{1,9}(\\.[a-z0-9_]{1,9}){0,3}"]
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_an_error(key in key(), value in "\\PC{0,9}|[0-9]{1,3}|-?[a-z0-9\"\\[\\]{}=.]{0,9}") {
            let setting = format!("{key}={value}");
            match parse(&[&setting]) {
                Ok(plan) => prop_assert!(plan.description.contains(&setting) || plan == parse(&[]).unwrap()),
                Err(error) => prop_assert!(error.to_string().contains(&setting), "{error}"),
            }
        }

        #[test]
        fn a_number_reaches_its_key(rounds in 1u64..1_000_000) {
            let plan = parse(&[&format!("workload.fsfb.rounds={rounds}")]).unwrap();
            prop_assert_eq!(plan.workload.fsfb.unwrap().rounds, Some(rounds));
        }
    }
}
