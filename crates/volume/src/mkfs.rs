//! The arguments of mkfs. They are explicit if a default would depend on the machine or work in the
//! background.

use std::path::Path;

use senesce_core::Bytes;

use crate::{FileSystemKind, Uuid};

/// Returns the arguments with which mkfs makes `kind` on `device`.
///
/// The UUID is set, so that the superblock proves that this mkfs made the file system. `size`
/// limits the file system to a part of the device. `options` are the user's. They come last and
/// override ours.
///
/// For ext4, the UUID also seeds the directory hash, so that the readdir order is reproducible. The
/// inode tables are initialized at once, because a background thread would write while a workload
/// runs. Blocks have 4 KiB, because mke2fs chooses 1 KiB for small volumes, and the full volume
/// would differ from the larger empty one.
pub fn plan_mkfs(
    kind: FileSystemKind,
    device: &Path,
    uuid: Uuid,
    options: &[String],
    size: Option<Bytes>,
) -> Vec<String> {
    let device = device.to_string_lossy().into_owned();
    let mut arguments: Vec<String> = Vec::new();
    let mut add = |parts: &[&str]| arguments.extend(parts.iter().map(|&part| part.to_owned()));
    let uuid = uuid.to_string();
    match kind {
        FileSystemKind::Ext4 => {
            let mut extended = format!("lazy_itable_init=0,lazy_journal_init=0,hash_seed={uuid}");
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

    fn plan(kind: FileSystemKind, options: &[&str], size: Option<Bytes>) -> String {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        plan_mkfs(kind, Path::new("/dev/x"), Uuid([1; 16]), &options, size).join(" ")
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
    }
}
