//! The note about two orders of file systems: by slowdown, and by cost.
//!
//! A slowdown divides by the cost of a fresh copy. A file system whose fresh copy is already slow
//! has a small slowdown, and can still be the slowest one to read.

use senesce_store::Role;

use crate::arm_slowdowns::{OfArm, Slowdowns};
use crate::format::{figure, two_digits};
use crate::model::{Lines, Model, words};
use crate::noise::Alike;

/// `The order by cost is different: ext4 (nearly full) has a smaller slowdown than xfs (1.8× and
/// 6.7×), but a higher cost (90.0 and 51.2 s/GiB).`
///
/// Names the two arms whose costs differ most. `None` unless one arm has a smaller slowdown and a
/// higher cost than another one, both beyond chance. `limit` is the limit of both costs. Compares
/// only arms of one plan: those of other plans read other trees.
pub(super) fn order_by_cost(
    model: &Model,
    slowdowns: &Slowdowns,
    costs: &Lines,
    limit: impl Fn(&str, &str) -> Alike,
) -> Option<String> {
    let pairs = || slowdowns.arms.iter().flat_map(|a| slowdowns.arms.iter().map(move |b| (a, b)));
    let is_comparable = |a: &OfArm, b: &OfArm| model.plans.name(a.arm) == model.plans.name(b.arm) && a.pulls == b.pulls;
    let of = |arm: &OfArm, role: Role| {
        let slowdown = arm.volumes.iter().find(|(own, _)| *own == role)?.1.median;
        Some((slowdown, costs.get(&(arm.arm.to_owned(), role))?.get(&arm.pulls)?))
    };
    let of_age = Alike::slowdowns(model.settles);
    let mut found: Option<(f64, String)> = None;
    for role in [Role::Full, Role::Empty] {
        for (a, b) in pairs().filter(|(a, b)| is_comparable(a, b)) {
            let (Some((slowdown_a, cost_a)), Some((slowdown_b, cost_b))) = (of(a, role), of(b, role)) else { continue };
            // An interval is computed for few pairs only: there can be very many.
            let is_more = cost_a.median > cost_b.median;
            let is_most = found.as_ref().is_none_or(|(most, _)| cost_a.median / cost_b.median > *most);
            if !is_more || !is_most || slowdown_a > slowdown_b || of_age.contains(slowdown_a / slowdown_b) {
                continue;
            }
            let Some(dearer) = cost_a.over(cost_b) else { continue };
            if limit(a.arm, b.arm).is_difference(&dearer) {
                let sentence = format!(
                    "The order by cost is different: {} ({}) has a smaller slowdown than {} ({}× and {}×), but a higher \
                     cost ({} and {} s/GiB).",
                    a.arm,
                    words(role),
                    b.arm,
                    two_digits(slowdown_a),
                    two_digits(slowdown_b),
                    figure(cost_a.median),
                    figure(cost_b.median)
                );
                found = Some((dearer.median, sentence));
            }
        }
    }
    found.map(|(_, sentence)| sentence)
}
