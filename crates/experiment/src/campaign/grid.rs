//! Grid files: the axes of a campaign.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    description::read_description,
    plan::{FileSystem, PlanError, is_name, parse_format},
};

/// The version this program reads.
pub const GRID_FORMAT: &str = "senesce-grid/1";

/// The axes of a campaign. Every combination of their values is one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Version of the format: `senesce-grid/1`.
    pub format: String,
    /// Short name of the campaign. The names of tasks and of the merged run contain it.
    pub name: String,
    /// The purpose of the campaign, for readers of the report.
    #[serde(default)]
    pub description: String,
    /// The plans. Each one is a workload with its volumes and measurements.
    #[serde(rename = "plan")]
    pub plans: Vec<GridPlan>,
    /// The file systems, as in plans. They replace those of the plans. Default: those of each plan.
    #[serde(default, rename = "file_system")]
    pub file_systems: Vec<FileSystem>,
    /// The kernels, each with its file systems. Default: the kernel of the machine, with all.
    #[serde(default, rename = "kernel")]
    pub kernels: Vec<GridKernel>,
    /// The devices that the volumes imitate: built-in ones (`senesce device list`) or descriptions
    /// in TOML. They replace `volumes.device` of the plans. Default: that of each plan.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The seeds. They replace those of the plans. Default: that of each plan.
    #[serde(default)]
    pub seeds: Vec<u64>,
}

/// A plan of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridPlan {
    /// The plan file. A relative path starts at the directory of the grid. Paths in the plan start
    /// at the working directory.
    pub path: String,
    /// Name in the results. Default: the name of the file without its extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For `workload.kind = "profile"`: profiles, built-in ones (`senesce profile list`) or files.
    /// Each one makes a workload named after it. Default: that of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
}

/// A kernel of a grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridKernel {
    /// The kernel that runs the tasks.
    pub kind: KernelName,
    /// Names of the file systems that it runs. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<String>,
}

/// The kernels that a grid can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KernelName {
    /// The kernel of the machine. The tasks need root.
    #[default]
    Host,
    /// A guest kernel, user-mode Linux, as in `run --guest uml`. The tasks need no root.
    Uml,
}

impl KernelName {
    /// The name in grids.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Uml => "uml",
        }
    }
}

impl Grid {
    /// Parses a text as a grid. `path` is for messages.
    ///
    /// Errors: a wrong key, with the problem.
    pub fn parse(path: &Path, text: &str) -> Result<Self, PlanError> {
        let grid: Self = parse_format(path, text, GRID_FORMAT)?;
        grid.check(path)?;
        Ok(grid)
    }

    fn check(&self, path: &Path) -> Result<(), PlanError> {
        let wrong = |key: &str, problem: &str| {
            Err(PlanError::Contradiction { path: path.to_owned(), key: key.to_owned(), problem: problem.to_owned() })
        };
        if !is_name(&self.name) {
            return wrong("name", "must have only letters, digits, '-', '_' and '.', and not start with '.'");
        }
        if self.plans.is_empty() {
            return wrong("plan", "names no plan; add [[plan]] with path = \"FILE.toml\"");
        }
        // A copy of each plan is a file of this name, also if profiles name the workloads.
        let labels: Vec<String> = self.plans.iter().map(GridPlan::label).collect();
        if let Some(bad) = labels.iter().find(|label| !is_label(label)) {
            let problem = format!("has {bad:?}; names of plans need letters, digits, '-' and '_'; set name = \"…\"");
            return wrong("plan.name", &problem);
        }
        if has_duplicates(&labels) {
            return wrong("plan.name", &format!("gives two plans one name ({}); set name = \"…\"", labels.join(", ")));
        }
        if has_duplicates(&self.seeds) {
            return wrong("seeds", "names a seed twice");
        }
        if has_duplicates(&self.devices) {
            return wrong("devices", "names a device twice");
        }
        let kinds: Vec<KernelName> = self.kernels.iter().map(|kernel| kernel.kind).collect();
        if has_duplicates(&kinds) {
            return wrong("kernel", "names a kernel twice; list all its file systems in one table");
        }
        let known: Vec<String> = self.file_systems.iter().map(FileSystem::name).collect();
        if has_duplicates(&known) {
            return wrong("file_system", "has two file systems of one name; set name = \"…\"");
        }
        Ok(())
    }

