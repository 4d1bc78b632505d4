//! The report as text: the same every time, offline, complete; a figure against its golden file.

mod common;

use senesce_core::is_hazard;
use senesce_report::{Baseline, ReportOptions, Unlike, render_figures, render_report, summary_table};
use senesce_store::{CircumstanceRow, GrepRow, LoadRow, ModelledRow, Results, Role};

#[test]
fn page_of_unfinished_run_reloads_itself() {
    let page = |unfinished: Option<&str>| {
        let options = ReportOptions { unfinished: unfinished.map(str::to_owned), ..ReportOptions::default() };
        render_report(&common::results(), &options).unwrap()
    };
    let unfinished = page(Some("1 of 3 arms are done"));
    assert!(unfinished.contains("<strong>1 of 3 arms are done</strong>"));
    assert!(unfinished.contains("<meta http-equiv=\"refresh\""));
    let finished = page(None);
    assert!(!finished.contains("http-equiv=\"refresh\"") && !finished.contains("arms are done"));
}

#[test]
fn page_is_reproducible_and_loads_nothing() {
    let results = common::results();
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert_eq!(page, render_report(&common::results(), &ReportOptions::default()).unwrap());
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "<link rel=\"stylesheet", " src="] {
        assert!(!page.contains(outside), "the page refers to `{outside}`");
    }
    assert!(page.contains("Git on a full disk &lt;quick start&gt;"));
    assert!(page.contains("tree differs from the empty volume"));
    assert!(page.contains("<td>workload.first_commit</td><td>1da177e4c3f4"));
    // The odd circumstance must not end the data element.
    assert_eq!(page.matches("</script>").count(), 4);
    let data = page.split("id=\"senesce-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["run"]["format"], "senesce-results/3");
    assert_eq!(data["grep"].as_array().unwrap().len(), results.grep.len());
}

