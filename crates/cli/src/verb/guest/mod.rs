//! The common part of all commands that run in a guest kernel.

mod inspect;
mod run;

use std::{env, fs, os::unix::fs::DirBuilderExt, path::Path};

use anyhow::{Context, Result};
use senesce_core::{Bytes, Printable};
use senesce_guest::{
    DEFAULT_MEMORY, GuestConfig, Launch, Limits, Output, Writable, check_memory, find_kernel, run_guest,
};
use senesce_volume::{Custodian, GuestOwners, interrupted, is_guest};

pub use self::{
    inspect::{Order, check_inspection, inspect},
    run::{demo, run},
};
use crate::{clock::SystemClock, exit::usage, out};

/// In a guest, holds the number of the user who started it.
const CALLER: &str = "SENESCE_GUEST_CALLER";
/// In a guest, holds the number of the host's root.
const SYSTEM: &str = "SENESCE_GUEST_SYSTEM";
/// Limits of the launcher, seconds; for tests.
const BOOT_LIMIT: &str = "SENESCE_GUEST_BOOT_SECONDS";
const SILENCE_LIMIT: &str = "SENESCE_GUEST_SILENCE_SECONDS";
const TOTAL_LIMIT: &str = "SENESCE_GUEST_TOTAL_SECONDS";
/// The variables that a command in the guest receives besides those of senesce.
const PASSED: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TZ", "NO_COLOR", "RUST_BACKTRACE"];
/// The modules that a run may need. The kernel has no program that would load them later.
const MODULES: &[&str] = &["loop", "fuse", "f2fs", "nilfs2"];

/// In a guest, trusts the files of the user who started it and of the host's root.
pub fn trust_owners() {
    // Anyone can set a variable, so it counts in a guest only.
    let number = |name| env::var(name).ok().and_then(|uid| uid.parse().ok()).filter(|_| is_guest());
    if let (Some(caller), Some(system)) = (number(CALLER), number(SYSTEM)) {
        senesce_volume::set_guest_owners(GuestOwners { caller, system });
    }
}

/// The words of the command in the guest, without the program.
struct Words(Vec<String>);

impl Words {
    fn new(verb: &str, quiet: bool) -> Self {
        let mut words = Self(Vec::new());
        words.flag("--quiet", quiet);
        words.0.push(verb.to_owned());
        words
    }

    fn flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.to_owned()));
    }

    fn text(&mut self, name: &str, value: Option<String>) {
        self.0.extend(value.map(|value| format!("{name}={value}")));
    }

    fn path(&mut self, name: &str, path: &Path) {
        self.text(name, Some(path.display().to_string()));
    }
}

/// A command for a guest.
struct Job {
    words: Words,
    /// The directories that it may write, besides the private one of the guest.
    writable: Vec<Writable>,
    /// Variables of this command.
    environment: Vec<(String, String)>,
}

/// Refuses a path that the guest does not see, because it has devices and processes of its own.
fn check_visible(path: &Path) -> Result<()> {
    let path = fs::canonicalize(path).with_context(|| format!("cannot look up {}", Printable::new(path)))?;
    match ["/dev", "/proc", "/sys"].into_iter().find(|hidden| path.starts_with(hidden)) {
        Some(hidden) => {
            let message = format!("a guest cannot see {}: its {hidden} is another directory", Printable::new(&path));
            Err(usage(message, Some("copy it to another directory")))
        }
        None => Ok(()),
    }
}

/// Runs a command of this program in a guest. Out: its exit code.
fn start(custodian: &Custodian, memory: Option<Bytes>, job: Job, quiet: bool) -> Result<u8> {
    let kernel = find_kernel()?;
    let (_, dir) = custodian.acquire_tree(&env::temp_dir(), "senesce-guest")?;
    let memory = memory.unwrap_or(DEFAULT_MEMORY);
    check_memory(memory, &dir)?;
    let here = fs::canonicalize(".").context("cannot look up the working directory")?;
    let program = env::current_exe().context("cannot find this program")?;
    for path in [&dir, &here, &program] {
        check_visible(path)?;
    }
    let temporary = dir.join("tmp");
    fs::DirBuilder::new().mode(0o700).create(&temporary).context("cannot create the guest's temporary directory")?;
    let mut command = vec![program.display().to_string()];
    command.extend(job.words.0);
    let mut writable = job.writable;
    writable.push(Writable::Host { path: dir.clone() });
    let (mut environment, caller_variables) = environment(&dir, &temporary);
    environment.extend(job.environment);
    let config = GuestConfig {
        command,
        environment,
        caller_variables,
        system_variables: vec![SYSTEM.to_owned()],
        dir: here,
        umask: umask(),
        writable,
        modules: kernel.modules.in_order(MODULES),
    };
    if !quiet {
        eprintln!("guest: user-mode Linux {} with {memory}; do not quote its wall times", kernel.release);
    }
    let launch = Launch {
        kernel: &kernel,
        memory,
        config,
        program,
        private_dir: &dir,
        limits: limits(),
        clock: &SystemClock::start(),
        interrupted,
        output: pass_on,
    };
    let end = run_guest(launch)?;
    if !quiet {
        eprintln!("guest: the command started {:.1} s after its kernel", end.boot.as_secs_f64());
    }
    Ok(end.code)
}

/// Writes output of the guest. This program runs in the guest, too, and filtered it there.
fn pass_on(output: Output, bytes: Vec<u8>) {
    match output {
        Output::Stdout => out::pass_on(bytes),
        Output::Stderr => out::note_bytes(bytes),
    }
}

fn limits() -> Limits {
    let seconds =
        |name: &str| env::var(name).ok().and_then(|text| text.parse().ok()).map(std::time::Duration::from_secs);
    let usual = Limits::default();
    Limits {
        boot: seconds(BOOT_LIMIT).unwrap_or(usual.boot),
        silence: seconds(SILENCE_LIMIT).unwrap_or(usual.silence),
        total: seconds(TOTAL_LIMIT),
    }
}

/// The variables of the command, and those that name the caller.
fn environment(dir: &Path, temporary: &Path) -> (Vec<(String, String)>, Vec<String>) {
    let is_passed = |name: &str| PASSED.contains(&name) || name.starts_with("SENESCE_");
    let mut found: Vec<(String, String)> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| is_passed(name))
        .collect();
    found.retain(|(name, _)| name != "SENESCE_REGISTRY");
    let mut add = |name: &str, value: String| found.push((name.to_owned(), value));
    add("SENESCE_REGISTRY", dir.join("registry").display().to_string());
    add("TMPDIR", temporary.display().to_string());
    // In the guest, the program and git are root, and repositories belong to the caller, or to the
    // user who ran sudo.
    let sudo = env::var("SUDO_UID").ok().filter(|_| rustix::process::geteuid().is_root());
    let mut callers = vec![CALLER.to_owned()];
    match sudo {
        Some(uid) => add("SUDO_UID", uid),
        None => callers.push("SUDO_UID".to_owned()),
    }
    (found, callers)
}

/// The mask of this process, which can only be read by setting it.
fn umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.as_raw_mode()
}
