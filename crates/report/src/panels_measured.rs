//! Figures of single requests and operations: traces, steps, latencies.

use senesce_store::Role;

use crate::captions::Marks;
use crate::chart::{Axis, Distribution, HistogramPanel, LinePanel, TradePanel};
use crate::csv::{Csv, exact, lines_csv};
use crate::devices::short;
use crate::model::{Histograms, Lines, Model, OPERATIONS, QUANTILES, ROLES, words};
use crate::panels::{Figure, Legend, Panel, Variant};
use crate::panels_lines::{LineFigure, ending, line_panels, series, x_axis, y_axis};

const AGED: &[Role] = &[Role::Full, Role::Empty];

/// Lines of volumes over checkpoints, on an axis that begins at 0.
fn lines_of<'m>(lines: &'m Lines, y_label: &'static str, unit: &'static str, roles: &'static [Role]) -> LineFigure<'m> {
    LineFigure { roles, ..LineFigure::of(lines, y_label, unit) }
}

/// Dynamic layout score and chain length of the traced grep tests.
pub(crate) fn trace_figures(model: &Model) -> Figure {
    let score = LineFigure {
        from_zero: false,
        limit: Some(1.0),
        ..lines_of(&model.trace.dynamic_score, "dynamic layout score (1 = no seek)", "", &ROLES)
    };
    let chains = lines_of(&model.trace.chain_kib, "KiB read before a seek (mean)", " KiB", &ROLES);
    let requests = lines_of(&model.trace.request_kib, "KiB of a read request (mean)", " KiB", &ROLES);
    let drawings = [
        ("score", "layout score", &score),
        ("chains", "chain length", &chains),
        ("requests", "request length", &requests),
    ];
    let title = "Requests of a cold read";
    let draw = |(name, label, figure): (&'static str, &'static str, &LineFigure)| {
        let variant = Variant::Choice { name, label };
        (variant, line_panels(model, title, figure, Variant::Shared))
    };
    Figure {
        name: "trace".to_owned(),
        title: title.to_owned(),
        caption: "The requests of one traced, cold grep test. Dynamic layout score: 1 less the share of blocks (4 KiB) at \
                  which a request did not begin where the previous one ended (FAST 2017). Chain length: bytes read from \
                  one place before the next seek. Request length: bytes of one request (FAST 2019). The score compares a \
                  file system with itself over time; compare file systems with each other by cost."
            .to_owned(),
        legend: Legend::Roles(ROLES.to_vec()),
        csv: lines_csv(&drawings.each_ref().map(|(_, label, figure)| (*label, figure.lines))),
        variants: drawings.into_iter().map(draw).collect(),
    }
}

/// Request sizes, or seek distances, at the last traced checkpoint.
pub(crate) fn histogram_figures(model: &Model, name: &str) -> Figure {
    const OF_BYTES: Variant = Variant::Choice { name: "bytes", label: "by bytes" };
    const OF_REQUESTS: Variant = Variant::Choice { name: "requests", label: "by requests" };
    let is_sizes = name == "request-sizes";
    let (title, caption, histograms, variants): (_, _, _, &[Variant]) = if is_sizes {
        (
            "Sizes of read requests",
            "Read requests of the traced grep test at the last checkpoint, by powers of two of their size.",
            &model.trace.sizes,
            &[OF_BYTES, OF_REQUESTS],
        )
    } else {
        (
            "Seek distances",
            "Read requests of the traced grep test at the last checkpoint, by the distance from the end of the request \
             before, up or down, by powers of two. \"None\" is no seek: the request begins where the one before ended.",
            &model.trace.seeks,
            &[OF_REQUESTS],
        )
    };
    let draw =
        |variant: &Variant| (*variant, histogram_panels(model, title, histograms, is_sizes, *variant == OF_BYTES));
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        legend: Legend::Roles(ROLES.to_vec()),
        csv: histogram_csv(histograms),
        variants: variants.iter().map(draw).collect(),
    }
}

