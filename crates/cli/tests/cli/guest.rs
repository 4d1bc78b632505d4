//! Guest kernels: runs of a user without rights, and what is left when a part of a guest is killed.
//!
//! The limits of time are those of the program: a guest that hangs ends by its watchdog.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use senesce_testkit::{found_or_skip, root_or_skip};

use super::{
    disk::must,
    lab::{Done, Lab, SENESCE, SINGLE},
};

const NOBODY: u32 = 65_534;

/// A lab of a user who may neither mount nor use a loop device.
pub struct Guests {
    pub lab: Lab,
    program: PathBuf,
}

impl Guests {
    /// `None` after a message without user-mode Linux or root.
    pub fn set_up() -> Option<Self> {
        let kernel = Path::new("/usr/bin/linux.uml");
        found_or_skip(kernel.is_file().then_some(()), "user-mode-linux")?;
        root_or_skip("becoming a user without rights").then_some(())?;
        let lab = Lab::new();
        fs::create_dir(lab.path("registry")).unwrap();
        for name in ["", "registry", "tmp"] {
            chown(lab.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(lab.path("registry"), fs::Permissions::from_mode(0o700)).unwrap();
        let mut guests = Self { lab, program: SENESCE.into() };
        let is_reachable = guests.unprivileged("test").args(["-x", SENESCE]).status().unwrap().success();
        if !is_reachable {
            // By a process of its own: a descriptor that a fork inherits would forbid to execute
            // the copy.
            guests.program = guests.lab.path("program");
            must("cp", &["--reflink=auto", SENESCE, &guests.program.to_string_lossy()]);
        }
        Some(guests)
    }

    pub fn unprivileged(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]).arg(program.as_ref());
        self.lab.confine(&mut command);
        command
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.unprivileged(&self.program);
        command.args(args).env("SENESCE_GUEST_TOTAL_SECONDS", "900");
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        Done::of(self.command(args).output().unwrap())
    }

    /// A plan of one copy on images in the run's directory, for `file_system`, with more lines for
    /// the volumes.
    pub fn plan(&self, file_system: &str, volumes: &str) {
        let text = SINGLE
            .replace("backend = \"memory\"\ndir = \"MEMORY\"\n", volumes)
            .replace("64MiB", size_for(file_system))
            .replace("kind = \"ext4\"", file_system);
        self.lab.plan(&text);
    }

    /// Starts a run in the directory `run`, and waits until its arm is under way.
    pub fn start(&self) -> Child {
        let mut child = self.spawn();
        self.wait_until("the arm is under way", || {
            let volumes = fs::read_dir(self.lab.path("run/volumes")).map_or(0, Iterator::count);
            assert!(child.try_wait().unwrap().is_none(), "the run ended before");
            volumes > 0
        });
        child
    }

    fn spawn(&self) -> Child {
        let args = ["run", "plan.toml", "--out", "run", "--guest", "uml"];
        self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The processes of the lab whose command line has this, with their command lines. No zombies:
    /// they have none.
    pub fn processes(&self, part: &str) -> Vec<u32> {
        let lab = self.lab.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let is_ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&lab) && line.contains(part)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_ours).collect()
    }

    /// The guest kernel itself: its parent is the guard.
    pub fn kernel(&self) -> u32 {
        let guards = self.processes("guest-guard");
        let parent = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
        };
        let is_kernel = |pid: &u32| !guards.contains(pid) && parent(pid).is_some_and(|pid| guards.contains(&pid));
        let mut found: Vec<u32> = self.processes("uml_dir=").into_iter().filter(is_kernel).collect();
        found.sort_unstable();
        found[0]
    }

    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..12_000 {
            if is_so() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not within two minutes: {what}");
    }

    /// All processes of a killed run end, and `clean` removes the rest.
    fn assert_cleanable(&self) {
        self.wait_until("no process is left", || self.processes("").is_empty());
        self.run(&["clean"]).good();
        self.assert_nothing_left();
    }

    #[track_caller]
    pub fn assert_nothing_left(&self) {
        self.wait_until("no process is left", || self.processes("").is_empty());
        // The snapshots of the last checkpoint belong to the run: a resume starts from them.
        let is_kept = |path: &String| path.contains("/run/arms/") && path.contains("/snapshot-");
        let left: Vec<String> = self.lab.leftovers().into_iter().filter(|path| !is_kept(path)).collect();
        assert!(left.is_empty(), "{left:#?}");
        let registry: Vec<_> = fs::read_dir(self.lab.path("registry")).unwrap().flatten().collect();
        assert!(registry.iter().all(|entry| entry.path().extension().is_some_and(|end| end == "run")), "{registry:?}");
    }
}

