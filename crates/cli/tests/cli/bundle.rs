//! Bundles: a run as one file, verified and run again.

use std::{fs, path::Path};

use senesce_store::{CellKey, CellResults, CellRow, CircumstanceRow, GrepRow, ResultStore, Role, RunInfo};
use senesce_testkit::{check_json, root_or_skip};
use serde_json::Value;

use super::{
    lab::{Lab, SINGLE},
    repositories::Repository,
    rows::{layout_row, modelled_row},
};

/// A run with figures that a test chooses.
struct Made<'a> {
    requests: u64,
    layout_score: f64,
    kernel: &'a str,
    repetitions: u64,
}

const PLAIN: Made<'_> = Made { requests: 10_000, layout_score: 0.9, kernel: "6.1", repetitions: 1 };

/// The plan of made runs.
fn plan_of(more: &str) -> String {
    SINGLE.replace("dir = \"MEMORY\"\n", "") + more
}

/// Writes a complete run of a plan with one arm, without running it.
fn make(lab: &Lab, dir: &str, plan: &str, made: &Made<'_>) {
    let run = lab.path(dir);
    fs::create_dir(&run).unwrap();
    fs::write(run.join("plan.toml"), plan).unwrap();
    fs::write(run.join("begun-in"), lab.path("").as_os_str().as_encoded_bytes()).unwrap();
    let hash = blake3::hash(plan.as_bytes()).to_hex().to_string();
    let journal = format!(
        "{{\"event\":\"run-started\",\"format\":\"senesce-journal/1\",\"plan_hash\":\"{hash}\",\"senesce\":\"x\"}}\n\
         {{\"event\":\"arm-started\",\"arm\":\"ext4\"}}\n{{\"event\":\"arm-done\",\"arm\":\"ext4\"}}\n"
    );
    fs::write(run.join("journal.ndjson"), journal).unwrap();
    fs::create_dir_all(run.join("arms/ext4")).unwrap();
    fs::write(run.join("arms/ext4/oplog.senesce-log"), "a log").unwrap();
    let mut store = ResultStore::create(&run.join("results"), dir).unwrap();
    let info = RunInfo {
        run_name: "made".into(),
        plan_name: "single".into(),
        plan_hash: hash,
        senesce_version: "0.1.0 (commit 1a2b)".into(),
        ..store.run_info().clone()
    };
    store.put_run_info(&info).unwrap();
    for role in [Role::Empty, Role::Unaged] {
        store.append_cell(&results(role, made)).unwrap();
    }
    let row = |key: &str, value: &str| CircumstanceRow { arm: String::new(), key: key.into(), value: value.into() };
    let rows = [
        row("kernel_release", made.kernel),
        row("run.begun_unix_seconds", "1700000000"),
        row("workload.kind", "\"history\""),
    ];
    store.put_circumstances(&rows).unwrap();
}

fn results(role: Role, made: &Made<'_>) -> CellResults {
    let key = CellKey { arm: "ext4".into(), file_system: "ext4".into(), role, pulls: 4 };
    let cell = CellRow { valid: true, files: 1, capacity_bytes: 2, ..CellRow::without_figures(key.clone(), "") };
    let mut results = CellResults::of(cell);
    results.layout = Some(layout_row(key.clone(), made.layout_score));
    results.modelled = vec![modelled_row(key.clone(), 100.0, made.requests)];
    let grep = |repetition| GrepRow {
        key: key.clone(),
        repetition,
        scanner: "senesce".into(),
        order: "readdir".into(),
        cache: "drop".into(),
        wall_seconds: 1.0,
        allocated_bytes: 1 << 30,
        seconds_per_gib: 1.0 + repetition as f64 / 100.0,
        read_bytes: 1,
        files: 1,
        user_seconds: 0.0,
        system_seconds: 0.0,
        device_read_bytes: None,
        device_read_requests: None,
        cpu_bound: false,
        fuse_floor_seconds: f64::NAN,
    };
    results.grep = (0..made.repetitions).map(grep).collect();
    results
}

