//! Histories with a known curve, histories of noise, and impossible ones.

use proptest::{collection::vec, prelude::*};

use super::*;

fn history(values: &[f64]) -> Vec<Point> {
    values.iter().enumerate().map(|(at, value)| Point { at: at as f64, value: *value }).collect()
}

fn of(shape: impl Fn(f64) -> f64, count: u32) -> Vec<Point> {
    (0..count).map(|n| Point { at: f64::from(n), value: shape(f64::from(n)) }).collect()
}

#[test]
fn constant_history_has_no_date() {
    let forecast = Forecast::compute(&history(&[1.0; 9])).unwrap();
    assert_eq!(forecast.curve(), Curve::NoChange);
    assert_eq!(forecast.own_error(), 0.0);
    assert_eq!(forecast.crossing(2.0), Crossing::Ahead { earliest: None, at: None, latest: None });
}

#[test]
fn falling_cost_stays_at_its_last_value() {
    let forecast = Forecast::compute(&history(&[2.0, 1.8, 1.6, 1.4, 1.2, 1.0])).unwrap();
    assert_eq!(forecast.at(9.0).unwrap().value, 1.0);
}

#[test]
fn each_curve_is_recognised_and_continued() {
    for curve in Curve::ALL {
        let shape = |at: f64| 1.0 + 3.0 * curve.shape(at / 8.0);
        let forecast = Forecast::compute(&of(shape, 9)).unwrap();
        assert_eq!(forecast.curve(), curve);
        for at in [8.0, 10.0, 16.0, 24.0] {
            let expected = forecast.at(at).unwrap();
            assert!((expected.value / shape(at) - 1.0).abs() <= 1e-9, "{curve:?} at {at}: {expected:?}");
            assert!(expected.low < shape(at) && shape(at) < expected.high);
        }
    }
}

#[test]
fn crossing_of_a_straight_line_is_its_own() {
    let forecast = Forecast::compute(&of(|at| 1.0 + at / 16.0, 9)).unwrap();
    let Crossing::Ahead { earliest: Some(earliest), at: Some(at), latest: Some(latest) } = forecast.crossing(2.0)
    else {
        panic!("{:?}", forecast.crossing(2.0))
    };
    assert!((at - 16.0).abs() < 0.01, "{at}");
    assert!(8.0 < earliest && earliest < at && at < latest && latest <= forecast.farthest());
    let is_within = |at: f64| forecast.at(at).is_some_and(|cost| cost.low <= 2.0 && cost.high >= 2.0);
    assert!(is_within(earliest) && is_within(at) && !is_within(earliest - 0.01));
}

#[test]
fn reached_threshold_has_its_time() {
    let of = |values: &[f64]| Forecast::compute(&history(values)).unwrap().crossing(2.0);
    assert_eq!(of(&[1.0, 2.1, 1.9, 2.0, 3.0]), Crossing::Reached { at: 3.0 });
    assert_eq!(of(&[2.0, 2.1, 2.9, 3.0]), Crossing::Reached { at: 0.0 });
    assert!(matches!(of(&[1.0, 2.1, 2.9, 1.9]), Crossing::Ahead { .. }));
}

#[test]
fn forecast_ends_at_the_stated_multiple() {
    let forecast = Forecast::compute(&history(&[1.0, 1.1, 1.2, 1.3, 1.4])).unwrap();
    assert_eq!(forecast.farthest(), 12.0);
    assert!(forecast.at(12.0).is_some() && forecast.at(12.1).is_none() && forecast.at(3.9).is_none());
    assert!(forecast.at(f64::NAN).is_none());
}

#[test]
fn impossible_histories_are_refused() {
    let of = |values: &[f64]| Forecast::compute(&history(values)).unwrap_err();
    assert_eq!(of(&[1.0; 3]), NoForecast::TooFew { count: 3 });
    for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        assert_eq!(of(&[1.0, bad, 1.0, 1.0]), NoForecast::Impossible { number: 2 });
    }
    let mut twice = history(&[1.0; 4]);
    twice[2].at = 1.0;
    assert_eq!(Forecast::compute(&twice).unwrap_err(), NoForecast::NotAscending { number: 3 });
    twice[2].at = 0.5;
    assert_eq!(Forecast::compute(&twice).unwrap_err(), NoForecast::NotAscending { number: 3 });
}