fn histogram_panels(model: &Model, title: &str, histograms: &Histograms, is_sizes: bool, by_bytes: bool) -> Vec<Panel> {
    let weight = |bucket: &(u64, u64, u64)| if by_bytes { bucket.2 } else { bucket.1 } as f64;
    let curve = |arm: &str, role: Role| {
        let buckets = histograms.get(&(arm.to_owned(), role))?;
        let all: f64 = buckets.iter().map(weight).sum();
        let shares = buckets.iter().map(|bucket| (bucket.0, if all > 0.0 { weight(bucket) / all } else { 0.0 }));
        Some(Distribution { role, shares: shares.collect() })
    };
    let of_arm = |arm: &str| -> Vec<Distribution> { ROLES.iter().filter_map(|role| curve(arm, *role)).collect() };
    let panels: Vec<_> = model.arms.iter().map(|(arm, _)| (arm, of_arm(arm))).collect();
    let points = || panels.iter().flat_map(|(_, curves)| curves.iter().flat_map(|curve| curve.shares.iter()));
    let buckets = HistogramPanel::buckets_of(points().map(|(bucket, _)| *bucket));
    let most = points().map(|(_, share)| *share).fold(0.0, f64::max);
    if buckets.is_empty() {
        return Vec::new();
    }
    let panel = |(arm, curves): &(&String, Vec<Distribution>)| {
        let panel = HistogramPanel {
            title: (*arm).clone(),
            x_label: if is_sizes { "request size, bytes" } else { "distance to the next request, bytes" },
            y_label: if by_bytes { "% of bytes read" } else { "% of read requests" },
            curves: curves.clone(),
            buckets: buckets.clone(),
            most,
        };
        Panel::new(format!("{title}, {arm}"), panel)
    };
    panels.iter().map(panel).collect()
}

fn histogram_csv(histograms: &Histograms) -> String {
    let mut csv = Csv::new(&["arm", "volume", "shown_as", "least_bytes", "requests", "bytes"]);
    for ((arm, role), buckets) in histograms {
        for (least, requests, bytes) in buckets {
            let numbers = [*least, *requests, *bytes].map(|number| number.to_string());
            csv.row(&[&[arm.clone(), role.name().to_owned(), words(*role).to_owned()], &numbers[..]].concat());
        }
    }
    csv.finish()
}

fn latency_csv(model: &Model) -> String {
    let parts: Vec<(String, &Lines)> = model
        .latency
        .iter()
        .flat_map(|(name, quantiles)| {
            quantiles.iter().zip(QUANTILES).map(move |(lines, (quantile, _))| (format!("{name} {quantile}"), lines))
        })
        .collect();
    lines_csv(&parts.iter().map(|(name, lines)| (name.as_str(), *lines)).collect::<Vec<_>>())
}

