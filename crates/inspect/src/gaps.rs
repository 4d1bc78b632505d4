//! The data that the figures of an inspection lack. The texts about them follow from these values.

use std::path::Path;

use schemars::JsonSchema;
use senesce_core::numbers::count;
use serde::Serialize;

/// A mount past which a file system is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Where and how, in words: "mounted for writing on /srv".
    pub how: String,
    /// Whether programs can write through it.
    pub is_writable: bool,
}

/// Why the bytes that were read lack the last writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stale {
    /// It was read past a mount through which programs can write.
    MountedForWriting,
    /// Writes with fsync since the last commit are only in the log of a Btrfs.
    BtrfsLog,
    /// The last changes are only in the log of an XFS, which was not unmounted.
    XfsLog,
}

impl Stale {
    /// The warning about a log that is not replayed.
    pub(crate) fn warning(self) -> Option<&'static str> {
        match self {
            // Its warning names the mount.
            Self::MountedForWriting => None,
            Self::BtrfsLog => Some("its log is not replayed: writes with fsync since its last commit are missing here"),
            Self::XfsLog => Some(
                "its log is not replayed: it was not unmounted, and its last changes are in the log only; entries may \
                 be missing or contradict each other here",
            ),
        }
    }
}

/// The warning about a file system that is read past its mount.
pub(crate) fn past_mount(path: &Path, mounted: &Mounted) -> String {
    let lacks = if mounted.is_writable { ", without the writes that are still in memory" } else { "" };
    format!(
        "{} is {}: it was read past its mount{lacks}; without --offline senesce reads through the mount, if a path \
         leads there",
        path.display(),
        mounted.how
    )
}

/// The data that the figures lack. All fields are absent or 0 if the figures are complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gaps {
    /// Why the last writes are missing.
    pub stale: Option<Stale>,
    /// Entries that could not be read.
    pub unread_entries: u64,
    /// Extents that have no place on the device yet.
    pub unwritten_extents: u64,
    /// Why the costs include no reads of metadata.
    pub no_metadata: Option<String>,
}

impl Gaps {
    /// The grave gaps as the first sentences of the verdict. Empty if there are none.
    ///
    /// Extents without a place are mentioned if their number is at least a tenth of `files`. The
    /// costs then mean little. Metadata are not mentioned: see [`Self::without_metadata`].
    pub(crate) fn in_words(&self, files: u64) -> String {
        let (delayed, unread) = (self.unwritten_extents, self.unread_entries);
        let unwritten = (delayed > 0 && delayed >= files / 10).then(|| {
            let noun = if delayed == 1 { "extent is" } else { "extents are" };
            format!("{} {noun} not on the device yet (run `sync -f` on a file in it)", count(delayed))
        });
        let entries = (unread > 0).then(|| {
            let noun = if unread == 1 { "entry" } else { "entries" };
            format!("{} {noun} could not be read", count(unread))
        });
        let parts: Vec<String> = [unwritten, entries].into_iter().flatten().collect();
        let partial = if parts.is_empty() { String::new() } else { format!("Partial: {}. ", parts.join(", and ")) };
        match self.stale {
            Some(_) => format!("Stale: the last writes are not in the device yet (see the warnings). {partial}"),
            None => partial,
        }
    }

    /// The end of the verdict if the costs include no reads of metadata. A warning has the reason.
    pub(crate) fn without_metadata(&self) -> &'static str {
        match self.no_metadata {
            Some(_) => " The seconds are without reads of metadata (see the warnings).",
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_extents_without_a_place_are_named() {
        let said = |unwritten_extents, files| Gaps { unwritten_extents, ..Gaps::default() }.in_words(files);
        assert_eq!(said(0, 0), "");
        assert_eq!(said(9, 100), "");
        assert!(said(10, 100).starts_with("Partial: 10 extents are not on the device yet"));
        assert!(said(1, 1).starts_with("Partial: 1 extent is"));
    }

    #[test]
    fn each_gap_is_named_once() {
        let gaps = Gaps {
            stale: Some(Stale::XfsLog),
            unread_entries: 1234,
            no_metadata: Some("/dev/vda cannot be read".to_owned()),
            ..Gaps::default()
        };
        let expected = "Stale: the last writes are not in the device yet (see the warnings). Partial: 1,234 entries could not be \
                        read. ";
        assert_eq!(gaps.in_words(9), expected);
        assert!(gaps.without_metadata().contains("metadata") && Gaps::default().without_metadata().is_empty());
    }

    #[test]
    fn only_a_writable_mount_lacks_writes() {
        let said =
            |is_writable| past_mount(Path::new("a.img"), &Mounted { how: "mounted on /m".to_owned(), is_writable });
        assert!(said(true).starts_with("a.img is mounted on /m: it was read past its mount, without the writes"));
        assert!(said(false).starts_with("a.img is mounted on /m: it was read past its mount; without --offline"));
    }
}