/// Unpacks a bundle by a program that is not ours.
fn unpack(bundle: &Path, dir: &Path) {
    let archive = fs::read(bundle).unwrap();
    let tar = zstd_frame(&archive);
    let mut at = 0;
    while tar[at] != 0 {
        let field = |from: usize, length: usize| {
            let bytes = &tar[at + from..at + from + length];
            String::from_utf8(bytes.iter().copied().take_while(|byte| *byte != 0).collect()).unwrap()
        };
        let prefix = field(345, 155);
        let name = if prefix.is_empty() { field(0, 100) } else { format!("{prefix}/{}", field(0, 100)) };
        let bytes = usize::from_str_radix(field(124, 12).trim(), 8).unwrap();
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &tar[at + 512..at + 512 + bytes]).unwrap();
        at += 512 + bytes.next_multiple_of(512);
    }
}

fn zstd_frame(bundle: &[u8]) -> Vec<u8> {
    zstd::decode_all(&bundle[..bundle.len() - 40]).unwrap()
}

#[test]
fn a_bundle_has_everything_and_is_reproducible() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &PLAIN);
    let done = lab.run(["bundle", "run"]).good();
    assert!(done.stdout.starts_with("run.senesce-bundle\n"), "{}", done.stdout);
    lab.run(["bundle", "run", "-o", "again.senesce-bundle"]).good();
    let read = |name: &str| fs::read(lab.path(name)).unwrap();
    assert!(read("run.senesce-bundle") == read("again.senesce-bundle"));
    lab.run(["bundle", "run"]).refused(2, &["run.senesce-bundle exists already"]);

    unpack(&lab.path("run.senesce-bundle"), &lab.path(""));
    let text = |name: &str| fs::read_to_string(lab.path("bundle").join(name)).unwrap();
    assert_eq!(text("plan.toml"), plan_of(""));
    assert_eq!(text("logs/ext4.senesce-log"), "a log");
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CITATION.cff");
    assert_eq!(text("CITATION.cff"), fs::read_to_string(project).unwrap());
    assert!(text("report.html").contains("<meta name=\"generator\" content=\"senesce\">"));
    assert!(text("methods.txt").contains("We aged ext4 with senesce 0.1.0 (commit 1a2b)"));
    assert!(text("circumstances.csv").contains("kernel_release,6.1"));
    check_json("bundle", &serde_json::from_str(&text("manifest.json")).unwrap());
    // Every drawing that LaTeX includes is in the bundle, in both widths.
    let latex = text("figures.tex");
    let included: Vec<&str> =
        latex.split("\\includegraphics{").skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
    assert!(included.len() >= 4, "{latex}");
    for width in ["-84mm.pdf", "-178mm.pdf"] {
        let of_width = included.iter().filter(|name| name.ends_with(width));
        assert_eq!(of_width.count() * 2, included.len(), "{included:?}");
    }
    for name in included {
        let pdf = fs::read(lab.path("bundle").join(name)).unwrap();
        assert!(pdf.starts_with(b"%PDF-") && lab.path("bundle").join(name).with_extension("svg").is_file(), "{name}");
    }
    // The tables are those of the run.
    for (from, to) in [("bundle", "unpacked.json"), ("run", "run.json")] {
        fs::write(lab.path(to), lab.run(["export", from, "--json"]).good().stdout).unwrap();
    }
    assert!(read("unpacked.json") == read("run.json"));
    assert!(!lab.path("run.senesce-bundle.partial").exists());
}

