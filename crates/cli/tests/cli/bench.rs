//! Commands on aged volumes and their twins: real file systems, what every run begins with, and
//! that nothing is left.

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{Disk, must, volume},
    lab::{Lab, mount_points},
};

/// An image with some files, holes between them and a link, and its name.
pub fn aged_image(lab: &Lab, kind: &str, mib: u64) -> String {
    let image = lab.path(format!("{kind}-volume"));
    let block: &[&str] = if kind == "ext4" { &["-b", "4096"] } else { &[] };
    let (disk, mount) = volume(kind, block, &image, mib, lab.path("mnt"));
    std::fs::create_dir(mount.point.join("d")).unwrap();
    for number in 0..60u32 {
        std::fs::write(mount.point.join(format!("d/{number}")), vec![number as u8; 30_000]).unwrap();
    }
    for number in (0..60u32).step_by(2) {
        std::fs::remove_file(mount.point.join(format!("d/{number}"))).unwrap();
    }
    std::fs::write(mount.point.join("large"), vec![7; 900_000]).unwrap();
    std::fs::hard_link(mount.point.join("large"), mount.point.join("again")).unwrap();
    drop((mount, disk));
    image.to_string_lossy().into_owned()
}

pub fn json(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap()
}

pub fn figures(outcome: &Value, volume: usize, state: usize) -> Vec<f64> {
    let figures = outcome["volumes"][volume]["states"][state]["figures"].as_array().unwrap();
    figures.iter().map(|figure| figure.as_f64().unwrap()).collect()
}

/// Nothing of a benchmark is left, not even its directory.
#[track_caller]
pub fn assert_clean(lab: &Lab) {
    lab.assert_nothing_left();
    let names = std::fs::read_dir(lab.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("senesce-bench.")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn file_systems_are_ranked_from_equal_trees() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let mut aged = Vec::new();
    for (kind, mib) in [("ext4", 64), ("xfs", 320), ("btrfs", 160)] {
        let image = aged_image(&lab, kind, mib);
        let container = lab.path(format!("{kind}.si")).to_string_lossy().into_owned();
        lab.run(["image", "save", &image, &container]).good();
        // One is given as an image.
        aged.extend(["--aged".to_owned(), if kind == "xfs" { image } else { container }]);
    }
    let before = must("cksum", &[&aged[3]]);
    // The figure shows the contents and the names, and the second run of a state would find what
    // the first one left.
    let script = "test ! -e mark && cd $SENESCE_VOLUME && test $PWD = \"$0\" || exit 9
        find . -type f -print0 | sort -z | xargs -0 cksum | cksum | sed 's/^/sum: /'; touch mark; rm d/1";
    let mut args = vec!["bench"];
    args.extend(aged.iter().map(String::as_str));
    args.extend(["--unaged", "-r", "2", "-w", "1", "--dir", &dir, "--json", "--metric", r"^sum: (\d+)"]);
    args.extend(["--", "sh", "-c", script, "{}"]);
    let outcome = json(&lab.run(&args).good().stdout);
    let sum = figures(&outcome, 0, 0)[0];
    for volume in 0..3 {
        for state in 0..2 {
            assert_eq!(figures(&outcome, volume, state), [sum; 2], "{volume} {state}");
            let state = &outcome["volumes"][volume]["states"][state];
            assert_eq!(state["cold"], "remount+direct-io");
            assert_eq!(state["circumstances"]["loop_direct_io"], "true");
        }
        assert_eq!(outcome["volumes"][volume]["unlike"], serde_json::json!([]));
    }
    assert_eq!(outcome["ranking"]["aged"].as_array().unwrap().len(), 3);
    assert_eq!(outcome["rows"][2]["comparison"]["ratio"], 1.0);
    assert_eq!(must("cksum", &[&aged[3]]), before, "an image that is named is only read");

    // As text, in seconds.
    let mut args = vec!["bench"];
    args.extend(aged.iter().map(String::as_str));
    args.extend(["--unaged", "--sync", "-r", "1", "--dir", &dir, "--", "cp", "-r", "d", "{}/copy"]);
    let text = lab.run(&args).good().stdout;
    for said in ["wall seconds", "aged/unaged", "rank", "btrfs"] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    assert_clean(&lab);
}

#[test]
fn the_page_has_the_printed_figures() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = aged_image(&lab, "ext4", 64);
    let page = lab.path("bench.html").to_string_lossy().into_owned();
    let bench = |options: &[&str]| {
        let start = ["bench", "--aged", &image, "--unaged", "-r", "3", "--dir", &dir, "--html", &page];
        lab.run([&start, options, &["--", "sh", "-c", "tar cf - . | cat > /dev/null"]].concat())
    };
    let outcome = json(&bench(&["--json"]).good().stdout);
    let text = std::fs::read_to_string(&page).unwrap();
    let (_, data) = text.split_once("id=\"senesce-data\">").unwrap();
    assert_eq!(json(data.split_once("</script>").unwrap().0), outcome);
    // A dot for each run, in a drawing for wide and one for narrow screens.
    let dots = |class: &str| text.matches(&format!("<circle class=\"{class}\"")).count();
    assert_eq!((dots("bar"), dots("bar fresh")), (6, 6));
    assert!(text.contains("<h1>sh -c tar cf - . | cat &gt; "), "the command is the title");
    // A page of senesce is replaced, and no other file.
    bench(&["-q"]).good();
    assert_ne!(std::fs::read_to_string(&page).unwrap(), text);
    std::fs::write(&page, "of another program").unwrap();
    bench(&[]).refused(2, &["bench.html exists already, and senesce did not write it"]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "of another program");
    assert_clean(&lab);
}

