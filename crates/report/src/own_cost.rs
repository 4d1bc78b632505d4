//! The own cost of aged volumes beside their ratio to a fresh copy.
//!
//! A ratio rises if the aged volume becomes slower. It also rises if later fresh copies are faster,
//! for example because the tree has other files. Readers must see which of the two it was.

use senesce_store::Role;

use crate::format::{count, figure, list, two_digits};
use crate::model::{Lines, words};
use crate::noise::Alike;
use crate::plans::Plans;

/// Costs, slowdowns, and the plans of their arms.
type Figures<'m> = (&'m Lines, &'m Lines, &'m Plans);

/// The costs of a volume and of its fresh copy at two checkpoints, s/GiB: the first and the last
/// one at which an arm of the plan has a slowdown. A volume without a slowdown at one of them has
/// no course.
struct Course {
    own: (f64, f64),
    fresh: (f64, f64),
}

impl Course {
    fn of(volume: &(String, Role), (costs, slowdowns, plans): Figures) -> Option<Self> {
        let is_of_plan = |(arm, _): &(String, Role)| plans.name(arm) == plans.name(&volume.0);
        let all = || slowdowns.iter().filter(|(key, _)| is_of_plan(key)).flat_map(|(_, line)| line.keys());
        let (first, last) = (all().min()?, all().max()?);
        let ratios = slowdowns.get(volume)?;
        (ratios.contains_key(first) && ratios.contains_key(last)).then_some(())?;
        let ends = |line: &(String, Role)| {
            let line = costs.get(line)?;
            Some((line.get(first)?.median, line.get(last)?.median))
        };
        let (own, fresh) = (ends(volume)?, ends(&(volume.0.clone(), Role::Unaged))?);
        (first < last).then_some(Self { own, fresh })
    }

    /// Whether the ratio rose and the fresh copy got faster, both beyond the limit, and the own
    /// cost explains less than half of the rise, in logarithms.
    fn rises_by_fresh_copy(&self, limit: Alike) -> bool {
        let own = (self.own.1 / self.own.0).ln();
        let fall = (self.fresh.0 / self.fresh.1).ln();
        let rise = own + fall;
        rise.min(fall) > limit.high.ln() && own < rise / 2.0
    }

    /// Whether the ratio of the first checkpoint is more than half of the last one, in logarithms.
    fn is_from_start(&self) -> bool {
        self.first_ratio().ln() > (self.own.1 / self.fresh.1).ln() / 2.0
    }

    fn first_ratio(&self) -> f64 {
        self.own.0 / self.fresh.0
    }
}

/// A sentence for each of these slower volumes, if its ratio does not come mostly from a rise of
/// its own cost.
///
/// `limit` returns the ratios of an arm that chance or noise can show.
pub(crate) fn own_costs(volumes: &[(String, Role)], figures: Figures, limit: impl Fn(&str) -> Alike) -> Vec<String> {
    let sentence = |volume: &(String, Role)| {
        let course = Course::of(volume, figures)?;
        let Course { own, fresh } = course;
        if !course.rises_by_fresh_copy(limit(&volume.0)) {
            let (name, role, ratio) = (&volume.0, words(volume.1), figure(course.first_ratio()));
            let sentence =
                format!("{name} ({role}) had {ratio}× the cost of a fresh copy at the first checkpoint already.");
            return course.is_from_start().then_some(sentence);
        }
        Some(format!(
            "The cost of {} itself ({}) changed from {} to {} s/GiB; its fresh copy got faster, from {} to {}.",
            volume.0,
            words(volume.1),
            figure(own.0),
            figure(own.1),
            figure(fresh.0),
            figure(fresh.1)
        ))
    };
    volumes.iter().filter_map(sentence).collect()
}

/// How the slower volumes changed from their own first cost. `None` if every arm changed. A fresh
/// copy that became faster raises a slowdown, too.
///
/// `limit` returns the ratios of an arm that are no difference.
pub(crate) fn own_changes(
    arms: &[(String, Vec<Role>)],
    figures: Figures,
    limit: impl Fn(&str) -> Alike,
) -> Option<String> {
    let (mut changed, mut alike) = (Vec::new(), Vec::new());
    for (arm, roles) in arms {
        let of = |role: &Role| Some((*role, Course::of(&(arm.clone(), *role), figures)?.own));
        let ratios: Vec<_> = roles.iter().filter_map(of).map(|(role, own)| (role, own.1 / own.0)).collect();
        let differing: Vec<_> = ratios.iter().filter(|(_, ratio)| !limit(arm).contains(*ratio)).collect();
        let of_volume =
            |(role, ratio): &&(Role, f64)| format!("{arm} ({}) takes {}×", words(*role), two_digits(*ratio));
        match (ratios.is_empty(), differing.is_empty()) {
            (true, _) => {}
            (false, true) => alike.push(arm.clone()),
            (false, false) => changed.extend(differing.iter().map(of_volume)),
        }
    }
    let show = if alike.len() == 1 { "shows" } else { "show" };
    let none = (!alike.is_empty()).then(|| format!("{} {show} no measurable change", list(&alike)))?;
    let changed = if changed.is_empty() { String::new() } else { format!("{} as long; ", list(&changed)) };
    Some(format!("Compared with the first checkpoint, {changed}{none}."))
}