#[test]
fn a_whole_bundle_is_verified_and_a_changed_one_refused() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &PLAIN);
    lab.run(["bundle", "run", "-o", "b"]).good();
    let shown = lab.run(["verify-bundle", "b"]).good().stdout;
    for said in
        ["b is whole", "plan     single", "run by   senesce 0.1.0 (commit 1a2b)", "cells    2\n", "cells 2, grep 2"]
    {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let json: Value = serde_json::from_str(&lab.run(["verify-bundle", "b", "--json"]).good().stdout).unwrap();
    assert_eq!((&json["whole"], &json["error"], &json["contents"]["cells"]), (&true.into(), &Value::Null, &2.into()));

    let bytes = fs::read(lab.path("b")).unwrap();
    for at in [4, bytes.len() / 2, bytes.len() - 41, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        fs::write(lab.path("c"), changed).unwrap();
        for words in [&["verify-bundle", "c"][..], &["rerun", "c", "--out", "never"]] {
            lab.run(words).refused(1, &["c is damaged: its checksum is wrong", "hint: get it again"]);
        }
    }
    fs::write(lab.path("c"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = lab.run(["verify-bundle", "c", "--json"]);
    cut.refused(1, &["it was cut or changed"]);
    let json: Value = serde_json::from_str(&cut.stdout).unwrap();
    assert!(json["whole"] == false && json["error"].as_str().unwrap().contains("c is damaged"), "{json}");
    assert!(!lab.path("never").exists());
    lab.run(["verify-bundle", "run/plan.toml"]).refused(2, &["is no bundle: it does not start as one"]);
    lab.run(["verify-bundle", "run"]).refused(2, &["is no bundle: it is not a regular file"]);
    lab.run(["verify-bundle", "nowhere"]).refused(2, &["cannot read nowhere"]);
}

#[test]
fn parts_that_disagree_are_refused() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &PLAIN);
    lab.run(["bundle", "run", "-o", "b"]).good();
    unpack(&lab.path("b"), &lab.path(""));
    let read = |name: &str| fs::read(lab.path("bundle").join(name)).unwrap();
    let cells = read("results/cells.parquet");
    let run = String::from_utf8(read("results/run.json")).unwrap();
    let other_run = run.replace("\"plan_hash\": \"", "\"plan_hash\": \"0");
    type Change<'a> = (&'a str, Option<Vec<u8>>, &'a str);
    let changes: [Change<'_>; 6] = [
        ("plan.toml", Some(b"format = \"senesce-plan/1\"".to_vec()), "plan.toml has another hash"),
        ("results/run.json", Some(other_run.into_bytes()), "the results are those of another plan"),
        ("results/run.json", None, "run.json is missing"),
        ("results/grep.parquet", None, "the table is missing"),
        ("results/grep.parquet", Some(b"PAR1".to_vec()), "grep.parquet is damaged"),
        ("results/layout.parquet", Some(cells), "layout.parquet is damaged"),
    ];
    for (name, content, fault) in changes {
        repack(&lab, |files| match content {
            Some(content) => drop(files.insert(name.to_owned(), content)),
            None => drop(files.remove(name)),
        });
        lab.run(["verify-bundle", "forged"]).refused(1, &["forged is damaged", fault]);
    }
    // Results of a later version are no damage.
    let later = run.replace("senesce-results/", "senesce-results/9");
    assert!(later != run);
    repack(&lab, |files| drop(files.insert("results/run.json".to_owned(), later.into_bytes())));
    lab.run(["verify-bundle", "forged"]).refused(2, &["cannot read the results of forged", "use a newer senesce"]);
}

#[test]
fn a_link_in_a_run_leads_to_no_file_outside_it() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &PLAIN);
    fs::rename(lab.path("run/arms/ext4"), lab.path("outside")).unwrap();
    std::os::unix::fs::symlink(lab.path("outside"), lab.path("run/arms/ext4")).unwrap();
    lab.run(["bundle", "run", "-o", "b"]).good();
    unpack(&lab.path("b"), &lab.path(""));
    assert!(lab.path("bundle/plan.toml").exists() && !lab.path("bundle/logs").exists());
}

