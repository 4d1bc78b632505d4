//! Personalities in place of commands, and suites of them: what they do is the same everywhere, and
//! a killed suite continues.

use std::fs;

use senesce_testkit::{check_document, root_or_skip};
use serde_json::Value;

use super::{
    bench::{aged_image, assert_clean, figures, json},
    lab::Lab,
};

/// A server with one thread that never finds all its files, and one that waits for it.
const MINE: &str = r#"format = "senesce-personality/1"
name = "mine"
operations = 600
[[fileset]]
name = "files"
entries = 20
size_bytes = 20000
size_gamma = 1.5
dir_width = 4
dir_gamma = 1.5
prealloc_percent = 60
scales = "entries"
[[process]]
name = "worker"
instances = 1
threads = 2
flowops = [
    { op = "createfile", fileset = "files" },
    { op = "writewholefile", iosize_bytes = 65536 },
    { op = "fsync" },
    { op = "closefile" },
    { op = "sempost", value = 1, target = "tick" },
    { op = "openfile", fileset = "files" },
    { op = "readwholefile", iosize_bytes = 65536 },
    { op = "closefile" },
    { op = "deletefile", fileset = "files" },
]
[[process]]
name = "ticker"
instances = 1
threads = 1
flowops = [
    { op = "statfile", fileset = "files", iters = 2 },
    { op = "semblock", name = "tick", value = 10, highwater = 5 },
]
"#;

#[test]
fn built_in_personalities_are_shown() {
    let lab = Lab::new();
    let list = lab.run(["bench", "personality", "list"]).good().stdout;
    assert_eq!(lab.run(["personality", "list"]).good().stdout, list, "the earlier name");
    assert!(["varmail", "fileserver", "webserver", "oltp"].iter().all(|name| list.contains(name)), "{list}");
    let shown = lab.run(["personality", "show", "oltp"]).good().stdout;
    let file = lab.path("mine.toml");
    let path = file.to_string_lossy().into_owned();
    fs::write(&file, &shown).unwrap();
    assert_eq!(lab.run(["personality", "show", &path]).good().stdout, shown);
    for (from, to, said) in [
        ("prealloc_percent", "preallocpercent", "did you mean `prealloc_percent`?"),
        ("op = \"aiowrite\"", "op = \"aiowrit\"", "did you mean `aiowrite`?"),
        ("personality/1", "personality/2", "senesce-personality/2"),
        ("operations = 40000", "operations = 0", "operations"),
        ("target = \"lg-block\"", "target = \"lg\"", "no semblock"),
    ] {
        fs::write(&file, shown.replacen(from, to, 1)).unwrap();
        lab.run(["personality", "show", &path]).refused(2, &[said]);
    }
    lab.run(["personality", "show", "varmial"]).refused(2, &["varmial", "varmail, fileserver"]);
    lab.run(["bench", "--aged", "x", "--personality", "varmail", "--", "true"]).refused(2, &["cannot be used with"]);
    lab.run(["bench", "--aged", &path, "--personality", "varmail", "--scale", "0"]).refused(2, &["scale"]);
    lab.run(["bench", "--suite", "x.toml"]).refused(2, &["--out"]);
}

#[test]
fn personality_repeats_equal_operations_on_every_volume() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let mine = lab.path("mine.toml");
    fs::write(&mine, MINE).unwrap();
    let [ext4, btrfs, xfs] =
        [("ext4", 64), ("btrfs", 160), ("xfs", 320)].map(|(kind, mib)| aged_image(&lab, kind, mib));
    let mine = mine.to_string_lossy().into_owned();
    let aged = ["--aged", &ext4, "--aged", &btrfs, "--aged", &xfs];
    let common = [&["bench"], &aged[..], &["--unaged", "--dir", &dir, "--personality"]].concat();
    let outcome = json(&lab.run([&common[..], &[&mine, "-r", "2", "--json", "--sync"]].concat()).good().stdout);
    let counts = |volume: usize, state: usize, run: usize| -> Vec<u64> {
        let run = &outcome["volumes"][volume]["states"][state]["runs"][run];
        assert_eq!((&run["no_space"], &run["passed_over"]), (&Value::from(0), &Value::from(0)));
        let flows = run["flows"].as_array().unwrap().iter();
        flows.flat_map(|flow| ["count", "read_bytes", "written_bytes"].map(|key| flow[key].as_u64().unwrap())).collect()
    };
    for run in 0..2 {
        for (volume, state) in [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
            assert_eq!(counts(volume, state, run), counts(0, 0, run));
        }
    }
    assert_ne!(counts(0, 0, 0), counts(0, 0, 1), "each run has operations of its own");
    // 600 in loops of eight by two threads, and two looks for each ten posts and before the first.
    assert_eq!(outcome["volumes"][0]["states"][0]["runs"][0]["operations"], 38 * 2 * 8 + 2 * (1 + 7));
    let rates = figures(&outcome, 1, 0);
    assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0) && outcome["more_is_better"] == true);
    assert_eq!(outcome["personality"]["personality"]["name"], "mine");

    let text =
        lab.run([&common[..], &["webserver", "--scale", "0.02", "--seconds", "1", "-r", "1"]].concat()).good().stdout;
    for said in ["file operations per second of webserver", "appendlog", "p99.9", "rank"] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    assert_clean(&lab);
}