    /// The kernels that run the file system of this name.
    pub(super) fn kernels_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = KernelName> + 'a {
        let usual = self.kernels.is_empty().then_some(KernelName::Host);
        let runs = move |kernel: &&GridKernel| {
            kernel.file_systems.is_empty() || kernel.file_systems.iter().any(|own| own == name)
        };
        usual.into_iter().chain(self.kernels.iter().filter(runs).map(|kernel| kernel.kind))
    }
}

impl GridPlan {
    /// The path, seen from the directory of the grid.
    pub(super) fn path_from(&self, dir: &Path) -> PathBuf {
        dir.join(&self.path)
    }

    /// The name in the results.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| stem(&self.path))
    }
}

/// Whether a text can be part of the name of an arm, and the name of a file.
pub(super) fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The name of a file without its directory and ending; a built-in name stays as it is.
pub(super) fn stem(text: &str) -> String {
    Path::new(text).file_stem().map_or_else(|| text.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Reads the text of a grid or plan.
pub(super) fn read_text(path: &Path) -> Result<String, PlanError> {
    read_description(path).map_err(|source| PlanError::Read { path: path.to_owned(), source })
}

pub(super) fn has_duplicates<T: Ord>(values: &[T]) -> bool {
    values.iter().collect::<BTreeSet<_>>().len() < values.len()
}

/// The JSON schema of grid files, with a final newline.
pub fn grid_schema_json() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Grid)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "format = \"senesce-grid/1\"\nname = \"g\"\n[[plan]]\npath = \"p.toml\"\n";

    /// `senesce schema --of grid` prints the file.
    #[test]
    fn the_published_schema_is_that_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grid.schema.json");
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(published == grid_schema_json(), "old; run: senesce schema --of grid > docs/grid.schema.json");
    }

    #[test]
    fn contradictions_name_their_key() {
        assert!(Grid::parse(Path::new("g"), SMALL).is_ok());
        for (more, key) in [
            ("[[kernel]]\nkind = \"host\"\n[[kernel]]\nkind = \"host\"\n", "kernel"),
            ("[[file_system]]\nkind = \"ext4\"\n[[file_system]]\nkind = \"ext4\"\n", "file_system"),
            ("[[plan]]\npath = \"other/p.toml\"\n", "plan.name"),
            ("[[plan]]\npath = \"p.toml\"\nprofiles = [\"agrawal\"]\n", "plan.name"),
            ("[[plan]]\npath = \"q.toml\"\nname = \"p\"\nprofiles = [\"agrawal\"]\n", "plan.name"),
        ] {
            let error = Grid::parse(Path::new("g"), &format!("{SMALL}{more}")).unwrap_err().to_string();
            assert!(error.contains(&format!(": {key}: ")), "{error}");
        }
        for (from, to, key) in [
            ("name = \"g\"", "name = \"a/b\"", "name"),
            ("name = \"g\"", "name = \"g\"\nseeds = [1, 1]", "seeds"),
            ("name = \"g\"", "name = \"g\"\ndevices = [\"nvme\", \"nvme\"]", "devices"),
            ("\"p.toml\"", "\"p.q.toml\"", "plan.name"),
            ("\"p.toml\"", "\"\"", "plan.name"),
        ] {
            let error = Grid::parse(Path::new("g"), &SMALL.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(&format!(": {key}: ")), "{error}");
        }
        for name in ["", "../../x", "/etc/x", "..", ".", "a/b", "p.q", "a b", "é", "a\\u0000"] {
            for profiles in ["", "profiles = [\"agrawal\"]\n"] {
                let text = format!("{SMALL}name = \"{name}\"\n{profiles}");
                let error = Grid::parse(Path::new("g"), &text).unwrap_err().to_string();
                assert!(error.contains(": plan.name: "), "{error}");
            }
        }
        let error = Grid::parse(Path::new("g"), &SMALL.replace("path", "pth")).unwrap_err().to_string();
        assert!(error.contains("did you mean `path`?"), "{error}");
    }
}