/// The last cost over the first one of a volume: `4.79×`, or a dash if it has one checkpoint.
/// `1.40× (0 to 200)` if these are not the planned checkpoints, the first and the last one.
pub(crate) fn last_over_first(costs: &Lines, volume: &(String, Role), planned: (u64, u64)) -> String {
    let ratio = costs.get(volume).and_then(|line| {
        let (first, last) = (line.first_key_value()?, line.last_key_value()?);
        (first.0 < last.0).then(|| ((*first.0, *last.0), last.1.median / first.1.median))
    });
    match ratio {
        None => "–".to_owned(),
        Some((ends, ratio)) if ends == planned => format!("{}×", figure(ratio)),
        Some(((first, last), ratio)) => format!("{}× ({} to {})", figure(ratio), count(first), count(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Spread;
    use crate::noise::Noise;
    use crate::slowdown::slowdown;

    /// Costs of an arm at two checkpoints: its full volume, and the fresh copies.
    fn costs(arm: &str, own: [f64; 2], fresh: [f64; 2]) -> Lines {
        let line =
            |costs: [f64; 2]| [0, 100].into_iter().zip(costs.map(|cost| Spread::compute([cost]).unwrap())).collect();
        Lines::from([((arm.to_owned(), Role::Full), line(own)), ((arm.to_owned(), Role::Unaged), line(fresh))])
    }

    #[test]
    fn faster_fresh_copy_is_named_as_the_cause() {
        let said = |own, fresh| {
            let costs = costs("xfs", own, fresh);
            own_costs(&[("xfs".to_owned(), Role::Full)], (&costs, &slowdown(&costs), &Plans::default()), |_| {
                Alike::fresh(false)
            })
        };
        assert_eq!(
            said([69.5, 71.7], [26.7, 11.3]),
            [
                "The cost of xfs itself (nearly full) changed from 69.5 to 71.7 s/GiB; its fresh copy got faster, from 26.7 to \
              11.3."
            ]
        );
        // Its own cost explains most of the rise: 4.8 of 7.0 times.
        assert!(said([16.3, 78.0], [17.1, 11.6]).is_empty());
    }

    #[test]
    fn small_fall_of_the_fresh_copy_is_no_cause() {
        let said = |own, fresh, limit: Alike| {
            let costs = costs("xfs", own, fresh);
            own_costs(&[("xfs".to_owned(), Role::Full)], (&costs, &slowdown(&costs), &Plans::default()), |_| limit)
                .concat()
        };
        let from_start = "xfs (nearly full) had 2.00× the cost of a fresh copy at the first checkpoint already.";
        // Two fresh copies of a plan that does not settle can differ by 25%.
        assert_eq!(said([20.0, 20.0], [10.0, 8.0], Alike::fresh(false)), from_start);
        assert!(
            said([20.0, 20.0], [10.0, 8.0], Alike::fresh(true))
                .ends_with("its fresh copy got faster, from 10.0 to 8.00.")
        );
        // The fresh copy fell, but the ratio rose by less than the limit.
        assert_eq!(said([20.0, 16.0], [10.0, 7.0], Alike::fresh(false)), from_start);
        assert!(said([10.0, 10.0], [10.0, 7.6], Alike::fresh(false)).is_empty());
        // The band of measured fresh copies covers their own fall.
        let noise = Noise { low: 8.0, high: 10.0, figures: 2 };
        assert_eq!(said([20.0, 20.0], [10.0, 8.0], Alike::measured(noise)), from_start);
    }

    #[test]
    fn ratio_of_the_first_checkpoint_is_named() {
        let said = |own, fresh| {
            let costs = costs("btrfs", own, fresh);
            own_costs(&[("btrfs".to_owned(), Role::Full)], (&costs, &slowdown(&costs), &Plans::default()), |_| {
                Alike::fresh(false)
            })
        };
        let expected = ["btrfs (nearly full) had 2.61× the cost of a fresh copy at the first checkpoint already."];
        assert_eq!(said([66.3, 72.5], [25.4, 27.0]), expected);
        assert!(said([11.0, 40.0], [10.0, 10.0]).is_empty(), "most of it came later");
    }

    #[test]
    fn one_checkpoint_has_no_last_over_first() {
        let mut costs = costs("xfs", [1.0, 9.0], [1.0, 1.0]);
        let full = ("xfs".to_owned(), Role::Full);
        assert_eq!(last_over_first(&costs, &full, (0, 100)), "9.00×");
        assert_eq!(last_over_first(&costs, &full, (0, 200)), "9.00× (0 to 100)");
        for line in costs.values_mut() {
            line.remove(&100);
        }
        assert_eq!(last_over_first(&costs, &full, (0, 100)), "–");
        assert!(own_costs(&[full], (&costs, &slowdown(&costs), &Plans::default()), |_| Alike::fresh(false)).is_empty());
    }
}
