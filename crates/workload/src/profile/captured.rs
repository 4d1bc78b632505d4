//! Turns a census of files into a profile.

use super::{
    check::ProfileProblem,
    format::{
        AgeDistribution, AgingProfile, DepthDistribution, ExtentDistribution, PROFILE_FORMAT, ProfileSource,
        SizeDistribution, SizeMeaning,
    },
};

/// Ages below this share one bin, seconds.
const YOUNGEST_SECONDS: u64 = 60;

/// A file of a census.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Size, bytes.
    pub size_bytes: u64,
    /// Components of its directory's path.
    pub depth: u64,
    /// Age, seconds.
    pub age_seconds: u64,
    /// The number of extents, if it was counted.
    pub extents: Option<u64>,
}

/// Facts about a census, besides its files.
#[derive(Clone, Debug, Default)]
pub struct Captured<'a> {
    /// Name of the profile.
    pub name: &'a str,
    /// The captured system, for readers.
    pub study: String,
    /// Share of the capacity that was used, 0 to 1.
    pub fullness: Option<f64>,
    /// Directories at each depth, the root first.
    pub directories_by_depth: &'a [u64],
    /// Use the bins of this profile, so that the two can be compared. By default the profile gets
    /// bins of its own.
    pub like: Option<&'a AgingProfile>,
}

/// The profile of a census. Unless `like` gives bins, size bins double, and age bins halve from the
/// oldest age.
///
/// Errors: `files` is empty.
pub fn compute_profile(files: &[FoundFile], captured: &Captured<'_>) -> Result<AgingProfile, ProfileProblem> {
    if files.is_empty() {
        return Err(ProfileProblem::Empty { list: "files" });
    }
    let largest = files.iter().map(|file| file.size_bytes).max().unwrap_or(0);
    let oldest = files.iter().map(|file| file.age_seconds).max().unwrap_or(0).max(2 * YOUNGEST_SECONDS);
    let (meaning, mut sizes) = match captured.like {
        Some(like) => (like.size.meaning, like.size.values.clone()),
        None => (SizeMeaning::UpperBound, vec![0]),
    };
    let mut next = sizes.last().copied().unwrap_or(0).max(256).next_power_of_two();
    while sizes.last().is_none_or(|&last| last < largest) {
        next *= 2;
        sizes.push(next);
    }
    let ages: Vec<f64> = match captured.like {
        Some(like) => like.age.upper_relative.iter().map(|upper| upper * like.life_seconds() as f64).collect(),
        None => {
            let halves = (0..32).map(|half| oldest as f64 / 2f64.powi(half));
            let mut ages: Vec<f64> = halves.take_while(|&age| age >= YOUNGEST_SECONDS as f64).collect();
            ages.reverse();
            ages
        }
    };
    let deepest = files.iter().map(|file| file.depth).max().unwrap_or(0);
    let mut depths = captured.like.map_or(Vec::new(), |like| like.depth.values.clone());
    depths.extend(0..=deepest);
    depths.sort_unstable();
    depths.dedup();
    if let Some(like) = captured.like {
        depths.retain(|depth| like.depth.values.contains(depth) || files.iter().any(|file| file.depth == *depth));
    }
    let mut size_weights = vec![0; sizes.len()];
    let mut depth_weights = vec![0; depths.len()];
    let mut age_weights = vec![0; ages.len()];
    let mut extents: Vec<u64> = Vec::new();
    for file in files {
        size_weights[sizes.partition_point(|&upper| upper < file.size_bytes)] += 1;
        depth_weights[depths.partition_point(|&depth| depth < file.depth)] += 1;
        age_weights[ages.partition_point(|&upper| upper < file.age_seconds as f64).min(ages.len() - 1)] += 1;
        extents.extend(file.extents.filter(|&extents| extents > 0));
    }
    let total: u64 = files.iter().map(|file| file.size_bytes).sum();
    let summary = [
        ("files".to_owned(), files.len() as f64),
        ("mean_size_bytes".to_owned(), total as f64 / files.len() as f64),
        ("max_size_bytes".to_owned(), largest as f64),
    ];
    AgingProfile {
        format: PROFILE_FORMAT.into(),
        name: captured.name.into(),
        description: format!("captured: {} files", files.len()),
        notes: Vec::new(),
        fullness: captured.fullness,
        source: Some(ProfileSource { study: captured.study.clone(), ..Default::default() }),
        summary: summary.into(),
        size: SizeDistribution {
            unit: "bytes".into(),
            meaning,
            values: sizes,
            weights: size_weights,
            fractions: Vec::new(),
        },
        depth: DepthDistribution {
            unit: "path components below the captured directory (0 = in it)".into(),
            subdirs: depths
                .iter()
                .map(|&depth| captured.directories_by_depth.get(depth as usize).copied().unwrap_or(0))
                .collect(),
            values: depths,
            weights: depth_weights,
            fractions: Vec::new(),
        },
        age: AgeDistribution {
            unit: "seconds".into(),
            unit_stated_in_source: true,
            unit_note: "time since the last change of the content".into(),
            meaning: "upper bound".into(),
            upper: ages,
            upper_relative: Vec::new(),
            weights: age_weights,
            fractions: Vec::new(),
        },
        extents: (!extents.is_empty()).then(|| count_extents(&extents)),
    }
    .checked()
}

/// Files by their number of extents, in bins that double.
fn count_extents(extents: &[u64]) -> ExtentDistribution {
    let most = extents.iter().copied().max().unwrap_or(1).next_power_of_two();
    let values: Vec<u64> = (0..=most.trailing_zeros()).map(|power| 1 << power).collect();
    let mut weights = vec![0; values.len()];
    for &count in extents {
        weights[values.partition_point(|&upper| upper < count)] += 1;
    }
    ExtentDistribution { values, weights, mean: extents.iter().sum::<u64>() as f64 / extents.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_fall_into_the_expected_bins() {
        let file = |size_bytes, depth, age_seconds, extents| FoundFile { size_bytes, depth, age_seconds, extents };
        let files =
            [file(0, 0, 30, None), file(512, 2, 480, Some(1)), file(513, 2, 481, Some(3)), file(4096, 2, 960, Some(4))];
        let captured =
            Captured { name: "four", directories_by_depth: &[1, 3, 2], fullness: Some(0.5), ..Default::default() };
        let profile = compute_profile(&files, &captured).unwrap();
        assert_eq!(profile.size.values, [0, 512, 1024, 2048, 4096]);
        assert_eq!(profile.size.weights, [1, 1, 1, 0, 1]);
        assert_eq!(
            (profile.depth.values.as_slice(), profile.depth.weights.as_slice()),
            (&[0, 1, 2][..], &[1, 0, 3][..])
        );
        assert_eq!(profile.depth.subdirs, [1, 3, 2]);
        // Halves of 960 s down to a minute: 60, 120, 240, 480, 960.
        assert_eq!(profile.age.upper, [60.0, 120.0, 240.0, 480.0, 960.0]);
        assert_eq!(profile.age.weights, [1, 0, 0, 1, 2]);
        let extents = profile.extents.unwrap();
        assert_eq!((extents.values, extents.weights), (vec![1, 2, 4], vec![1, 0, 2]));
        assert!((extents.mean - 8.0 / 3.0).abs() < 1e-12);
        assert!(compute_profile(&[], &captured).is_err());
    }
}
