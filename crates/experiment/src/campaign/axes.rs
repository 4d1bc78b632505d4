//! The numbers of tasks: a bijection between the numbers and the combinations of the axes.

use std::{collections::BTreeSet, path::Path};

use senesce_core::Seed;
use senesce_device::find_preset;

use super::{
    Grid, KernelName,
    grid::{has_duplicates, is_label, stem},
};
use crate::plan::{FileSystem, Plan, PlanError};

/// The axes of a grid with their values. Seeds vary slowest, then devices, workloads, file systems
/// and kernels. So a campaign that stops early has complete repetitions.
#[derive(Clone, Debug)]
pub struct Axes {
    name: String,
    path: std::path::PathBuf,
    workloads: Vec<Workload>,
    /// Each workload with a file system and its kernel.
    targets: Vec<Target>,
    /// `None`: the device of the plan.
    devices: Vec<Option<String>>,
    /// `None`: the seed of the plan.
    seeds: Vec<Option<u64>>,
    has_kernels: bool,
}

#[derive(Clone, Debug)]
struct Workload {
    label: String,
    plan: Plan,
}

#[derive(Clone, Debug)]
struct Target {
    workload: usize,
    file_system: FileSystem,
    kernel: KernelName,
}

/// The place of a task on the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index of the seed.
    pub seed: u64,
    /// Index of the device.
    pub device: u64,
    /// Index of the workload with its file system and kernel.
    pub target: u64,
}

/// A task of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its number, from 0.
    pub number: u64,
    /// The name of its workload.
    pub workload: String,
    /// The name of its file system.
    pub file_system: String,
    /// The kernel that runs it.
    pub kernel: KernelName,
    /// The modelled device of its volumes. `None`: the device that stores the images.
    pub device: Option<String>,
    /// Its seed.
    pub seed: u64,
    /// The suffix of the names of its arms in merged results.
    pub suffix: String,
}

impl Task {
    /// The name of its device for readers: `HDD 7.2K`. The name of a description file without its
    /// ending.
    pub fn device_title(&self) -> Option<String> {
        let device = self.device.as_ref()?;
        Some(find_preset(device).map_or_else(|| stem(device), |preset| preset.title))
    }
}

impl Axes {
    /// The axes of a grid whose plans are `plans`, in the order of the grid. `path` is for
    /// messages.
    ///
    /// Errors: two values of an axis have one name; a name cannot be part of the name of an arm.
    pub fn of(grid: &Grid, plans: Vec<Plan>, path: &Path) -> Result<Self, PlanError> {
        let wrong = |key: &str, problem: String| {
            Err(PlanError::Contradiction { path: path.to_owned(), key: key.to_owned(), problem })
        };
        let mut workloads = Vec::new();
        for (named, plan) in grid.plans.iter().zip(plans) {
            if named.profiles.is_empty() {
                workloads.push(Workload { label: named.label(), plan });
                continue;
            }
            for profile in &named.profiles {
                let mut plan = plan.clone();
                plan.workload.profile.get_or_insert_default().profile = profile.clone();
                workloads.push(Workload { label: stem(profile), plan });
            }
        }
        let labels: Vec<String> = workloads.iter().map(|workload| workload.label.clone()).collect();
        if has_duplicates(&labels) {
            return wrong("plan", format!("has two workloads of one name: {}; set name = \"…\"", labels.join(", ")));
        }
        let devices: Vec<String> = grid.devices.iter().map(|device| stem(device)).collect();
        if has_duplicates(&devices) {
            return wrong("devices", format!("has two devices of one name: {}; rename a file", devices.join(", ")));
        }
        for (key, labels) in [("plan", &labels), ("devices", &devices)] {
            if let Some(bad) = labels.iter().find(|label| !is_label(label)) {
                let problem = format!("has the name {bad:?}; use only letters, digits, '-' and '_'");
                return wrong(key, problem);
            }
        }
        let mut targets = Vec::new();
        let mut known = BTreeSet::new();
        for (index, workload) in workloads.iter().enumerate() {
            let file_systems = match grid.file_systems.is_empty() {
                true => &workload.plan.file_systems,
                false => &grid.file_systems,
            };
            for file_system in file_systems {
                let name = file_system.name();
                let of_kernel = |kernel| Target { workload: index, file_system: file_system.clone(), kernel };
                let before = targets.len();
                targets.extend(grid.kernels_of(&name).map(of_kernel));
                if targets.len() == before {
                    return wrong("kernel.file_systems", format!("leaves {name:?} out: no kernel runs it"));
                }
                known.insert(name);
            }
        }
        // A misspelt name would leave tasks out.
        if let Some(unknown) =
            grid.kernels.iter().flat_map(|kernel| &kernel.file_systems).find(|name| !known.contains(*name))
        {
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return wrong(
                "kernel.file_systems",
                format!("names {unknown:?}; the file systems of the grid are {known}"),
            );
        }
        let or_own = |given: Vec<Option<String>>| if given.is_empty() { vec![None] } else { given };
        let seeds: Vec<Option<u64>> = grid.seeds.iter().copied().map(Some).collect();
        Ok(Self {
            name: grid.name.clone(),
            path: path.to_owned(),
            workloads,
            targets,
            devices: or_own(grid.devices.iter().cloned().map(Some).collect()),
            seeds: if seeds.is_empty() { vec![None] } else { seeds },
            has_kernels: grid.kernels.len() > 1,
        })
    }