/// The cost of counted steps, with and without synchronising.
pub(crate) fn step_figure(model: &Model) -> Figure {
    let costs = &model.steps;
    let title = format!("Cost of writing: {}", model.unit);
    let drawings = [
        // With a disk in virtual time, its time is the cost; wall time is that of memory.
        (
            "disk-seconds",
            "time of the disk",
            lines_of(&costs.disk_seconds, "modelled time per step, logarithmic", " s", AGED),
        ),
        (
            "disk-rate",
            "MiB/s of the disk",
            lines_of(&costs.disk_rate, "MiB written per modelled second, logarithmic", " MiB/s", AGED),
        ),
        ("seconds", "time, without sync", lines_of(&costs.seconds, "time per step, logarithmic", " s", AGED)),
        (
            "seconds-with-sync",
            "time, with sync",
            lines_of(&costs.seconds_with_sync, "time per step, with sync, logarithmic", " s", AGED),
        ),
        ("rate", "MiB/s, without sync", lines_of(&costs.rate, "MiB written per second, logarithmic", " MiB/s", AGED)),
        (
            "rate-with-sync",
            "MiB/s, with sync",
            lines_of(&costs.rate_with_sync, "MiB written per second, with sync, logarithmic", " MiB/s", AGED),
        ),
    ];
    let marks = drawings.iter().map(|(.., figure)| Marks::of(model, figure)).fold(Marks::default(), Marks::and);
    let draw = |(name, label, figure): (&'static str, &'static str, LineFigure)| {
        (Variant::Choice { name, label }, line_panels(model, &title, &figure, Variant::Logarithmic))
    };
    Figure {
        name: "write-cost".to_owned(),
        caption: format!(
            "Time and content of a counted step ({}): medians over the steps since the previous checkpoint, so the first \
             checkpoint has none.{}{} Without sync: the wall time of the file operations. With sync: also that of fsync and \
             syncfs in the step and after it. For the git binary: its whole wall time.{}{}",
            model.unit,
            if marks.intervals { " Bars are the 95% intervals of the medians." } else { "" },
            match (marks.samples, marks.outliers) {
                (true, true) => " Small dots are single steps, and rings are outliers.",
                (true, false) => " Small dots are single steps.",
                (false, true) => " Rings are outliers.",
                (false, false) => "",
            },
            if costs.disk_seconds.is_empty() {
                ""
            } else {
                " Time of the disk: how long the disk in virtual time was busy during the step and the syncfs after it. \
                 Data that stays in memory is written later and is not included."
            },
            ending(model, &drawings.each_ref().map(|(.., figure)| figure))
        ),
        legend: Legend::Roles(AGED.to_vec()),
        csv: lines_csv(&drawings.each_ref().map(|(_, label, figure)| (*label, figure.lines))),
        variants: drawings.into_iter().map(draw).filter(|(_, panels)| !panels.is_empty()).collect(),
        title,
    }
}

/// Latencies of operations: a drawing for each operation, a panel for each quantile, a colour for
/// each arm.
pub(crate) fn latency_figure(model: &Model) -> Figure {
    let of_operation = |(name, label): &(&'static str, &'static str)| {
        let quantiles = model.latency.get(name)?;
        let panels = quantiles.iter().zip(QUANTILES).map(|(lines, (quantile, title))| {
            let axis = lines_of(lines, "ms, logarithmic", " ms", AGED);
            let y = y_axis(&axis, lines.values().flat_map(|line| line.values()), Variant::Logarithmic);
            let mut all = Vec::new();
            for (arm, _) in &model.arms {
                for role in AGED.iter().copied().filter(|role| lines.contains_key(&(arm.clone(), *role))) {
                    let mut of_volume = series(model, lines, arm, role);
                    of_volume.name = format!("{arm}, {}", words(role));
                    // The dash is the volume.
                    of_volume.label.clone_from(arm);
                    of_volume.colour = model.arm_class(arm);
                    // Crosses of several arms would overlap.
                    of_volume.invalid.clear();
                    all.push(of_volume);
                }
            }
            let panel = LinePanel {
                title: title.to_owned(),
                x_unit: model.unit.clone(),
                x_label: model.x_title.clone(),
                // An axis from 0 is linear.
                y_label: if y.logarithmic { axis.y_label } else { "ms" },
                unit: axis.unit,
                series: all,
                x: x_axis(model),
                y,
                has_own_x: false,
                reference: None,
                noise: None,
            };
            Panel::new(format!("Latency of {label}, {quantile}"), panel)
        });
        Some((Variant::Choice { name, label }, panels.collect()))
    };
    let named_arms = model.arms.iter().map(|(arm, _)| (arm.clone(), model.arm_class(arm)));
    Figure {
        name: "latency".to_owned(),
        title: "Latency of the operations that age".to_owned(),
        caption:
            "Latency of single operations since the previous checkpoint, as the calling thread measures it. Data that \
                  stays in memory is written later and is not included. \"All but syncs\" leaves out fsync and syncfs. \
                  Every panel has its own scale."
                .to_owned(),
        legend: Legend::Arms(named_arms.collect(), AGED.to_vec()),
        csv: latency_csv(model),
        variants: OPERATIONS.iter().filter_map(of_operation).collect(),
    }
}

