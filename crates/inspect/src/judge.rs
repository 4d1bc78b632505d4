//! Chooses the device of a verdict, and grades a tree on it.

use std::path::Path;

use schemars::JsonSchema;
use senesce_volume::{Medium, MediumKind, find_medium};
use serde::{Deserialize, Serialize};

use crate::{figures::DeviceCosts, source::find_btrfs_devices};

/// From this slowdown on, a layout is not young. A modelled copy has no gaps, unlike a real one, so
/// a real fresh copy has a slowdown: 1.15 on ext4, 1.20 to 1.26 on XFS, and 1.27 to 1.34 on Btrfs.
pub(crate) const AGED: f64 = 1.5;
/// The smallest slowdown of each grade.
const GRADES: [(f64, Grade); 4] =
    [(5.0, Grade::BadlyAged), (2.0, Grade::Aged), (AGED, Grade::SomewhatAged), (0.0, Grade::Young)];
/// A smaller loss of the whole tree is negligible at any slowdown: a few small files can have a
/// large slowdown.
pub const NOTICEABLE_SECONDS: f64 = 1.0;

/// How aged a layout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Below 1.5 times the time of a fresh copy.
    Young,
    /// From 1.5 times on, but the whole tree loses less than a second.
    Negligible,
    /// From 1.5 times on.
    SomewhatAged,
    /// From 2 times on.
    Aged,
    /// From 5 times on.
    BadlyAged,
    /// The device is unknown, and the models used for it have different grades.
    Undecided,
    /// There is nothing to read.
    Nothing,
}

impl Grade {
    fn of(cost: &DeviceCosts) -> Self {
        let found = GRADES.iter().find(|(least, _)| cost.slowdown >= *least).map_or(Self::Young, |(_, grade)| *grade);
        match found == Self::Young || lost_seconds(cost) >= NOTICEABLE_SECONDS {
            true => found,
            false => Self::Negligible,
        }
    }

    /// The grade in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Young => "young",
            Self::Negligible => "negligibly aged",
            Self::SomewhatAged => "somewhat aged",
            Self::Aged => "aged",
            Self::BadlyAged => "badly aged",
            Self::Undecided => "undecided",
            Self::Nothing => "nothing to judge",
        }
    }
}

fn lost_seconds(cost: &DeviceCosts) -> f64 {
    cost.seconds.as_it_lies - cost.seconds.fresh_copy
}

/// The source of the device of a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The first model, which the user named.
    Named,
    /// The disk that was found.
    Found(Medium),
}

/// The grade of a tree on the device that stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// The grade on that device.
    pub grade: Grade,
    /// The slowdown against a fresh copy on that device. `None` if the device is unknown or there
    /// is nothing to read. An unknown device has a slowdown for each model that it is judged as.
    pub slowdown: Option<f64>,
    /// The device.
    pub device: JudgedDevice,
    /// The grade on every modelled device.
    pub judgements: Vec<DeviceJudgement>,
}

/// The device that the verdict is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedDevice {
    /// The kind of the disk; `None` if the user named the model.
    pub kind: Option<MediumKind>,
    /// The disk in words, such as `hard disk sda`; `None` if the user named the model.
    pub description: Option<String>,
    /// The models used for it: several if it is unknown.
    pub judged_as: Vec<String>,
}

/// The grade on one modelled device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceJudgement {
    /// The device, such as `model: HDD 7.2K`.
    pub device: String,
    /// The grade.
    pub grade: Grade,
    /// The slowdown against a fresh copy.
    pub slowdown: f64,
    /// Seconds that a read of the whole tree takes longer than in a fresh copy.
    pub lost_seconds: f64,
}

impl Judge {
    /// Finds the disk below a directory, a device or an image.
    pub fn find(path: &Path) -> Self {
        let devices = if path.is_dir() { find_btrfs_devices(path) } else { Vec::new() };
        Self::Found(match devices.len() {
            0 | 1 => find_medium(path),
            _ => Medium::of_several(devices.iter().map(|device| find_medium(device)).collect()),
        })
    }

    /// The built-in models to compute. The models used for the device are first.
    pub fn presets(&self) -> [&'static str; 3] {
        let kind = match self {
            Self::Named => MediumKind::Rotational,
            Self::Found(medium) => medium.kind,
        };
        match kind {
            MediumKind::Rotational => ["hdd-7200", "sata-ssd", "nvme"],
            MediumKind::SataSsd => ["sata-ssd", "hdd-7200", "nvme"],
            MediumKind::Nvme => ["nvme", "hdd-7200", "sata-ssd"],
            MediumKind::Unknown => ["hdd-7200", "nvme", "sata-ssd"],
        }
    }

