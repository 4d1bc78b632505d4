//! Models that are fitted to histories, and model files.

use senesce_core::{RelPath, Seed};

use super::{statistics::as_history, *};

/// The main line of a synthetic history, as a real history would be read.
fn main_line(history: SyntheticHistory) -> (Vec<(RelPath, u64)>, Vec<HistoryCommit>) {
    let mut commits: Vec<_> = as_history(history.filter(|commit| commit.main_line)).collect();
    let start = commits.remove(0).changes.into_iter().map(|change| match change {
        HistoryChange::Add { path, size } => (path, size),
        other => panic!("the first commit has {other:?}"),
    });
    (start.collect(), commits)
}

/// A history that differs from Linux': few merges, small files, deep directories, many renames.
fn other_model() -> HistoryModel {
    let mut model = HistoryModel::linux_like().clone();
    (model.files, model.commits, model.merges) = (1_500, 3_000, 20_000);
    model.sizes.start = Quantiles::of(&(1..=4_000).step_by(7).collect::<Vec<u64>>());
    model.sizes.grow_shrink_same = [300_000, 600_000, 100_000];
    model.tree.directories_by_depth = vec![1, 2, 4, 8, 16, 16];
    model.kinds[1].weights[4] = 400;
    model.choice.next_directory.iter_mut().for_each(|ppm| *ppm /= 3);
    model.choice.heat = model.choice.heat.spread(1.6);
    model
}

fn fit(history: SyntheticHistory) -> FittedHistory {
    let (start, commits) = main_line(history);
    fit_history("test", start, commits, &mut |_, _| true).expect("it is long enough")
}

#[test]
fn a_fit_follows_a_history_that_is_not_like_linux() {
    let fitted = fit(SyntheticHistory::like(other_model(), Seed(5)));
    let table = render_fit(&fitted);
    let last = table.lines().last().expect("there are lines");
    let numbers: Vec<u32> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [alike, limited] = numbers[..] else { panic!("{last}") };
    assert!(alike * 10 >= limited * 8, "{table}");
    // The model of Linux is not like this history, so the test can fail.
    let linux = HistoryModel { files: 1_500, commits: 3_000, ..HistoryModel::linux_like().clone() };
    let linux = compute_synthetic_statistics(SyntheticHistory::like(linux, Seed(5)));
    let far = FittedHistory { synthetic: linux, ..fitted };
    let far = render_fit(&far);
    let far: Vec<u32> = far.lines().last().expect("lines").split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(far[0] + 15 < alike, "Linux: {far:?}, fitted: {alike}\n{table}");
}

#[test]
fn a_fit_and_its_model_file_are_deterministic() {
    let parameters = SyntheticParameters { seed: Seed(2), start_files: 500, commits: 200 };
    let history = || SyntheticHistory::new(parameters).expect("in range");
    let (one, other) = (fit(history()).model, fit(history()).model);
    assert_eq!(one.to_text(), other.to_text());
    assert_eq!(HistoryModel::parse(&one.to_text(), "m").expect("it was written by us"), one);
    let stream = |model: HistoryModel| {
        let mut bytes = Vec::new();
        write_fast_import(SyntheticHistory::like(model, Seed(3)), &mut bytes).expect("memory takes all");
        bytes
    };
    assert!(stream(one) == stream(other), "two models with one text make different histories");
}

