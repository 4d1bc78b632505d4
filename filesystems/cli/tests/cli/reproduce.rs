//! The published experiments, run and held against what was published. None of it needs root.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use senesce_timed::published::{FigureLine, PUBLISHED};
use serde_json::Value;

use super::rig::Lab;

/// What a whole run at the default scale came to: its figures.tsv.
pub const KEPT: &str = include_str!("../../../../golden/reproduction-eighth.tsv");

#[test]
fn second_run_completes_the_table_of_experiments() {
    let lab = Lab::new();
    let run = |jobs: &str| {
        let all = ["reproduce", "--scale", "tiny", "--out", "all", "--json", "--jobs", jobs];
        let done = lab.run(all).good();
        (done.stdout, done.stderr)
    };
    let (first, told) = run("2");
    let table: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(table["schema"], "senesce-reproduction/3");
    let rows = table["experiments"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, (1..=14).map(|number| format!("E{number}")).collect::<Vec<_>>());
    let mut parts = 0;
    for row in rows {
        let ran = row["parts"].as_array().unwrap();
        parts += ran.len();
        assert!(!ran.is_empty() && row["status"] == "run", "{row}");
        for part in ran {
            assert!(!part["figures"].as_array().unwrap().is_empty(), "{part}");
            let name = format!("all/{}-{}.json", row["name"].as_str().unwrap(), part["kind"].as_str().unwrap());
            let file: Value = serde_json::from_slice(&fs::read(lab.path(&name)).unwrap()).unwrap();
            let of_part = |key: &String| file["record"].get(key).or_else(|| file.get(key)).cloned();
            let there = part.as_object().unwrap().iter().filter(|(key, _)| *key != "particular");
            assert!(there.clone().count() > 8, "{part}");
            for (key, value) in there {
                assert_eq!(of_part(key).as_ref(), Some(value), "{name}: {key}");
            }
            assert_circumstances(&table, row, part);
            for figure in part["figures"].as_array().unwrap() {
                let verdict = figure["verdict"].as_str();
                let is_number = figure["published"].is_number();
                assert_eq!(figure["section"] != "", verdict.is_some(), "{figure}");
                let wants_cause = match verdict {
                    Some("not-met" | "not-comparable") => true,
                    Some("direction-only") => is_number,
                    _ => false,
                };
                assert_eq!(figure["cause"].is_string(), wants_cause, "{figure}");
            }
        }
    }
    // Each cause names a figure that has a published number.
    for published in PUBLISHED {
        let row = rows.iter().find(|row| row["name"] == published.name).unwrap();
        let figures = || row["parts"].as_array().unwrap().iter().flat_map(|part| part["figures"].as_array().unwrap());
        for cause in published.causes {
            let is_of = |figure: &Value| {
                figure["name"].as_str().unwrap().starts_with(cause.figure) && figure["published"].is_number()
            };
            assert!(figures().any(is_of), "{}: {}", published.name, cause.figure);
        }
    }
    // The kept run of the docs' scale has the same figures with the same published numbers.
    let lines = fs::read_to_string(lab.path("all/figures.tsv")).unwrap();
    let [now, kept] = [lines.as_str(), KEPT].map(|text| {
        let mut lines = FigureLine::read_all(text).unwrap();
        // What SSDs of this scale say of collection has no figure.
        lines.retain(|line| !line.figure.name.starts_with("write amplification"));
        let key = |line: FigureLine| {
            (
                line.experiment,
                line.kind,
                line.figure.name,
                line.figure.paper,
                line.figure.section,
                line.figure.published,
            )
        };
        lines.into_iter().map(key).collect::<Vec<_>>()
    });
    for line in &now {
        assert!(kept.contains(line), "the kept run lacks {line:?}: run it again and keep its figures.tsv");
    }
    for line in &kept {
        assert!(
            now.contains(line),
            "the kept run has {line:?}, which is no figure: run it again and keep its figures.tsv"
        );
    }
    // Both parts of E1, E4 and E5 are of the same aggregates.
    assert_eq!((parts, told.matches(", started").count()), (19, 16), "{told}");
    assert_eq!(told.matches(" s of processor time (").count(), 16, "{told}");
    let page = fs::read_to_string(lab.path("all/report.html")).unwrap();
    assert!(page.contains("OLTP at random on 12 SSDs") && page.matches("<svg class=\"panel\"").count() > 10);
    // Two parts again, one at a time; all others are taken as they are.
    for part in ["all/E5-time.json", "all/E12-structure.json"] {
        fs::remove_file(lab.path(part)).unwrap();
    }
    let (second, told) = run("1");
    assert!(without_times(&second) == without_times(&first), "{second}\n{first}");
    assert_eq!(told.matches(", started").count(), 2, "{told}");
    // As text, of parts that are there.
    let some = lab.run(["reproduce", "e5", "E9", "--scale", "tiny", "--out", "all"]).good().stdout;
    for said in [
        "E5  ",
        "\nA smoke test with 3% of the turnovers: its verdicts mean nothing.",
        "\nE9  run: ",
        "chunks a block",
        "write chain without cleaning",
        "page:",
        "     fitted: write chain without cleaning: the fill of the aggregate was calibrated to it",
        "\n  fill: 65 % of all blocks: 85 % of the capacity\n",
        "\n  log device: 10 us, 2,000 MB/s\n",
        "\n  parts at a time: 2\n",
        ", run as E5 time; ",
    ] {
        assert!(some.contains(said), "{said}\n{some}");
    }
    for verdict in ["published numbers are met", "of 2 met", "not met", "direction only"] {
        assert!(!some.contains(verdict), "{verdict}\n{some}");
    }
    // Earlier results that were not requested stay in the table; others are marked as not
    // requested.
    assert!(!some.contains("not requested"), "{some}");
    fs::remove_file(lab.path("all/E14-structure.json")).unwrap();
    let some = lab.run(["reproduce", "e5", "E9", "--scale", "tiny", "--out", "all"]).good().stdout;
    assert!(some.contains("\nE14 not requested.\n") && !some.contains("\nE14  "), "{some}");
    // Figures are of the code that made them.
    let file = fs::read_to_string(lab.path("all/E5-time.json")).unwrap();
    let start = file.find("senesce_build\": \"").unwrap() + 17;
    fs::write(lab.path("all/E5-time.json"), [&file[..start], "x", &file[start + 1..]].concat()).unwrap();
    let again = ["reproduce", "E5", "--scale", "tiny", "--out", "all"];
    lab.run(again).refused(2, &["E5-time.json is from another build", "name another directory"]);
    fs::copy(lab.path("all/E4-structure.json"), lab.path("all/E5-time.json")).unwrap();
    lab.run(again).refused(2, &["E5-time.json is structure of E4", "name another directory"]);
    fs::write(lab.path("all/E5-time.json"), file).unwrap();
    let other = ["reproduce", "E5", "--scale", "small", "--out", "all"];
    lab.run(other)
        .refused(2, &["E1-structure.json is from scale 16/1, 3 % of the turnovers", "scale 128/4 was requested"]);
}