/// The size of the volumes of a plan for `file_system`.
fn size_for(file_system: &str) -> &'static str {
    match file_system {
        // It has no cleaner, so the volume must hold all that is written.
        _ if file_system.contains("nilfs2") => "256MiB",
        _ if file_system.contains("f2fs") || file_system.contains("reiserfs") => "96MiB",
        _ => "64MiB",
    }
}

/// One of them may have exited already, because the kernel killed it with another one.
fn kill_at_once(pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status().unwrap();
}

pub fn kill(signal: &str, pid: u32) {
    must("kill", &[&format!("-{signal}"), &pid.to_string()]);
}

#[test]
fn unprivileged_run_writes_its_own_report() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let done = guests.run(&["run", "plan.toml", "--out", "run", "--guest", "uml"]).good();
    assert!(done.stderr.contains("guest: user-mode Linux"), "{}", done.stderr);
    assert!(done.stdout.contains("/run/report.html"), "{}", done.stdout);
    for name in ["run", "run/report.html", "run/plan.toml", "run/results"] {
        assert_eq!(fs::metadata(guests.lab.path(name)).unwrap().uid(), NOBODY, "{name}");
    }
    let circumstances = guests.run(&["export", "run", "--csv", "circumstances"]).good().stdout;
    for row in ["guest_kind,uml", "guest_host_kernel", "kernel_release,6."] {
        assert!(circumstances.contains(row), "{row} is not in:\n{circumstances}");
    }
    assert_eq!(fs::read_dir(guests.lab.path("registry")).unwrap().count(), 0);
    guests.assert_nothing_left();
}

#[test]
fn f2fs_in_memory_has_layout_and_free_space() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"f2fs\"\nmkfs = [\"-i\", \"-s\", \"2\"]", "backend = \"memory\"\n");
    guests.run(&["run", "plan.toml", "--out", "run", "--guest", "uml"]).good();
    let rows = |table: &str| guests.run(&["export", "run", "--csv", table]).good().stdout.lines().count() - 1;
    for table in ["layout", "free_space", "grep"] {
        assert!(rows(table) >= 4, "{table}: {}", rows(table));
    }
    guests.assert_nothing_left();
}

#[test]
fn f2fs_on_virtual_disk_has_virtual_time() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"f2fs\"", "device = \"hdd-7200\"\n");
    guests.run(&["run", "plan.toml", "--out", "run", "--guest", "uml"]).good();
    let circumstances = guests.run(&["export", "run", "--csv", "circumstances"]).good().stdout;
    assert!(circumstances.contains("backend,virtual disk"), "{circumstances}");
    guests.assert_nothing_left();
}

#[test]
fn a_killed_kernel_is_reported_and_leaves_nothing() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let child = guests.start();
    kill("KILL", guests.kernel());
    Done::of(child.wait_with_output().unwrap()).refused(1, &["the guest kernel was killed by signal 9"]);
    guests.assert_nothing_left();
}

#[test]
fn killed_guard_ends_the_guest() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let child = guests.start();
    kill("KILL", guests.processes("guest-guard")[0]);
    Done::of(child.wait_with_output().unwrap()).refused(1, &["was killed with its guard"]);
    guests.assert_nothing_left();
}

#[test]
fn run_of_killed_launcher_is_cleaned_and_resumes() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let mut child = guests.start();
    kill("KILL", child.id());
    child.wait().unwrap();
    guests.wait_until("no process is left", || guests.processes("").is_empty());
    assert!(!guests.lab.leftovers().is_empty(), "it was in the middle of something");
    let cleaned = guests.run(&["clean"]).good().stdout;
    assert!(cleaned.contains("senesce-guest.") && !cleaned.contains("STILL THERE"), "{cleaned}");
    guests.assert_nothing_left();
    guests.run(&["run", "--resume", "run", "--guest", "uml"]).good();
    guests.assert_nothing_left();
}

#[test]
fn launcher_guard_and_kernel_killed_at_once_leave_no_process() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let mut child = guests.start();
    let mut pids = guests.processes("guest-guard");
    assert_eq!(pids.len(), 2, "the guard and its keeper, which this machine must allow");
    pids.extend([child.id(), guests.kernel()]);
    kill_at_once(&pids);
    child.wait().unwrap();
    guests.assert_cleanable();
}

