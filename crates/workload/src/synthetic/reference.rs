//! Figures of real histories, for comparison with a synthetic one.

/// One documented figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceFigure {
    /// The counted quantity.
    pub group: &'static str,
    /// The name of the figure, with its unit if the group does not state it.
    pub name: &'static str,
    /// The figure; the lowest if several trees were measured.
    pub low: f64,
    /// The figure; the highest if several trees were measured.
    pub high: f64,
}

const fn figure(group: &'static str, name: &'static str, low: f64, high: f64) -> ReferenceFigure {
    ReferenceFigure { group, name, low, high }
}

/// The figures that `linux-like` follows.
///
/// Source: counted in the public history of Linux, 34,397 commits along first parents (v2.6.12 to
/// v2.6.35-rc1 and a few beyond). Sizes, depths and files per directory were also counted in later
/// trees, hence the ranges. Percentiles are over commits, without the first one.
///
/// Two figures are derived. The mean of added files was counted as 1.17 with the 17.3 thousand
/// files of the first commit, which leaves 0.67. The gain per commit is (33.2 - 17.3) thousand
/// files over 34.2 thousand commits.
pub const REFERENCE: &[ReferenceFigure] = &[
    figure("files touched, plain", "mean", 2.6, 2.6),
    figure("files touched, plain", "p50", 1.0, 1.0),
    figure("files touched, plain", "p75", 2.0, 2.0),
    figure("files touched, plain", "p90", 4.0, 4.0),
    figure("files touched, plain", "p95", 7.0, 7.0),
    figure("files touched, plain", "p99", 23.0, 23.0),
    figure("files touched, plain", "p99.9", 89.0, 89.0),
    figure("files touched, plain", "max", 556.0, 556.0),
    figure("files touched, merges", "mean", 33.6, 33.6),
    figure("files touched, merges", "p50", 8.0, 8.0),
    figure("files touched, merges", "p75", 24.0, 24.0),
    figure("files touched, merges", "p90", 63.0, 63.0),
    figure("files touched, merges", "p95", 119.0, 119.0),
    figure("files touched, merges", "p99", 412.0, 412.0),
    figure("files touched, merges", "p99.9", 1852.0, 1852.0),
    figure("files touched, merges", "max", 5669.0, 5669.0),
    figure("added", "mean", 0.67, 0.67),
    figure("added", "p50", 0.0, 0.0),
    figure("added", "p75", 0.0, 0.0),
    figure("added", "p90", 0.0, 0.0),
    figure("added", "p95", 1.0, 1.0),
    figure("added", "p99", 11.0, 11.0),
    figure("added", "p99.9", 120.0, 120.0),
    figure("modified", "mean", 7.61, 7.61),
    figure("modified", "p50", 1.0, 1.0),
    figure("modified", "p75", 3.0, 3.0),
    figure("modified", "p90", 11.0, 11.0),
    figure("modified", "p95", 25.0, 25.0),
    figure("modified", "p99", 100.0, 100.0),
    figure("modified", "p99.9", 509.0, 509.0),
    figure("modified", "max", 5015.0, 5015.0),
    figure("deleted", "mean", 0.21, 0.21),
    figure("deleted", "p50", 0.0, 0.0),
    figure("deleted", "p75", 0.0, 0.0),
    figure("deleted", "p90", 0.0, 0.0),
    figure("deleted", "p95", 0.0, 0.0),
    figure("deleted", "p99", 3.0, 3.0),
    figure("deleted", "p99.9", 37.0, 37.0),
    figure("deleted", "max", 454.0, 454.0),
    figure("renamed", "mean", 0.27, 0.27),
    figure("renamed", "p50", 0.0, 0.0),
    figure("renamed", "p75", 0.0, 0.0),
    figure("renamed", "p90", 0.0, 0.0),
    figure("renamed", "p95", 0.0, 0.0),
    figure("renamed", "p99", 1.0, 1.0),
    figure("renamed", "p99.9", 62.0, 62.0),
    figure("renamed", "max", 862.0, 862.0),
    figure("directories touched", "mean", 3.15, 3.15),
    figure("directories touched", "p50", 1.0, 1.0),
    figure("directories touched", "p75", 2.0, 2.0),
    figure("directories touched", "p90", 5.0, 5.0),
    figure("directories touched", "p95", 10.0, 10.0),
    figure("directories touched", "p99", 32.0, 32.0),
    figure("directories touched", "p99.9", 128.0, 128.0),
    figure("KB written", "mean", 214.0, 214.0),
    figure("KB written", "p50", 45.0, 45.0),
    figure("KB written", "p75", 110.0, 110.0),
    figure("KB written", "p90", 312.0, 312.0),
    figure("KB written", "p95", 691.0, 691.0),
    figure("KB written", "p99", 2760.0, 2760.0),
    figure("KB written", "p99.9", 14449.0, 14449.0),
    figure("kinds, % of commits", "M only", 90.0, 90.0),
    figure("kinds, % of commits", "A+M", 5.1, 5.1),
    figure("kinds, % of commits", "M+D", 1.1, 1.1),
    figure("kinds, % of commits", "A+M+D", 0.9, 0.9),
    figure("kinds, % of commits", "M+R", 0.8, 0.8),
    figure("kinds, % of commits", "A only", 0.7, 0.7),
    figure("kinds, % of commits", "merges", 20.0, 20.0),
    figure("sizes, ln of bytes", "start tree mu", 8.21, 8.26),
    figure("sizes, ln of bytes", "start tree sigma", 1.62, 1.68),
    figure("sizes, ln of bytes", "added mu", 8.11, 8.11),
    figure("sizes, ln of bytes", "added sigma", 1.69, 1.69),
    figure("sizes, ln of bytes", "modified mu", 9.44, 9.44),
    figure("sizes, ln of bytes", "modified sigma", 1.36, 1.36),
    figure("sizes, ln of bytes", "absolute change mu", 4.17, 4.17),
    figure("sizes, ln of bytes", "absolute change sigma", 1.95, 1.95),
    figure("modifications, %", "grow", 60.0, 60.0),
    figure("modifications, %", "shrink", 37.0, 37.0),
    figure("modifications, %", "same size", 3.0, 3.0),
    figure("share of the hottest files, %", "top 0.1%", 3.1, 3.1),
    figure("share of the hottest files, %", "top 1%", 12.3, 12.3),
    figure("share of the hottest files, %", "top 5%", 31.9, 31.9),
    figure("share of the hottest files, %", "top 10%", 46.5, 46.5),
    figure("share of the hottest files, %", "top 20%", 65.0, 65.0),
    figure("share of the hottest files, %", "top 50%", 90.0, 90.0),
    figure("commits until the same file again", "p25", 265.0, 265.0),
    figure("commits until the same file again", "p50", 872.0, 872.0),
    figure("commits until the same file again", "p75", 2086.0, 2086.0),
    figure("commits until the same file again", "p90", 4576.0, 4576.0),
    figure("tree", "files at start", 17300.0, 17300.0),
    figure("tree", "files at end", 33200.0, 33200.0),
    figure("tree", "files gained per commit", 0.465, 0.465),
    figure("tree", "adds that make a directory, %", 5.5, 5.5),
    figure("tree", "deletes that empty a directory, %", 5.2, 5.2),
    figure("tree", "lifetime at deletion p50, commits", 14966.0, 14966.0),
    figure("tree", "depth mean", 3.6, 4.8),
    figure("tree", "depth max", 6.0, 14.0),
    figure("files per directory", "mean", 15.0, 16.0),
    figure("files per directory", "p50", 6.0, 8.0),
    figure("files per directory", "p90", 32.0, 36.0),
    figure("files per directory", "p99", 136.0, 170.0),
    figure("files per directory", "max", 636.0, 2541.0),
];

