//! "Did you mean": the nearest known name, for a misspelt key or value of a plan or suite.

/// Whether the name is that of a known file system that senesce does not make.
pub fn is_foreign(name: &str) -> bool {
    const FOREIGN: [&str; 10] =
        ["zfs", "bcachefs", "ntfs", "exfat", "vfat", "hfsplus", "apfs", "tmpfs", "overlay", "reiser4"];
    FOREIGN.contains(&name)
}

/// Returns the nearest known name from serde's "unknown field `fulll`, expected one of `full`,
/// `empty`", if one is near.
pub(super) fn nearest_known(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (given, known) = quoted.split_first()?;
    if !message.starts_with("unknown") {
        return None;
    }
    if is_foreign(given) {
        return Some(format!("senesce does not support `{given}` yet; write one of the names above"));
    }
    // By Jaro-Winkler, a short name with two swapped letters is too far from the right one.
    let is_slip = |name: &str| strsim::damerau_levenshtein(given, name) == 1;
    let nearness = |name: &str| if is_slip(name) { 1.0 } else { strsim::jaro_winkler(given, name) };
    let best = known.iter().max_by(|a, b| nearness(a).total_cmp(&nearness(b)).then(b.cmp(a)))?;
    (nearness(best) > 0.7).then(|| format!("did you mean `{best}`?"))
}