#[test]
fn a_killed_launcher_and_guard_take_the_kernel_along() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let mut child = guests.start();
    kill_at_once(&[child.id(), guests.processes("guest-guard")[0]]);
    child.wait().unwrap();
    guests.assert_cleanable();
}

#[test]
fn clean_leaves_a_live_guest_run_alone() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let child = guests.start();
    let says = ["still runs and owns"];
    guests.run(&["run", "--resume", "run", "--guest", "uml"]).refused(3, &says);
    guests.run(&["run", "--resume", "run"]).refused(3, &says);
    guests.run(&["clean", "run"]).refused(1, &says);
    kill("TERM", child.id());
    let done = Done::of(child.wait_with_output().unwrap());
    done.refused(143, &["interrupted by signal 15", "--guest uml"]);
    guests.assert_nothing_left();
}

#[test]
fn a_panic_shows_the_console() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let child = guests.start();
    let below = |dir: PathBuf, start: &str| {
        let found = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path());
        found.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(start)).unwrap()
    };
    let private = below(guests.lab.path("tmp"), "senesce-guest.");
    let console = below(private.join("uml"), "").join("mconsole");
    // `struct mconsole_request` of the kernel: magic, version, length, command.
    let command = b"sysrq c";
    let mut request = [0xcafe_babe, 2, command.len() as u32].map(u32::to_ne_bytes).concat();
    request.extend(command);
    request.resize(12 + 512, 0);
    UnixDatagram::unbound().unwrap().send_to(&request, console).unwrap();
    Done::of(child.wait_with_output().unwrap()).refused(1, &["the guest kernel", "Kernel panic"]);
    guests.assert_nothing_left();
}

#[test]
fn a_silent_guest_is_killed() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let args = ["run", "plan.toml", "--out", "run", "--guest", "uml"];
    let mut command = guests.command(&args);
    command.env("SENESCE_GUEST_SILENCE_SECONDS", "30").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    guests.wait_until("the arm is under way", || {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before");
        guests.lab.path("run/volumes").exists()
    });
    kill("STOP", guests.kernel());
    Done::of(child.wait_with_output().unwrap()).refused(1, &["has not answered for 30 s and was killed"]);
    guests.assert_nothing_left();
}

#[test]
fn a_guest_beyond_its_time_is_killed() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let args = ["run", "plan.toml", "--out", "run", "--guest", "uml"];
    let done = Done::of(guests.command(&args).env("SENESCE_GUEST_TOTAL_SECONDS", "3").output().unwrap());
    done.refused(1, &["has run for more than 3 s and was killed"]);
    guests.assert_nothing_left();
}

#[test]
fn guest_that_fails_to_boot_is_environment_error() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let args = ["run", "plan.toml", "--out", "run", "--guest", "uml"];
    let done = Done::of(guests.command(&args).env("SENESCE_GUEST_BOOT_SECONDS", "0").output().unwrap());
    done.refused(3, &["the guest did not start within 0 s", "hint"]);
    assert!(!guests.lab.path("run").exists());
    guests.assert_nothing_left();
}

#[test]
fn f2fs_with_other_devices_is_not_mounted() {
    let mkfs = Path::new("/usr/sbin/mkfs.f2fs");
    if found_or_skip(mkfs.is_file().then_some(()), "f2fs-tools").is_none() || !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let image = lab.path("image").to_string_lossy().into_owned();
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    must("mkfs.f2fs", &["-q", "-f", &image]);
    let file = fs::File::options().write(true).open(&image).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"/dev/sda\0", 1024 + 0x899).unwrap();
    drop(file);
    let done = lab.run(["inspect", &image]);
    assert!(done.code != 0 && done.stderr.contains("names other devices"), "{}", done.stderr);
}

#[test]
fn kernels_lists_host_and_guests() {
    let lab = Lab::new();
    let listed: serde_json::Value = serde_json::from_str(&lab.run(["kernels", "--json"]).good().stdout).unwrap();
    let kinds: Vec<_> = listed["kernels"].as_array().unwrap().iter().map(|kernel| &kernel["kind"]).collect();
    assert_eq!(kinds, ["host", "uml"]);
    if found_or_skip(Path::new("/usr/bin/linux.uml").is_file().then_some(()), "user-mode-linux").is_some() {
        let found = listed["kernels"][1]["file_systems"].to_string();
        for name in ["ext4", "xfs", "btrfs", "f2fs"] {
            assert!(found.contains(name), "{found}");
        }
    }
    let text = lab.run(["kernels"]).good().stdout;
    assert!(text.contains("mkfs") && text.contains("f2fs"), "{text}");
}