/// Writes the bundle `forged` from the directory `bundle`, with changed files and right checksums.
fn repack(lab: &Lab, change: impl FnOnce(&mut std::collections::BTreeMap<String, Vec<u8>>)) {
    use senesce_bundle::{Content, Contents, Licence, Limits, Manifest, Prepared, Research};
    let root = lab.path("bundle");
    let manifest: Manifest = serde_json::from_slice(&fs::read(root.join("manifest.json")).unwrap()).unwrap();
    let listed = manifest.files.iter().filter(|file| file.path != "ro-crate-metadata.json");
    let mut files = listed.map(|file| (file.path.clone(), fs::read(root.join(&file.path)).unwrap())).collect();
    change(&mut files);
    let contents = Contents {
        senesce_version: manifest.senesce_version,
        plan: manifest.plan,
        inputs: manifest.inputs,
        tables: manifest.tables,
        research: Research {
            plan_name: "x".into(),
            description: String::new(),
            begun_unix_seconds: None,
            senesce_version: "x".into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            licence: Licence::NotStated,
        },
        files: files.into_iter().map(|(name, bytes)| (name, Content::Bytes(bytes))).collect(),
    };
    let file = fs::File::create(lab.path("forged")).unwrap();
    let prepared = Prepared::new(contents, Limits::default(), |_| true, &|| Ok(())).unwrap();
    prepared.write(file, Path::new("forged"), &|| Ok(())).unwrap();
}

#[test]
fn figures_beyond_their_tolerance_are_different() {
    let lab = Lab::new();
    let plan = plan_of("");
    make(&lab, "run", &plan, &PLAIN);
    make(&lab, "near", &plan, &Made { requests: 10_040, ..PLAIN });
    make(&lab, "worse", &plan, &Made { requests: 10_200, kernel: "6.2", ..PLAIN });
    make(&lab, "better", &plan, &Made { layout_score: 0.95, ..PLAIN });
    lab.run(["bundle", "run", "-o", "b"]).good();
    let against = |run: &str| lab.run(["rerun", "b", "--against", run]);
    let same = against("run").good().stdout;
    assert!(same.contains("8 deterministic figures: 8 equal") && same.contains("rerun: all 8"), "{same}");
    assert!(same.contains("2 wall times are not comparable: they have fewer than four values"), "{same}");
    let near = against("near").good().stdout;
    assert!(near.contains("6 are equal and 2 within their tolerance") && near.contains("+0.40%"), "{near}");
    let worse = against("worse");
    worse.refused(5, &["2 of 8 deterministic figures differ by more than their tolerance: ext4 empty 4 model:"]);
    let first = "unlike: kernel: kernel_release is 6.1 in the bundle, 6.2 in the run\n";
    assert!(worse.stdout.starts_with(first) && worse.stdout.contains("DIFFERENT"), "{}", worse.stdout);
    assert!(worse.stdout.contains("2 wall times are not comparable: kernel_release differs"), "{}", worse.stdout);
    // A better figure is another figure, too.
    against("better").refused(5, &["layout score"]);
    let json = lab.run(["rerun", "b", "--against", "worse", "--json"]);
    json.refused(5, &["deterministic figures differ"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["outcome"], &json["counts"]["different"]), (&"different".into(), &2.into()));
    assert_eq!(json["unlike"][0]["key"], "kernel_release");

    // A run without a cell of the bundle is no success.
    let store = ResultStore::open_read_only(&lab.path("run/results")).unwrap();
    let mut cell = store.read_all().unwrap().cells[0].clone();
    (cell.valid, cell.reason) = (false, "the disk is gone".into());
    ResultStore::open(&lab.path("near/results")).unwrap().append_cell(&CellResults::of(cell)).unwrap();
    against("near").refused(6, &["the run lacks 1 of the bundle", "it is not valid in the run: the disk is gone"]);
}

