//! Published values in a plan: what makes them comparable with a run of it.

use senesce_device::{find_preset, presets};
use senesce_store::{Published, PublishedCost, Role};

use super::{FileSystemName, Plan};

/// A key of a published value that cannot be compared with a run of `plan`, and the problem.
pub(super) fn find_fault(published: &Published, plan: &Plan) -> Option<(&'static str, String)> {
    if published.claim().is_none() {
        let problem = "needs value = N, to = N, or from = N with a larger to; all numbers must be above 0";
        return Some(("published", problem.to_owned()));
    }
    if find_preset(&published.device).is_none() {
        let known: Vec<&str> = presets().map(|(name, _)| name).collect();
        return Some(("published.device", format!("is {:?}; the devices are {}", published.device, known.join(", "))));
    }
    let devices = plan.measure.devices.iter().chain(&plan.volumes.device);
    if !devices.clone().any(|device| *device == published.device) {
        let known: Vec<&str> = devices.map(String::as_str).collect();
        let problem = format!("is {:?}, and the run has figures of {} only", published.device, known.join(", "));
        return Some(("published.device", problem + "; add it to measure.devices"));
    }
    let is_unknown = |name: &&String| serde_json::from_value::<FileSystemName>((**name).clone().into()).is_err();
    if let Some(unknown) = published.file_systems.iter().find(is_unknown) {
        return Some(("published.file_systems", format!("has {unknown:?}, which is no kind of file system")));
    }
    let roles = published.ratio.roles();
    if published.cost == PublishedCost::Step && roles.contains(&Role::Unaged) {
        return Some(("published.ratio", "needs full/empty if cost = \"step\": a fresh copy has no steps".to_owned()));
    }
    if published.cost == PublishedCost::Step && plan.volumes.device.is_none() {
        let problem = "is \"step\", but steps have times of a device only if volumes.device is set";
        return Some(("published.cost", problem.to_owned()));
    }
    let missing = roles.into_iter().find(|role| !plan.roles().contains(role))?;
    Some(("published.ratio", format!("needs volumes.{}, which the plan leaves out", missing.name())))
}

/// The published values of a plan, with the names of devices that results have.
pub(crate) fn with_titles(all: &[Published]) -> Vec<Published> {
    let titled = |published: &Published| {
        let name = find_preset(&published.device).map(|spec| spec.model_name());
        Published { device: name.unwrap_or_else(|| published.device.clone()), ..published.clone() }
    };
    all.iter().map(titled).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const HEAD: &str = "format = \"senesce-plan/1\"\nname = \"t\"\n";
    const PLAN: &str = "[workload]\nkind = \"fsfb\"\n[[file_system]]\nkind = \"ext4\"\n[[published]]\n";
    const VALUE: &str = "place = \"figure 1\"\nratio = \"full/empty\"\ndevice = \"hdd-7200\"\nvalue = 1.4\n";

    fn parse(text: &str) -> Result<Plan, String> {
        Plan::parse(Path::new("p.toml"), &format!("{HEAD}{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plan_keeps_its_published_values() {
        let plan = parse(&format!("{PLAN}{VALUE}")).unwrap();
        let text = toml::to_string(&plan).unwrap();
        assert_eq!(Plan::parse(Path::new("p.toml"), &text).unwrap(), plan);
        assert_eq!(with_titles(&plan.published)[0].device, "model: HDD 7.2K");
    }

    #[test]
    fn values_that_no_run_can_have_name_their_key() {
        for (from, to, expected) in [
            ("value = 1.4", "from = 1.4", "published: needs value = N"),
            ("value = 1.4", "value = 0", "published: needs value = N"),
            ("value = 1.4", "from = 4\nto = 1.5", "published: needs value = N"),
            ("value = 1.4", "value = nan", "published: needs value = N"),
            ("hdd-7200", "floppy", "published.device: is \"floppy\"; the devices are"),
            ("hdd-7200", "nvme", "published.device: is \"nvme\", and the run has figures of hdd-7200 only"),
            ("value = 1.4", "value = 1.4\ncost = \"step\"", "published.cost: is \"step\", but"),
            ("value = 1.4", "value = 1.4\nfile_systems = [\"ext5\"]", "published.file_systems: has \"ext5\""),
            ("\"full/empty\"", "\"full/unaged\"\ncost = \"step\"", "published.ratio: needs full/empty"),
            ("\"full/empty\"", "\"empty/full\"", "full/empty"),
        ] {
            let said = parse(&format!("{PLAN}{}", VALUE.replace(from, to))).unwrap_err();
            assert!(said.contains(expected), "{to}: {said}");
        }
        let without = PLAN.replace("[[published]]", "[volumes]\nunaged = \"none\"\n[[published]]");
        let said = parse(&format!("{without}{}", VALUE.replace("full/empty", "full/unaged"))).unwrap_err();
        assert!(said.contains("published.ratio: needs volumes.unaged"), "{said}");
    }
}
