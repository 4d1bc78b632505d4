//! The charts of a part: write chains over turnovers, latencies over turnovers or load.

use schemars::JsonSchema;
use senesce_trials::{Point, Series};
use serde::{Deserialize, Serialize};

use super::record::shorten;
use crate::Stage;

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// Whether the run was overloaded: the value then only reflects the length of the run.
    pub unkept: bool,
}

impl Place {
    fn new(x: f64, y: f64, unkept: bool) -> Self {
        Self { x: shorten(x), y: shorten(y), unkept }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub places: Vec<Place>,
}

/// Lines with the same axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The label of the horizontal axis, with its unit.
    pub x: String,
    /// The label of the vertical axis, with its unit.
    pub y: String,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Chart {
    fn new(title: &str, x: &str, y: &str, lines: Vec<Line>) -> Self {
        // Chains and latencies of one aggregate differ by factors.
        Self { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), logarithmic: true, lines }
    }

    /// Whether a line has two points.
    fn is_drawable(&self) -> bool {
        self.lines.iter().any(|line| line.places.len() > 1)
    }
}

/// The charts of counted figures: chains over turnovers; over fullness, if stages differ only in
/// it.
pub(super) fn of_structure(outcome: &senesce_trials::Outcome) -> Vec<Chart> {
    let stages = &outcome.stages;
    let at = |x: f64, y: f64| Place::new(x, y, false);
    if outcome.experiment == senesce_trials::Experiment::E12 {
        let mut lines: Vec<Line> = Vec::new();
        for stage in stages {
            let name = stage.name.split(',').next().unwrap_or_default();
            let place = at(stage.setup.full_percent(), stage.series.last_turnover().write_chain());
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.places.push(place),
                None => lines.push(Line { name: name.to_owned(), places: vec![place] }),
            }
        }
        return vec![Chart::new("Write chains by fullness", "% full", "blocks a write chain", lines)];
    }
    let over_turnovers = |of: fn(&Point) -> f64| -> Vec<Line> {
        let (mut lines, mut ended): (_, Vec<(u64, f64)>) = (Vec::new(), Vec::new());
        for stage in stages {
            let points = &stage.series.points;
            let (first, last) = (points.first().map_or(0, |point| point.cp), points.last().map_or(0, |point| point.cp));
            // If the consistency point numbers of a stage continue those of another, it has the
            // same aggregate, or a twin of it.
            let before = ended.iter().filter(|(cp, _)| *cp < first).max_by_key(|(cp, _)| *cp);
            let from = before.map_or(0.0, |(_, turnovers)| *turnovers);
            let course = compute_course(&stage.series);
            ended.push((last, from + course.last().map_or(0.0, |(turnovers, _)| *turnovers)));
            let places = course.iter().map(|(turnovers, point)| at(from + turnovers, of(point)));
            lines.push(Line { name: stage.name.clone(), places: places.filter(|place| place.y > 0.0).collect() });
        }
        lines
    };
    let x = "turnovers";
    let charts = [
        Chart::new("Write chains", x, "blocks a write chain", over_turnovers(Point::write_chain)),
        Chart::new(
            "Write chains of disks behind SSDs",
            x,
            "blocks a write chain",
            over_turnovers(Point::disk_write_chain),
        ),
        Chart::new(
            "Reads for parity",
            x,
            "blocks for each block of clients",
            over_turnovers(Point::parity_reads_per_client_block),
        ),
    ];
    charts.into_iter().filter(Chart::is_drawable).collect()
}

/// The turnovers at each point of a line, and the sum of the counters since the previous one: a
/// quarter of a turnover, or a fortieth of all.
fn compute_course(series: &Series) -> Vec<(f64, Point)> {
    let all: u64 = series.points.iter().map(|point| point.client_blocks).sum();
    let each = (series.turnover / 4).max(all / 40);
    let (mut course, mut first, mut written, mut since) = (Vec::new(), 0, 0, 0);
    for (number, point) in series.points.iter().enumerate() {
        written += point.client_blocks;
        since += point.client_blocks;
        if since >= each {
            let part = Series { points: series.points[first..=number].to_vec(), ..*series };
            course.push((written as f64 / series.turnover as f64, part.sum()));
            (first, since) = (number + 1, 0);
        }
    }
    course
}

/// The charts of simulated figures: latency over load if stages have several loads, over turnovers
/// if there are several stages of a name.
pub(super) fn of_time(outcome: &crate::Outcome) -> Vec<Chart> {
    type Latency = fn(&crate::Run) -> f64;
    let mean: Latency = |run| run.figures.latency.mean / 1e6;
    let tail: Latency = |run| run.figures.latency.p99 as f64 / 1e6;
    let is_load = outcome.stages.iter().any(|stage| stage.runs.len() > 1);
    // Clients without think time determine their own load, so the achieved rate is the horizontal
    // value.
    let is_closed =
        outcome.stages.iter().flat_map(|stage| &stage.runs).all(|run| run.figures.offered_per_second.is_none());
    let x = match (is_load, is_closed) {
        (true, true) => "thousand operations a second, achieved",
        (true, false) => "thousand operations a second",
        (false, _) => "turnovers",
    };
    let along = |stage: &Stage, run: &crate::Run| match (is_load, is_closed) {
        (true, true) => run.figures.per_second / 1e3,
        (true, false) => run.load as f64 / 1e3,
        (false, _) => stage.turnovers,
    };
    let lines = |of: Latency| -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for stage in &outcome.stages {
            let places = stage.runs.iter().map(|run| Place::new(along(stage, run), of(run), !run.figures.kept_up));
            match lines.iter_mut().find(|line| line.name == stage.name) {
                Some(line) => line.places.extend(places),
                None => lines.push(Line { name: stage.name.clone(), places: places.collect() }),
            }
        }
        lines
    };
    let mut charts = vec![
        Chart::new("Mean latency (model)", x, "ms", lines(mean)),
        Chart::new("Latency of one in a hundred (model)", x, "ms, p99", lines(tail)),
    ];
    if is_load {
        let mut busy = Chart::new(
            "Busy processors (model)",
            x,
            "% of all cores",
            lines(|run| run.figures.processors.utilisation * 100.0),
        );
        busy.logarithmic = false;
        charts.push(busy);
    } else {
        let chains = chains_of(&outcome.stages);
        charts.push(Chart::new("Write chains", x, "blocks a write chain", chains));
    }
    charts.retain(Chart::is_drawable);
    charts
}

fn chains_of(stages: &[Stage]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for stage in stages {
        let place = Place::new(stage.turnovers, stage.counted.write_chain(), false);
        if place.y <= 0.0 {
            continue;
        }
        match lines.iter_mut().find(|line| line.name == stage.name) {
            Some(line) => line.places.push(place),
            None => lines.push(Line { name: stage.name.clone(), places: vec![place] }),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_has_quarter_turnover_steps_up_to_forty() {
        let series = |points: u64| Series {
            blocks: 2000,
            turnover: 1000,
            points: (1..=points).map(|cp| Point { cp, client_blocks: 100, ..Point::default() }).collect(),
        };
        let course = compute_course(&series(20));
        let places: Vec<(f64, u64)> = course.iter().map(|(at, point)| (*at, point.client_blocks)).collect();
        assert_eq!(places, [(0.3, 300), (0.6, 300), (0.9, 300), (1.2, 300), (1.5, 300), (1.8, 300)]);
        let long = compute_course(&series(2000));
        assert_eq!((long.len(), long[39].0), (40, 200.0));
        assert!(compute_course(&series(2)).is_empty());
    }
}