#[test]
fn wall_times_with_repetitions_have_statistics() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &Made { repetitions: 5, ..PLAIN });
    lab.run(["bundle", "run", "-o", "b"]).good();
    let shown = lab.run(["rerun", "b", "--against", "run"]).good().stdout;
    assert!(shown.contains("run/bundle") && shown.contains("ext4 empty 4 grep s/GiB"), "{shown}");
}

#[test]
fn inputs_are_bundled_only_on_request() {
    let lab = Lab::new();
    fs::write(lab.path("slow disk.toml"), "a device").unwrap();
    let plan = plan_of("").replace("[measure]\n", "[measure]\ndevices = [\"slow disk.toml\"]\n");
    make(&lab, "run", &plan, &PLAIN);
    let without = lab.run(["bundle", "run", "-o", "without"]).good();
    assert!(
        without.stderr.contains("files that are not in the bundle: slow disk.toml; --inputs adds"),
        "{}",
        without.stderr
    );
    lab.run(["rerun", "without", "--out", "never"]).refused(2, &["the plan reads slow disk.toml", "with --inputs"]);
    let with = lab.run(["bundle", "run", "-o", "with", "--inputs", "--no-logs", "--licence", "CC-BY-4.0"]).good();
    assert!(with.stderr.contains("slow disk.toml is in the bundle, as inputs/0/slow-disk.toml"), "{}", with.stderr);
    unpack(&lab.path("with"), &lab.path(""));
    assert_eq!(fs::read_to_string(lab.path("bundle/inputs/0/slow-disk.toml")).unwrap(), "a device");
    assert!(!lab.path("bundle/logs").exists());
    assert!(fs::read_to_string(lab.path("bundle/ro-crate-metadata.json")).unwrap().contains("licenses/CC-BY-4.0"));
    // An input that is gone is named. A device of senesce itself is no file.
    fs::remove_file(lab.path("slow disk.toml")).unwrap();
    let gone = lab.run(["bundle", "run", "-o", "gone", "--inputs"]).good();
    assert!(gone.stderr.contains("note: slow disk.toml is not in the bundle"), "{}", gone.stderr);
    make(&lab, "preset", &plan_of("").replace("[measure]\n", "[measure]\ndevices = [\"hdd-7200\"]\n"), &PLAIN);
    let preset = lab.run(["bundle", "preset", "-o", "preset.b", "--inputs"]).good();
    assert!(!preset.stderr.contains("hdd-7200"), "{}", preset.stderr);
}

/// Paths of inputs are no circumstances: their contents are the same.
#[test]
fn inputs_of_a_rerun_are_elsewhere_and_alike() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    Repository::with_commits(&lab.path("theirs"), 6);
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/presets/hdd-7200.toml"), lab.path("own.toml"))
        .unwrap();
    let synthetic = "synthetic = { model = \"linux-like\", files = 500, commits = 8 }";
    let plan = SINGLE
        .replace(synthetic, &format!("repo = \"{}\"", lab.path("theirs").display()))
        .replace("[measure]", &format!("[measure]\ndevices = [\"{}\"]", lab.path("own.toml").display()));
    let plan = lab.plan(&plan);
    lab.run(["run".as_ref(), plan.as_os_str(), "--out".as_ref(), "run".as_ref(), "-q".as_ref()]).good();
    lab.run(["bundle", "run", "-o", "b", "--inputs"]).good();
    fs::rename(lab.path("theirs"), lab.path("ours")).unwrap();
    fs::remove_file(lab.path("own.toml")).unwrap();
    lab.run(["rerun", "b", "--out", "never"]).refused(2, &["the plan replays the repository", "--repo"]);
    let done = lab.run(["rerun", "b", "--out", "again", "--repo", "ours", "-q", "--json"]).good();
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let unlike = json["unlike"].as_array().unwrap();
    assert!(unlike.iter().all(|unlike| unlike["group"] == "load"), "{json}");
    assert!(json["counts"]["equal"].as_u64().unwrap() > 0 && json["counts"]["different"] == 0, "{json}");
    lab.assert_nothing_left();
}