/// The circumstances and costs of figures are printed for each part, in common or by itself.
fn assert_circumstances(table: &Value, row: &Value, part: &Value) {
    let (name, kind) = (row["name"].as_str().unwrap(), part["kind"].as_str().unwrap());
    let told = |facts: &Value, what: &str| {
        facts
            .as_array()
            .unwrap()
            .iter()
            .find(|fact| fact["what"] == what)
            .map(|fact| fact["told"].as_str().unwrap().to_owned())
    };
    let find = |what: &str| {
        told(&part["particular"], what)
            .or_else(|| told(&table["common"], what))
            .unwrap_or_else(|| panic!("{name} {kind} does not tell its {what}"))
    };
    for what in ["drives", "areas", "consistency point", "gardening", "seed", "runs", "host", "parts at a time"] {
        assert!(!find(what).is_empty());
    }
    if !["E9", "E10", "E11"].contains(&name) {
        for what in ["blocks of data drives", "fill", "cache", "read-ahead", "snapshots", "load"] {
            assert!(!find(what).is_empty());
        }
    }
    if kind == "time" {
        for what in ["simulated drives", "cores", "processor times", "log device", "background work", "arrivals"] {
            assert!(!find(what).is_empty());
        }
        assert!(find("processor times").contains("a fit of two free numbers"));
    }
    let wanted = match (name, kind) {
        ("E1", "time") => {
            [("simulated drives", "21 of preset hdd-10k"), ("arrivals", "Poisson (seed 1), 3,000 operations a second")]
        }
        ("E3", "time") => [("drives", "11 of data and 1 of parity"), ("simulated drives", "12 of preset sata-ssd")],
        ("E4", "time") => [("cores", "20"), ("gardening", "with cleaning: continuous cleaning (quota 200 %")],
        ("E4", "structure") => {
            [("gardening", "then with all pointers right: continuous cleaning (quota 200 %"), ("load", "OLTP")]
        }
        ("E8", "time") => {
            [("read-ahead", "256 blocks at most, by the garden"), ("arrivals", "56 clients that do not think")]
        }
        ("E12", "structure") => {
            [("fill", "38.2 % of all blocks: 50 % of the capacity, in 7 steps to 72.6 %"), ("load", "random")]
        }
        ("E14", "structure") => [("snapshots", "one for each 10 % of the file"), ("seed", "1")],
        _ => [("seed", "1"), ("runs", "one of each stage")],
    };
    for (what, said) in wanted {
        assert!(find(what).contains(said), "{name} {kind}, {what}: {}", find(what));
    }
    let ran = &part["ran"];
    assert!(ran["processor_seconds"].as_f64().unwrap() > 0.0 && ran["wall_seconds"].as_f64().unwrap() > 0.0, "{ran}");
    assert!(
        ran["ended"].as_str().unwrap().ends_with(" UTC") && ran["part"].as_str().unwrap().starts_with(name),
        "{ran}"
    );
    assert!(table["made_at"].as_str().unwrap() >= ran["ended"].as_str().unwrap());
    assert_eq!(table["senesce_build"].as_str().unwrap().len(), 64);
}