    /// The number of models used for the device; they are the first of [`Self::presets`].
    pub fn models(&self) -> usize {
        match self {
            Self::Found(Medium { kind: MediumKind::Unknown, .. }) => 2,
            Self::Named | Self::Found(_) => 1,
        }
    }

    /// Grades a tree. `has_content` says whether there is content to read.
    pub(crate) fn judge(self, costs: &[DeviceCosts], has_content: bool) -> Judged {
        let judgement = |cost: &DeviceCosts| DeviceJudgement {
            device: cost.device.clone(),
            grade: Grade::of(cost),
            slowdown: cost.slowdown,
            lost_seconds: lost_seconds(cost),
        };
        let judgements: Vec<DeviceJudgement> = costs.iter().map(judgement).collect();
        let used = &judgements[..self.models().min(judgements.len())];
        let (grade, slowdown) = match used {
            _ if !has_content => (Grade::Nothing, None),
            [] => (Grade::Nothing, None),
            [only] => (only.grade, Some(only.slowdown)),
            [first, rest @ ..] if rest.iter().all(|other| other.grade == first.grade) => (first.grade, None),
            _ => (Grade::Undecided, None),
        };
        let judged_as = used.iter().map(|judgement| judgement.device.clone()).collect();
        let (kind, description) = match self {
            Self::Named => (None, None),
            Self::Found(medium) => (Some(medium.kind), Some(medium.description)),
        };
        Judged { grade, slowdown, device: JudgedDevice { kind, description, judged_as }, judgements }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{cost::LayoutCosts, loss::LossSeconds};

    pub(crate) fn cost(device: &str, as_it_lies: f64, fresh_copy: f64) -> DeviceCosts {
        let seconds = LayoutCosts { as_it_lies, defragmented: fresh_copy, best_order: fresh_copy, fresh_copy };
        DeviceCosts {
            device: device.to_owned(),
            seconds,
            seconds_per_gib: seconds,
            metadata_seconds: None,
            requests: LayoutCosts { as_it_lies: 1, defragmented: 1, best_order: 1, fresh_copy: 1 },
            slowdown: as_it_lies / fresh_copy,
            loss_seconds: LossSeconds::of(seconds, None),
            intrafile_share: Some(0.5),
            interfile_share: Some(0.5),
            metadata_share: None,
        }
    }

    pub(crate) fn found(kind: MediumKind, description: &str) -> Judge {
        Judge::Found(Medium { kind, disks: Vec::new(), counters: Vec::new(), description: description.to_owned() })
    }

    #[test]
    fn a_grade_needs_slowdown_and_lost_second() {
        let grade = |as_it_lies, fresh_copy| Grade::of(&cost("x", as_it_lies, fresh_copy));
        assert_eq!(grade(12.0, 2.0), Grade::BadlyAged);
        assert_eq!(grade(0.9, 0.1), Grade::Negligible, "nine times as long, and 0.8 s");
        assert_eq!(grade(1.2, 0.1), Grade::BadlyAged);
        assert_eq!(grade(100.0, 99.0), Grade::Young, "a second without the ratio");
        assert_eq!([grade(16.0, 10.0), grade(21.0, 10.0)], [Grade::SomewhatAged, Grade::Aged]);
    }

    #[test]
    fn the_verdict_is_for_the_found_device() {
        let (hdd, nvme) = (cost("model: HDD", 85.0, 10.0), cost("model: NVMe", 3.2, 2.9));
        let judged = found(MediumKind::Nvme, "NVMe SSD nvme0n1").judge(&[nvme.clone(), hdd.clone()], true);
        assert_eq!((judged.grade, judged.device.judged_as.len()), (Grade::Young, 1));
        assert_eq!(judged.judgements[1].grade, Grade::BadlyAged, "the others are rows");
        let judged = found(MediumKind::Rotational, "hard disk sda").judge(&[hdd.clone(), nvme.clone()], true);
        assert_eq!((judged.grade, judged.slowdown), (Grade::BadlyAged, Some(8.5)));
        // An unknown device has a single grade only if both models agree.
        let unknown = || found(MediumKind::Unknown, "virtio disk vda");
        let judged = unknown().judge(&[hdd.clone(), nvme.clone()], true);
        assert_eq!((judged.grade, judged.slowdown), (Grade::Undecided, None));
        let judged = unknown().judge(&[hdd.clone(), hdd.clone(), nvme], true);
        assert_eq!(judged.grade, Grade::BadlyAged);
        assert_eq!(Judge::Named.judge(std::slice::from_ref(&hdd), true).grade, Grade::BadlyAged);
        assert_eq!(Judge::Named.judge(&[hdd], false).grade, Grade::Nothing);
    }
}
