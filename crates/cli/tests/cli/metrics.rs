//! `inspect --metrics` as node_exporter, Prometheus and Grafana read it.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use senesce_testkit::{Volume, root_or_skip};
use serde_json::Value;

use super::lab::Lab;

/// A file of the repository.
fn file(name: &str) -> String {
    fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Checks a text with promtool, if it is installed.
fn check_by_promtool(words: &[&str], input: &str) {
    let command = Command::new("promtool").args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = command else { return };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The metrics that a text names.
fn names_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("senesce_inspect_")).map(str::to_owned).collect()
}

#[test]
fn metrics_are_written_also_by_a_failed_inspection() {
    let lab = Lab::new();
    let tree = lab.path("tree");
    fs::create_dir(&tree).unwrap();
    for number in 0..20 {
        fs::write(tree.join(number.to_string()), vec![number; 100_000]).unwrap();
    }
    fs::File::create(lab.path("e.img")).unwrap().set_len(16 << 20).unwrap();
    let image = lab.path("e.img");
    senesce_testkit::run("mkfs.ext4", &["-q", "-F", "-d", tree.to_str().unwrap(), image.to_str().unwrap()]);
    let done = lab.run(["inspect", "e.img", "--metrics", "m.prom", "--idle", "-q"]).good();
    assert_eq!(done.stdout, "", "no screen");
    let text = fs::read_to_string(lab.path("m.prom")).unwrap();
    check_by_promtool(&["check", "metrics"], &text);
    for line in ["senesce_inspect_files{", "senesce_inspect_slowdown_ratio{", "model=\"model: NVMe SSD\"} "] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let files = text.lines().find(|line| line.starts_with("senesce_inspect_files{")).unwrap();
    assert!(files.contains("fstype=\"ext4\"") && files.ends_with(" 20"), "{files}");
    assert!(!text.contains("=\"\""), "a label without a value: {text}");
    assert_eq!(fs::metadata(lab.path("m.prom")).unwrap().permissions().mode() & 0o777, 0o644);
    let json = lab.run(["inspect", "e.img", "--metrics", "m.prom", "--json", "--no-map", "-q"]).good().stdout;
    assert!(serde_json::from_str::<Value>(&json).unwrap()["tree"]["files"] == 20);

    lab.run(["inspect", "gone.img", "--metrics", "m.prom"]).refused(2, &["gone.img"]);
    let text = fs::read_to_string(lab.path("m.prom")).unwrap();
    let failed = "senesce_inspect_success{path=\"gone.img\"} 0\n";
    assert!(text.contains(failed), "{text}");
    check_by_promtool(&["check", "metrics"], &text);
    let left: Vec<_> = fs::read_dir(lab.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn metrics_of_a_directory_name_its_mount_point() {
    if !root_or_skip("volumes") {
        return;
    }
    let (lab, volume) = (Lab::new(), Volume::new("ext4", 32, &[], ""));
    let tree = volume.path("a/b");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join("file"), "x").unwrap();
    lab.run(["inspect", tree.to_str().unwrap(), "--metrics", "m.prom", "-q"]).good();
    let text = fs::read_to_string(lab.path("m.prom")).unwrap();
    let point = tree.ancestors().nth(2).unwrap();
    let labels = format!("mountpoint=\"{}\",fstype=\"ext4\",path=\"{}\"", point.display(), tree.display());
    assert!(text.contains(&labels), "{labels} is not in {text}");
}

#[test]
fn reference_of_metrics_is_current() {
    let current = Lab::new().run(["schema", "--of", "metrics"]).good().stdout;
    let is_current = file("docs/reference/metrics.md") == current;
    assert!(is_current, "old; run: senesce schema --of metrics > docs/reference/metrics.md");
}

#[test]
fn rules_and_dashboard_name_existing_metrics() {
    let reference = file("docs/reference/metrics.md");
    let row = |line: &str| Some(format!("senesce_inspect_{}", line.strip_prefix("| `")?.split('`').next()?));
    let known: BTreeSet<String> = reference.lines().filter_map(row).collect();
    assert!(known.len() > 15, "{known:?}");
    let rules = file("contrib/prometheus/senesce-alerts.yml");
    let parsed: Value = serde_saphyr::from_str(&rules).unwrap();
    let alerts = parsed["groups"][0]["rules"].as_array().unwrap();
    assert!(alerts.len() >= 5 && alerts.iter().all(|alert| alert["expr"].is_string() && alert["alert"].is_string()));
    let dashboard = file("contrib/prometheus/senesce-dashboard.json");
    let parsed: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = parsed["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for text in [rules, dashboard] {
        let unknown: Vec<String> = names_of(&text).difference(&known).cloned().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    let rules = format!("{}/../../contrib/prometheus/senesce-alerts.yml", env!("CARGO_MANIFEST_DIR"));
    check_by_promtool(&["check", "rules", &rules], "");
}

#[test]
fn service_runs_at_idle_priority_with_valid_options() {
    let service = file("contrib/systemd/senesce-inspect@.service");
    for line in ["IOSchedulingClass=idle", "CPUWeight=10", "ConditionPathIsMountPoint=%f"] {
        assert!(service.lines().any(|found| found == line), "{line}");
    }
    let start = service.lines().find_map(|line| line.strip_prefix("ExecStart=senesce ")).unwrap();
    // The only error is the missing path, so the program accepts the options.
    let lab = Lab::new();
    let metrics = lab.path("senesce-x.prom");
    let line = start
        .replace("%f", "nowhere")
        .replace("/var/lib/prometheus/node-exporter/senesce-%i.prom", &metrics.to_string_lossy());
    lab.run(line.split(' ')).refused(2, &["nowhere"]);
    assert!(fs::read_to_string(metrics).unwrap().contains("senesce_inspect_success"));
    assert!(file("contrib/systemd/senesce-inspect@.timer").contains("OnCalendar=daily"));
}
