//! The known name that a misspelt one is near to.

use std::path::{Path, PathBuf};

use senesce_core::Printable;
use senesce_experiment::RunPaths;

/// The first known name that is near to a given one.
pub fn find_near<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    known.into_iter().find(|known| is_near(given, known))
}

/// The run whose directory has a name that is near to a path that does not exist: beside that path,
/// or in `senesce-runs`.
pub fn find_near_run(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let beside = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found: Vec<_> = [beside, Path::new("senesce-runs")]
        .iter()
        .filter_map(|dir| std::fs::read_dir(dir).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.file_name().and_then(|found| found.to_str()).is_some_and(|found| is_near(name, found)))
        .filter(|path| RunPaths::new(path).results().is_dir())
        .collect();
    found.sort();
    let found = found.into_iter().next()?;
    Some(found.strip_prefix(".").unwrap_or(&found).to_str()?.to_owned())
}

/// The hint for a run that does not exist.
pub fn hint_for_run(path: &Path) -> String {
    match find_near_run(path) {
        Some(near) => format!("did you mean {near}?"),
        None => "name the directory of a run; without --out, `senesce run` makes it in senesce-runs".to_owned(),
    }
}

/// Where the plans of senesce are: in its source, and where packages install them.
const PLAN_DIRS: [&str; 2] = ["plans", "/usr/share/senesce/plans"];

/// The hint for a plan that does not exist.
pub fn hint_for_missing_plan(path: &Path) -> String {
    match PLAN_DIRS.iter().find_map(|dir| find_near_plan(path, Path::new(dir))) {
        Some(near) => format!("did you mean {}?", Printable::new(&near)),
        None => {
            format!(
                "name the file of a plan; those of senesce are in {}/ of its source, or in {}",
                PLAN_DIRS[0], PLAN_DIRS[1]
            )
        }
    }
}

/// The plan in a directory with the name of a path or a name near to it, with or without `.toml`.
fn find_near_plan(path: &Path, dir: &Path) -> Option<PathBuf> {
    let name = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).map(|name| name.trim_end_matches(".toml").to_owned())
    };
    let given = name(path)?;
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    found.sort();
    let is_same = |path: &&PathBuf| name(path).as_ref() == Some(&given);
    let is_like = |path: &&PathBuf| name(path).is_some_and(|name| is_near(&given, &name));
    found.iter().find(is_same).or_else(|| found.iter().find(is_like)).cloned()
}

/// Whether two names are equal, or differ in one or two letters between an equal start and end.
fn is_near(given: &str, known: &str) -> bool {
    let (given, known) = (given.to_lowercase(), known.to_lowercase());
    let same_start = given.chars().zip(known.chars()).take_while(|(a, b)| a == b).count();
    let same_end = given.chars().rev().zip(known.chars().rev()).take_while(|(a, b)| a == b).count();
    let (given, known) = (given.chars().count(), known.chars().count());
    let longer = given.max(known);
    // In a short name, two other letters make another word.
    let most = if longer < 6 { 1 } else { 2 };
    given.min(known) > 2 && same_start + same_end + most >= longer && same_start > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_two_letters_may_differ() {
        let known = ["hdd-7200", "hdd-10k", "sata-ssd", "nvme"];
        for (given, near) in [
            ("hdd7200", Some("hdd-7200")),
            ("HDD-10K", Some("hdd-10k")),
            ("sata-sdd", Some("sata-ssd")),
            ("nvm", Some("nvme")),
            ("ssd", None),
            ("n", None),
            ("nope", None),
            ("floppy", None),
        ] {
            assert_eq!(find_near(given, known), near, "{given}");
        }
    }

    #[test]
    fn plans_are_found_without_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["quick-start.toml", "quick-starts.toml", "notes.txt"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let near = |given: &str| {
            let found = find_near_plan(Path::new(given), dir.path())?;
            Some(found.file_name()?.to_str()?.to_owned())
        };
        for given in ["quick-start", "quick-start.toml", "plan/quick-start", "quickstart.toml"] {
            assert_eq!(near(given).as_deref(), Some("quick-start.toml"), "{given}");
        }
        assert_eq!((near("notes"), near("nowhere.toml"), near("..")), (None, None, None));
        let hint = hint_for_missing_plan(Path::new("nowhere.toml"));
        assert!(hint.contains("in plans/ of its source, or in /usr/share/senesce/plans"), "{hint}");
    }

    #[test]
    fn only_runs_are_offered() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("befort")).unwrap();
        assert_eq!(find_near_run(&dir.path().join("befor")), None);
        std::fs::create_dir_all(dir.path().join("before/results")).unwrap();
        let near = dir.path().join("before").to_str().unwrap().to_owned();
        assert_eq!(find_near_run(&dir.path().join("befor")), Some(near.clone()));
        assert_eq!(hint_for_run(&dir.path().join("befor")), format!("did you mean {near}?"));
    }
}
