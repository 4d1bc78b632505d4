//! The page of published experiments.

#[path = "common/reproduction.rs"]
mod sample;

use senesce_report::{render_reproduction, render_reproduction_svg};
use serde_json::json;

#[test]
fn reproduction_page_has_every_figure_with_verdict() {
    let page = render_reproduction(&sample::reproduction()).unwrap();
    assert_eq!(page, render_reproduction(&sample::reproduction()).unwrap());
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "<link rel=\"stylesheet", " src="] {
        assert!(!page.contains(outside), "the page refers to `{outside}`");
    }
    for said in [
        "1 of 3 published numbers are met within 40% (1 of them &lt;fitted&gt;).",
        "Of 3 published experiments 1 were run, 1 not.",
        "<td class=\"text mark run\">1 of 3 met</td>",
        "<td class=\"text mark in-part\">in part</td>",
        "met within 40% (fitted)",
        "Fitted: the &lt;fill&gt; was set.",
        "<i>(7.1)</i>",
        "<td>0.890</td>",
        "256 allocation areas, 4 per consistency point · 2026-11-23 06:41:00 UTC",
        "Cleaning moves the &lt;emptiest&gt; areas.",
        "BLAKE3 of the executable 0123456789abcdef",
        "<tr><td>drives</td><td>20 of data and 1 of &lt;parity&gt;</td></tr>",
        "<i>gardening:</i> without &lt;cleaning&gt;: none · with cleaning: quota 200 %",
        "<td>34.2</td><td>40.5</td>",
        "with E4 time",
        "<i>ended:</i> 2026-11-23 06:40:12 UTC",
        "OLTP &lt;on&gt; disks",
        "→ 10.9",
        "Not here: compaction.",
        "without &lt;cleaning&gt;",
        "(did not keep up)",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    let count = |text: &str| page.matches(text).count();
    let verdicts = ["met", "direction", "not-met", "incomparable", "told"];
    assert_eq!(verdicts.map(|class| count(&format!("<tr class=\"{class}\""))), [1, 1, 1, 1, 2]);
    assert_eq!((count("<svg class=\"panel strip"), count("class=\"mark met\"")), (3, 3), "wide, narrow and paper");
    let panels = (count("<tr class=\"experiment"), count("<svg class=\"panel\""), count("<polyline"));
    assert_eq!(panels, (3, 4, 8));
    // Two runs at the end of one line, in two charts.
    assert_eq!(count("class=\"dot less\""), 4);
    assert!(!page.contains("<on>") && !page.contains("NaN"));
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page.split("id=\"senesce-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(
        data["experiments"][0]["parts"][0]["figures"],
        sample::reproduction()["experiments"][0]["parts"][0]["figures"]
    );
}

#[test]
fn charts_with_one_x_label_have_one_x_axis() {
    let ticks = |svg: &str| -> Vec<Vec<String>> {
        let of = |panel: &str| {
            let labels = panel.split("<text class=\"tick\"").filter(|text| text.contains("text-anchor=\"middle\""));
            labels.map(|text| text.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()).collect()
        };
        svg.split("class=\"panel-title\"").skip(1).map(of).collect()
    };
    let mut part = sample::reproduction()["experiments"][0]["parts"][0].clone();
    for line in part["charts"][1]["lines"].as_array_mut().unwrap() {
        line["places"].as_array_mut().unwrap().truncate(3);
    }
    let one = ticks(&render_reproduction_svg(&part));
    assert_eq!((one.len(), &one[0]), (2, &one[1]), "{one:?}");
    part["charts"][1]["x"] = json!("days");
    let two = ticks(&render_reproduction_svg(&part));
    assert_ne!(two[0], two[1], "another label is another axis");
}

#[test]
fn a_trial_that_was_cut_down_is_told() {
    let mut cut = sample::reproduction();
    cut["scale"]["turnover_percent"] = json!(3);
    let page = render_reproduction(&cut).unwrap();
    assert!(page.contains("A smoke test with 3% of the turnovers: its verdicts mean nothing."));
    let drawn = page.split("id=\"senesce-data\"").next().unwrap();
    assert!(!drawn.contains("published numbers are met") && !drawn.contains("class=\"mark met\""), "{drawn}");
    let table = drawn.split("id=\"table\"").nth(1).unwrap().split("</section>").next().unwrap();
    for verdict in ["not met", " of ", "met within", "is met"] {
        assert!(!table.contains(verdict), "{verdict}: {table}");
    }
}

#[test]
fn colour_of_a_line_has_one_meaning() {
    let line = |name: &str, y: Vec<u32>| {
        let places = y.iter().enumerate().map(|(at, y)| json!({ "x": at, "y": y })).collect::<Vec<_>>();
        json!({ "name": name, "places": places })
    };
    let part = |lines: Vec<serde_json::Value>| json!({ "kind": "time", "title": "t", "charts": [{ "title": "c", "lines": lines }] });
    let lines = vec![
        line("then with all pointers right", vec![]),
        line("with cleaning", vec![3, 4]),
        line("after WAR", vec![5, 6]),
        line("without cleaning, as old", vec![5, 6]),
    ];
    let notes = json!({ "kind": "structure", "title": "packed", "notes": ["One note."], "charts": [] });
    let page =
        render_reproduction(&json!({ "experiments": [{ "name": "E4", "parts": [part(lines), notes] }] })).unwrap();
    let swatch = |class: &str, name: &str| {
        let start = format!("<span><svg class=\"series {class}\"");
        page.split(&start).skip(1).map(|rest| rest.split("</span>").next().unwrap()).any(|entry| entry.ends_with(name))
    };
    assert!(swatch("curve-2", "with cleaning") && swatch("curve-1", "without cleaning, as old"), "{page}");
    assert!(swatch("curve-3", "after WAR (equal to “without cleaning, as old”)"), "{page}");
    assert!(page.contains("series curve-3 under"), "the covered line is wider");
    // A line without points has no entry, and a part without charts no heading.
    assert_eq!(page.matches("then with all pointers right").count(), 1, "only in the data");
    assert!(page.contains("Parts without curves") && page.matches("<h3>").count() == 1, "{page}");
}

#[test]
fn missing_or_absurd_values_are_dashes() {
    let absurd = json!({ "experiments": [{ "parts": [{ "figures": [7], "charts": [
        { "lines": [{ "places": [{ "x": 1e300, "y": -1 }, { "x": "a", "y": 2 }] }, 3], "logarithmic": true },
        { "lines": [{ "places": [{ "x": 1, "y": -1 }, { "x": 2, "y": 0 }] }], "logarithmic": true },
    ] }] }] });
    for input in [json!({}), json!(7), absurd] {
        let page = render_reproduction(&input).unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
    }
}

#[test]
fn docs_have_the_picture_of_the_kept_run() {
    let kept = serde_json::from_str(include_str!("../../../golden/reproduction-eighth-E1.json")).unwrap();
    let picture = include_str!("../../../docs/images/garden-reproduce.svg");
    assert!(
        picture == render_reproduction_svg(&kept),
        "run `cargo run -p senesce-report --example reproduction_picture`"
    );
    assert!(picture.matches("<polyline").count() >= 6 && !picture.contains("NaN"));
}
