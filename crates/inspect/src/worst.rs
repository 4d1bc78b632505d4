//! The files and directories that lose most, found while a tree streams by.

use std::collections::HashMap;

use crate::figures::Loser;

/// The default of [`crate::InspectOptions::top`].
pub const DEFAULT_TOP: usize = 10;

/// The sums of a file or a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    /// Nanoseconds of reading it in the found layout.
    pub as_it_lies: u64,
    /// Nanoseconds of reading it in a fresh copy.
    pub fresh_copy: u64,
    pub bytes: u64,
    pub files: u64,
    pub extents: u64,
    /// Blocks of files that directly follow their predecessor.
    pub following_blocks: u64,
    /// Blocks of files that have a predecessor: all but the first of each file.
    pub followable_blocks: u64,
}

impl Loss {
    fn nanos(&self) -> i128 {
        i128::from(self.as_it_lies) - i128::from(self.fresh_copy)
    }

    /// The rank by which files are chosen, the largest first: lost time in steps of a quarter, then
    /// bytes, then the exact time.
    ///
    /// Files that lose one seek each differ only by the length of the seek. By time alone, the list
    /// would be an arbitrary choice of small files, so larger files are chosen.
    fn rank(&self) -> (u32, u64, i128) {
        let nanos = u64::try_from(self.nanos()).unwrap_or(0);
        // Two bits after the leading one.
        let step = nanos.checked_ilog2().map_or(0, |power| 4 * power + ((u128::from(nanos) << 2 >> power) & 3) as u32);
        (step, self.bytes, self.nanos())
    }

    fn add(&mut self, other: &Self) {
        self.as_it_lies += other.as_it_lies;
        self.fresh_copy += other.fresh_copy;
        self.bytes += other.bytes;
        self.files += other.files;
        self.extents += other.extents;
        self.following_blocks += other.following_blocks;
        self.followable_blocks += other.followable_blocks;
    }

    fn named(&self, path: String) -> Loser {
        Loser {
            path,
            lost_seconds: self.nanos() as f64 / 1e9,
            slowdown: self.as_it_lies as f64 / self.fresh_copy.max(1) as f64,
            bytes: self.bytes,
            files: self.files,
            extents: self.extents,
            layout_score: (self.followable_blocks > 0)
                .then(|| self.following_blocks as f64 / self.followable_blocks as f64),
        }
    }
}

/// The worst files so far, and all directories.
#[derive(Debug)]
pub(crate) struct Losses {
    /// The number of files, and of directories, that are kept.
    top: usize,
    files: Vec<(Loss, u32)>,
    directories: HashMap<u32, Loss>,
}

impl Losses {
    pub fn new(top: usize) -> Self {
        Self { top, files: Vec::new(), directories: HashMap::new() }
    }

    /// Adds a loss to the directory with number `directory`. For the loss of a file, `file` is its
    /// number.
    pub fn add(&mut self, loss: Loss, directory: u32, file: Option<u32>) {
        self.directories.entry(directory).or_default().add(&loss);
        let Some(file) = file else { return };
        let place = self.files.partition_point(|(kept, _)| kept.rank() >= loss.rank());
        if place < self.top && loss.nanos() > 0 {
            self.files.insert(place, (loss, file));
            self.files.truncate(self.top);
        }
    }

    /// The worst files and the worst directories, worst first, without those that lose nothing.
    /// [`Loss::rank`] chooses the files. The list is sorted by lost time.
    pub fn finish(mut self, path: impl Fn(u32) -> String) -> (Vec<Loser>, Vec<Loser>) {
        self.files.sort_by_key(|(loss, _)| -loss.nanos());
        let files = self.files.iter().map(|(loss, number)| loss.named(path(*number))).collect();
        let mut directories: Vec<(u32, Loss)> =
            self.directories.into_iter().filter(|(_, loss)| loss.nanos() > 0).collect();
        directories.sort_by_key(|(number, loss)| (-loss.nanos(), *number));
        directories.truncate(self.top);
        (files, directories.into_iter().map(|(number, loss)| loss.named(path(number))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_are_sorted_and_gains_are_left_out() {
        let mut losses = Losses::new(DEFAULT_TOP);
        for number in 0..100u64 {
            let (following_blocks, followable_blocks) = (number % 5, 4);
            let as_it_lies = number * 37 % 100;
            let loss = Loss {
                as_it_lies,
                fresh_copy: 50,
                bytes: 1,
                files: 1,
                extents: 1,
                following_blocks,
                followable_blocks,
            };
            losses.add(loss, (number % 3) as u32, Some(number as u32));
        }
        let (files, directories) = losses.finish(|number| format!("entry {number}"));
        let lost: Vec<i64> = files.iter().map(|file| (file.lost_seconds * 1e9).round() as i64).collect();
        assert_eq!(lost, [49, 48, 47, 46, 45, 44, 43, 42, 41, 40]);
        assert!(directories.len() <= 3 && directories.windows(2).all(|d| d[0].lost_seconds >= d[1].lost_seconds));
        assert!(directories.iter().all(|directory| directory.files >= 33 && directory.lost_seconds > 0.0));
        // The worst file is number 27: two of its four blocks follow. Directories are weighted by
        // blocks.
        assert_eq!(files[0].layout_score, Some(0.5));
        assert!(
            directories.iter().all(|directory| directory.layout_score.is_some_and(|score| (score - 0.5).abs() < 0.01))
        );
    }

    #[test]
    fn larger_file_is_chosen_at_similar_loss() {
        let mut losses = Losses::new(2);
        for (number, (lost, bytes)) in
            [(8_300_000, 4096), (8_200_000, 1 << 20), (12_000_000, 512)].into_iter().enumerate()
        {
            losses.add(Loss { as_it_lies: lost, bytes, ..Loss::default() }, 0, Some(number as u32));
        }
        let (files, _) = losses.finish(|number| number.to_string());
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["2", "1"]);
    }

    #[test]
    fn chosen_files_are_in_the_order_of_lost_time() {
        let mut losses = Losses::new(3);
        for (number, (lost, bytes)) in
            [(17_500_000, 3 << 20), (19_300_000, 2 << 20), (17_500_000, 4096)].into_iter().enumerate()
        {
            losses.add(Loss { as_it_lies: lost, bytes, ..Loss::default() }, 0, Some(number as u32));
        }
        let (files, _) = losses.finish(|number| number.to_string());
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["1", "0", "2"]);
    }
}
