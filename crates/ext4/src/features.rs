//! Feature flags of the superblock, with their names, and the support of this reader for each.
//!
//! Only "incompatible" features affect a reader: it may ignore other unknown features. Source: the
//! kernel's documentation of the format, "The super block".

/// Incompatible features: a reader that does not support one cannot read the file system.
pub(crate) mod incompat {
    pub(crate) const FILETYPE: u32 = 0x2;
    pub(crate) const RECOVER: u32 = 0x4;
    pub(crate) const META_BG: u32 = 0x10;
    pub(crate) const IS_64BIT: u32 = 0x80;
    pub(crate) const FLEX_BG: u32 = 0x200;
    pub(crate) const CSUM_SEED: u32 = 0x2000;
    pub(crate) const LARGEDIR: u32 = 0x4000;
}

/// Features that a reader may ignore if it does not support them, and a writer may not.
pub(crate) mod ro_compat {
    pub(crate) const SPARSE_SUPER: u32 = 0x1;
    pub(crate) const HUGE_FILE: u32 = 0x8;
    pub(crate) const GDT_CSUM: u32 = 0x10;
    pub(crate) const BIGALLOC: u32 = 0x200;
    pub(crate) const METADATA_CSUM: u32 = 0x400;
    pub(crate) const SHARED_BLOCKS: u32 = 0x4000;
}

/// Features that readers and writers may ignore.
pub(crate) mod compat {
    pub(crate) const DIR_INDEX: u32 = 0x20;
    pub(crate) const SPARSE_SUPER2: u32 = 0x200;
}

/// Every incompatible feature with a name, and whether this reader supports it.
const INCOMPAT: [(u32, &str, bool); 16] = [
    (0x1, "compression", false),
    (incompat::FILETYPE, "filetype", true),
    (incompat::RECOVER, "needs_recovery", true),
    (0x8, "journal_dev (this is an external journal, not a file system)", false),
    (incompat::META_BG, "meta_bg", true),
    (0x40, "extents", true),
    (incompat::IS_64BIT, "64bit", true),
    (0x100, "mmp", true),
    (incompat::FLEX_BG, "flex_bg", true),
    (0x400, "ea_inode", true),
    (0x1000, "dirdata", false),
    (incompat::CSUM_SEED, "metadata_csum_seed", true),
    (incompat::LARGEDIR, "large_dir", true),
    (0x8000, "inline_data", true),
    (0x1_0000, "encrypt", true),
    (0x2_0000, "casefold", true),
];

/// The names of incompatible features that are set and not supported, separated by commas. `None`
/// if all are supported.
pub(crate) fn compute_unknown(flags: u32) -> Option<String> {
    let mut names = Vec::new();
    for bit in (0..32).map(|shift| 1u32 << shift).filter(|bit| flags & bit != 0) {
        match INCOMPAT.iter().find(|(flag, ..)| *flag == bit) {
            Some((_, _, true)) => {}
            Some((_, name, false)) => names.push((*name).to_owned()),
            None => names.push(format!("incompatible feature {bit:#x}")),
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_features_are_named_or_numbered() {
        assert_eq!(compute_unknown(0x2 | 0x4 | 0x40 | 0x80 | 0x200 | 0x8000), None);
        assert_eq!(compute_unknown(0x2 | 0x1), Some("compression".to_owned()));
        assert_eq!(compute_unknown(0x1000 | 0x8000_0000), Some("dirdata, incompatible feature 0x80000000".to_owned()));
    }
}
