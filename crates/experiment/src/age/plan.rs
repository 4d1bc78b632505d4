//! Makes a plan from a workload's name and settings.

use std::path::Path;

use senesce_core::Seed;
use toml::{Table, Value};

use super::Until;
use crate::description::read_description;
use crate::plan::{PLAN_FORMAT, Plan, PlanError, Setting, insert};

/// Kinds of workload that need no history. Their settings are the keys of their table in plans.
const MADE: [&str; 7] = ["fsfb", "profile", "mail", "intrafile", "interfile", "renames", "overwrite"];

/// Makes a plan of a workload: `fsfb`, `mail`, `intrafile`, `interfile`, `renames`, `overwrite`,
/// `profile:NAME`, `replay:LOG`, `synthetic`, `git:REPO`, `trace:FILE`, or the path of a plan. Only
/// the workload, the history and the seed of the plan have a meaning.
///
/// Settings are keys of the workload's table in plans. A key with a dot starts at the plan's root
/// (`workload.fill_percent`). Values are as in plans, texts without quotes. A fullness in `until`
/// is also the fullness of workloads that fill a volume, unless a setting overrides it.
///
/// Errors: an unknown workload or setting, with its name.
pub fn plan_aging(
    workload: &str,
    settings: &[(String, String)],
    until: &Until,
    seed: Option<Seed>,
) -> Result<Plan, PlanError> {
    let path = Path::new(workload);
    let wrong =
        |key: &str, problem: String| PlanError::Contradiction { path: path.to_owned(), key: key.to_owned(), problem };
    let (kind, argument) = match workload.split_once(':') {
        Some((kind, argument)) => (kind, Some(argument.to_owned())),
        None => (workload, None),
    };
    // A profile and a trace can also be files of that name.
    let is_file = workload.ends_with(".toml") && !(argument.is_some() && ["profile", "trace", "git"].contains(&kind));
    let mut plan = match is_file {
        true => {
            let read = |source| PlanError::Read { path: path.to_owned(), source };
            let text = read_description(path).map_err(read)?;
            // Reports errors of the text as for any plan.
            Plan::parse(path, &text)?;
            text.parse::<Table>().map_err(|error| wrong("plan", error.to_string()))?
        }
        false => begin(),
    };
    let home = match is_file {
        true => compute_home(&plan),
        false => describe(&mut plan, kind, argument).map_err(|problem| wrong("workload", problem))?,
    };
    if let Some(fullness) = until.fullness.filter(|_| !is_file) {
        fill(&mut plan, kind, fullness).map_err(|problem| wrong("fullness", problem))?;
    }
    for (name, value) in settings {
        // The range of a synthetic history has the same keys as that of a repository.
        let home =
            if matches!(name.as_str(), "pulls" | "start") && home.starts_with("history") { "history" } else { &home };
        let key = if name.contains('.') { name.clone() } else { format!("{home}.{name}") };
        let setting = Setting { key, value: value.clone() };
        setting.apply(&mut plan).map_err(|problem| wrong(&setting.key, problem))?;
    }
    if let Some(seed) = seed {
        plan.insert(
            "seed".into(),
            Value::Integer(i64::try_from(seed.0).map_err(|_| wrong("seed", "is too large".into()))?),
        );
    }
    let text = toml::to_string(&plan).map_err(|error| wrong("plan", error.to_string()))?;
    Plan::parse(path, &text)
}

/// The table of settings without a dot: that of the plan's workload.
fn compute_home(plan: &Table) -> String {
    let kind = plan.get("workload").and_then(|workload| workload.get("kind")).and_then(Value::as_str);
    match kind.filter(|&kind| kind != "history") {
        Some(kind) => format!("workload.{kind}"),
        None => "history".to_owned(),
    }
}

fn begin() -> Table {
    let text = format!("format = {PLAN_FORMAT:?}\nname = \"age\"\n[[file_system]]\nkind = \"ext4\"\n");
    text.parse().expect("a plan's beginning is TOML")
}

/// Sets the workload. Returns the table of its settings.
fn describe(plan: &mut Table, kind: &str, argument: Option<String>) -> Result<String, String> {
    let needs = |what: &str, written: &str| Err(format!("{kind} needs {what}: {kind}:{written}"));
    match (kind, argument) {
        ("git", Some(repo)) => insert(plan, "history.repo", Value::String(repo)).map(|()| "history".into()),
        ("trace", Some(file)) => insert(plan, "history.trace", Value::String(file)).map(|()| "history".into()),
        ("replay", Some(file)) => {
            insert(plan, "workload.kind", Value::String("replay".into()))?;
            insert(plan, "workload.replay.log", Value::String(file)).map(|()| "workload.replay".into())
        }
        ("replay", None) => needs("an operation log", "LOG"),
        ("git", None) => needs("a repository", "REPO"),
        ("trace", None) => needs("a file", "FILE"),
        ("synthetic", None) => insert(plan, "history.synthetic.model", Value::String("linux-like".into()))
            .map(|()| "history.synthetic".into()),
        ("profile", argument) => {
            insert(plan, "workload.kind", Value::String("profile".into()))?;
            let name = argument.map_or(Ok(()), |name| insert(plan, "workload.profile.profile", Value::String(name)));
            name.map(|()| "workload.profile".into())
        }
        (kind, None) if MADE.contains(&kind) => {
            insert(plan, "workload.kind", Value::String(kind.into())).map(|()| format!("workload.{kind}"))
        }
        (kind, _) => Err(format!(
            "{kind:?} is unknown; there are {}, profile:NAME, replay:LOG, synthetic, git:REPO, trace:FILE and PLAN.toml",
            MADE.join(", ")
        )),
    }
}