/// The distance up to which two histories are alike in a figure: absolute and in percent. The wider
/// one applies. `None` for figures that are a matter of chance.
pub(super) fn tolerance(group: &str, name: &str) -> Option<(f64, f64)> {
    Some(match (group, name) {
        // The largest of 34,000 draws is a matter of chance.
        (_, "max") if group != "files per directory" => return None,
        ("files per directory", "max") => (0.0, 50.0),
        (_, "p99.9") => (0.0, 50.0),
        // Half of all renames are in a few dozen commits.
        ("renamed", "mean") => (0.15, 0.0),
        ("KB written", "p50") => (0.0, 20.0),
        (_, "p99" | "p95" | "p90") => (2.0, 35.0),
        ("kinds, % of commits", _) => (0.3, 8.0),
        ("sizes, ln of bytes", _) => (0.2, 0.0),
        ("modifications, %", _) => (1.0, 0.0),
        ("share of the hottest files, %", _) => (2.0, 10.0),
        ("commits until the same file again", _) => (0.0, 20.0),
        ("tree", "files at start") => (0.0, 1.0),
        ("tree", "files gained per commit") => (0.15, 0.0),
        ("tree", _) => (1.5, 15.0),
        (_, "mean") => (0.1, 20.0),
        _ => (1.0, 30.0),
    })
}