    /// The number of tasks.
    pub fn count(&self) -> u64 {
        (self.seeds.len() * self.devices.len() * self.targets.len()) as u64
    }

    /// The place of a task. `None`: there is no task of this number.
    pub fn place(&self, number: u64) -> Option<Place> {
        let (targets, devices) = (self.targets.len() as u64, self.devices.len() as u64);
        let place =
            Place { seed: number / targets / devices, device: number / targets % devices, target: number % targets };
        (number < self.count()).then_some(place)
    }

    /// The number of the task at a place. `None`: an axis is shorter.
    pub fn number(&self, place: Place) -> Option<u64> {
        let (targets, devices) = (self.targets.len() as u64, self.devices.len() as u64);
        let is_inside = place.seed < self.seeds.len() as u64 && place.device < devices && place.target < targets;
        is_inside.then(|| (place.seed * devices + place.device) * targets + place.target)
    }

    /// A task. `None`: there is no task of this number.
    pub fn task(&self, number: u64) -> Option<Task> {
        let place = self.place(number)?;
        let target = &self.targets[place.target as usize];
        let workload = &self.workloads[target.workload];
        let device = self.devices[place.device as usize].clone().or_else(|| workload.plan.volumes.device.clone());
        let seed = self.seeds[place.seed as usize].unwrap_or(workload.plan.seed.0);
        let mut suffix = String::new();
        let mut add = |text: &str| {
            suffix.push('.');
            suffix.push_str(text);
        };
        if self.workloads.len() > 1 {
            add(&workload.label);
        }
        if self.has_kernels {
            add(target.kernel.as_str());
        }
        if self.devices.len() > 1 {
            add(&stem(device.as_deref().unwrap_or_default()));
        }
        if self.seeds.len() > 1 {
            add(&format!("s{seed}"));
        }
        Some(Task {
            number,
            workload: workload.label.clone(),
            file_system: target.file_system.name(),
            kernel: target.kernel,
            device,
            seed,
            suffix,
        })
    }

    /// A task in words: `btrfs, mail, HDD 7.2K, seed 2`. Kernel and seed are left out if the grid
    /// has one.
    pub fn words(&self, task: &Task) -> String {
        let kernel = self.has_kernels.then(|| task.kernel.as_str().to_owned());
        let seed = (self.seeds.len() > 1).then(|| format!("seed {}", task.seed));
        let names = [task.file_system.clone(), task.workload.clone()];
        names.into_iter().chain(kernel).chain(task.device_title()).chain(seed).collect::<Vec<_>>().join(", ")
    }

