//! Processes identified by number, start time and boot; this combination is never reused.

use std::{fmt, fs, os::unix::fs::MetadataExt, path::PathBuf, str::FromStr};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One boot of a machine: the kernel's random number for it (`/proc/sys/kernel/random/boot_id`), in
/// the kernel's notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootId(u128);

impl BootId {
    /// The current boot.
    pub fn current() -> Result<Self> {
        let path = "/proc/sys/kernel/random/boot_id";
        let text = fs::read_to_string(path).map_err(Error::std("read", path))?;
        text.trim().parse().map_err(|problem| Error::Protocol { line: text.trim().to_owned(), problem })
    }
}

impl FromStr for BootId {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let digits: String = text.split('-').collect();
        let is_whole = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_whole.then(|| u128::from_str_radix(&digits, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| format!("{text:?} is not a boot number: it must have 32 hexadecimal digits"))
    }
}

impl TryFrom<String> for BootId {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..])
    }
}

impl From<BootId> for String {
    fn from(boot: BootId) -> String {
        boot.to_string()
    }
}

/// A process that cannot be confused with a later one with the same number, even after a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Its number.
    pub pid: u32,
    /// Its start in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
    /// The boot. Earlier versions did not store it: such a process counts as dead, and is never
    /// killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
}

impl ProcessRef {
    /// The process that currently has this number.
    pub fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).map_err(Error::std("read", &path))?;
        let (_, start_ticks) = parse_stat(&text).ok_or_else(|| Error::Protocol {
            line: text.trim().to_owned(),
            problem: format!("{path} has no time of start"),
        })?;
        Ok(Self { pid, start_ticks, boot: Some(BootId::current()?) })
    }

    /// Whether it runs. A zombie does not run.
    pub fn is_alive(&self) -> bool {
        if self.boot.is_none() || BootId::current().ok() != self.boot {
            return false;
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        let parsed = stat.as_deref().and_then(parse_stat);
        parsed.is_some_and(|(state, ticks)| ticks == self.start_ticks && !matches!(state, 'Z' | 'X'))
    }

    /// A number that changes whenever its threads named `name` make progress: the sum of their CPU
    /// time and their context switches. `None` if there is no such thread, or if it cannot be read.
    pub(crate) fn progress(&self, name: &str) -> Option<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        let read = |path: PathBuf| fs::read_to_string(path).ok();
        let found = tasks.flatten().map(|task| task.path()).filter_map(|task| {
            let is_it = read(task.join("comm"))?.trim() == name;
            is_it.then(|| parse_progress(&read(task.join("stat"))?, &read(task.join("status"))?)).flatten()
        });
        found.reduce(|sum, one| sum + one)
    }

    /// Kills the process (SIGKILL) if it is still the same one. Only for a process that this
    /// program started, or that started it.
    pub(crate) fn kill(&self) -> Result<()> {
        self.kill_if(|| Identity::Ours).map(drop)
    }

    /// Kills the process (SIGKILL) if it is still the same one, and ours according to
    /// [`ProcessRef::identify`].
    pub fn kill_if_ours(&self, mark: &str) -> Result<Identity> {
        self.kill_if(|| self.identify(mark))
    }

    fn kill_if(&self, identify: impl FnOnce() -> Identity) -> Result<Identity> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(Identity::Gone) };
        // The descriptor refers to the process that has the number now. The checks come after it,
        // so they are about that process.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(Identity::Gone) };
        if !self.is_alive() {
            return Ok(Identity::Gone);
        }
        let identity = identify();
        if identity == Identity::Ours {
            pidfd_send_signal(&pidfd, Signal::KILL).map_err(Error::io("kill", format!("process {pid:?}")))?;
        }
        Ok(identity)
    }

    /// Whether the process is one of ours: it runs this program, and one of its arguments is
    /// `mark`. The mark names the mount that it serves.
    pub fn identify(&self, mark: &str) -> Identity {
        if !self.is_alive() {
            return Identity::Gone;
        }
        let pid = self.pid;
        if !runs_this_program(pid) {
            return Identity::Foreign(format!("process {pid} runs another program"));
        }
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !arguments.split(|&byte| byte == 0).any(|argument| argument == mark.as_bytes()) {
            return Identity::Foreign(format!("process {pid} runs this program, but not for {mark}"));
        }
        Identity::Ours
    }
}