#[test]
fn a_command_without_reads_causes_a_warning() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = lab.path("volume").to_string_lossy().into_owned();
    let (disk, mount) = volume("ext4", &["-b", "4096"], &lab.path("volume"), 64, lab.path("mnt"));
    std::fs::write(mount.point.join("large"), vec![7; 12 << 20]).unwrap();
    drop((mount, disk));
    let run = |script: &str| {
        let words = ["bench", "--aged", &image, "--unaged", "-r", "1", "--dir", &dir, "--", "sh", "-c", script];
        lab.run(words).good().stdout
    };
    let none = run("tar cf /dev/null .");
    assert!(none.contains("warning: ext4 aged: the command read") && none.contains("ext4 unaged: the"), "{none}");
    let all = run("tar cf - . | cat > /dev/null");
    // Other tests may disturb the command, which is another warning.
    assert!(!all.contains("the command read"), "{all}");
    assert_clean(&lab);
}

#[test]
fn state_of_a_run_stays_only_on_request() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = aged_image(&lab, "ext4", 32);
    // What stays in the background must not hold the volume.
    let script = "echo >> runs; sleep 1000 & echo has $(wc -l < runs)";
    for (extra, wanted) in [(None, [1.0, 1.0, 1.0]), (Some("--keep-state"), [1.0, 2.0, 3.0])] {
        let mut args = vec!["bench", "--aged", &image, "--unaged", "-r", "3", "--dir", &dir, "--json"];
        args.extend(extra);
        args.extend(["--metric", r"has (\d+)", "--more-is-better", "--", "sh", "-c", script]);
        let outcome = json(&lab.run(&args).good().stdout);
        assert_eq!((figures(&outcome, 0, 0), figures(&outcome, 0, 1)), (wanted.to_vec(), wanted.to_vec()));
        assert!(outcome["ranking"].is_null());
    }
    // Without a twin; twice the same can only exist in turn.
    let twice = ["bench", "--aged", &image, "--aged", &image, "-r", "1", "--dir", &dir];
    let text = lab.run([&twice[..], &["--", "true"]].concat()).good().stdout;
    assert!(text.contains("ext4 ext4-volume") && !text.contains("aged/unaged"), "{text}");
    lab.run([&twice[..], &["--keep-state", "--", "true"]].concat()).refused(2, &["same UUID"]);
    assert_clean(&lab);
}