/// The table without what a second run does not have to have in common with the first.
fn without_times(table: &str) -> Value {
    let mut table: Value = serde_json::from_str(table).unwrap();
    table["made_at"] = Value::Null;
    let common = table["common"].as_array_mut().unwrap();
    common.retain(|fact| fact["what"] != "parts at a time");
    for row in table["experiments"].as_array_mut().unwrap() {
        for part in row["parts"].as_array_mut().unwrap() {
            part["ran"] = Value::Null;
            part["particular"].as_array_mut().unwrap().retain(|fact| fact["what"] != "parts at a time");
        }
    }
    table
}

#[test]
fn what_is_not_there_is_refused() {
    let lab = Lab::new();
    lab.run(["reproduce", "E15"]).refused(2, &["there is no experiment \"E15\"", "E13, E14"]);
    lab.run(["reproduce", "E5", "--scale", "huge"]).refused(2, &["no scale \"huge\"", "quarter"]);
    for impossible in ["16/0", "16/2", "0/0", "99999999/1"] {
        lab.run(["reproduce", "E5", "--scale", impossible]).refused(2, &[impossible, "a consistency point"]);
    }
}

#[test]
fn dry_run_lists_parts_and_writes_nothing() {
    let lab = Lab::new();
    let said = lab.run(["reproduce", "E5", "E12", "--scale", "tiny", "--out", "new", "--dry-run"]).good().stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines.iter().any(|line| line.starts_with("E5 ")) && lines.iter().any(|line| line.starts_with("E12 ")),
        "{said}"
    );
    assert!(!said.contains("E4 ") && said.contains(" parts would run at scale "), "{said}");
    assert!(said.contains("0 results are in new already") && !lab.path("new").exists(), "{said}");
    fs::write(lab.path("file"), "x").unwrap();
    lab.run(["reproduce", "E5", "--out", "file"]).refused(2, &["--out: file is a file"]);
}

#[test]
fn interruption_leaves_whole_parts_only() {
    let lab = Lab::new();
    let mut command = lab.command();
    command.args(["reproduce", "E1", "--scale", "full", "--out", "cut", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.next().unwrap().unwrap();
    assert!(begun.contains(", started"), "{begun}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("continues after them")), "{rest:?}");
    assert_eq!(fs::read_dir(lab.path("cut")).unwrap().count(), 0);
}
