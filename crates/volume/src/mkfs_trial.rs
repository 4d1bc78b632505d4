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
    let said = if output.stderr.trim().is_empty() { output.stdout } else { output.stderr };
    // mkfs.xfs adds its usage after the message.
    let lines = said.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let said: Vec<&str> = lines.filter(|line| !line.is_empty()).take(2).collect();
    Ok(MkfsTrial::Refused(said.join("; ").replace(path.to_string_lossy().as_ref(), "the volume")))
}
