//! Merges profiles of several file systems, and compares two profiles.

use super::{
    check::ProfileProblem,
    distribution::Deviation,
    format::{
        AgeDistribution, AgingProfile, DepthDistribution, ExtentDistribution, PROFILE_FORMAT, ProfileSource,
        SizeDistribution, SizeMeaning,
    },
};

/// Merges several profiles. The weights of a profile are its number of files.
///
/// In: at least one profile. The result has the bins of all profiles. Ages are relative to the age
/// of each file system, and the life of the result is the longest one. Errors: the sizes have
/// different meanings (point, upper bound).
pub fn merge_profiles(profiles: &[AgingProfile], name: &str) -> Result<AgingProfile, ProfileProblem> {
    let Some(first) = profiles.first() else { return Err(ProfileProblem::Empty { list: "profiles" }) };
    let meaning = first.size.meaning;
    if profiles.iter().any(|profile| profile.size.meaning != meaning) {
        return Err(ProfileProblem::Syntax {
            problem: "sizes of some profiles are points, those of others upper bounds: they cannot be merged".into(),
        });
    }
    let sizes = merge(profiles, |profile| (profile.size.values.clone(), profile.size_weights()));
    let depths = merge(profiles, |profile| (profile.depth.values.clone(), profile.depth_weights()));
    let scale = |relative: &f64| (relative * 1e12).round() as u64;
    let ages =
        merge(profiles, |profile| (profile.age.upper_relative.iter().map(scale).collect(), profile.age_weights()));
    let subdirs_at = |depth: u64| -> u64 {
        let of = |profile: &AgingProfile| {
            let at = profile.depth.values.iter().position(|&value| value == depth);
            at.map_or(0, |at| profile.depth.subdirs[at])
        };
        profiles.iter().map(of).sum()
    };
    let life_seconds = profiles.iter().map(AgingProfile::life_seconds).max().unwrap_or(0).max(1);
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    let extents = profiles.iter().map(|profile| profile.extents.as_ref()).collect::<Option<Vec<_>>>();
    AgingProfile {
        format: PROFILE_FORMAT.into(),
        name: name.into(),
        description: format!("merged of {}", names.join(", ")),
        notes: Vec::new(),
        fullness: None,
        source: Some(ProfileSource { study: format!("merged of {}", names.join(", ")), ..Default::default() }),
        summary: Default::default(),
        size: SizeDistribution {
            unit: "bytes".into(),
            meaning,
            values: sizes.0,
            weights: sizes.1,
            fractions: Vec::new(),
        },
        depth: DepthDistribution {
            unit: first.depth.unit.clone(),
            subdirs: depths.0.iter().map(|&depth| subdirs_at(depth)).collect(),
            values: depths.0,
            weights: depths.1,
            fractions: Vec::new(),
        },
        age: AgeDistribution {
            unit: "seconds".into(),
            unit_stated_in_source: true,
            unit_note: String::new(),
            meaning: "upper bound".into(),
            upper: ages.0.iter().map(|&upper| upper as f64 / 1e12 * life_seconds as f64).collect(),
            upper_relative: Vec::new(),
            weights: ages.1,
            fractions: Vec::new(),
        },
        extents: extents.map(|parts| merge_extents(&parts)),
    }
    .checked()
}

/// Bins and weights of all profiles, by rising bins.
fn merge(profiles: &[AgingProfile], of: impl Fn(&AgingProfile) -> (Vec<u64>, Vec<u64>)) -> (Vec<u64>, Vec<i64>) {
    let mut all = std::collections::BTreeMap::<u64, i64>::new();
    for profile in profiles {
        let (values, weights) = of(profile);
        for (value, weight) in values.into_iter().zip(weights) {
            let sum = all.entry(value).or_default();
            *sum = sum.saturating_add_unsigned(weight);
        }
    }
    all.into_iter().unzip()
}

fn merge_extents(parts: &[&ExtentDistribution]) -> ExtentDistribution {
    let mut all = std::collections::BTreeMap::<u64, i64>::new();
    let (mut extents, mut files) = (0.0, 0.0);
    for part in parts {
        let of_part = part.weights.iter().sum::<i64>() as f64;
        extents += part.mean * of_part;
        files += of_part;
        for (value, weight) in part.values.iter().zip(&part.weights) {
            *all.entry(*value).or_default() += weight;
        }
    }
    let (values, weights) = all.into_iter().unzip();
    ExtentDistribution { values, weights, mean: if files > 0.0 { extents / files } else { 0.0 } }
}

/// The distance of two profiles, distribution by distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileDifference {
    /// Sizes.
    pub size: Deviation,
    /// Depths.
    pub depth: Deviation,
    /// Ages, relative to the age of each file system.
    pub age: Deviation,
}

/// The distance of `found` from `wanted`, in the bins of `wanted`.
///
/// A bin of `found` counts in the bin that holds its upper bound. The comparison is exact only if
/// the profile was captured in the bins of the other.
pub fn compute_difference(found: &AgingProfile, wanted: &AgingProfile) -> ProfileDifference {
    let bins = |values: &[u64]| values.iter().map(|&value| value as f64).collect::<Vec<_>>();
    let of = |found: (&[f64], Vec<u64>), wanted: (&[f64], Vec<u64>)| {
        // Relative ages are printed with twelve digits.
        let place =
            |value: f64| wanted.0.partition_point(|&upper| upper * (1.0 + 1e-9) < value).min(wanted.0.len() - 1);
        let mut counts = vec![0u64; wanted.0.len()];
        for (&value, count) in found.0.iter().zip(found.1) {
            counts[place(value)] += count;
        }
        Deviation::compute(&counts, &wanted.1)
    };
    ProfileDifference {
        size: of(
            (&bins(&found.size.values), found.size_weights()),
            (&bins(&wanted.size.values), wanted.size_weights()),
        ),
        depth: of(
            (&bins(&found.depth.values), found.depth_weights()),
            (&bins(&wanted.depth.values), wanted.depth_weights()),
        ),
        age: of((&found.age.upper_relative, found.age_weights()), (&wanted.age.upper_relative, wanted.age_weights())),
    }
}

impl SizeMeaning {
    /// Its spelling in a profile.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::UpperBound => "upper bound",
        }
    }
}
