//! The slowdown: the cost of reading an aged volume over that of a fresh copy.

use senesce_store::Role;

use crate::model::Lines;

/// Aged over unaged at the same checkpoint, with the interval of the ratio.
pub(crate) fn slowdown(grep: &Lines) -> Lines {
    let mut ratios = Lines::new();
    for ((arm, role), line) in grep.iter().filter(|((_, role), _)| *role != Role::Unaged) {
        let Some(unaged) = grep.get(&(arm.clone(), Role::Unaged)) else { continue };
        for (pulls, aged) in line {
            let Some(ratio) = unaged.get(pulls).and_then(|fresh| aged.over(fresh)) else { continue };
            ratios.entry((arm.clone(), *role)).or_default().insert(*pulls, ratio);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Line, Spread};

    #[test]
    fn slowdown_divides_medians_and_has_an_interval() {
        let line = |values: [f64; 3]| Line::from([(10, Spread::compute(values).unwrap())]);
        let arm = || "ext4".to_owned();
        let grep =
            Lines::from([((arm(), Role::Full), line([5.0, 6.0, 8.0])), ((arm(), Role::Unaged), line([2.0, 3.0, 4.0]))]);
        let slowdown = slowdown(&grep);
        let ratio = &slowdown[&(arm(), Role::Full)][&10];
        assert_eq!((ratio.median, ratio.count, slowdown.len()), (2.0, 3, 1));
        // The extremes of three are within the interval of their median.
        assert_eq!((ratio.low, ratio.high), (1.25, 4.0));
    }
}
