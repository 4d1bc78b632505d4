//! Circumstances in which two runs differ: they may explain a difference by themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use schemars::JsonSchema;
use senesce_core::statistics::compute_median;
use senesce_store::{CircumstanceRow, LoadRow, PUBLISHED, Results, is_of_execution};
use serde::Serialize;

/// Groups in the order in which they are printed.
const GROUPS: [&str; 7] = ["kernel", "file system", "device", "machine", "load", "senesce", "plan"];

/// The key of the command that made a file system.
const MKFS_COMMAND: &str = "mkfs_command";
/// Roles that circumstances of a volume start with.
const ROLES: [&str; 3] = ["full", "empty", "unaged"];

/// A circumstance in which two runs differ.
#[derive(Serialize, JsonSchema)]
pub(in crate::verb) struct Unlike {
    /// `kernel`, `file system`, `device`, `machine`, `load`, `senesce` or `plan`. For inspections
    /// also `tree`.
    pub(in crate::verb) group: &'static str,
    /// Its key.
    pub(in crate::verb) key: String,
    /// Arms and volumes with these values. Empty if all that record the circumstance have them.
    of: Vec<String>,
    /// The value in A. `None` if A does not record it.
    pub(in crate::verb) a: Option<String>,
    /// The value in B. `None` if B does not record it.
    pub(in crate::verb) b: Option<String>,
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text("A", "B"))
    }
}

impl From<Unlike> for senesce_report::Unlike {
    /// A is the earlier run.
    fn from(unlike: Unlike) -> Self {
        let Unlike { group, key, of, a: before, b: now } = unlike;
        Self { group: group.to_owned(), key, of, before, now }
    }
}

impl Unlike {
    /// A circumstance that both sides record.
    pub(super) fn of_both(group: &'static str, key: &str, (a, b): (String, String)) -> Self {
        Self { group, key: key.to_owned(), of: Vec::new(), a: Some(a), b: Some(b) }
    }

    /// The circumstance with both values, and the names of both sides.
    pub(in crate::verb) fn text(&self, name_a: &str, name_b: &str) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not recorded".to_owned());
        let (a, b) = (shown(&self.a), shown(&self.b));
        let is_command = self.key == MKFS_COMMAND && self.a.is_some() && self.b.is_some();
        let own = is_command.then(|| (own_words(&a, &b), own_words(&b, &a)));
        let text = match own {
            Some((of_a, of_b)) if !of_a.is_empty() && !of_b.is_empty() => {
                format!("{}: {} has {of_a} in {name_a}, {of_b} in {name_b}", self.group, self.key)
            }
            Some((of_a, of_b)) if of_a != of_b => {
                let (words, name) = if of_b.is_empty() { (of_a, name_a) } else { (of_b, name_b) };
                format!("{}: {} has {words} in {name} only", self.group, self.key)
            }
            _ => format!("{}: {} is {a} in {name_a}, {b} in {name_b}", self.group, self.key),
        };
        match self.of.is_empty() {
            true => text,
            false => format!("{text} ({})", self.of.join(", ")),
        }
    }
}

/// The words of a command that the other command lacks, each value with its option.
fn own_words(command: &str, other: &str) -> String {
    let mut rest: Vec<&str> = other.split(' ').collect();
    let mut words: Vec<&str> = Vec::new();
    let mut option = None;
    for word in command.split(' ') {
        match rest.iter().position(|of_other| *of_other == word) {
            Some(at) => {
                rest.remove(at);
                option = Some(word).filter(|word| word.starts_with('-'));
            }
            None => {
                words.extend(option.take().filter(|_| !word.starts_with('-')));
                words.push(word);
            }
        }
    }
    words.join(" ")
}

/// All circumstances that differ, by groups. Names, paths and times of runs are left out, because
/// they always differ.
pub(in crate::verb) fn compute_unlike(a: &Results, b: &Results) -> Vec<Unlike> {
    let mut all = compare_circumstances(&a.circumstances, &b.circumstances);
    all.extend(compare_load(&a.load, &b.load));
    all.sort_by_key(|unlike| GROUPS.iter().position(|group| *group == unlike.group));
    all
}

