//! Profile-driven aging as a plan asks for it.

use std::path::Path;

use schemars::JsonSchema;
use senesce_core::Seed;
use senesce_workload::profile::{
    AgingProfile, FileContent, ProfileOptions, Schedule, Sizes, builtin_profiles, find_builtin,
};
use serde::{Deserialize, Serialize};

use crate::{Error, description::read_description};

/// How births and deaths follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// Fair coin tosses, as published: the most crowded age bin decides the operations of a life.
    Classic,
    /// Births and deaths in virtual time: `churn` births a file.
    #[default]
    Virtual,
}

/// What files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContentName {
    /// Real bytes.
    #[default]
    Write,
    /// Reserved space (fallocate); moves no data, and a grep test of it reads none.
    Allocate,
}

/// How sizes are drawn from the profile's bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizesName {
    /// As the profile says.
    #[default]
    Profile,
    /// Exactly the bins' values.
    Point,
    /// Uniformly between the bins' bounds.
    Spread,
}

/// Profile-driven aging. A counted step is a hundredth of the schedule. The last one sets the
/// files' times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfilePlan {
    /// A built-in profile (`senesce profile list`), or the path of one.
    pub profile: String,
    /// The share of the volume that is used, percent. Used is what is not free to users.
    pub fullness_percent: f64,
    /// How births and deaths follow each other.
    pub schedule: ScheduleName,
    /// What files hold.
    pub content: ContentName,
    /// How sizes are drawn.
    pub sizes: SizesName,
    /// Births after the filling over files, in the virtual schedule.
    pub churn: f64,
    /// Total variation distance from the profile that is allowed at the end.
    pub accuracy: f64,
    /// The classic schedule ends after this number of lives, even if the accuracy is not reached.
    pub most_lives: u64,
}

impl Default for ProfilePlan {
    fn default() -> Self {
        let options = ProfileOptions::default();
        Self {
            profile: "agrawal".into(),
            fullness_percent: options.fullness * 100.0,
            schedule: ScheduleName::default(),
            content: ContentName::default(),
            sizes: SizesName::default(),
            churn: options.churn,
            accuracy: options.accuracy,
            most_lives: options.most_lives,
        }
    }
}

impl ProfilePlan {
    /// Converts to the options of the workload.
    pub fn options(&self, seed: Seed) -> ProfileOptions {
        ProfileOptions {
            seed,
            fullness: self.fullness_percent / 100.0,
            schedule: match self.schedule {
                ScheduleName::Classic => Schedule::Classic,
                ScheduleName::Virtual => Schedule::Virtual,
            },
            content: match self.content {
                ContentName::Write => FileContent::Write,
                ContentName::Allocate => FileContent::Allocate,
            },
            sizes: match self.sizes {
                SizesName::Profile => Sizes::Profile,
                SizesName::Point => Sizes::Point,
                SizesName::Spread => Sizes::Spread,
            },
            churn: self.churn,
            accuracy: self.accuracy,
            most_lives: self.most_lives,
            ..ProfileOptions::default()
        }
    }

    /// Returns a built-in profile, or reads one from a file. Errors: no such profile; the file is
    /// not a profile.
    pub fn read(&self) -> Result<AgingProfile, Error> {
        if let Some(profile) = find_builtin(&self.profile) {
            return Ok(profile);
        }
        let path = Path::new(&self.profile);
        let text = read_description(path).map_err(|source| {
            let known: Vec<&str> = builtin_profiles().map(|(name, _)| name).collect();
            Error::Profile {
                profile: self.profile.clone(),
                problem: format!(
                    "it is neither built in ({}) nor a file that can be read ({source})",
                    known.join(", ")
                ),
            }
        })?;
        AgingProfile::parse(&text)
            .map_err(|problem| Error::Profile { profile: self.profile.clone(), problem: problem.to_string() })
    }
}