#[test]
fn histories_that_are_too_short_are_refused() {
    let file = |name: String| (RelPath::new(name.as_bytes()).expect("a path"), 10);
    let files = |n: u32| (0..n).map(move |i| file(format!("f{i}"))).collect::<Vec<_>>();
    let commit = |i: u64| HistoryCommit {
        merge: false,
        changes: vec![HistoryChange::Modify { path: RelPath::new(b"f0").expect("a path"), size: 10 + i }],
    };
    let said = |files: Vec<_>, commits: Vec<_>| {
        fit_history("r", files, commits, &mut |_, _| true).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(
        said(files(19), (0..60).map(commit).collect()),
        Err("r: its first tree has 19 files; a model needs 20 to 1,000,000".into())
    );
    assert_eq!(
        said(files(20), (0..49).map(commit).collect()),
        Err("r: 49 commits with changes follow its first tree; a model needs 50 to 10,000,000".into())
    );
    let empty = HistoryCommit { merge: false, changes: Vec::new() };
    assert!(said(files(20), (0..49).map(commit).chain([empty]).collect()).is_err());
    assert_eq!(said(files(20), (0..50).map(commit).collect()), Ok(()));
}

#[test]
fn model_files_with_a_fault_are_refused() {
    let good = HistoryModel::linux_like().to_text();
    HistoryModel::parse(&good, "m").expect("the text of a model is a model");
    for (old, new, said) in [
        ("senesce-history-model/1", "senesce-history-model/2", "the format is"),
        ("files = 17300", "files = 19", "m: files must be 20 to 1,000,000"),
        ("files = 17300", "files = -1", "m: "),
        ("commits = 34000", "commits = 10000001", "m: commits must be at most"),
        ("merges = 200000", "merges = 1000001", "m: merges must be at most"),
        ("merges = 200000", "merges = 200000\nextra = 1", "m: unknown field"),
        ("[[0, 1], [560000, 1]", "[[0, 0], [560000, 1]", "m: touched.plain must be at least 1"),
        ("[[0, 1], [170000, 1]", "[[0, 0], [170000, 1]", "m: touched.merges must be at least 1"),
        ("[0, 60]", "[1, 60]", "m: choice.heat must go from 0"),
        ("[100000, 250]", "[0, 250]", "m: choice.heat must be ascending"),
        ("[100000, 250]", "[100000, 30]", "m: choice.heat must be ascending"),
        ("[1000000, 130000]", "[1000000, 9223372036854775807]", "m: choice.heat has a value that is too large"),
        ("up_to = 1", "up_to = 1.5", "m: "),
        ("711251", "300000000", "m: choice.size_weights must ascend"),
        ("600000, 370000, 30000", "0, 0, 0", "m: sizes.grow_shrink_same needs"),
    ] {
        let dense = good.replace("\n    ", " ").replace(",\n]", " ]").replace("[ ", "[");
        let text =
            [good.replace(old, new), dense.replace(old, new)].into_iter().find(|text| *text != good && *text != dense);
        let text = text.unwrap_or_else(|| panic!("the model has no {old:?}:\n{good}"));
        let error = HistoryModel::parse(&text, "m").expect_err(new).to_string();
        assert!(error.contains(said), "{new}: {error}");
    }
}

/// Ascending quantiles up to `most`, often with equal values and extremes.
fn quantiles(least: u64, most: u64) -> impl proptest::strategy::Strategy<Value = Quantiles> {
    use proptest::prelude::*;
    let value = prop_oneof![Just(least), Just(most), least..=most, least..=(least + 3).min(most)];
    proptest::collection::vec(value, 1..40).prop_map(|mut values| {
        values.sort_unstable();
        Quantiles::of(&values)
    })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// A history follows every model that passes the check, and ends.
    #[test]
    fn every_model_that_is_accepted_is_followed(
        (plain, merges, files_per_directory) in (quantiles(1, 90), quantiles(1, 400), quantiles(1, 50)),
        (added, deleted, renamed) in (quantiles(0, 1_000), quantiles(0, 1_000), quantiles(0, 1_000)),
        (start, grown, change) in (quantiles(0, 90_000), quantiles(0, 90_000), quantiles(1, 90_000)),
        weights in proptest::collection::vec(0u64..3, 15),
        (files, top_files, merge_share) in (20u64..200, 0u64..30, proptest::sample::select(vec![0, 300_000, 1_000_000])),
        depths in proptest::collection::vec(0u64..3, 1..8),
        heat in quantiles(0, 200_000),
    ) {
        let mut model = HistoryModel::linux_like().clone();
        (model.files, model.commits, model.merges) = (files, 40, merge_share);
        model.touched = Touched { plain, merges };
        model.shares = Shares { added, deleted, renamed };
        (model.sizes.start, model.sizes.added, model.sizes.change) = (start, grown, change);
        for row in &mut model.kinds {
            row.weights.copy_from_slice(&weights);
        }
        model.tree = TreeShape { top_files, directories_by_depth: depths, files_per_directory };
        model.choice.heat = heat;
        let is_possible = weights.iter().any(|&weight| weight > 0)
            && model.tree.directories_by_depth.iter().any(|&weight| weight > 0)
            && top_files < files;
        let checked = model.checked("m");
        proptest::prop_assert_eq!(checked.is_ok(), is_possible);
        if let Ok(model) = checked {
            proptest::prop_assert!(SyntheticHistory::like(model, Seed(1)).filter(|commit| commit.main_line).count() == 41);
        }
    }
}