#[test]
fn failing_command_is_reported_and_cleaned() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = aged_image(&lab, "ext4", 32);
    let run = |args: &[&str]| lab.run([&["bench", "--aged", &image, "--unaged", "--dir", &dir], args].concat());
    let fails = run(&["--", "sh", "-c", "echo no such luck >&2; exit 7"]);
    fails.refused(1, &["ext4 aged, run 1", "exit status: 7", "no such luck"]);
    run(&["--", "/nonexistent/program"]).refused(2, &["cannot run /nonexistent/program"]);
    run(&["--metric", r"IOPS=(\d+)", "--", "echo", "IOPS unknown"]).refused(1, &["matches nothing", "IOPS unknown"]);
    run(&["--metric", "is (.*)", "--", "echo", "is slow"]).refused(1, &["\"slow\"", "no number"]);
    run(&["--metric", r"\d+", "--", "true"]).refused(2, &["exactly one group"]);
    run(&["--more-is-better", "--", "true"]).refused(2, &["--metric"]);
    lab.run(["bench", "--aged", &lab.path("nowhere").to_string_lossy(), "--", "true"]).refused(2, &["nowhere"]);
    std::fs::write(lab.path("text"), "no volume").unwrap();
    let text = lab.path("text").to_string_lossy().into_owned();
    lab.run(["bench", "--dir", &dir, "--aged", &text, "--", "true"]).refused(2, &["no known file system"]);
    {
        let disk = Disk::attach(lab.path("ext4-volume").as_path());
        run(&["--", "true"]).refused(3, &["in use", "the loop device"]);
        lab.run(["bench", "--dir", &dir, "--aged", &disk.device, "--", "true"]).refused(2, &["image save"]);
    }
    assert_clean(&lab);
}

/// A benchmark whose command sleeps in a volume, and the number of the sleeping process.
fn start_sleeping(lab: &Lab) -> (std::process::Child, String) {
    let dir = lab.path(".").to_string_lossy().into_owned();
    let image = aged_image(lab, "ext4", 32);
    let container = lab.path("c").to_string_lossy().into_owned();
    lab.run(["image", "save", &image, &container]).good();
    let mut command = lab.command();
    command.args(["bench", "--aged", &container, "--dir", &dir, "--"]);
    command.args(["sh", "-c", "echo $$ > \"$0\"; exec sleep 1000", &format!("{dir}/pid")]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let written = || std::fs::read_to_string(lab.path("pid")).unwrap_or_default();
    while !written().ends_with('\n') {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    (child, written().trim().to_owned())
}

#[test]
fn a_signal_ends_the_command_and_cleans() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (child, sleeper) = start_sleeping(&lab);
    assert!(mount_points().iter().any(|point| point.contains("/senesce-bench.")), "the command runs in a volume");
    must("kill", &["-TERM", &child.id().to_string()]);
    let ended = super::lab::Done::of(child.wait_with_output().unwrap());
    ended.refused(143, &["interrupted by signal 15"]);
    assert!(!ended.stderr.contains("--resume"), "{}", ended.stderr);
    assert!(!std::path::Path::new("/proc").join(sleeper).exists(), "the command ended, too");
    assert_clean(&lab);
}

#[test]
fn clean_removes_a_killed_benchmark() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let (mut child, sleeper) = start_sleeping(&lab);
    child.kill().unwrap();
    child.wait().unwrap();
    must("kill", &["-KILL", &sleeper]);
    // Until it has let go of the directory it was in, the volume is busy.
    while std::fs::read_link(format!("/proc/{sleeper}/cwd")).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let cleaned = lab.run(["clean"]).good();
    assert!(cleaned.stdout.contains("mount at") && cleaned.stdout.contains("/images."), "{}", cleaned.stdout);
    lab.assert_nothing_left();
    let images = must("find", &[&lab.path(".").to_string_lossy(), "-name", "0-aged*"]);
    assert_eq!(images, "");
}