/// The load of the machine during the grep tests, if it was twice as high in one run and differed
/// by at least one task.
fn compare_load(a: &[LoadRow], b: &[LoadRow]) -> Vec<Unlike> {
    let averages = |rows: &[LoadRow]| -> Vec<f64> {
        rows.iter().map(|row| row.load_average).filter(|average| average.is_finite()).collect()
    };
    let disturbed = |rows: &[LoadRow]| rows.iter().filter(|row| !row.disturbance.is_empty()).count();
    let tell = |rows: &[LoadRow], median: f64| {
        let (count, all) = (disturbed(rows), rows.len());
        Some(format!("{median:.2} (median; {count} of {all} grep tests disturbed)"))
    };
    let (Some(of_a), Some(of_b)) = (compute_median(&averages(a)), compute_median(&averages(b))) else {
        return Vec::new();
    };
    let is_unlike = (of_a - of_b).abs() >= 1.0 && of_a.max(of_b) >= 2.0 * of_a.min(of_b);
    let unlike =
        || Unlike { group: "load", key: "load average".to_owned(), of: Vec::new(), a: tell(a, of_a), b: tell(b, of_b) };
    Vec::from_iter(is_unlike.then(unlike))
}

fn compare_circumstances(a: &[CircumstanceRow], b: &[CircumstanceRow]) -> Vec<Unlike> {
    let (a, b) = (collect(a), collect(b));
    let shared_volumes = |all: &BTreeMap<(String, String), String>| -> BTreeSet<String> {
        all.keys().map(|(_, volume)| volume.clone()).collect()
    };
    let both: BTreeSet<String> = shared_volumes(&a).intersection(&shared_volumes(&b)).cloned().collect();
    let mut found: BTreeMap<(String, Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    let keys: BTreeSet<&(String, String)> = a.keys().chain(b.keys()).collect();
    for at in keys.into_iter().filter(|(_, volume)| both.contains(volume)) {
        let (key, volume) = at;
        *recorded.entry(key.clone()).or_default() += 1;
        let (of_a, of_b) = (a.get(at).cloned(), b.get(at).cloned());
        if of_a != of_b {
            found.entry((key.clone(), of_a, of_b)).or_default().push(volume.clone());
        }
    }
    let all = found.into_iter().map(|((key, a, b), volumes)| {
        let is_everywhere = recorded.get(&key) == Some(&volumes.len());
        Unlike { group: group_of(&key), of: if is_everywhere { Vec::new() } else { volumes }, key, a, b }
    });
    all.collect()
}

/// Values by key and volume (`ext4 full`); the volume is empty for those of the whole run.
fn collect(rows: &[CircumstanceRow]) -> BTreeMap<(String, String), String> {
    let mut all = BTreeMap::new();
    for CircumstanceRow { arm, key, value } in rows {
        let volume = ROLES.into_iter().find_map(|role| {
            let key = key.strip_prefix(role)?.strip_prefix('.')?;
            Some((key, format!("{arm} {role}")))
        });
        let (key, volume) = volume.unwrap_or((key.as_str(), arm.clone()));
        if !is_incidental(key, value) {
            all.insert((key.to_owned(), volume), without_names(key, value));
        }
    }
    all
}

/// The circumstances without those that differ between any two runs, and without names of a run's
/// own volumes: those that a baseline keeps.
pub(in crate::verb) fn keep_circumstances(rows: &[CircumstanceRow]) -> Vec<CircumstanceRow> {
    let kept = |row: &CircumstanceRow| {
        let key = ROLES.into_iter().find_map(|role| row.key.strip_prefix(role)?.strip_prefix('.'));
        let key = key.unwrap_or(&row.key);
        let value = without_names(key, &row.value);
        (!is_incidental(key, &row.value)).then(|| CircumstanceRow { value, ..row.clone() })
    };
    rows.iter().filter_map(kept).collect()
}

/// Whether a circumstance differs between any two runs, is an outcome of the run, or has no effect
/// on it.
fn is_incidental(key: &str, value: &str) -> bool {
    let is_loop = key == "device" && value.starts_with("/dev/loop");
    let is_name = matches!(key, "plan.name" | "plan.description" | PUBLISHED | "volume" | "image");
    is_loop || is_name || is_of_execution(key) || key.starts_with("reached.")
}

/// The value without the names of this run's own volume: UUID, device or image.
fn without_names(key: &str, value: &str) -> String {
    if key != MKFS_COMMAND {
        return value.to_owned();
    }
    let mut words = value.split(' ');
    let program = words.next().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
    let rest = words.map(|word| if word.starts_with('/') { "DEVICE".to_owned() } else { without_uuids(word) });
    program.into_iter().chain(rest).collect::<Vec<_>>().join(" ")
}

fn without_uuids(word: &str) -> String {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    const WHOLE: usize = 36;
    let is_uuid = |text: &str| {
        text.split('-').map(str::len).eq(LENGTHS)
            && text.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
    };
    let found =
        (0..word.len()).find_map(|from| Some((from, word.get(from..from + WHOLE).filter(|text| is_uuid(text))?)));
    match found {
        Some((from, _)) => format!("{}UUID{}", &word[..from], without_uuids(&word[from + WHOLE..])),
        None => word.to_owned(),
    }
}

fn group_of(key: &str) -> &'static str {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| key.starts_with(prefix));
    match key {
        _ if starts(&["load", "psi", "pressure", "steal"]) => "load",
        _ if starts(&["kernel"]) => "kernel",
        _ if starts(&["mkfs", "mount_options", "block_bytes", "file_system", "engine"]) => "file system",
        _ if starts(&["cpu", "memory", "machine", "virtual_machine", "distribution"]) => "machine",
        _ if starts(&["senesce"]) => "senesce",
        _ if starts(&["plan", "workload", "measure", "history", "volumes", "log", "trace"]) => "plan",
        _ => "device",
    }
}