#[test]
fn figures_are_files_first_matches_golden_file() {
    let dir = tempfile::tempdir().unwrap();
    let figures = render_figures(&common::results(), dir.path()).unwrap();
    assert_eq!(figures.files.len(), 131);
    for path in &figures.files {
        let bytes = std::fs::read(path).unwrap();
        let kind = path.extension().unwrap().to_str().unwrap();
        let start: &[u8] = match kind {
            "png" => b"\x89PNG",
            "pdf" => b"%PDF-1.7",
            "svg" => b"<svg xmlns=",
            _ => b"",
        };
        assert!(bytes.starts_with(start), "{}", path.display());
        let undefined = bytes.windows(4).any(|text| text == b"var(" || text == b"NaN,");
        assert!(kind == "png" || kind == "pdf" || !undefined, "{}", path.display());
    }
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
    // 84 mm are 238.11 points. The font is embedded, as a subset, and its glyphs have texts.
    let pdf = text("grep-cost-84mm.pdf");
    for part in ["/MediaBox [0 0 238.1102 ", "/FontFile2 ", "/ToUnicode ", "/BaseFont /SENESC+"] {
        assert!(pdf.contains(part), "{part}");
    }
    assert!(text("grep-cost-178mm.svg").contains(r#"width="178mm""#) && !text("grep-cost-178mm.svg").contains("<text"));
    let csv = text("grep-cost.csv");
    assert!(csv.starts_with("drawing,arm,volume,shown_as,checkpoint,n,median,low_95,high_95\n"), "{csv}");
    // A single repetition has no interval.
    let single = csv.lines().find(|line| line.starts_with("seconds per GiB,btrfs,full,nearly full,0,1,")).unwrap();
    assert!(single.ends_with(",,"), "{single}");
    assert!(csv.lines().skip(1).any(|line| !line.ends_with(',')), "{csv}");
    let maps = text("maps.csv");
    assert!(
        maps.starts_with("arm,volume,shown_as,checkpoint,first_byte,bytes,holds,share_of_files,place_in_tree,path\n")
    );
    assert!(maps.lines().count() > 1 && maps.contains(",files,"), "{maps}");
    assert!(text("methods.txt").starts_with("We aged btrfs, xfs and ext4 with senesce 0.1.0 by the plan quick-start"));
    let drawn = std::fs::read_to_string(dir.path().join("grep-cost-shared.svg")).unwrap();
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/grep-cost-shared.svg");
    // Compare both in a browser. If the new drawing is right, replace the golden file.
    if std::fs::read_to_string(&golden).ok().as_deref() != Some(&drawn) {
        let new = std::env::temp_dir().join("grep-cost-shared.new.svg");
        std::fs::write(&new, drawn).unwrap();
        panic!("{} differs; the new drawing is {}", golden.display(), new.display());
    }
}

#[test]
fn the_summary_says_what_the_figures_say() {
    let mut results = common::results();
    // Hand-computed: fresh copy 2 s/GiB (median of 1, 2, 9), full 5 s/GiB (median of 4, 5, 6).
    let costs = |row: &GrepRow| match (row.key.role.name(), row.repetition) {
        ("full", repetition) => 4.0 + repetition as f64,
        ("unaged", repetition) => [1.0, 2.0, 9.0][repetition as usize],
        _ => 2.0,
    };
    for row in &mut results.grep {
        if row.key.arm == "ext4" && row.key.pulls == 200 {
            row.seconds_per_gib = costs(row);
        }
    }
    let text = summary_table(&results);
    let line = text.lines().find(|line| line.starts_with("ext4   full")).unwrap();
    let columns = line.split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        (&columns[2..7], &columns[9..13], columns.last()),
        (&["3.70×", "46.2", "171", "3.70×", "–"][..], &["too", "noisy", "(9×)", "5.00"][..], Some(&"200")),
        "{line}"
    );
    assert!(line.contains("  0.444–6.00 (3)  "), "{line}");
    // 4/9 to 6/1 holds 1: the sentence must not claim a difference.
    let measured = text.lines().find(|line| line.starts_with("Measured on this machine")).unwrap();
    assert!(
        measured.contains("too noisy to judge: fresh copies of ext4 vary 9×") && !measured.contains("2.5×"),
        "{measured}"
    );
    let warning = text.lines().find(|line| line.starts_with("warning: 2 of 99 cells are invalid")).unwrap();
    assert!(
        warning.contains("xfs at 120 pulls (nearly full); ext4 at 60 pulls") && !warning.contains("tree differs"),
        "`show` lists the reasons: {warning}"
    );
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert!(page.contains("xfs at 120 pulls (nearly full): tree differs from the empty volume: 3 paths"));
}

#[test]
fn virtual_time_device_leads_before_its_prediction() {
    let mut results = common::results();
    let predicted = results.modelled.clone();
    for row in predicted.iter().filter(|row| row.device == "model: NVMe") {
        let (device, method) = (row.device.clone(), "virtual-time".to_owned());
        results.modelled.push(ModelledRow { device, method, seconds_per_gib: 0.125, ..row.clone() });
    }
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    // Wall times of memory need no repetitions.
    let single = "a single repetition of the grep test";
    let measured = render_report(&common::results(), &ReportOptions::default()).unwrap();
    assert!(measured.contains(single) && !page.contains(single));
    for name in ["HDD 7.2K", "NVMe, from the places of blocks", "NVMe, virtual time"] {
        assert!(page.contains(&format!("Modelled cost of reading the tree: {name}<")), "{name}");
    }
    // Only the second method for the same disk says that there are two, in its two figures.
    assert_eq!(page.matches("It is the second method for this disk").count(), 2);
    for said in [
        "These are the costs of the headline, of the summary and of the figures “NVMe, virtual time”.",
        "Costs in the figures “HDD 7.2K” and “NVMe, from the places of blocks” are predicted",
        "A model slowdown is bold above 1.33× and below 0.75×. Fresh copies of two runs of a plan that does not settle differ \
         by up to 33%,",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let text = summary_table(&results);
    assert!(text.contains("model: NVMe, virtual time: modelled from the requests of the grep test"), "{text}");
    let line = text.lines().find(|line| line.starts_with("ext4   full")).unwrap();
    let columns = line.split_whitespace().collect::<Vec<_>>();
    assert_eq!((columns[2], &columns[5..7]), ("1.00×", &["0.125", "0.125"][..]), "{line}");
    assert!(!text.contains("noise band") && !text.contains("memory s/GiB"), "{text}");
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("After 200 pulls, no measurable difference from a fresh copy on a modelled NVMe: "),
        "{first}"
    );
    assert!(first.contains("ext4 (1.0×)"), "{first}");
    assert!(
        text.contains("Modelled from the requests of the grep test: the volumes were such disks, in virtual time.")
    );
    assert!(text.contains("The wall times of this run are those of memory, and say nothing about the disk."), "{text}");
    let titles: Vec<_> = page.split("<h2>").skip(1).filter_map(|rest| rest.split("</h2>").next()).collect();
    let at =
        |title: &str| titles.iter().position(|other| *other == title).unwrap_or_else(|| panic!("{title}: {titles:?}"));
    let wall = at("Cost of reading the tree: wall time (in memory)");
    assert!(at("Modelled cost of reading the tree: NVMe, virtual time") < wall);
    assert!(at("Modelled cost of reading the tree: HDD 7.2K") < wall);
    // If the disk waits for its modelled time, wall times are not those of memory.
    assert!(page.contains("<summary>Grep test in memory, wall time: medians and spread<"));
    assert!(measured.contains("<summary>Grep cost, wall time: medians and spread<"));
    let real_time = CircumstanceRow { arm: String::new(), key: "volumes.real_time".into(), value: "true".into() };
    results.circumstances.push(real_time);
    let text = summary_table(&results);
    assert!(!text.contains("of memory") && text.contains("Measured on this machine"), "{text}");
    assert!(text.contains("wall slowdown") && text.contains("noise band"), "{text}");
}

#[test]
fn first_planned_device_leads_predictions_before_traces() {
    let mut results = common::results();
    for row in results.modelled.clone().iter().filter(|row| row.device == "model: NVMe") {
        results.modelled.push(ModelledRow { method: "trace".into(), seconds_per_gib: 900.0, ..row.clone() });
    }
    let leads = |results: &Results, device: &str| {
        let text = summary_table(results);
        assert!(text.contains(&format!("\n{device}: predicted from the places of files; not measured\n")), "{text}");
        let name = device.trim_start_matches("model: ");
        assert!(text.lines().next().is_some_and(|line| line.contains(&format!("on a modelled {name}"))), "{text}");
        let page = render_report(results, &ReportOptions::default()).unwrap();
        let first = page.split("Modelled cost of reading the tree: ").nth(1).unwrap();
        assert!(first.starts_with(device.trim_start_matches("model: ")), "{device}");
    };
    // The slowest device, if the results do not have the plan's order.
    leads(&results, "model: HDD 7.2K");
    let value = r#"["model: NVMe","model: HDD 7.2K"]"#.to_owned();
    results.circumstances.push(CircumstanceRow { arm: String::new(), key: "measure.device_names".into(), value });
    leads(&results, "model: NVMe");
}

#[test]
fn drawings_name_the_published_figures_they_resemble() {
    let mut results = common::results();
    let fresh: Vec<_> = results.free_space.iter().filter(|row| row.key.role == Role::Full).cloned().collect();
    results.free_space.extend(fresh.into_iter().map(|mut row| {
        row.key.role = Role::Unaged;
        row
    }));
    let page = |results: &Results| render_report(results, &ReportOptions::default()).unwrap();
    assert!(page(&results).contains("Free space, ext4, fresh copy") && !page(&results).contains("of HotStorage 2019"));
    let fact = |key: &str, value: &str| CircumstanceRow { arm: String::new(), key: key.into(), value: value.into() };
    results.circumstances.push(fact("workload.kind", "\"history\""));
    results.circumstances.push(fact("workload.edition", "\"full-disk-paper\""));
    assert!(!page(&results).contains(">requested<"));
    results.circumstances.push(fact("workload.fill_percent", "75"));
    // A line in each of the three arms' panels, drawn for wide and narrow screens or scales.
    assert!(page(&results).matches(">requested<").count() >= 3);
    let named = |page: &str, id: &str, number: u32| {
        let section = page.split(&format!("id=\"{id}\"")).nth(1).unwrap().split("</p>").next().unwrap().to_owned();
        assert!(section.contains(&format!("As figure {number} of HotStorage 2019")), "{section}");
    };
    named(&page(&results), "grep-cost", 3);
    named(&page(&results), "free-space", 4);
    assert_eq!(page(&results).matches("of HotStorage 2019").count(), 2);
    results.circumstances.retain(|row| row.key != "workload.kind");
    results.circumstances.push(fact("workload.kind", "\"fsfb\""));
    named(&page(&results), "grep-cost", 1);
}

#[test]
fn baseline_shows_worse_and_unchanged_figures() {
    let mut old = common::results();
    for row in old.modelled.iter_mut().filter(|row| row.key.arm == "xfs" && row.key.role == Role::Full) {
        row.seconds_per_gib /= 2.0;
    }
    let new = common::results();
    let differs = |group: &str, key: &str, before: &str, now: &str| Unlike {
        group: group.to_owned(),
        key: key.to_owned(),
        of: Vec::new(),
        before: Some(before.to_owned()),
        now: Some(now.to_owned()),
    };
    let unlike = vec![
        differs("file system", "mkfs_command", "mkfs.xfs", "mkfs.xfs -n <"),
        differs("plan", "plan.hash", "3a", "4b"),
    ];
    let other_seed = old.clone();
    let baseline = Some(Baseline { name: "before <".to_owned(), results: old, unlike });
    let page = |baseline| render_report(&new, &ReportOptions { baseline, ..ReportOptions::default() }).unwrap();
    let with = page(baseline);
    let with = with.replace("&#x2f;", "/");
    let section = with.split("<section id=\"change\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(section.contains("Change since before &lt;"), "{section}");
    // Costs of nine volumes on the model, and measured; slowdowns of six; and the adjacent files.
    let sentence = "Age after 200 pulls: worse for xfs (nearly full) 2.00×; no measurable change for btrfs and ext4 (two runs of one plan can differ by up to 62%). 31 of \
                    33 figures are within the limits.";
    assert!(section.contains("<li>file system, mkfs_command: mkfs.xfs → mkfs.xfs -n &lt;</li>"), "{section}");
    assert_eq!(section.matches(">2.00×<").count(), 2, "{section}");
    let lead = with.split("class=\"lead\">").nth(1).unwrap();
    assert!(lead.starts_with(&format!("Compared with <code>before &lt;</code>: {sentence}")), "the change is first");
    assert!(section.contains("of an aged volume, over 22%, and of a fresh copy, over 33%;"), "{section}");
    assert!(!page(None).contains("Change since"));
    // With another seed the input is another one, and no difference is a verdict.
    let unlike = vec![differs("plan", "plan.seed", "1", "7")];
    let other = page(Some(Baseline { name: "before".to_owned(), results: other_seed, unlike }));
    let lead = other.split("class=\"lead\">").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(lead.contains("The runs had different input (seed 1 → 7). Age after 200 pulls"), "{lead}");
    assert!(lead.contains("differs for xfs (nearly full) 2.00×") && !lead.contains("worse"), "{lead}");
    assert!(!other.contains(">worse</td>"), "no row has a verdict");
}

#[test]
fn baseline_does_not_judge_figures_of_an_earlier_checkpoint() {
    let mut old = common::results();
    old.modelled.iter_mut().filter(|row| row.key.arm == "xfs").for_each(|row| row.seconds_per_gib /= 4.0);
    let mut new = common::results();
    let last = new.cells.iter().map(|cell| cell.key.pulls).max().unwrap();
    let last = new.cells.iter_mut().filter(|cell| cell.key.arm == "xfs" && cell.key.pulls == last);
    last.for_each(|cell| cell.valid = false);
    let baseline = Some(Baseline { name: "before".to_owned(), results: old, unlike: Vec::new() });
    let page = render_report(&new, &ReportOptions { baseline, ..ReportOptions::default() }).unwrap();
    let section = page.split("<section id=\"change\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(!section.contains(">worse</td>") && !section.contains(">differs</td>"), "{section}");
    let lead = page.split("class=\"lead\">").nth(1).unwrap().split("</p>").next().unwrap();
    // The costs of three volumes on the model, and measured, two slowdowns and the adjacent files.
    assert_eq!(section.matches(">earlier checkpoint</td>").count(), 11, "{section}");
    assert!(lead.contains("11 more figures are of an earlier checkpoint, and are not judged."), "{lead}");
}

#[test]
fn kernel_that_cannot_settle_a_volume_has_the_wider_limit() {
    let mut results = common::results();
    let legend = |results: &Results| {
        let page = render_report(results, &ReportOptions::default()).unwrap();
        let start = page.find("A model slowdown is bold").unwrap();
        page[start..].split("</p>").next().unwrap().to_owned()
    };
    let circumstance =
        |arm: &str, key: &str, value: &str| CircumstanceRow { arm: arm.into(), key: key.into(), value: value.into() };
    results.circumstances.push(circumstance("", "workload.settle_every_operations", "128"));
    let expected = "A model slowdown is bold above 1.05× and below 0.95×. Smaller differences can be chance.";
    assert!(legend(&results).starts_with(expected), "{}", legend(&results));
    results.circumstances.push(circumstance("xfs", "full.unsettled", "no read-ahead"));
    assert!(legend(&results).starts_with("A model slowdown is bold above 1.33×"), "{}", legend(&results));
}

#[test]
fn results_without_figures_still_make_a_page() {
    let empty = Results::default();
    let page =
        render_report(&empty, &ReportOptions { title: Some("Nothing".into()), ..ReportOptions::default() }).unwrap();
    assert!(page.contains("<h1>Nothing</h1>") && !page.contains("class=\"figure\""));
    let mut single = common::results();
    single.cells.retain(|cell| cell.key.pulls == 0);
    let text = render_report(&single, &ReportOptions::default()).unwrap();
    assert!(!text.contains("NaN,") && !text.contains("\"NaN\""));
}

#[test]
fn profile_aging_shows_deviation_and_end() {
    let mut results = common::results();
    let page = |results: &Results| render_report(results, &ReportOptions::default()).unwrap();
    assert!(!page(&results).contains("Convergence to the profile"));
    let arm = results.cells[0].key.arm.clone();
    for (pulls, age, ended) in [(0, 0.8, "(goes on)"), (100, 0.0004, "end-of-schedule")] {
        for (name, value) in [
            ("accuracy", "0.005".to_owned()),
            ("fullness", "0.64".to_owned()),
            ("fullness_asked", "0.65".to_owned()),
            ("size.total_variation", "0.00000".to_owned()),
            ("depth.total_variation", "0.002".to_owned()),
            ("age.total_variation", age.to_string()),
            ("age.chi_square", "12.5 (9 degrees)".to_owned()),
            ("age.shares", "3600=0.25/0.24 86400=0.75/0.76".to_owned()),
            ("ended_by", ended.to_owned()),
        ] {
            let key = format!("reached.{pulls}.{name}");
            results.circumstances.push(CircumstanceRow { arm: arm.clone(), key, value });
        }
    }
    let page = page(&results);
    for said in [
        "Convergence to the profile",
        &format!("{arm}: ended with its schedule, further off than asked (asked: 0.005)."),
        "part-2\tage\t0.0004",
        "part-3\tfullness\t0.01",
        "part-2\tage\t12.5",
        "age, up to 1d\npart-0\tasked\t75%\npart-1\treached\t76%",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn missing_volumes_are_in_no_legend() {
    let mut results = common::results();
    let legend = |results: &Results| {
        let page = render_report(results, &ReportOptions::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        render_figures(results, dir.path()).unwrap();
        let svg = std::fs::read_to_string(dir.path().join("grep-cost-shared.svg")).unwrap();
        [("full", "nearly full"), ("empty", "roomy"), ("unaged", "fresh copy")].map(|(role, words)| {
            let button = page.contains(&format!("data-role=\"{role}\" aria-pressed"));
            (button, svg.contains(&format!(">{words}</text>")))
        })
    };
    assert_eq!(legend(&results), [(true, true); 3]);
    results.cells.retain(|cell| cell.key.role != Role::Full);
    assert_eq!(legend(&results), [(false, false), (true, true), (true, true)]);
}

/// The results with the grep costs of an arm's volume at a checkpoint replaced, for every
/// repetition.
fn set_cost(results: &mut Results, arm: &str, role: Role, pulls: u64, cost: impl Fn(u64) -> f64) {
    for row in &mut results.grep {
        if (row.key.arm.as_str(), row.key.role, row.key.pulls) == (arm, role, pulls) {
            row.seconds_per_gib = cost(row.repetition);
        }
    }
}

#[test]
fn ratios_inside_the_noise_band_are_no_headline() {
    // Repetitions agree, so the interval alone shows a difference: 2 and 2.2 times a fresh copy.
    let mut results = common::results();
    for (role, cost) in [(Role::Full, 8.0), (Role::Empty, 8.8), (Role::Unaged, 4.0)] {
        set_cost(&mut results, "xfs", role, 200, |repetition| cost + 0.01 * repetition as f64);
    }
    let beyond = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("Measured on this machine")).unwrap().to_owned();
        let noise = line.find("no measurable difference").unwrap_or(line.len());
        line.find("xfs nearly full 2×").map(|at| at < noise)
    };
    let cell = |page: &str| {
        let row = page.split("class=\"text\">nearly full</td>").find(|row| row.contains("2.00×")).unwrap();
        let before = row.split(">2.00×").next().unwrap();
        before.rsplit("<td").next().unwrap().trim().to_owned()
    };
    let page = |results: &Results| render_report(results, &ReportOptions::default()).unwrap();
    assert_eq!(beyond(&summary_table(&results)), Some(true), "{}", summary_table(&results));
    assert_eq!(cell(&page(&results)), "class=\"strong\"");
    // One fresh copy of the same run at another checkpoint cost 2.5 times the others.
    set_cost(&mut results, "xfs", Role::Unaged, 40, |_| 10.0);
    let text = summary_table(&results);
    assert_eq!(beyond(&text), Some(false), "{text}");
    assert!(text.contains("fresh copies vary "), "{text}");
    assert_eq!(cell(&page(&results)), "class=\"muted\"");
    assert!(page(&results).contains("class=\"noise\""), "the band is drawn");
    // If no ratio exceeds the noise, the measured charts are folded.
    let folds = |results: &Results| page(results).matches("<details class=\"fold\">").count();
    assert_eq!(folds(&results), 0);
    let mut hidden = results.clone();
    for arm in ["btrfs", "ext4", "xfs"] {
        set_cost(&mut hidden, arm, Role::Unaged, 40, |_| 99.0);
    }
    assert_eq!(folds(&hidden), 2);
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("After 200 pulls, btrfs takes ") && first.contains(" on a modelled HDD 7.2K, "),
        "{first}"
    );
}

#[test]
fn disturbed_repetitions_are_left_out_or_marked() {
    let mut results = common::results();
    let load = |row: &GrepRow, disturbance: &str| LoadRow {
        key: row.key.clone(),
        repetition: row.repetition,
        disturbance: disturbance.into(),
        load_average: 30.0,
        cpu_pressure_seconds: 1.0,
        io_pressure_seconds: 1.0,
        memory_pressure_seconds: 0.0,
        steal_seconds: 0.0,
        own_user_seconds: 0.1,
        other_user_seconds: 9.0,
        kernel_seconds: 0.5,
        processors: 2,
        own_drive_bytes: f64::NAN,
        other_drive_bytes: f64::NAN,
    };
    set_cost(&mut results, "ext4", Role::Full, 200, |repetition| [5.0, 99.0, 5.2][repetition as usize]);
    let text = |results: &Results| summary_table(results);
    let last = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("ext4   full")).unwrap();
        line.split_whitespace().nth(10).unwrap().to_owned()
    };
    assert_eq!(last(&text(&results)), "5.20");
    let of_cell = |row: &&GrepRow| (row.key.arm.as_str(), row.key.role, row.key.pulls) == ("ext4", Role::Full, 200);
    let rows: Vec<_> = results.grep.iter().filter(of_cell).cloned().collect();
    let why = "other processes used 90% of all processors";
    results.load = rows.iter().map(|row| load(row, if row.repetition == 1 { why } else { "" })).collect();
    assert_eq!(last(&text(&results)), "5.10");
    assert!(text(&results).contains("In 1 of 99 cells other work disturbed some repetitions"), "{}", text(&results));
    results.load = rows.iter().map(|row| load(row, why)).collect();
    assert_eq!(last(&text(&results)), "5.20");
    let said = format!("In 1 of 99 cells other work disturbed every repetition of the grep test (the first: {why})");
    assert!(text(&results).contains(&said), "{}", text(&results));
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert!(page.contains(&format!("<td class=\"text\">3 of 3: {why}</td>")));
}

#[test]
fn hostile_texts_are_escaped_in_every_output() {
    let hostile = "fatal: \0\u{1b}]0;title\u{7}\u{9b}2J\u{fffe}\u{202e}</script><script>";
    let mut results = common::results();
    results.run.run_name = hostile.to_owned();
    for cell in results.cells.iter_mut().filter(|cell| !cell.valid) {
        cell.reason = format!("git said: {hostile}");
    }
    results.circumstances.push(CircumstanceRow { arm: String::new(), key: hostile.into(), value: hostile.into() });
    for row in results.maps.iter_mut() {
        row.path = row.path.take().map(|path| format!("{path}{hostile}"));
    }
    let dir = tempfile::tempdir().unwrap();
    let figures = render_figures(&results, dir.path()).unwrap();
    assert_eq!(figures.files.len(), 131);
    let texts = figures.files.iter().filter(|path| path.extension().unwrap() == "svg");
    let mut texts: Vec<String> = texts.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let page = render_report(&results, &ReportOptions::default()).unwrap();
    assert_eq!(page.matches("</script>").count(), 4);
    assert!(page.contains(r"git said: fatal: \x00\x1b]0;title\x07\u{9b}2J\u{fffe}\u{202e}&lt;"), "{page}");
    let data = page.split("id=\"senesce-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    // The data is exact. Only the shown text is escaped.
    assert_eq!(data["run"]["run_name"], hostile);
    texts.push(page);
    for text in texts {
        let found = text.chars().find(|&character| character != '\n' && character != '\t' && is_hazard(character));
        assert_eq!(found, None);
    }
}
