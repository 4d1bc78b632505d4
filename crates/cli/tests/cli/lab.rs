//! A directory in which the program runs, and the check that nothing is left.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub use senesce_testkit::Done;
use senesce_testkit::check_printed;
use tempfile::TempDir;

/// The program under test.
pub const SENESCE: &str = env!("CARGO_BIN_EXE_senesce");

/// A small full-disk plan in memory on ext4 that runs out of space in the middle of a pull.
pub const SMALL: &str = r#"format = "senesce-plan/1"
name = "small"
seed = 7
[history]
synthetic = { model = "linux-like", files = 500, commits = 80 }
start = 20
pulls = 40
[workload]
edition = "full-disk-paper"
fill_percent = 90
[measure]
every = 20
repeat_disturbed = 0
[volumes]
full = "34MiB"
empty = "96MiB"
unaged = "96MiB"
backend = "memory"
dir = "MEMORY"
[[file_system]]
kind = "ext4"
"#;

/// A still smaller plan with one copy of the repository.
pub const SINGLE: &str = r#"format = "senesce-plan/1"
name = "single"
seed = 7
[history]
synthetic = { model = "linux-like", files = 500, commits = 8 }
pulls = 4
[workload]
edition = "single"
[measure]
every = 4
repeat_disturbed = 0
[volumes]
empty = "64MiB"
unaged = "64MiB"
backend = "memory"
dir = "MEMORY"
[[file_system]]
kind = "ext4"
"#;

/// A directory, a directory in memory, and a registry of runs, all the test's own.
pub struct Lab {
    disk: TempDir,
    memory: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let disk = tempfile::Builder::new().prefix("senesce-lab-").tempdir().unwrap();
        let memory = tempfile::Builder::new().prefix("senesce-lab-").tempdir_in("/dev/shm").unwrap();
        let lab = Self { disk, memory };
        fs::create_dir(lab.path("tmp")).unwrap();
        lab
    }

    /// A path in the lab's directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.disk.path().join(name)
    }

    /// The lab's directory in memory.
    pub fn memory(&self) -> &Path {
        self.memory.path()
    }

    /// Writes a plan; `MEMORY` in it becomes the lab's directory in memory, `LAB` the one on disk.
    pub fn plan(&self, text: &str) -> PathBuf {
        let text = text
            .replace("MEMORY", &self.memory().to_string_lossy())
            .replace("LAB", &self.disk.path().to_string_lossy());
        let path = self.path("plan.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// The program with its registry and temporary files in the lab.
    pub fn command(&self) -> Command {
        let mut command = Command::new(SENESCE);
        self.confine(&mut command);
        command
    }

    /// Makes any command that leads to the program keep to the lab.
    pub fn confine(&self, command: &mut Command) {
        command.env("SENESCE_REGISTRY", self.path("registry")).env("TMPDIR", self.path("tmp"));
        command.current_dir(self.disk.path()).stdin(Stdio::null());
    }

    /// Runs the program. Fails if its JSON does not fit the published schema.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        let mut command = self.command();
        let done = Done::of(command.args(args).output().unwrap());
        let words: Vec<&OsStr> = command.get_args().collect();
        if words.iter().any(|word| *word == "--json") || words.starts_with(&["fs".as_ref(), "figures".as_ref()]) {
            check_printed(&done.stdout);
        }
        done
    }

    /// Runs a shell script with `$SENESCE` in a mount namespace of its own, so that what it mounts
    /// goes with it.
    pub fn run_apart(&self, script: &str) -> Done {
        let mut command = senesce_testkit::apart(script);
        self.confine(command.env("SENESCE", SENESCE));
        Done::of(command.output().unwrap())
    }

    /// Mounts and loop devices in the lab, images outside run results, temporary files.
    pub fn leftovers(&self) -> Vec<String> {
        let places = [self.disk.path(), self.memory()];
        let is_ours = |text: &str| places.iter().any(|place| text.starts_with(&*place.to_string_lossy()));
        let mut found: Vec<String> =
            mount_points().into_iter().filter(|point| is_ours(point)).map(|point| format!("mount {point}")).collect();
        found.extend(
            loops().into_iter().filter(|(_, image)| is_ours(image)).map(|(name, image)| format!("{name} {image}")),
        );
        let mut files = Vec::new();
        for place in places {
            walk(place, &mut files);
        }
        let is_left = |path: &Path| {
            path.extension().is_some_and(|extension| extension == "img" || extension == "partial")
                || path.starts_with(self.path("tmp"))
                || path.starts_with(self.memory())
                || path.parent().is_some_and(|parent| parent.ends_with("volumes"))
        };
        found.extend(files.iter().filter(|path| is_left(path)).map(|path| path.display().to_string()));
        found
    }

    /// Fails if anything is left.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.leftovers(), [""; 0]);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // A test that failed may have left a run in the middle.
        let _ = self.command().arg("clean").output();
    }
}

/// Everything below `dir`, directories only if they are empty. A mount whose disk is gone is found,
/// and not entered.
fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()) else {
        found.push(dir.to_owned());
        return;
    };
    for entry in entries {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            let before = found.len();
            walk(&path, found);
            if found.len() == before && path.parent().is_some_and(|parent| parent.ends_with("volumes")) {
                found.push(path);
            }
        } else {
            found.push(path);
        }
    }
}

/// Every mount point that this process sees.
pub fn mount_points() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect()
}

/// Names and backing files of the loop devices in use.
pub fn loops() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/sys/block").unwrap() {
        let entry = entry.unwrap();
        if let Ok(image) = fs::read_to_string(entry.path().join("loop/backing_file")) {
            found.push((entry.file_name().to_string_lossy().into_owned(), image.trim_end().to_owned()));
        }
    }
    found
}

/// The lines of stderr without those of progress, `[   12 s] ext4: mkfs on full, 9 s so far`. A run
/// prints the first of them after 10 s of silence, so a fast one prints none.
pub fn without_progress(stderr: &str) -> String {
    let is_progress = |line: &str| {
        line.strip_prefix('[')
            .and_then(|rest| rest.split_once(" s] "))
            .is_some_and(|(seconds, _)| seconds.trim().parse::<u64>().is_ok())
    };
    stderr.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect()
}