#[test]
fn factors_rise_and_reach_the_farthest_horizon() {
    assert!(FACTORS.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(HORIZONS.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(HORIZONS.map(find_horizon), [0, 1, 2, 3].map(Some));
    assert_eq!([-0.1, 2.01, f64::NAN].map(find_horizon), [None; 3]);
}

/// Any numbers, also impossible and extreme ones.
fn any_points() -> impl Strategy<Value = Vec<Point>> {
    let number =
        prop_oneof![any::<f64>(), 0.5..20.0f64, Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(f64::NAN), Just(0.0),];
    vec((number.clone(), number).prop_map(|(at, value)| Point { at, value }), 0..12)
}

proptest! {
    #[test]
    fn no_numbers_panic(mut points in any_points(), later in any::<f64>(), threshold in any::<f64>(), sort in any::<bool>()) {
        if sort {
            points.retain(|point| point.at.is_finite() && point.value.is_finite());
            points.iter_mut().for_each(|point| point.value = point.value.abs());
            points.sort_by(|a, b| a.at.total_cmp(&b.at));
        }
        let Ok(forecast) = Forecast::compute(&points) else { return Ok(()) };
        for at in [later, forecast.farthest(), points[points.len() - 1].at] {
            if let Some(Expected { low, value, high }) = forecast.at(at) {
                prop_assert!(0.0 < low && low <= value && value <= high && high.is_finite(), "{low} {value} {high}");
            }
        }
        let ends = |crossing| match crossing {
            Crossing::Reached { at } => vec![at],
            Crossing::Ahead { earliest, at, latest } => [earliest, at, latest].into_iter().flatten().collect(),
        };
        let ends = ends(forecast.crossing(threshold));
        prop_assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]), "{ends:?}");
    }

    #[test]
    fn scaled_costs_scale_the_forecast(values in vec(0.5..20.0f64, 4..14), power in -8..8i32, later in 0.0..2.0f64) {
        let factor = f64::powi(2.0, power);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let compute = |values: &[f64]| Forecast::compute(&history(values)).unwrap();
        let (plain, scaled) = (compute(&values), compute(&scaled));
        prop_assert_eq!(plain.curve(), scaled.curve());
        let at = (values.len() - 1) as f64 * (1.0 + later);
        let (plain, scaled) = (plain.at(at).unwrap(), scaled.at(at).unwrap());
        for (plain, scaled) in [(plain.low, scaled.low), (plain.value, scaled.value), (plain.high, scaled.high)] {
            prop_assert!((plain * factor / scaled - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn time_has_no_unit(values in vec(0.5..20.0f64, 4..14), power in 0..20i32, start in 0..1u32 << 20, threshold in 1.0..30.0f64) {
        let factor = f64::powi(2.0, power);
        let points = history(&values);
        let moved: Vec<Point> =
            points.iter().map(|point| Point { at: f64::from(start) + point.at * factor, ..*point }).collect();
        let ends = |points: &[Point]| match Forecast::compute(points).unwrap().crossing(threshold) {
            Crossing::Reached { at } => [Some(at), None, None],
            Crossing::Ahead { earliest, at, latest } => [earliest, at, latest],
        };
        let step = points.len() as f64 / f64::from(STEPS);
        for (plain, moved) in ends(&points).into_iter().zip(ends(&moved)) {
            let moved = moved.map(|at| (at - f64::from(start)) / factor);
            let farthest = (points.len() - 1) as f64 * (1.0 + FARTHEST);
            let (plain, moved) = (plain.unwrap_or(farthest), moved.unwrap_or(farthest));
            prop_assert!((plain - moved).abs() <= 2.0 * step, "{plain} {moved}");
        }
    }

    #[test]
    fn noisy_history_is_within_its_interval(
        which in 0..Curve::ALL.len(), grown in 1.2..8.0f64, noise in vec(-0.01..0.01f64, 8), horizon in 0.0..2.0f64,
    ) {
        let shape = |at: f64| 1.0 + (grown - 1.0) * Curve::ALL[which].shape(at / 7.0);
        let points: Vec<Point> =
            of(shape, 8).iter().zip(&noise).map(|(point, noise)| Point { value: point.value * (1.0 + noise), ..*point }).collect();
        let at = 7.0 * (1.0 + horizon);
        let Expected { low, high, .. } = Forecast::compute(&points).unwrap().at(at).unwrap();
        prop_assert!((low..=high).contains(&shape(at)), "{} not in {low}..{high}", shape(at));
    }
}