/// Whether a process of a journal may be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// It has exited, or another process has its number.
    Gone,
    /// It runs this program for the named mount.
    Ours,
    /// It is another process, with the reason.
    Foreign(String),
}

/// Whether a process runs this program: the same file, or the file with the same path before an
/// update.
fn runs_this_program(pid: u32) -> bool {
    let theirs = PathBuf::from(format!("/proc/{pid}/exe"));
    let own = PathBuf::from("/proc/self/exe");
    let number = |path: &PathBuf| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    if number(&own).is_some_and(|own| number(&theirs) == Some(own)) {
        return true;
    }
    let link = |path: &PathBuf| fs::read_link(path).ok().map(|link| link.to_string_lossy().into_owned());
    let (Some(own), Some(theirs)) = (link(&own), link(&theirs)) else { return false };
    let name = |link: &str| link.trim_end_matches(" (deleted)").to_owned();
    name(&own) == name(&theirs) && (own.ends_with(" (deleted)") || theirs.ends_with(" (deleted)"))
}

/// State and start time. The program's name is in parentheses, and may contain any character.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let (_, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    // The state is field 3, and comes first here.
    Some((fields.first()?.chars().next()?, fields.get(19)?.parse().ok()?))
}

/// User and system ticks of `stat`, and both kinds of context switches of `status`.
fn parse_progress(stat: &str, status: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let tick = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let switches = |key: &str| status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse::<u64>().ok();
    Some(tick(11)? + tick(12)? + switches("voluntary_ctxt_switches:")? + switches("nonvoluntary_ctxt_switches:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_parsed() {
        let stat = "77 (a) (b) S 1 77 77 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4711 1 1";
        assert_eq!(parse_stat(stat), Some(('S', 4711)));
        assert_eq!(parse_stat("77 (a"), None);
        let busy = "77 (fuser-0) S 1 77 77 0 -1 4194560 1 0 0 0 100 20 0 0 20 0 1 0 4711 1 1";
        let status = "Name:\tfuser-0\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(parse_progress(busy, status), Some(127));
        assert_eq!(parse_progress(busy, "Name:\tfuser-0\n"), None);
    }

    #[test]
    fn another_start_time_is_another_process() {
        let this = ProcessRef::of(std::process::id()).unwrap();
        assert!(this.is_alive());
        assert!(!ProcessRef { start_ticks: this.start_ticks + 1, ..this }.is_alive());
        // Without a check of the start time, this would kill the test.
        ProcessRef { start_ticks: this.start_ticks + 1, ..this }.kill().unwrap();
    }

    #[test]
    fn a_process_of_another_boot_is_another_process() {
        let this = ProcessRef::of(std::process::id()).unwrap();
        for boot in ["00000000-0000-4000-8000-000000000001".parse().ok(), None] {
            let earlier = ProcessRef { boot, ..this };
            assert!(!earlier.is_alive());
            // Without a check of the boot, this would kill the test.
            earlier.kill().unwrap();
        }
    }

    #[test]
    fn boots_are_formatted_as_in_the_kernel() {
        let known = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let boot = BootId::current().unwrap();
        assert_eq!(boot.to_string(), known.trim());
        assert_eq!(serde_json::from_str::<BootId>(&serde_json::to_string(&boot).unwrap()).unwrap(), boot);
        for bad in ["", "b00t", "00000000-0000-4000-8000-00000000000g", "+0000000000040008000000000000001"] {
            assert!(bad.parse::<BootId>().is_err(), "{bad:?}");
        }
    }
}
