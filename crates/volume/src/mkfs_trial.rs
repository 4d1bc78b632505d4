//! Trials of mkfs that make no volume.

use std::{fs::File, os::fd::AsRawFd, path::PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};
use senesce_core::{Bytes, Seed};

use crate::{Error, FileSystemKind, Host, Result, Uuid, VolumeSpec, plan_mkfs};

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MkfsTrial {
    /// mkfs accepts the arguments.
    Accepted,
    /// mkfs refuses them, with this message.
    Refused(String),
    /// This mkfs cannot be tried.
    NotTried,
    /// This machine does not have this mkfs.
    ToolMissing,
}

/// Lets mkfs check the arguments of `spec` for a volume of `size`.
///
/// mke2fs and mkfs.xfs have a dry run. mkfs.btrfs formats a sparse file in memory, of which it
/// writes about 5 MiB. No path leads to the file, so a kill leaves nothing. Errors: the tool cannot
/// be run.
pub fn try_mkfs(host: &dyn Host, spec: &VolumeSpec, size: Bytes) -> Result<MkfsTrial> {
    let dry_run = match spec.file_system {
        FileSystemKind::Ext4 => Some("-n"),
        FileSystemKind::Xfs => Some("-N"),
        FileSystemKind::Btrfs => None,
        _ => return Ok(MkfsTrial::NotTried),
    };
    let name = spec.file_system.mkfs_tool();
    let Some(tool) = host.find_tool(name) else { return Ok(MkfsTrial::ToolMissing) };
    let file =
        File::from(memfd_create("mkfs-trial", MemfdFlags::CLOEXEC).map_err(Error::io("make", "a file in memory"))?);
    let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    file.set_len(size.0).map_err(Error::std("resize", &path))?;
    let uuid = Uuid::from_seed(Seed(1).derive("a trial of mkfs"));
    let arguments: Vec<String> =
        dry_run.map(str::to_owned).into_iter().chain(plan_mkfs(spec, &path, uuid, None)).collect();
    let output = host.run_tool(&tool, &arguments)?;
    if output.success {
        return Ok(MkfsTrial::Accepted);
    }
    let said = messages(output.errors()).into_iter().next().unwrap_or("it gives no reason");
    Ok(MkfsTrial::Refused(said.replace(path.to_string_lossy().as_ref(), "the volume")))
}

/// The lines of a formatter's output that are messages: no version, no usage, no warning before an
/// error.
pub(crate) fn messages(output: &str) -> Vec<&str> {
    // mke2fs prints its version before a message. mkfs.xfs prints its usage after a message.
    let is_usage = |line: &&str| line.starts_with("Usage:") || line.starts_with("usage:");
    let is_version = |line: &&str| line.starts_with("mke2fs ") && line.ends_with(')');
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty() && !is_version(line));
    let lines: Vec<&str> = lines.take_while(|line| !is_usage(line)).collect();
    let starts = |line: &str, word: &str| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    // A warning of mkfs.btrfs continues on the next line.
    let errors: Vec<&str> = match lines.iter().any(|line| line.starts_with("ERROR:")) {
        true => lines.iter().copied().filter(|line| line.starts_with("ERROR:")).collect(),
        false => lines.iter().copied().filter(|line| !starts(line, "warning:")).collect(),
    };
    if errors.is_empty() { lines } else { errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_omit_version_usage_and_warnings() {
        let ext4 = "mke2fs 1.47.0 (5-Feb-2023)\n\nBad option(s) specified: foo\n\nExtended options are separated\n";
        assert_eq!(messages(ext4)[0], "Bad option(s) specified: foo");
        let xfs = "unknown option -m foo=1\nUsage: mkfs.xfs\n/* blocksize */\t[-b size=num]\n";
        assert_eq!(messages(xfs), ["unknown option -m foo=1"]);
        assert_eq!(messages("Warning: small\nERROR: no feature 'x'\n"), ["ERROR: no feature 'x'"]);
        assert_eq!(messages("Warning: small\n"), ["Warning: small"]);
        let btrfs = "WARNING: RAID5 has problems, is discouraged\nto be used.\n\nERROR: 2 devices are required\n";
        assert_eq!(messages(btrfs), ["ERROR: 2 devices are required"]);
    }
}