#[test]
fn unusable_runs_and_hostile_plans_are_refused() {
    let lab = Lab::new();
    make(&lab, "run", &plan_of(""), &PLAIN);
    fs::write(lab.path("run/plan.toml"), plan_of("# changed\n")).unwrap();
    lab.run(["bundle", "run", "-o", "b"]).refused(2, &["plan.toml was changed after the run was started"]);
    make(&lab, "half", &plan_of(""), &PLAIN);
    let journal = fs::read_to_string(lab.path("half/journal.ndjson")).unwrap();
    fs::write(lab.path("half/journal.ndjson"), journal.replace("arm-done", "arm-started")).unwrap();
    lab.run(["bundle", "half", "-o", "b"]).refused(2, &["half is not finished: 0 of 1 arms", "run --resume"]);
    fs::remove_file(lab.path("half/plan.toml")).unwrap();
    lab.run(["bundle", "half", "-o", "b"]).refused(2, &["half has no plan.toml"]);
    lab.run(["bundle", "run", "--licence", "my own"]).refused(2, &["spdx.org/licenses"]);
    assert!(!lab.path("b").exists());

    let hostile = [
        ("place", "empty = \"64MiB\"", "empty = { device = \"/dev/sdb\" }", "volumes.empty of the plan is a device"),
        ("file", "[measure]\n", "[measure]\ndevices = [\"/etc/hostname\"]\n", "the plan reads /etc/hostname"),
    ];
    for (name, from, to, fault) in hostile {
        make(&lab, name, &plan_of("").replace(from, to), &PLAIN);
        lab.run(["bundle", name]).good();
        let bundle = format!("{name}.senesce-bundle");
        lab.run(["verify-bundle", &bundle]).good();
        lab.run(["rerun", &bundle, "--out", "never"]).refused(2, &[fault]);
    }
    assert!(!lab.path("never").exists());
}

#[test]
fn a_run_and_its_rerun_have_equal_figures() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let plan = SINGLE
        .replace("[measure]", "[measure]\ntrace = true")
        .replace("backend = \"memory\"", "backend = \"memory\"\ndevice = \"hdd-7200\"");
    let plan = lab.plan(&plan);
    lab.run(["run".as_ref(), plan.as_os_str(), "--out".as_ref(), "run".as_ref(), "-q".as_ref()]).good();
    lab.run(["bundle", "run", "-o", "b"]).good();
    let whole: Value = serde_json::from_str(&lab.run(["verify-bundle", "b", "--json"]).good().stdout).unwrap();
    assert_eq!(whole["contents"]["invalid_cells"], 0);
    // The machine of the run is gone, and so are its directories.
    fs::remove_dir_all(lab.path("run")).unwrap();
    fs::remove_file(plan).unwrap();
    let done = lab.run(["rerun", "b", "--out", "again", "-q", "--json"]).good();
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(json["outcome"] == "equal" || json["outcome"] == "within", "{json}");
    assert_eq!((&json["counts"]["different"], &json["missing"]), (&0.into(), &Value::Array(Vec::new())));
    assert!(json["counts"]["equal"].as_u64().unwrap() >= 10, "{}", json["counts"]);
    let groups: Vec<&str> =
        json["unlike"].as_array().unwrap().iter().map(|unlike| unlike["group"].as_str().unwrap()).collect();
    assert!(groups.iter().all(|group| *group == "load"), "{json}");
    // The new run is a run like any other: its bundle has the same figures.
    lab.run(["bundle", "again"]).good();
    lab.run(["rerun", "again.senesce-bundle", "--against", "again"]).good();
    lab.run(["rerun", "b", "--out", "again"]).refused(2, &["is not empty"]);
    lab.assert_nothing_left();
}
