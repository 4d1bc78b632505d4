//! The page and the picture of a device's transfer curve.

#[path = "common/transfer.rs"]
mod sample;

use senesce_report::{TransferOptions, render_transfer, render_transfer_svg};
use serde_json::json;

#[test]
fn transfer_page_shows_measurement_and_loads_nothing() {
    let options = TransferOptions { senesce_version: "1.2.3".into(), made_at: None };
    let page = render_transfer(&sample::transfer(), &options).unwrap();
    assert_eq!(page, render_transfer(&sample::transfer(), &options).unwrap());
    for outside in ["http:", "https:", "//cdn", "@import", "url(", "<link rel=\"stylesheet", " src="] {
        assert!(!page.contains(outside), "the page refers to `{outside}`");
    }
    // Of the measured curve: its best point is 1100 MiB/s.
    let verdict = "Random reads of 200 KiB get half of the best bandwidth, 1,100 MiB&#x2f;s; reads of 1.2 MiB get nine";
    assert!(page.contains(verdict), "{page}");
    assert!(page.contains("&#x2f;dev&#x2f;&lt;sdb&gt;") && !page.contains("<sdb>"), "{page}");
    for said in ["HDD 7.2K", "SATA SSD", "measured", "fitted", "100 reads of each size", "≤ 4 KiB"] {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.matches("</script>").count(), 2);
    let data = page.split("id=\"senesce-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let (data, given) = (serde_json::from_str::<serde_json::Value>(data).unwrap(), sample::transfer());
    assert_eq!(data["path"], given["path"]);
    // Not the bandwidths: a number that was written and read may differ in its last digit.
    assert_eq!(data["curves"][5]["natural_transfer_sizes"], given["curves"][5]["natural_transfer_sizes"]);
}

#[test]
fn picture_has_every_curve_without_custom_properties() {
    let svg = render_transfer_svg(&sample::transfer());
    assert_eq!(svg.matches("<polyline").count(), 6);
    // Two on each curve, and two in the legend.
    assert_eq!(svg.matches("class=\"natural\"").count(), 2 * 6 + 2);
    assert!(!svg.contains("var(") && !svg.contains("NaN") && !svg.contains("<sdb>"), "{svg}");
    for said in ["MiB/s (logarithmic)", "size of each read (logarithmic)", "4 KiB", "64 MiB", "HDD 10K (model)"] {
        assert!(svg.contains(said), "{said}");
    }
}

#[test]
fn missing_or_absurd_values_are_dashes() {
    let absurd = json!({ "curves": [{ "name": 7, "points": [{ "size_bytes": -1, "mib_per_second": "x" }, { "size_bytes": 4096, "mib_per_second": 0 }] }] });
    for input in [json!({}), json!({ "curves": [] }), json!(7), absurd] {
        let page = render_transfer(&input, &TransferOptions::default()).unwrap();
        assert!(page.contains("Nothing was measured.") && !page.contains("NaN") && !page.contains("inf "), "{page}");
        assert!(render_transfer_svg(&input).contains("no data"));
    }
}