#[test]
fn no_space_is_counted_or_refused() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = aged_image(&lab, "ext4", 24);
    // The files fit, what is appended to them does not.
    let mine = lab.path("grow.toml");
    let grow = MINE.replace("{ op = \"fsync\" },", "{ op = \"appendfile\", iosize_bytes = 2000000, iters = 8 },");
    fs::write(&mine, grow).unwrap();
    let common = ["bench", "--aged", &image, "-r", "1", "--dir", &dir, "--personality"];
    let outcome = json(&lab.run([&common[..], &[&*mine.to_string_lossy(), "--json"]].concat()).good().stdout);
    let run = &outcome["volumes"][0]["states"][0]["runs"][0];
    assert!(run["no_space"].as_u64().unwrap() > 0 && run["operations"].as_u64().unwrap() > 0, "{run}");
    lab.run([&common[..], &["fileserver", "--scale", "0.1"]].concat())
        .refused(1, &["no space for the", "files", "were made"]);
    assert_clean(&lab);
}

const SUITE: &str = r#"format = "senesce-suite/1"
name = "tiny"
runs = 2
states = ["fresh", "agrawal", "wang_os"]
[volume]
size = "144MiB"
device = "hdd-7200"
memory = true
[aging]
fullness_percent = 50.0
churn = 1.0
[[personality]]
name = "LAB/mine.toml"
[[personality]]
name = "varmail"
scale = 0.1
operations = 208
[[file_system]]
kind = "ext4"
[[file_system]]
kind = "btrfs"
mkfs = ["--mixed"]
"#;

#[test]
fn suite_ages_measures_ranks_and_resumes() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("mine.toml"), MINE).unwrap();
    let plan = lab.plan(SUITE).to_string_lossy().into_owned();
    let out = lab.path("out");
    let run = ["bench", "--suite", &plan, "--out", &out.to_string_lossy()];
    let text = lab.run(run).good().stdout;
    assert!(text.contains("modelled device (model: HDD 7.2K)") && text.contains("wang_os"), "{text}");
    let results = || json(&fs::read_to_string(out.join("results.json")).unwrap());
    let found = results();
    check_document(&found);
    assert_eq!(found["is_complete"], true);
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2 * 2 * 3 * 2);
    for run in runs {
        let device = &run["figures"]["device"];
        assert!(device["seconds"].as_f64().unwrap() > 0.0 && device["write_requests"].as_u64().unwrap() > 0, "{run}");
        let twin = runs.iter().find(|other| other["personality"] == run["personality"] && other["run"] == run["run"]);
        assert_eq!(
            twin.unwrap()["figures"]["operations"],
            run["figures"]["operations"],
            "the same operations everywhere"
        );
    }
    let base = &found["figures"][0];
    assert_eq!((&base["state"], &base["normal"]["ratio"]), (&Value::from("fresh"), &Value::from(1.0)));
    assert_eq!(found["rankings"].as_array().unwrap().len(), 2 * 2);
    let aged = found["states"].as_array().unwrap().iter().find(|state| state["state"] == "agrawal").unwrap();
    assert!((aged["reached"]["fullness"].as_f64().unwrap() - 0.5).abs() < 0.05, "{aged}");
    let mean = |name: &str| {
        let state = found["states"].as_array().unwrap().iter().find(|state| state["state"] == name).unwrap();
        let free = &state["free_space"];
        let bytes: u64 =
            free["buckets"].as_array().unwrap().iter().map(|bucket| bucket["bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes, free["bytes"].as_u64().unwrap(), "{free}");
        free["mean_bytes"].as_f64().unwrap()
    };
    assert!(mean("fresh") > 4.0 * mean("wang_os"), "age breaks free space into pieces");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("wang_os") && page.matches(r#"<svg class="panel wide""#).count() == 2);

    // A kill in the middle of a line: what was whole counts, the rest is done again, and no image
    // is made again.
    let lines = fs::read_to_string(out.join("runs.ndjson")).unwrap();
    let whole: Vec<&str> = lines.lines().take(20).collect();
    fs::write(out.join("runs.ndjson"), format!("{}\n{}", whole.join("\n"), &lines.lines().last().unwrap()[..40]))
        .unwrap();
    let made = fs::metadata(out.join("images/ext4-agrawal.image")).unwrap().modified().unwrap();
    lab.run(run).refused(2, &["holds something already", "--resume"]);
    let said = lab.run([&run[..], &["--resume"]].concat()).good().stderr;
    assert!(said.contains("21/24") && !said.contains("20/24"), "{said}");
    assert_eq!(results()["runs"].as_array().unwrap().len(), 24);
    assert_eq!(fs::metadata(out.join("images/ext4-agrawal.image")).unwrap().modified().unwrap(), made);
    let other = lab.plan(&SUITE.replace("runs = 2", "runs = 3")).to_string_lossy().into_owned();
    let resumed = ["bench", "--suite", &other, "--out", &out.to_string_lossy(), "--resume"];
    lab.run(resumed).refused(2, &["another plan"]);
    assert_clean(&lab);
}