#[cfg(test)]
mod tests {
    use senesce_store::{CellKey, Role};

    use super::*;

    fn rows(pairs: &[(&str, &str, &str)]) -> Results {
        let row = |(arm, key, value): &(&str, &str, &str)| CircumstanceRow {
            arm: (*arm).to_owned(),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        Results { circumstances: pairs.iter().map(row).collect(), ..Results::default() }
    }

    const COMMAND: &str = "/sbin/mkfs.ext4 -q -U 3f0e1d2c-1111-2222-3333-0123456789ab -E hash_seed=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee /dev/loop7";

    #[test]
    fn runs_that_differ_in_names_alone_are_alike() {
        let other = COMMAND.replace("loop7", "loop9").replace("3f0e1d2c", "00000000");
        let a = rows(&[
            ("", "plan.name", "a"),
            ("", "run.begun_unix_seconds", "1"),
            ("ext4", "empty.mkfs_command", COMMAND),
            ("ext4", "empty.device", "/dev/loop7"),
            ("ext4", "reached.40.turnover", "1.5"),
        ]);
        let b = rows(&[
            ("", "plan.name", "b"),
            ("", "run.begun_unix_seconds", "2"),
            ("ext4", "empty.mkfs_command", &other),
            ("ext4", "empty.device", "/dev/loop9"),
        ]);
        assert!(compute_unlike(&a, &b).is_empty());
    }

    #[test]
    fn every_difference_is_a_line_with_both_values() {
        let option = COMMAND.replace("-q", "-q -I 128");
        let a = rows(&[
            ("", "plan.hash", "aa"),
            ("", "senesce.version", "1"),
            ("ext4", "empty.mkfs_command", COMMAND),
            ("ext4", "unaged.mkfs_command", COMMAND),
            ("ext4", "empty.mount_options", "rw"),
            ("ext4", "unaged.mount_options", "rw"),
            ("ext4", "empty.kernel_release", "6.1"),
            ("ext4", "unaged.kernel_release", "6.1"),
            ("ext4", "empty.device", "/dev/sdb"),
            ("ext4", "empty.load_average", "0.1"),
            ("xfs", "empty.kernel_release", "6.1"),
        ]);
        let b = rows(&[
            ("", "plan.hash", "bb"),
            ("", "senesce.version", "2"),
            ("ext4", "empty.mkfs_command", &option),
            ("ext4", "unaged.mkfs_command", &option),
            ("ext4", "empty.mount_options", "rw,noatime"),
            ("ext4", "unaged.mount_options", "rw"),
            ("ext4", "empty.kernel_release", "6.12"),
            ("ext4", "unaged.kernel_release", "6.12"),
            ("ext4", "empty.device", "/dev/sdc"),
            ("ext4", "empty.load_average", "30"),
            ("ext4", "empty.device_model", "new"),
        ]);
        let told: Vec<String> = compute_unlike(&a, &b).iter().map(Unlike::to_string).collect();
        let expected = [
            "kernel: kernel_release is 6.1 in A, 6.12 in B".to_owned(),
            "file system: mkfs_command has -I 128 in B only".to_owned(),
            "file system: mount_options is rw in A, rw,noatime in B (ext4 empty)".to_owned(),
            "device: device is /dev/sdb in A, /dev/sdc in B".to_owned(),
            "device: device_model is not recorded in A, new in B".to_owned(),
            "load: load_average is 0.1 in A, 30 in B".to_owned(),
            "senesce: senesce.version is 1 in A, 2 in B".to_owned(),
            "plan: plan.hash is aa in A, bb in B".to_owned(),
        ];
        assert_eq!(told, expected);
        let changes: Vec<String> =
            compute_unlike(&a, &b).into_iter().map(|unlike| senesce_report::Unlike::from(unlike).to_string()).collect();
        assert_eq!(changes[2], "file system, mount_options (ext4 empty): rw → rw,noatime");
    }

    #[test]
    fn commands_differ_in_words() {
        let unlike = |a: &str, b: &str| {
            let of = |option: &str| Some(format!("mkfs.ext4 -q {option} -U UUID DEVICE"));
            let unlike =
                Unlike { group: "file system", key: MKFS_COMMAND.to_owned(), of: Vec::new(), a: of(a), b: of(b) };
            unlike.to_string()
        };
        assert_eq!(unlike("-b 4096", "-b 1024"), "file system: mkfs_command has -b 4096 in A, -b 1024 in B");
        assert_eq!(unlike("-b 4096 -I 128", "-b 4096"), "file system: mkfs_command has -I 128 in A only");
        let moved = unlike("-b 1024 -I 4096", "-b 4096 -I 1024");
        assert!(moved.contains("is mkfs.ext4 -q -b 1024 -I 4096"), "{moved}");
    }

    #[test]
    fn a_busy_machine_is_unlike_a_calm_one() {
        let rows = |averages: &[f64]| -> Vec<LoadRow> {
            let row = |average: &f64| LoadRow {
                key: CellKey { arm: "ext4".into(), file_system: "ext4".into(), role: Role::Empty, pulls: 40 },
                repetition: 0,
                disturbance: if *average > 4.0 { "load".to_owned() } else { String::new() },
                load_average: *average,
                cpu_pressure_seconds: f64::NAN,
                io_pressure_seconds: f64::NAN,
                memory_pressure_seconds: f64::NAN,
                steal_seconds: f64::NAN,
                own_user_seconds: f64::NAN,
                other_user_seconds: f64::NAN,
                kernel_seconds: f64::NAN,
                processors: 2,
                own_drive_bytes: f64::NAN,
                other_drive_bytes: f64::NAN,
            };
            averages.iter().map(row).collect()
        };
        assert!(compare_load(&rows(&[0.1, 0.2]), &rows(&[0.4, 0.9])).is_empty());
        assert!(compare_load(&rows(&[0.1]), &rows(&[f64::NAN])).is_empty());
        let told: Vec<String> =
            compare_load(&rows(&[0.1, 0.3, 0.2]), &rows(&[3.0, 20.0, 45.0])).iter().map(Unlike::to_string).collect();
        let expected = "load: load average is 0.20 (median; 0 of 3 grep tests disturbed) in A, 20.00 (median; 2 of 3 grep \
                        tests disturbed) in B";
        assert_eq!(told, [expected]);
    }
}
