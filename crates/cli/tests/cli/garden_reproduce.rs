//! The published experiments, run and held against what was published. None of it needs root.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use super::lab::Lab;

#[test]
fn all_experiments_are_in_the_table_whatever_runs_at_a_time_and_a_second_run_goes_on() {
    let lab = Lab::new();
    let run = |jobs: &str| {
        let all = ["garden", "reproduce", "--scale", "tiny", "--out", "all", "--json", "--jobs", jobs];
        let done = lab.run(all).good();
        (done.stdout, done.stderr)
    };
    let (first, told) = run("2");
    let table: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(table["schema"], "senesce-reproduction/1");
    let rows = table["experiments"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, (1..=14).map(|number| format!("E{number}")).collect::<Vec<_>>());
    let mut parts = 0;
    for row in rows {
        let ran = row["parts"].as_array().unwrap();
        parts += ran.len();
        assert!(!ran.is_empty() && row["verdict"] != "not run", "{row}");
        for part in ran {
            assert!(!part["figures"].as_array().unwrap().is_empty(), "{part}");
            let name = format!("all/{}-{}.json", row["name"].as_str().unwrap(), part["kind"].as_str().unwrap());
            let file: Value = serde_json::from_slice(&fs::read(lab.path(&name)).unwrap()).unwrap();
            assert_eq!(file["record"], *part, "{name}");
        }
    }
    // Both parts of E1, E4 and E5 are of the same aggregates.
    assert_eq!((parts, told.matches(", begun").count()), (18, 15), "{told}");
    assert_eq!(told.matches(" s of a processor (").count(), 15, "{told}");
    let page = fs::read_to_string(lab.path("all/report.html")).unwrap();
    assert!(page.contains("random overwrites on 12 SSDs") && page.matches("<svg class=\"panel\"").count() > 10);
    // Two parts again, one at a time; all others are taken as they are.
    for part in ["all/E5-time.json", "all/E12-structure.json"] {
        fs::remove_file(lab.path(part)).unwrap();
    }
    let (second, told) = run("1");
    assert_eq!(second, first);
    assert_eq!(told.matches(", begun").count(), 2, "{told}");
    // As text, of parts that are there.
    let some = lab.run(["garden", "reproduce", "e5", "E9", "--scale", "tiny", "--out", "all"]).good().stdout;
    for said in ["E5  ", "E9  outside", "chunks a block", "write chain without cleaning", "page:"] {
        assert!(some.contains(said), "{said}\n{some}");
    }
    // What was not asked for and is there stays in the table; what is not there is said not to have been asked for.
    let unasked = |text: &str| text.matches("Not asked for.").count();
    assert_eq!(unasked(&some), 0, "{some}");
    fs::remove_file(lab.path("all/E14-structure.json")).unwrap();
    let some = lab.run(["garden", "reproduce", "e5", "E9", "--scale", "tiny", "--out", "all"]).good().stdout;
    assert_eq!(unasked(&some), 1, "{some}");
    // Figures are of the code that made them.
    let file = fs::read_to_string(lab.path("all/E5-time.json")).unwrap();
    let start = file.find("senesce_build\": \"").unwrap() + 17;
    fs::write(lab.path("all/E5-time.json"), [&file[..start], "x", &file[start + 1..]].concat()).unwrap();
    let again = ["garden", "reproduce", "E5", "--scale", "tiny", "--out", "all"];
    lab.run(again).refused(2, &["E5-time.json is of another build", "name another directory"]);
    fs::copy(lab.path("all/E4-structure.json"), lab.path("all/E5-time.json")).unwrap();
    lab.run(again).refused(2, &["E5-time.json is structure of E4", "name another directory"]);
    fs::write(lab.path("all/E5-time.json"), file).unwrap();
    let other = ["garden", "reproduce", "E5", "--scale", "small", "--out", "all"];
    lab.run(other)
        .refused(2, &["E1-structure.json is of scale 16/1, 3 % of the turnovers", "scale 128/4 is asked for"]);
}

#[test]
fn what_is_not_there_is_refused() {
    let lab = Lab::new();
    lab.run(["garden", "reproduce", "E15"]).refused(2, &["no experiment \"E15\"", "E13, E14"]);
    lab.run(["garden", "reproduce", "E5", "--scale", "huge"]).refused(2, &["no scale \"huge\"", "quarter"]);
    for impossible in ["16/0", "16/2", "0/0", "99999999/1"] {
        lab.run(["garden", "reproduce", "E5", "--scale", impossible]).refused(2, &[impossible, "a consistency point"]);
    }
}

#[test]
fn an_interruption_leaves_whole_parts_only_and_ends_at_once() {
    let lab = Lab::new();
    let mut command = lab.command();
    command.args(["garden", "reproduce", "E1", "--scale", "full", "--out", "cut", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.next().unwrap().unwrap();
    assert!(begun.contains("begun"), "{begun}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("goes on from there")), "{rest:?}");
    assert_eq!(fs::read_dir(lab.path("cut")).unwrap().count(), 0);
}