fn trade_csv(model: &Model) -> String {
    let mut csv = Csv::new(&["arm", "volume", "shown_as", "device", "written_per_content_byte", "seconds_per_gib"]);
    for device in model.first_devices() {
        let on_device = |arm: &str| model.device_of(arm) == Some(device);
        let aged = |(arm, role): &(String, Role)| AGED.contains(role) && on_device(arm);
        for ((arm, role), line) in model.modelled[device].iter().filter(|(volume, _)| aged(volume)) {
            let writes = model.write_amplification_of_all.get(&(arm.clone(), *role));
            let Some((writes, (_, cost))) = writes.zip(line.last_key_value()) else { continue };
            let names = [arm, role.name(), words(*role), short(device)].map(str::to_owned);
            csv.row(&[&names[..], &[exact(*writes), exact(cost.median)]].concat());
        }
    }
    csv.finish()
}

/// A dot of a panel: class, name, bytes written for each byte of content, cost of reading.
type Dot = (String, String, f64, f64);

/// The cost of reading against the cost of writing: a dot for each arm, a panel for each device and
/// aged volume. All panels have one x axis, and those of a device one y axis, so that the volumes
/// of an arm can be compared.
pub(crate) fn trade_figure(model: &Model) -> Figure {
    let devices = model.first_devices();
    let dots = |role: Role, device: &str| -> Vec<Dot> {
        let dot = |(arm, _): &(String, String)| {
            let key = (arm.clone(), role);
            let (_, cost) = model.modelled.get(device)?.get(&key)?.last_key_value()?;
            Some((model.arm_class(arm), arm.clone(), *model.write_amplification_of_all.get(&key)?, cost.median))
        };
        let on_device = |(arm, _): &&(String, String)| model.device_of(arm) == Some(device);
        model.arms.iter().filter(on_device).filter_map(dot).collect()
    };
    let all = devices.iter().flat_map(|device| AGED.iter().map(move |role| (*role, *device)));
    let drawn: Vec<(Role, &str, Vec<Dot>)> =
        all.map(|(role, device)| (role, device, dots(role, device))).filter(|(.., dots)| dots.len() > 1).collect();
    let axis = |is_shown: &dyn Fn(&str) -> bool, value: fn(&Dot) -> f64| {
        let shown = drawn.iter().filter(|(_, device, _)| is_shown(device)).flat_map(|(.., dots)| dots);
        Axis::from_zero(shown.map(value).fold(0.0, f64::max))
    };
    let x = axis(&|_| true, |dot| dot.2);
    let panel = |(role, device, dots): &(Role, &str, Vec<Dot>)| {
        let of_device = if devices.len() > 1 { format!(", {}", short(device)) } else { String::new() };
        let title = format!("{} volume{of_device}", words(*role));
        let panel = TradePanel {
            title: title.clone(),
            x_label: "bytes written for each byte of content",
            y_label: format!("seconds per GiB (model, {})", short(device)),
            dots: dots.clone(),
            x,
            y: axis(&|other| other == *device, |dot| dot.3),
        };
        Panel::new(format!("Reading against writing, {title}"), panel)
    };
    let panels = drawn.iter().map(panel).collect();
    Figure {
        name: "read-against-write".to_owned(),
        title: "Reading against writing".to_owned(),
        caption: "Each dot is an arm. The y axis is the modelled cost of reading the aged tree at the last checkpoint, the x \
                  axis the bytes written to the device for each byte of content, over all steps. A file system that ages \
                  little because it writes much is at the lower right."
            .to_owned(),
        legend: Legend::Roles(Vec::new()),
        csv: trade_csv(model),
        variants: vec![(Variant::Shared, panels)],
    }
}
