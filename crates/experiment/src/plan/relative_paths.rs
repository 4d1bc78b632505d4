//! Relative paths of a plan start at the directory in which the run was started, also after a
//! resume.

use std::path::Path;

use super::{History, Plan, VolumePlan};

impl Plan {
    /// Makes paths absolute, relative to the directory `base`. Names of built-in items and URLs
    /// stay.
    pub fn seen_from(mut self, base: &Path) -> Self {
        // These texts may be a path or a name: of a device, a profile, a remote repository.
        let found = |text: &mut String| {
            let path = base.join(&*text);
            if Path::new(text).is_relative() && path.exists() {
                *text = path.display().to_string();
            }
        };
        self.names().into_iter().for_each(found);
        if let Some(dir) = &mut self.volumes.dir {
            // The directory may not exist yet.
            *dir = base.join(&*dir).display().to_string();
        }
        for volume in [&mut self.volumes.full, &mut self.volumes.empty, &mut self.volumes.unaged] {
            if let VolumePlan::Place(place) = volume {
                place.device.iter_mut().chain(&mut place.directory).for_each(found);
            }
        }
        self
    }

    /// The texts that may be the paths of input files: of a repository, model, trace, log,
    /// profile, or device. Each may also be the name of a built-in item or a URL.
    pub fn files(&self) -> Vec<String> {
        self.clone().names().into_iter().map(|text| text.clone()).collect()
    }

    /// Replaces the texts of [`Plan::files`] for which `find` returns another text.
    pub fn with_files(mut self, find: impl Fn(&str) -> Option<String>) -> Self {
        for text in self.names() {
            if let Some(other) = find(text) {
                *text = other;
            }
        }
        self
    }

    fn names(&mut self) -> Vec<&mut String> {
        let History { repo, like, trace, .. } = &mut self.history;
        let profile = self.workload.profile.as_mut().map(|profile| &mut profile.profile);
        let one = [repo.as_mut(), like.as_mut(), trace.as_mut(), self.volumes.device.as_mut(), profile];
        let replay = self.workload.replay.iter_mut().flat_map(|table| [Some(&mut table.log), table.repo.as_mut()]);
        one.into_iter().chain(replay).flatten().chain(&mut self.measure.devices).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute_and_names_stay() {
        let base = tempfile::tempdir().unwrap();
        for name in ["history.xz", "slow.toml", "hdd-7200.d"] {
            std::fs::write(base.path().join(name), "").unwrap();
        }
        let text = "format = \"senesce-plan/1\"\nname = \"x\"\n[history]\ntrace = \"history.xz\"\npulls = 3\n\
                    [measure]\ndevices = [\"hdd-7200\", \"slow.toml\"]\n[volumes]\ndir = \"images\"\nempty = \"1GiB\"\n\
                    [[file_system]]\nkind = \"ext4\"\n";
        let plan = Plan::parse(Path::new("x.toml"), text).unwrap_or_else(|error| panic!("{error}"));
        let seen = plan.seen_from(base.path());
        let in_base = |name: &str| base.path().join(name).display().to_string();
        assert_eq!(seen.history.trace, Some(in_base("history.xz")));
        assert_eq!(seen.measure.devices, ["hdd-7200".to_owned(), in_base("slow.toml")]);
        assert_eq!(seen.volumes.dir, Some(in_base("images")));
        assert_eq!(seen.files(), [in_base("history.xz"), "hdd-7200".to_owned(), in_base("slow.toml")]);
    }
}
