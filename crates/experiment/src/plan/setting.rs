//! Changes of single keys of a plan, as `senesce run --set KEY=VALUE` requests them.

use std::{
    fmt::{self, Display, Formatter},
    num::IntErrorKind,
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
        insert(plan, &self.key, self.parse_value())
    }

    /// The value in TOML, or else as a text.
    fn parse_value(&self) -> Value {
        // Text after the value would be further keys.
        let parsed = format!("v = {}", self.value).parse::<Table>().ok().filter(|table| table.len() == 1);
        parsed.and_then(|mut table| table.remove("v")).unwrap_or_else(|| Value::String(self.value.clone()))
    }

    /// Whether it changes this key, a table that contains the key, or a key in it.
    pub fn touches(&self, key: &str) -> bool {
        contains(&self.key, key) || contains(key, &self.key)
    }
}

/// Whether a key is another one, or a table or list that contains it.
fn contains(outer: &str, key: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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
            _ => return Err(format!("{path} is a value, not a table")),
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
        let Some(first) = settings.first() else { return Self::parse(path, text) };
        let Ok(table) = text.parse::<Table>() else {
            // A table has no integer above 2^63-1, and a plan can have one.
            return Self::parse(path, text).and(Err(wrong(first, "the plan has a number above 2^63-1")));
        };
        let mut values: Vec<Value> = settings.iter().map(Setting::parse_value).collect();
        loop {
            // Applies the first settings, then checks the whole plan once: settings may need each
            // other.
            let changed = |count: usize| -> Result<(Plan, Table), PlanError> {
                let mut table = table.clone();
                for (setting, value) in settings.iter().zip(&values).take(count) {
                    insert(&mut table, &setting.key, value.clone()).map_err(|problem| wrong(setting, &problem))?;
                }
                Ok((parse_table(path, table.clone())?.checked(path)?, table))
            };
            let error = match changed(settings.len()) {
                Ok((plan, new)) => return Ok(describe(plan, (&table, &new), settings)),
                Err(error) => error,
            };
            // The first setting with which the error occurs is the cause.
            let said = error.to_string();
            let is_it = |count: &usize| changed(*count).is_err_and(|error| error.to_string() == said);
            let at = match (0..settings.len()).find(is_it) {
                // The message for the text names the line.
                Some(0) => return Self::parse(path, text).and(Err(error)),
                count => count.unwrap_or(settings.len()) - 1,
            };
            // A text such as a commit can have the form of a number.
            let is_text = matches!(values[at], Value::String(_) | Value::Array(_) | Value::Table(_));
            if is_text || !said.contains("expected a string") {
                return Err(explain(&settings[at], error, find_place(&settings[at], path, &table)));
            }
            values[at] = Value::String(settings[at].value.clone());
        }
    }
}

fn wrong(setting: &Setting, problem: &str) -> PlanError {
    PlanError::Setting { setting: setting.to_string(), problem: problem.to_owned(), hint: None }
}

/// The error of a plan as one of the setting that causes it.
fn explain(setting: &Setting, error: PlanError, place: Option<String>) -> PlanError {
    let is_large = setting.value.parse::<i64>().is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow);
    let (problem, hint) = match error {
        // TOML has no such number, so it was a text.
        PlanError::Syntax { problem, .. } if is_large && problem.starts_with("invalid type: string") => {
            ("the number is too large; the largest is 2^63-1".to_owned(), None)
        }
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
        moved.apply(&mut plan).is_ok() && parse_table(path, plan).and_then(|plan| plan.checked(path)).is_ok()
    })
}

/// Adds the settings to the description of the changed plan, which readers of the report see. The
/// author's text may state old values.
fn describe(mut plan: Plan, (old, new): (&Table, &Table), settings: &[Setting]) -> Plan {
    let is_new = |(at, setting): &(usize, &Setting)| {
        let is_overridden = settings[at + 1..].iter().any(|later| contains(&later.key, &setting.key));
        !is_overridden && find(new, &setting.key) != find(old, &setting.key)
    };
    let changes: Vec<String> =
        settings.iter().enumerate().filter(is_new).map(|(_, setting)| setting.to_string()).collect();
    if !changes.is_empty() && settings.iter().all(|setting| setting.key != "description") {
        let changes = format!("Changed: {}.", changes.join(", "));
        plan.description = [plan.description.trim(), &changes].join(" ").trim_start().to_owned();
    }
    plan
}

/// The value of a key with dots.
fn find<'t>(plan: &'t Table, key: &str) -> Option<&'t Value> {
    let mut parts = key.split('.');
    let first = plan.get(parts.next()?)?;
    parts.try_fold(first, |place, part| match place {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        place => place.get(part),
    })
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
    fn description_lists_what_is_left_of_the_settings() {
        let list = "file_system=[{kind=\"xfs\"},{kind=\"ext4\"}]";
        let described = format!("Ten rounds. Changed: {list}, file_system.1.mount=noatime.");
        for (settings, description) in [
            (&["workload.fsfb.rounds=9", "workload.fsfb.rounds=10"][..], "Ten rounds."),
            (&["workload.fsfb.rounds=9", "workload.fsfb.rounds=8"], "Ten rounds. Changed: workload.fsfb.rounds=8."),
            (&[list, "file_system.1.mount=noatime"], &described),
            (&["file_system.1.mount=noatime", list], &format!("Ten rounds. Changed: {list}.")),
        ] {
            assert_eq!(parse(settings).unwrap().description, description, "{settings:?}");
        }
    }

    #[test]
    fn plan_with_a_large_number_takes_no_setting() {
        let text = TEXT.replacen("[workload]", "seed = 18446744073709551615\n[workload]", 1);
        let parse = |text: &str| Plan::parse_with(Path::new("p.toml"), text, &["name=other".parse().unwrap()]);
        assert_eq!(Plan::parse(Path::new("p.toml"), &text).unwrap().seed.0, u64::MAX);
        let said = parse(&text).unwrap_err().to_string();
        assert_eq!(said, "cannot use --set name=other: the plan has a number above 2^63-1");
        let said = parse(&text.replacen("rounds =", "round =", 1)).unwrap_err().to_string();
        assert!(said.contains("line 8"), "{said}");
    }

    #[test]
    fn texts_may_have_the_form_of_numbers() {
        let plan = parse(&["description=5", "name=1234567"]).unwrap();
        assert_eq!((plan.name.as_str(), plan.description.as_str()), ("1234567", "5"));
        assert_eq!(parse(&["name=007"]).unwrap().name, "007");
    }

    #[test]
    fn a_setting_touches_its_tables_and_its_keys() {
        let setting: Setting = "history.synthetic.files=3".parse().unwrap();
        for (key, touches) in [
            ("history.synthetic.files", true),
            ("history.synthetic", true),
            ("history", true),
            ("history.synthetic.files.x", true),
            ("history.synthetic.file", false),
            ("history.pulls", false),
        ] {
            assert_eq!(setting.touches(key), touches, "{key}");
        }
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
            (&["name.x=1"], "name is a value, not a table"),
            (&["file_system.2.kind=xfs"], "file_system is a list with 2 entries; write file_system.0 to file_system.1"),
            (&["file_system.kind=xfs"], "file_system is a list with 2 entries"),
            (
                &["seed=18446744073709551615"],
                "seed=18446744073709551615: the number is too large; the largest is 2^63-1",
            ),
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
