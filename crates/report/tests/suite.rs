//! The page of a suite.

#[path = "common/suite.rs"]
mod sample;

use senesce_report::{SuiteOptions, render_suite, suite_headline};
use serde_json::json;

#[test]
fn suite_page_shows_bars_and_rankings() {
    let options = SuiteOptions { made_at: Some("today".into()) };
    let page = render_suite(&sample::suite(), &options).unwrap();
    assert_eq!(page, render_suite(&sample::suite(), &options).unwrap());
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "<link rel=\"stylesheet", " src="] {
        assert!(!page.contains(outside), "the page refers to `{outside}`");
    }
    let wide: String =
        page.split("<svg class=\"panel wide\"").skip(1).filter_map(|svg| svg.split("</svg>").next()).collect();
    // Two personalities on three file systems in three states, of which one has no figure in each.
    assert_eq!((wide.matches("<circle class=\"bar").count(), page.matches("class=\"failed\"").count()), (16, 2));
    assert_eq!(wide.matches("bar fresh").count(), 6);
    // States are categories. Each aged dot has a mark of its fresh rate, and no line to another
    // state.
    assert_eq!((wide.matches("class=\"join\"").count(), wide.matches("<polyline").count()), (10, 0));
    // Each personality has three aged volumes whose own rate differs; 1.05 is within chance.
    assert_eq!((wide.matches("of-own").count(), wide.matches(">25%<").count()), (6, 1));
    for said in [
        "Aging costs varmail on xfs most: aged by agrawal, it reaches 25% of its fresh rate (95%: 24% to 26%).",
        &suite_headline(&sample::suite())[0],
        "Aging changes the order of the file systems in 1 of 4 cases, 1 of them beyond chance",
        "<li><b>25%</b><span>varmail on xfs</span><small>of its own fresh rate, aged by agrawal</small></li>",
        "xfs fresh (p 0.029), ext4 aged (p 0.029)",
        "1 image(s) could not be made",
        "no image: too &lt;small&gt;",
        "Rates are modelled",
        "<td>4,000</td><td>1 MiB</td><td class=\"fs-0\" style=\"--share: 45.0%\"><span>75</span></td>",
        "12 call(s) found no space left",
        "today",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    assert!(!page.contains("too <small>") && !page.contains("NaN") && !page.contains("Other work"));
    let mut busy = sample::suite();
    busy["runs"][0]["disturbance"] = json!("the hypervisor took 9% of a processor");
    let busy = render_suite(&busy, &options).unwrap();
    assert!(
        busy.contains("Other work disturbed 1 run(s) (the first: the hypervisor took 9% of a processor); they count.")
    );
    let data = page.split("id=\"senesce-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    // Not the ratios: a number that was written and read may differ in its last digit.
    assert!(data["runs"].is_null() && data["rankings"] == sample::suite()["rankings"]);
}

#[test]
fn differences_within_chance_are_no_changes() {
    let mut suite = sample::suite();
    for figure in suite["figures"].as_array_mut().unwrap() {
        if figure["personality"] == "varmail" && figure["file_system"] == "ext4" && figure["own"].is_object() {
            // The interval excludes 1, but the test says that chance explains it.
            figure["own"] = json!({ "ratio": 0.9, "low": 0.85, "high": 0.95, "p": 0.2 });
        }
    }
    for ranking in suite["rankings"].as_array_mut().unwrap() {
        for change in ranking["ranking"]["changes"].as_array_mut().unwrap() {
            change["is_sure"] = json!(false);
        }
    }
    let page = render_suite(&suite, &SuiteOptions::default()).unwrap();
    for said in [
        "Aging changes no order of the file systems beyond chance: in 1 of 4 cases the order differs, but chance may explain it.",
        "No measurable difference after aging: varmail on ext4.",
    ] {
        assert!(page.contains(said), "{said}");
    }
    // All personalities have one scale, so that readers can compare their drawings.
    let ticks = |svg: &str| -> Vec<String> {
        let texts = svg.split("</svg>").next().unwrap().split("class=\"tick\"").skip(1);
        texts.map(|text| text.split('<').next().unwrap().to_owned()).filter(|text| text.ends_with('×')).collect()
    };
    let drawings: Vec<Vec<String>> = page.split("<svg class=\"panel wide\"").skip(1).map(ticks).collect();
    assert_eq!(drawings[0], drawings[1]);
}

#[test]
fn too_few_runs_show_no_difference() {
    let mut suite = sample::suite();
    suite["plan"]["runs"] = json!(1);
    for figure in suite["figures"].as_array_mut().unwrap().iter_mut().filter(|figure| figure["own"].is_object()) {
        let own = &mut figure["own"];
        // One run has no interval, so that each ratio would exclude 1.
        (own["low"], own["high"], own["p"]) = (own["ratio"].clone(), own["ratio"].clone(), json!(null));
    }
    suite["rankings"].as_array_mut().unwrap().truncate(1);
    let page = render_suite(&suite, &SuiteOptions::default()).unwrap();
    let page = page.split("id=\"senesce-data\"").next().unwrap();
    assert_eq!(page.matches("\"tick of-own\"").count(), 0, "{page}");
    assert_eq!(page.matches("<li class=\"muted\">").count(), 2, "both tiles: {page}");
    assert!(page.contains("Too few runs to judge a loss of rate.") && !page.contains("No loss of rate"), "{page}");
    assert!(!page.contains("No measurable difference after aging"), "nothing was compared: {page}");
}

#[test]
fn certain_loss_comes_before_a_larger_one_that_chance_may_explain() {
    let mut suite = sample::suite();
    for figure in suite["figures"].as_array_mut().unwrap().iter_mut().filter(|figure| figure["own"].is_object()) {
        let is_certain = figure["file_system"] == "ext4" && figure["personality"] == "varmail";
        figure["own"] = match is_certain {
            true => json!({ "ratio": 0.8, "low": 0.75, "high": 0.85, "p": 0.01 }),
            false => json!({ "ratio": 0.5, "low": 0.3, "high": 1.2, "p": 0.2 }),
        };
    }
    let page = render_suite(&suite, &SuiteOptions::default()).unwrap();
    let lead = "Aging costs varmail on ext4 most: aged by agrawal, it reaches 80% of its fresh rate (95%: 75% to 85%).";
    assert!(page.contains(lead) && page.contains("<li><b>80%</b><span>varmail on ext4</span>"), "{page}");
}

#[test]
fn pair_with_a_failed_state_is_not_alike() {
    let mut suite = sample::suite();
    for figure in suite["figures"].as_array_mut().unwrap().iter_mut().filter(|figure| figure["own"].is_object()) {
        figure["own"] = json!({ "ratio": 0.98, "low": 0.94, "high": 1.03, "p": 0.4 });
    }
    let page = render_suite(&suite, &SuiteOptions::default()).unwrap();
    // The image of btrfs could not be made for one profile.
    let alike = "No measurable difference after aging: varmail on ext4, varmail on xfs, oltp on ext4 and oltp on xfs.";
    assert!(page.contains(alike), "{page}");
}

#[test]
fn ratio_beyond_the_axis_is_written() {
    let mut suite = sample::suite();
    let page = |suite: &serde_json::Value| render_suite(suite, &SuiteOptions::default()).unwrap();
    assert!(!page(&suite).contains(">0.00400×<"));
    suite["figures"][1]["normal"]["ratio"] = json!(0.004);
    assert_eq!(page(&suite).matches(">0.00400×<").count(), 2, "on the wide and on the narrow drawing");
    // A broken or hostile run.
    let figure = suite["figures"].as_array_mut().unwrap().iter_mut().find(|figure| figure["own"].is_object()).unwrap();
    for key in ["ratio", "low", "high"] {
        (figure["normal"][key], figure["own"][key]) = (json!(1e300), json!(1e300));
    }
    let page = page(&suite);
    let page = page.split("id=\"senesce-data\"").next().unwrap();
    assert!(page.contains(">1.00e300×<"), "{page}");
    assert!(!page.contains("000,000,000,000") && !page.contains("000000000000"), "{page}");
}

#[test]
fn missing_or_absurd_values_are_dashes() {
    let absurd = json!({ "figures": [{ "personality": 7, "state": "fresh", "normal": { "ratio": 1e300, "low": -1, "high": "x" } }], "rankings": [3], "states": [{}] });
    for input in [json!({}), json!(7), absurd] {
        let page = render_suite(&input, &SuiteOptions::default()).unwrap();
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
    }
}
