//! Proves that the journal's owner made a resource, before anything acts on it.
//!
//! A journal can be forged: if root unpacks a run directory from an archive, the journal in it
//! belongs to root. So a journal only helps to find resources. The proof is on the machine: the
//! owner's token in the name, the inode number of a file, the backing file of a loop device, the
//! program and the arguments of a process. The token names one process of one boot, so no other
//! program uses it in a name.

use std::path::{Component, Path, PathBuf};

use senesce_vdisk::Footprint;

use super::{MountSource, Resource, disk_mark};
use crate::{
    Result,
    host::{FileId, Host, MountEntry},
};

/// The state of a resource on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    /// The path or device does not exist.
    Nothing,
    /// It exists, but nothing proves that the owner made it.
    Foreign(String),
    /// These are the owner's.
    Ours(T),
}

/// Whether the process with this token makes such a name: the token is a separate part of it, as in
/// `v.TOKEN.img`, `disk.TOKEN-0123` or `senesce-fs:TOKEN`.
pub(super) fn holds_token(name: &str, token: &str) -> bool {
    !token.is_empty()
        && name.match_indices(token).any(|(at, _)| {
            let (before, after) = (name[..at].chars().next_back(), name[at + token.len()..].chars().next());
            matches!(before, Some('.' | ':')) && matches!(after, None | Some('.' | '-'))
        })
}

pub(super) fn is_named(path: &Path, token: &str) -> bool {
    path.file_name().is_some_and(|name| holds_token(&name.to_string_lossy(), token))
}

/// The reason not to follow a path of a journal, if there is one. A run writes absolute paths
/// without links.
fn refuse_path(host: &dyn Host, path: &Path) -> Result<Option<String>> {
    let is_plain = |component| matches!(component, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Ok(Some(format!("{} is no absolute path without \"..\"", path.display())));
    }
    let Some(parent) = path.parent() else { return Ok(Some("the root of all files is not ours".to_owned())) };
    match host.real_path(parent)? {
        Some(real) if real != parent => Ok(Some(format!("{} leads to {}", parent.display(), real.display()))),
        _ => Ok(None),
    }
}

/// Proves a file or directory: its name holds the token, and its inode number equals that in the
/// journal.
pub(super) fn prove_path(host: &dyn Host, path: &Path, file: Option<FileId>, token: &str) -> Result<Found<()>> {
    if let Some(why) = refuse_path(host, path)? {
        return Ok(Found::Foreign(why));
    }
    let Some(found) = host.file_id(path)? else { return Ok(Found::Nothing) };
    if !is_named(path, token) {
        return Ok(Found::Foreign(format!("the name of {} does not hold .{token}", path.display())));
    }
    // If the process is killed before it records the number, the name is the proof.
    if file.is_some_and(|file| file != found) {
        return Ok(Found::Foreign(format!("{} is another file now (inode {})", path.display(), found.inode)));
    }
    Ok(Found::Ours(()))
}

/// The files in a directory whose names hold the token.
pub(super) fn prove_files(host: &dyn Host, dir: &Path, token: &str) -> Result<Found<Vec<PathBuf>>> {
    if let Some(why) = refuse_path(host, &dir.join("file"))? {
        return Ok(Found::Foreign(why));
    }
    let mut ours = host.list(dir)?;
    ours.retain(|path| is_named(path, token));
    Ok(if ours.is_empty() { Found::Nothing } else { Found::Ours(ours) })
}

/// Whether the backing file of a loop device is an image whose name holds the token.
fn is_on_our_image(host: &dyn Host, device: &Path, token: &str) -> Result<bool> {
    let Some(file) = host.loop_file(device)? else { return Ok(false) };
    // The kernel marks a file that was removed: "v.TOKEN.img (deleted)".
    let text = file.to_string_lossy();
    Ok(is_named(Path::new(text.trim_end_matches(" (deleted)")), token))
}

/// Proves the loop devices of an image: their backing file has its number, and the token in its
/// name.
pub(super) fn prove_loops(host: &dyn Host, file: FileId, token: &str) -> Result<Found<Vec<PathBuf>>> {
    let devices = host.loops_backed_by(file)?;
    for device in &devices {
        if !is_on_our_image(host, device, token)? {
            return Ok(Found::Foreign(format!("the file of {} does not hold .{token} in its name", device.display())));
        }
    }
    Ok(if devices.is_empty() { Found::Nothing } else { Found::Ours(devices) })
}

/// The loop devices with a disk's mark.
pub(super) fn prove_marked(host: &dyn Host, mark: &str, token: &str) -> Result<Found<Vec<PathBuf>>> {
    if !holds_token(mark, token) {
        return Ok(Found::Foreign(format!("the mark {mark} does not hold .{token}")));
    }
    let devices = host.loops_marked(mark)?;
    Ok(if devices.is_empty() { Found::Nothing } else { Found::Ours(devices) })
}

