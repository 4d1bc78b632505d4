//! Marks and lines of made-up panels.

use super::*;

#[test]
fn labels_keep_apart_and_inside() {
    assert_eq!(spread_out(&[50.0, 52.0, 53.0], 0.0, 100.0), [50.0, 64.0, 78.0]);
    assert_eq!(spread_out(&[98.0, 99.0], 0.0, 100.0), [86.0, 100.0]);
    assert_eq!(spread_out(&[10.0, 90.0], 0.0, 100.0), [10.0, 90.0]);
}

/// A volume, its points, and the checkpoints of its invalid cells.
type Volume<'v> = (Role, &'v [(u64, f64)], &'v [u64]);

/// A panel of the volumes of one arm.
fn panel(volumes: &[Volume]) -> LinePanel {
    let series = volumes.iter().map(|(role, points, invalid)| Series {
        role: *role,
        name: role.name().to_owned(),
        label: role.name().to_owned(),
        colour: role.name().to_owned(),
        points: points
            .iter()
            .map(|(pulls, value)| Point { pulls: *pulls, spread: Spread::compute([*value]).unwrap() })
            .collect(),
        invalid: invalid.iter().map(|pulls| (*pulls, "in use".to_owned())).collect(),
    });
    LinePanel {
        title: "ext4".into(),
        x_unit: "pulls".into(),
        x_label: "git pulls".into(),
        y_label: "seconds per GiB",
        unit: " s/GiB",
        series: series.collect(),
        x: Axis { min: 0.0, max: 400.0, logarithmic: false },
        y: Axis::from_zero(10.0),
        has_own_x: false,
        reference: None,
        noise: None,
    }
}

/// The value of an attribute of each element that begins with `start`.
fn numbers(svg: &str, start: &str, name: &str) -> Vec<f64> {
    let of = |part: &str| part.split(&format!(r#" {name}=""#)).nth(1)?.split('"').next()?.parse().ok();
    svg.split(start).skip(1).filter_map(of).collect()
}

#[test]
fn valid_neighbours_of_an_invalid_cell_are_joined() {
    let svg = |points: &[(u64, f64)], invalid: &[u64]| panel(&[(Role::Full, points, invalid)]).draw(&Frame::PAGE);
    let lines = |svg: &str| svg.matches("<polyline").count();
    let cut = svg(&[(0, 1.0), (200, 2.0)], &[400]);
    // The end label belongs to the end of a curve, which is unknown here.
    assert_eq!((lines(&cut), cut.matches("end-label").count()), (1, 0), "{cut}");
    assert_eq!(lines(&svg(&[(0, 1.0), (400, 2.0)], &[200])), 0, "the cell between them is unknown");
    let two = svg(&[(0, 1.0), (400, 2.0)], &[]);
    assert_eq!((lines(&two), two.matches("end-label").count()), (0, 1), "{two}");
}

#[test]
fn crosses_are_on_the_x_axis_beside_each_other() {
    let points: &[(u64, f64)] = &[(0, 1.0), (200, 2.0)];
    let svg = panel(&[(Role::Full, points, &[400]), (Role::Empty, points, &[400])]).draw(&Frame::PAGE);
    let crosses: Vec<(f64, f64)> = svg
        .split(r#"<path class="cross" d="M"#)
        .skip(1)
        .map(|path| {
            let (x, y) = path.split('L').next().unwrap().split_once(',').unwrap();
            (x.parse::<f64>().unwrap() + 3.0, y.parse::<f64>().unwrap() + 3.0)
        })
        .collect();
    assert_eq!(crosses.iter().map(|(_, y)| *y).collect::<Vec<_>>(), [Frame::PAGE.base(); 2]);
    assert!(crosses[1].0 - crosses[0].0 >= 6.0, "{crosses:?}");
    assert_eq!(svg.matches(">invalid<").count(), 1);
}

#[test]
fn marks_that_would_cover_each_other_are_beside_each_other() {
    let near: &[(u64, f64)] = &[(0, 1.0), (200, 2.0), (400, 9.0)];
    let far: &[(u64, f64)] = &[(0, 1.0), (200, 2.1), (400, 1.0)];
    let svg = panel(&[(Role::Full, near, &[]), (Role::CuredFull, far, &[])]).draw(&Frame::PAGE);
    let xs = numbers(&svg, r#"<circle class="marker""#, "cx");
    let gaps: Vec<f64> = (0..3).map(|at| xs[at + 3] - xs[at]).collect();
    assert_eq!(gaps, [MARK_STEP, MARK_STEP, 0.0], "{xs:?}");
    // A mark that an outlier of the other volume would cover.
    let mut panel_of_outlier = panel(&[(Role::Full, near, &[]), (Role::CuredFull, far, &[])]);
    panel_of_outlier.series[1].points[2].spread.outliers = vec![9.0];
    let xs = numbers(&panel_of_outlier.draw(&Frame::PAGE), r#"<circle class="marker""#, "cx");
    assert_eq!(xs[5] - xs[2], MARK_STEP, "{xs:?}");
    // Marks of one checkpoint do not reach those of the next.
    let many: Vec<(u64, f64)> = (0..=100).map(|at| (at * 4, 1.0)).collect();
    let svg = panel(&[(Role::Full, &many, &[]), (Role::CuredFull, &many, &[])]).draw(&Frame::PAGE);
    let xs = numbers(&svg, r#"<circle class="marker""#, "cx");
    assert!((xs[101] - xs[0]).abs() < xs[1] - xs[0], "{} {}", xs[101] - xs[0], xs[1] - xs[0]);
}

#[test]
fn marks_at_the_end_do_not_cover_names() {
    let near: Vec<Volume> = ROLES_OF_FIVE.iter().map(|role| (*role, &[(0, 5.0), (400, 5.0)][..], &[][..])).collect();
    let mut panel = panel(&near);
    for series in &mut panel.series {
        // Two lines of one arm.
        series.label = if matches!(series.role, Role::Full | Role::Empty) { "a" } else { "b" }.to_owned();
    }
    let svg = panel.draw(&Frame::PAGE);
    let names = numbers(&svg, "class=\"end-label", "x");
    let marks =
        numbers(&svg, "<circle class=\"marker\"", "cx").into_iter().chain(numbers(&svg, "<rect class=\"marker\"", "x"));
    assert!(marks.fold(0.0, f64::max) + 4.0 <= names[0], "{svg}");
    assert_eq!(svg.matches(">a</text>").count(), 1, "{svg}");
    assert_eq!(svg.matches("class=\"end-label").count(), 2, "{svg}");
}

const ROLES_OF_FIVE: [Role; 5] = [Role::Full, Role::Empty, Role::Unaged, Role::CuredFull, Role::CuredEmpty];
