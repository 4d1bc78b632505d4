//! The colours and marks of arms. They follow the file systems, so a file system has the same
//! colour on all pages. They do not follow the order of the arms, which is by effect.

use std::collections::BTreeMap;

/// File systems with a colour of their own, in the order of the classes `arm-0` to `arm-5`.
const KINDS: [&str; 6] = ["ext4", "xfs", "btrfs", "f2fs", "garden", "evergreen"];

/// The class of each arm, which has its colour and mark, by the name of the arm. `arms` are names
/// of arms with their file systems. If a file system has options, such as `ext4-1k`, the part
/// before the hyphen counts.
///
/// If an arm has the name of its file system, it has that file system's colour. Otherwise the first
/// arm of that file system by name has this colour. The other arms receive the colours that are
/// left: first arms with the name of their file system, then the others by name. More than six arms
/// share colours.
pub(crate) fn arm_classes<'a>(arms: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    let kind = |file_system: &'a str| file_system.split('-').next().unwrap_or(file_system);
    let mut arms: Vec<_> = arms.map(|(arm, file_system)| (arm != kind(file_system), arm, kind(file_system))).collect();
    arms.sort_unstable();
    arms.dedup();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut users = [0; KINDS.len()];
    for (_, arm, file_system) in &arms {
        let own = KINDS.iter().position(|known| known == file_system);
        if let Some(place) = own.filter(|place| users[*place] == 0 && !places.contains_key(arm)) {
            users[place] += 1;
            places.insert(arm, place);
        }
    }
    for (_, arm, _) in &arms {
        if !places.contains_key(arm) {
            let place = (0..KINDS.len()).min_by_key(|place| users[*place]).unwrap_or(0);
            users[place] += 1;
            places.insert(arm, place);
        }
    }
    places.into_iter().map(|(arm, place)| (arm.to_owned(), format!("arm-{place}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes<const N: usize>(arms: [(&str, &str); N]) -> Vec<String> {
        let classes = arm_classes(arms.into_iter());
        arms.iter().map(|(arm, _)| classes[*arm].clone()).collect()
    }

    #[test]
    fn file_system_has_one_colour_on_all_pages() {
        assert_eq!(classes([("xfs", "xfs"), ("btrfs", "btrfs")]), ["arm-1", "arm-2"]);
        assert_eq!(classes([("btrfs", "btrfs"), ("ext4", "ext4"), ("xfs", "xfs")]), ["arm-2", "arm-0", "arm-1"]);
        assert_eq!(classes([("ext4-1k", "ext4-1k")]), ["arm-0"]);
    }

    #[test]
    fn arms_of_one_file_system_differ() {
        let arms = [("a-first", "ext4"), ("ext4", "ext4"), ("z-last", "ext4"), ("zfs", "zfs"), ("xfs", "xfs")];
        assert_eq!(classes(arms), ["arm-3", "arm-0", "arm-4", "arm-2", "arm-1"]);
    }

    #[test]
    fn seventh_arm_shares_a_colour() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let shown = classes(names.map(|name| (name, "ext4")));
        assert_eq!(shown, ["arm-0", "arm-1", "arm-2", "arm-3", "arm-4", "arm-5", "arm-0"]);
    }
}