/// The mounts of a source, at any place: a run directory can be moved with the mounts in it.
///
/// Returns their mount points. [`Found::Foreign`] if another mount covers one of them, because an
/// unmount would affect the other one.
pub(super) fn prove_mounts(
    host: &dyn Host,
    point: &Path,
    source: &MountSource,
    token: &str,
) -> Result<Found<Vec<PathBuf>>> {
    let mounts = host.mounts()?;
    let mut ours = Vec::new();
    for (at, mount) in mounts.iter().enumerate() {
        if !is_mount_ours(host, mount, source, token)? {
            continue;
        }
        match mounts[at + 1..].iter().find(|above| above.point == mount.point) {
            Some(above) if !is_mount_ours(host, above, source, token)? => {
                let (above, point) = (above.source.display(), mount.point.display());
                return Ok(Found::Foreign(format!("{above} is mounted on {point}, above it")));
            }
            _ => ours.push(mount.point.clone()),
        }
    }
    if !ours.is_empty() {
        return Ok(Found::Ours(ours));
    }
    Ok(match mounts.iter().rev().find(|mount| mount.point == point) {
        Some(mount) => Found::Foreign(format!("{} is mounted on {}", mount.source.display(), point.display())),
        None => Found::Nothing,
    })
}

fn is_mount_ours(host: &dyn Host, mount: &MountEntry, source: &MountSource, token: &str) -> Result<bool> {
    // The user chooses the mount point of a recording or of `fs mount`. A run makes its own mount
    // points.
    let is_point_ours = is_named(&mount.point, token);
    Ok(match source {
        MountSource::Image { file } => {
            is_point_ours
                && host.loop_backing(&mount.source)? == Some(*file)
                && is_on_our_image(host, &mount.source, token)?
        }
        MountSource::Disk { mark } => {
            is_point_ours && holds_token(mark, token) && host.loop_mark(&mount.source)?.as_ref() == Some(mark)
        }
        MountSource::Device { number } => is_point_ours && host.device_number(&mount.source)? == Some(*number),
        MountSource::Recording { name } | MountSource::Engine { name } => {
            mount.source == Path::new(name) && is_source_ours(name, token)
        }
    })
}

/// The sources of the mounts of engines start with this. A list of mounts shows them.
pub const ENGINE_SOURCE: &str = "senesce-fs:";

/// Whether this program makes such a source name for a FUSE mount of this owner.
fn is_source_ours(name: &str, token: &str) -> bool {
    ["senesce-record:", ENGINE_SOURCE].iter().any(|start| name.starts_with(start)) && holds_token(name, token)
}

/// The reason to refuse the name of a disk or engine of a journal: it does not hold the token.
pub(super) fn refuse_name(name: &str, token: &str) -> Option<String> {
    (!holds_token(name, token)).then(|| format!("the name {name} does not hold .{token}"))
}

/// Whether the connection of a disk of the journal to its server may be aborted.
pub(super) fn is_disk_ours(footprint: &Footprint, token: &str) -> bool {
    holds_token(&footprint.name, token) && holds_token(&disk_mark(&footprint.name), token)
}

impl Resource {
    /// The same resource after the directory `from` was renamed to `to`.
    pub(super) fn moved(mut self, from: &Path, to: &Path) -> Self {
        let relocate = |path: &mut PathBuf| {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = to.join(rest);
            }
        };
        match &mut self {
            Resource::File { path } | Resource::Directory { path } | Resource::Tree { path } => relocate(path),
            Resource::Files { dir } => relocate(dir),
            Resource::Loop { image, .. } => relocate(image),
            Resource::VirtualDisk { footprint } => relocate(&mut footprint.mount_point),
            Resource::DiskLoop { path, .. } => relocate(path),
            Resource::Mount { point, .. } | Resource::Engine { point, .. } => relocate(point),
            Resource::ReadAhead { .. } => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_must_be_a_separate_part() {
        let token = "1267-181cd-0b1b2f3a";
        for good in ["v.{}", "v.{}.img", ".table.{}.senesce-base", "a.{}-00ff00ff", "senesce-fs:{}", "x.{}x.{}"] {
            assert!(holds_token(&good.replace("{}", token), token), "{good}");
        }
        for bad in ["{}", "{}.img", "v{}.img", "v.{}x", "v-{}", "v.11267-181cd-0b1b2f3a", "v.1267-181cd-0b1b2f3ab", ""]
        {
            assert!(!holds_token(&bad.replace("{}", token), token), "{bad}");
        }
        assert!(!holds_token("v..img", ""));
    }
}