    /// The plan of a task.
    ///
    /// Errors: the combination makes no sense, with the key.
    pub fn plan(&self, task: &Task) -> Result<Plan, PlanError> {
        let target = &self.targets[(task.number % self.targets.len() as u64) as usize];
        let mut plan = self.workloads[target.workload].plan.clone();
        plan.name = format!("{}-{}", self.name, task.number);
        plan.seed = Seed(task.seed);
        plan.volumes.device.clone_from(&task.device);
        plan.file_systems = vec![target.file_system.clone()];
        plan.checked(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAN: &str = "format = \"senesce-plan/1\"\nname = \"p\"\n[workload]\nkind = \"fsfb\"\n[volumes]\n\
                        device = \"nvme\"\n[[file_system]]\nkind = \"ext4\"\n[[file_system]]\nkind = \"xfs\"\n";

    fn axes(plans: usize, file_systems: usize, kernels: usize, devices: usize, seeds: usize) -> Axes {
        let kinds = ["ext4", "xfs", "btrfs", "f2fs"];
        let mut text = format!(
            "format = \"senesce-grid/1\"\nname = \"g\"\nseeds = {:?}\ndevices = {:?}\n",
            (1..=seeds).collect::<Vec<_>>(),
            &["hdd-7200", "sata-ssd", "nvme"][..devices]
        );
        (0..plans).for_each(|plan| text.push_str(&format!("[[plan]]\npath = \"dir/plan{plan}.toml\"\n")));
        kinds[..file_systems].iter().for_each(|kind| text.push_str(&format!("[[file_system]]\nkind = \"{kind}\"\n")));
        ["host", "uml"][..kernels].iter().for_each(|kind| text.push_str(&format!("[[kernel]]\nkind = \"{kind}\"\n")));
        let path = Path::new("g");
        let plan = Plan::parse(Path::new("p"), PLAN).unwrap();
        Axes::of(&Grid::parse(path, &text).unwrap(), vec![plan; plans], path).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_and_combinations_are_a_bijection(
            plans in 1usize..4, file_systems in 0usize..5, kernels in 0usize..3, devices in 0usize..4, seeds in 0usize..5,
        ) {
            let axes = axes(plans, file_systems, kernels, devices, seeds);
            // An absent axis has the value of the plan; the plan has two file systems.
            let targets = plans * (if file_systems == 0 { 2 } else { file_systems }) * kernels.max(1);
            prop_assert_eq!(axes.count(), (targets * devices.max(1) * seeds.max(1)) as u64);
            let mut places = BTreeSet::new();
            let mut arms = BTreeSet::new();
            for number in 0..axes.count() {
                let place = axes.place(number).unwrap();
                prop_assert_eq!(axes.number(place), Some(number));
                prop_assert!(places.insert(place));
                let task = axes.task(number).unwrap();
                let plan = axes.plan(&task).unwrap();
                prop_assert_eq!(plan.seed.0, task.seed);
                prop_assert_eq!(plan.arms().len(), 1);
                // Merged results need a name of its own for every arm.
                let is_new = arms.insert(format!("{}{}", plan.arms()[0].name, task.suffix));
                prop_assert!(is_new, "{} is the name of two arms", task.suffix);
            }
            prop_assert_eq!(axes.task(axes.count()), None);
            for place in places {
                for outside in [Place { seed: u64::MAX, ..place }, Place { device: 9, ..place }, Place { target: 99, ..place }] {
                    prop_assert_eq!(axes.number(outside), None);
                }
            }
        }
    }

    #[test]
    fn absent_axes_keep_the_values_of_the_plan() {
        let axes = axes(1, 0, 0, 0, 0);
        let tasks: Vec<Task> = (0..axes.count()).map(|number| axes.task(number).unwrap()).collect();
        let found: Vec<_> =
            tasks.iter().map(|task| (task.file_system.as_str(), task.device.as_deref(), task.seed)).collect();
        assert_eq!(found, [("ext4", Some("nvme"), 1), ("xfs", Some("nvme"), 1)]);
        assert!(tasks.iter().all(|task| task.suffix.is_empty() && task.kernel == KernelName::Host));
    }

    #[test]
    fn words_name_the_axes_that_vary() {
        let words = |axes: Axes, number: u64| axes.words(&axes.task(number).unwrap());
        assert_eq!(words(axes(1, 0, 0, 0, 0), 1), "xfs, plan0, NVMe SSD");
        assert_eq!(words(axes(2, 3, 2, 2, 2), 47), "btrfs, plan1, uml, SATA SSD, seed 2");
    }

    #[test]
    fn names_that_would_collide_are_refused() {
        for (more, part) in [
            ("[[plan]]\npath = \"q.toml\"\nprofiles = [\"p\"]\n", "two workloads of one name"),
            ("[[plan]]\npath = \"q.toml\"\nprofiles = [\"p.q.toml\"]\n", "\"p.q\""),
        ] {
            let error = refused(more, 2);
            assert!(error.contains(part), "{error}");
        }
    }

    /// The error of a grid with this text after its first plan.
    fn refused(more: &str, plans: usize) -> String {
        let path = Path::new("g");
        let text = format!("format = \"senesce-grid/1\"\nname = \"g\"\n[[plan]]\npath = \"p.toml\"\n{more}");
        let plan = Plan::parse(Path::new("p"), PLAN).unwrap();
        Axes::of(&Grid::parse(path, &text).unwrap(), vec![plan; plans], path).unwrap_err().to_string()
    }

    #[test]
    fn kernels_run_all_file_systems_and_no_others() {
        let ext4 = "[[file_system]]\nkind = \"ext4\"\n";
        let uml = |names: &str| format!("[[kernel]]\nkind = \"uml\"\nfile_systems = [{names}]\n");
        for (more, part) in [
            // The plan has ext4 and XFS.
            (uml("\"ext4\""), "leaves \"xfs\" out"),
            (uml("\"ext4\", \"xfs\", \"exf4\""), "names \"exf4\"; the file systems of the grid are ext4, xfs"),
            (format!("{ext4}{}", uml("\"ext4\", \"xfs\"")), "names \"xfs\"; the file systems of the grid are ext4"),
            (format!("{ext4}{}", uml("\"xfs\"")), "leaves \"ext4\" out"),
        ] {
            let error = refused(&more, 1);
            assert!(error.contains("kernel.file_systems") && error.contains(part), "{error}");
        }
    }
}
