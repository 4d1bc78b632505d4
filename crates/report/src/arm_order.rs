//! The order of arms on a page: by effect, as in the headline.

use crate::cure_headline::most_gains;
use crate::model::Model;

/// The arms with their file systems, the one with the largest effect first.
///
/// The effect of a cure comes before that of age: it is the finding of a run with cures. The effect
/// of age is the slowdown at the last checkpoint: modelled, or measured without a model. Arms on
/// the main device come before arms on others. Arms with the same effect are in order of name.
pub(crate) fn by_effect(model: &Model) -> Vec<(String, String)> {
    let gains = most_gains(model);
    let devices = model.first_devices();
    let mut keyed: Vec<(f64, usize, f64, (String, String))> = Vec::with_capacity(model.arms.len());
    for (arm, file_system) in &model.arms {
        // Arms without a device come last.
        let place = devices.iter().position(|device| model.is_on(arm, device)).unwrap_or(usize::MAX);
        let lines = devices.get(place).and_then(|device| model.modelled_slowdown.get(*device));
        let of_arm = lines.unwrap_or(&model.slowdown).iter().filter(|((name, _), _)| name == arm);
        let last = of_arm.filter_map(|(_, line)| line.last_key_value()).map(|(_, ratio)| ratio.median);
        let gain = gains.get(arm.as_str()).copied().unwrap_or(0.0);
        keyed.push((gain, place, last.fold(0.0, f64::max), (arm.clone(), file_system.clone())));
    }
    keyed.sort_by(|(gain_a, place_a, slowdown_a, a), (gain_b, place_b, slowdown_b, b)| {
        let of_age = || place_a.cmp(place_b).then(slowdown_b.total_cmp(slowdown_a));
        gain_b.total_cmp(gain_a).then_with(of_age).then_with(|| a.0.cmp(&b.0))
    });
    keyed.into_iter().map(|(.., arm)| arm).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use senesce_store::{Results, Role};

    use super::*;
    use crate::model::{Lines, Spread};

    #[test]
    fn arms_of_equal_effect_are_in_order_of_name() {
        let results = Results::default();
        let mut model = Model::compute(&results);
        for (arm, slowdown) in [("xfs", 1.1), ("ext4", 1.1), ("btrfs", 0.9), ("zonefs", 12.0), ("none", f64::NAN)] {
            model.arms.push((arm.to_owned(), arm.to_owned()));
            let line = BTreeMap::from_iter(Spread::compute([slowdown]).map(|spread| (9, spread)));
            let lines = Lines::from([((arm.to_owned(), Role::Full), line)]);
            model.slowdown.extend(lines);
        }
        let names: Vec<_> = by_effect(&model).into_iter().map(|(arm, _)| arm).collect();
        assert_eq!(names, ["zonefs", "ext4", "xfs", "btrfs", "none"]);
    }
}