/// Sets the fullness of workloads that fill a volume.
fn fill(plan: &mut Table, kind: &str, fullness: f64) -> Result<(), String> {
    let percent = (fullness * 100.0).clamp(0.0, 100.0);
    if matches!(kind, "fsfb" | "overwrite") && percent > 99.0 {
        return Err(format!("{percent}% is more than {kind} fills a volume: 99% at most"));
    }
    let (key, value) = match kind {
        "fsfb" => ("workload.fsfb.fill_percent", Value::Integer(percent.ceil() as i64)),
        "overwrite" => ("workload.overwrite.fill_percent", Value::Integer(percent.ceil() as i64)),
        "profile" => ("workload.profile.fullness_percent", Value::Float(percent)),
        _ => return Ok(()),
    };
    insert(plan, key, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WorkloadKind;

    fn plan(workload: &str, settings: &[(&str, &str)], until: &str) -> Result<Plan, PlanError> {
        let settings: Vec<_> = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let until = if until.is_empty() { Until::default() } else { until.parse().unwrap() };
        plan_aging(workload, &settings, &until, Some(Seed(9)))
    }

    #[test]
    fn names_and_settings_become_the_tables_of_plans() {
        let made = plan("fsfb", &[("rounds", "7"), ("variant", "code")], "fullness=0.5").unwrap();
        let fsfb = made.workload.fsfb.unwrap();
        assert_eq!((made.seed, fsfb.rounds, fsfb.fill_percent), (Seed(9), Some(7), 50));
        assert_eq!(fsfb.variant, crate::plan::Variant::Code);
        let made = plan("fsfb", &[("fill_percent", "60")], "fullness=0.5").unwrap();
        assert_eq!(made.workload.fsfb.unwrap().fill_percent, 60);
        let made = plan("profile:dharma", &[("churn", "1.5"), ("workload.sync_every_operations", "5")], "").unwrap();
        assert_eq!(made.workload.kind, WorkloadKind::Profile);
        assert_eq!(made.workload.profile.unwrap().profile, "dharma");
        assert_eq!(made.workload.sync_every_operations, 5);
        let made = plan("synthetic", &[("files", "50"), ("commits", "3")], "").unwrap();
        assert_eq!(made.history.synthetic.unwrap().files, 50);
        let made = plan("synthetic", &[("files", "50"), ("pulls", "3")], "").unwrap();
        assert_eq!((made.history.pulls, made.history.synthetic.unwrap().files), (Some(3), 50));
        for kind in ["fsfb", "overwrite"] {
            let said = plan(kind, &[], "fullness=99.9%").unwrap_err().to_string();
            assert!(said.contains("fullness") && said.contains("99% at most"), "{said}");
        }
        let made = plan("git:/r", &[("pulls", "3"), ("start", "1")], "").unwrap();
        assert_eq!((made.history.repo.as_deref(), made.history.pulls), (Some("/r"), Some(3)));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/fast17-mail.toml");
        let made = plan(file, &[("messages", "5"), ("workload.mail.cycles", "2")], "").unwrap();
        let mail = made.workload.mail.unwrap();
        assert_eq!((made.seed, mail.messages, mail.cycles, mail.mailboxes), (Seed(9), 5, 2, 80));
        for kind in MADE {
            plan(kind, &[], "").unwrap();
        }
        assert_eq!(plan("mail", &[("largest", "4KiB")], "").unwrap().workload.mail.unwrap().largest.0.0, 4096);
    }

    #[test]
    fn unknown_names_are_reported() {
        for (workload, setting, says) in [
            ("fsbf", None, "is unknown; there are fsfb"),
            ("git", None, "needs a repository"),
            ("fsfb:5", None, "is unknown"),
            ("fsfb", Some(("round", "3")), "did you mean `rounds`?"),
            ("fsfb", Some(("rounds", "many")), "rounds"),
            ("fsfb", Some(("format.x", "3")), "is a value, not a table"),
            ("nowhere.toml", None, "cannot read the plan"),
        ] {
            let error = plan(workload, setting.as_slice(), "").unwrap_err().to_string();
            assert!(error.contains(says), "{workload} {setting:?}: {error}");
        }
    }
}
