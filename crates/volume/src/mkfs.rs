//! The arguments of mkfs. They are explicit if a default would depend on the machine or work in the
//! background.

use std::path::Path;

use senesce_core::Bytes;

use crate::{FileSystemKind, Uuid, VolumeSpec};

/// Returns the arguments with which mkfs makes the file system of `spec` on `device`.
///
/// The UUID is set, here or by a second program, so that the superblock proves that this mkfs made
/// the file system. `size` limits the file system to a part of the device. The user's options come
/// last and override ours.
///
/// For ext4, the hash of directories has a seed, so that the readdir order is reproducible. The
/// inode tables are initialized at once, because a background thread would write while a workload
/// runs. Blocks have 4 KiB, because mke2fs chooses 1 KiB for small volumes, and the full volume
/// would differ from the larger empty one.
pub fn plan_mkfs(spec: &VolumeSpec, device: &Path, uuid: Uuid, size: Option<Bytes>) -> Vec<String> {
    let (kind, options) = (spec.file_system, &spec.mkfs_options);
    let hash_seed = spec.hash_seed.unwrap_or(uuid);
    let device = device.to_string_lossy().into_owned();
    let mut arguments: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| arguments.extend(parts.iter().map(|&part| part.to_owned()));
    let uuid = uuid.to_string();
    match kind {
        FileSystemKind::Ext4 => {
            let mut extended = format!("lazy_itable_init=0,lazy_journal_init=0,hash_seed={hash_seed}");
            let (own, rest) = part_extended(options);
            for option in own {
                extended = format!("{extended},{option}");
            }
            add(&["-q", "-F", "-U", &uuid, "-b", "4096", "-E", &extended]);
            arguments.extend(rest);
            arguments.push(device);
            // mke2fs expects the size after the device, here in KiB.
            arguments.extend(size.map(|size| format!("{}k", size.0 / Bytes::KIB)));
        }
        FileSystemKind::Xfs => {
            add(&["-q", "-f", "-m", &format!("uuid={uuid}")]);
            if let Some(size) = size {
                add(&["-d", &format!("size={}", size.0)]);
            }
            arguments.extend(options.iter().cloned());
            arguments.push(device);
        }
        FileSystemKind::Btrfs => {
            add(&["-q", "-f", "-U", &uuid]);
            if let Some(size) = size {
                add(&["-b", &size.0.to_string()]);
            }
            arguments.extend(options.iter().cloned());
            arguments.push(device);
        }
        FileSystemKind::F2fs => {
            // `-r` makes mkfs write no random seed into the first checkpoint.
            add(&["-q", "-f", "-r", "-U", &uuid]);
            arguments.extend(options.iter().cloned());
            arguments.push(device);
            // The size is after the device, in sectors of 512 bytes.
            arguments.extend(size.map(|size| (size.0 / 512).to_string()));
        }
        FileSystemKind::Nilfs2 => {
            add(&["-q", "-f"]);
            arguments.extend(options.iter().cloned());
            arguments.push(device);
            arguments.extend(size.map(|size| (size.0 / 4096).to_string()));
        }
        FileSystemKind::Jfs => {
            add(&["-q"]);
            arguments.extend(options.iter().cloned());
            arguments.push(device);
            arguments.extend(size.map(|size| (size.0 / 4096).to_string()));
        }
        FileSystemKind::Reiserfs => {
            // With `-f` twice, it asks no question.
            add(&["-q", "-f", "-f", "-u", &uuid]);
            arguments.extend(options.iter().cloned());
            arguments.push(device);
            arguments.extend(size.map(|size| (size.0 / 4096).to_string()));
        }
        FileSystemKind::Garden | FileSystemKind::Evergreen => {
            // It uses its whole device. `--force`, because the device was checked before.
            add(&["fs", "mkfs", kind.name(), &device, "--force", "--uuid", &uuid]);
            arguments.extend(options.iter().cloned());
        }
    }
    arguments
}

/// A later `-E` of mke2fs replaces an earlier one, so the user's options are joined to ours.
fn part_extended(options: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut extended, mut rest) = (Vec::new(), Vec::new());
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.strip_prefix("-E") {
            Some("") => extended.extend(options.next().cloned()),
            Some(joined) => extended.push(joined.to_owned()),
            None => rest.push(option.clone()),
        }
    }
    (extended, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Backend;

    fn spec(kind: FileSystemKind, options: &[&str]) -> VolumeSpec {
        let mut spec = VolumeSpec::new(Backend::Device { path: "/dev/x".into(), size: None }, kind);
        spec.mkfs_options = options.iter().map(|&option| option.to_owned()).collect();
        spec
    }

    fn plan(kind: FileSystemKind, options: &[&str], size: Option<Bytes>) -> String {
        plan_mkfs(&spec(kind, options), Path::new("/dev/x"), Uuid([1; 16]), size).join(" ")
    }

    #[test]
    fn volumes_can_share_a_hash_seed() {
        let seed = Uuid([2; 16]);
        let spec = VolumeSpec { hash_seed: Some(seed), ..spec(FileSystemKind::Ext4, &[]) };
        let command = plan_mkfs(&spec, Path::new("/dev/x"), Uuid([1; 16]), None).join(" ");
        assert!(command.contains(&format!("-U {} ", Uuid([1; 16]))), "{command}");
        assert!(command.contains(&format!(",hash_seed={seed} ")), "{command}");
    }

    #[test]
    fn user_options_come_last() {
        let id = "01010101-0101-0101-0101-010101010101";
        assert_eq!(
            plan(FileSystemKind::Ext4, &["-b", "1024", "-E", "stride=2", "-Enodiscard"], Some(Bytes(1 << 20))),
            format!(
                "-q -F -U {id} -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,hash_seed={id},stride=2,nodiscard \
                 -b 1024 /dev/x 1024k"
            )
        );
        assert_eq!(
            plan(FileSystemKind::Xfs, &["-i", "size=1024"], Some(Bytes(7))),
            format!("-q -f -m uuid={id} -d size=7 -i size=1024 /dev/x")
        );
        assert_eq!(plan(FileSystemKind::Btrfs, &[], None), format!("-q -f -U {id} /dev/x"));
        let f2fs = plan(FileSystemKind::F2fs, &["-i"], Some(Bytes(1 << 26)));
        assert_eq!(f2fs, format!("-q -f -r -U {id} -i /dev/x 131072"));
        assert_eq!(plan(FileSystemKind::Nilfs2, &["-B", "64"], None), "-q -f -B 64 /dev/x");
        assert_eq!(plan(FileSystemKind::Jfs, &[], Some(Bytes(1 << 26))), "-q /dev/x 16384");
        assert_eq!(plan(FileSystemKind::Reiserfs, &[], None), format!("-q -f -f -u {id} /dev/x"));
    }
}
