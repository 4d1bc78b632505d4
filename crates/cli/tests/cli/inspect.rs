//! `inspect`, `trace`, `compare` and `device` as a user meets them.

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{Disk, Mount, must, volume},
    lab::{Lab, SINGLE, loops},
};

/// A mounted volume with two hundred files in a few directories.
pub fn filled_volume(lab: &Lab, kind: &str, mib: u64) -> (Disk, Mount) {
    let (disk, mount) = volume(kind, &[], &lab.path("volume.disk"), mib, lab.path("mnt"));
    for number in 0..200 {
        let dir = mount.point.join(format!("d{}", number % 7));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("f{number}")), vec![number as u8; 1000 * (1 + number % 40)]).unwrap();
    }
    must("sync", &["-f", &mount.point.to_string_lossy()]);
    (disk, mount)
}

#[test]
fn inspection_fits_a_screen_and_parses() {
    if !root_or_skip("volumes") {
        return;
    }
    for (kind, mib) in [("ext4", 64), ("xfs", 300), ("btrfs", 128)] {
        let lab = Lab::new();
        let (disk, mount) = filled_volume(&lab, kind, mib);
        let path = mount.point.to_str().unwrap();
        let screen = lab.run(["inspect", path, "--html", "page.html", "--idle"]).good().stdout;
        for text in [
            "reading all 200 files cold",
            "model: HDD 7.2K",
            "model: NVMe",
            "fresh copy",
            "layout score",
            "aligned 2 MiB",
        ] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        assert!(screen.lines().count() < 60, "{screen}");
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        assert!(page.contains("volume-map") && !page.contains("http:") && !page.contains("https:"));
        let json: Value = serde_json::from_str(&lab.run(["inspect", path, "--json"]).good().stdout).unwrap();
        assert_eq!(json["schema"], "senesce-inspect/2");
        assert_eq!(json["tree"]["files"], 200);
        // The verdict is for the disk of this machine. A tree of a few MiB loses less than a second
        // on any disk.
        assert!(json["device"]["kind"].is_string() && json["device"]["description"].is_string(), "{}", json["device"]);
        assert_eq!(json["judgements"].as_array().unwrap().len(), 3);
        for judgement in json["judgements"].as_array().unwrap() {
            let (lost, grade) = (judgement["lost_seconds"].as_f64().unwrap(), judgement["grade"].as_str().unwrap());
            assert!(lost >= 1.0 || ["young", "negligible"].contains(&grade), "{judgement}");
        }
        let named = lab.run(["inspect", path, "--json", "-d", "nvme"]).good().stdout;
        let named: Value = serde_json::from_str(&named).unwrap();
        assert!(named["device"]["kind"].is_null() && named["slowdown"].is_f64(), "{}", named["device"]);
        assert_eq!(named["grade"], named["judgements"][0]["grade"]);
        let used: u64 = json["map"]["used"].as_array().unwrap().iter().map(|cell| cell.as_u64().unwrap()).sum();
        assert!(used > 0 && json["costs"][0]["seconds"]["as_it_lies"].as_f64().unwrap() > 0.0, "{}", json["costs"]);
        // The same readahead is modelled whatever the device has set, and both are printed.
        let name = disk.device.trim_start_matches("/dev/");
        std::fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), "512").unwrap();
        let again: Value = serde_json::from_str(&lab.run(["inspect", path, "--json"]).good().stdout).unwrap();
        // Btrfs has a default of its own.
        let (default, shown) = if kind == "btrfs" { (4096, "4,096") } else { (128, "128") };
        assert_eq!((&again["costs"], &again["target"]["read_ahead_kib"]), (&json["costs"], &default.into()));
        assert_eq!(again["target"]["device_read_ahead_kib"], 512);
        let told = format!("readahead modelled: {shown} KiB (the kernel's default; the device has 512 KiB set");
        let screen = lab.run(["inspect", path]).good().stdout;
        assert!(screen.contains(&told), "{screen}");
        // The device stands for its mount.
        let by_device = lab.run(["inspect", &disk.device]).good().stdout;
        assert!(by_device.contains("reading all 200 files"), "{by_device}");
    }
}

#[test]
fn unmounted_image_has_the_same_figures() {
    if !root_or_skip("volumes") {
        return;
    }
    for (kind, mib, read) in [
        ("ext4", 64, "straight from the image"),
        ("xfs", 300, "mounted read-only for the inspection"),
        ("btrfs", 128, "mounted read-only for the inspection"),
    ] {
        let lab = Lab::new();
        let (disk, mount) = filled_volume(&lab, kind, mib);
        if kind == "ext4" {
            // Past its mount, which is said.
            let past = lab.run(["inspect", "--offline", &disk.device]).good().stdout;
            assert!(past.contains("mounted for writing on") && past.contains("reading all 200 files"), "{past}");
        } else {
            lab.run(["inspect", "--offline", &disk.device]).refused(2, &["cannot be read straight from a device"]);
        }
        drop((mount, disk));
        let hash = must("sha256sum", &[&lab.path("volume.disk").to_string_lossy()]);
        let modified = || std::fs::metadata(lab.path("volume.disk")).unwrap().modified().unwrap();
        let before = modified();
        let screen = lab.run(["inspect", "volume.disk", "--html", "page.html"]).good().stdout;
        for text in ["reading all 200 files cold", "fresh copy", "metadata", "free space:", read] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        assert!(page.contains(read) && page.contains("in metadata") && page.contains("Free extents"));
        let json: Value = serde_json::from_str(&lab.run(["inspect", "volume.disk", "--json"]).good().stdout).unwrap();
        assert_eq!(json["target"]["read"], read);
        assert_eq!(json["tree"]["files"], 200);
        assert!(json["free_space"]["figures"]["extents"].as_u64().unwrap() > 0, "{}", json["free_space"]);
        if kind == "btrfs" {
            let purposes: Vec<&str> = json["free_space"]["btrfs"]["purposes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|purpose| purpose["purpose"].as_str().unwrap())
                .collect();
            assert!(purposes.contains(&"data") && purposes.contains(&"metadata"), "{purposes:?}");
            assert!(screen.contains("metadata, dup") && screen.contains("unallocated"), "{screen}");
            assert!(page.contains("Block groups") && page.contains("metadata, dup"));
        }
        assert_eq!(must("sha256sum", &[&lab.path("volume.disk").to_string_lossy()]), hash, "{kind}");
        assert_eq!(modified(), before, "{kind}");
        lab.assert_nothing_left();
    }
}

#[test]
fn killed_inspection_leaves_nothing() {
    if !root_or_skip("volumes") {
        return;
    }
    for (kind, mib) in [("xfs", 300), ("btrfs", 256)] {
        let lab = Lab::new();
        let (disk, mount) = filled_volume(&lab, kind, mib);
        for number in 0..6000 {
            std::fs::write(mount.point.join(format!("d{}/more-{number}", number % 7)), b"few bytes").unwrap();
        }
        drop((mount, disk));
        let image = lab.path("volume.disk").to_string_lossy().into_owned();
        let attached = || loops().iter().any(|(_, file)| *file == image);
        // Kills an inspection that has its loop device. On a busy machine one may end before that.
        let kill = || {
            let mut child =
                lab.command().args(["--quiet", "inspect", "volume.disk", "--threads", "1"]).spawn().unwrap();
            while child.try_wait().unwrap().is_none() && !attached() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            child.kill().unwrap();
            !child.wait().unwrap().success()
        };
        assert!((0..50).any(|_| kill()), "no inspection was killed in the middle");
        // The kernel takes mount and loop device away when the last descriptor is gone, a moment
        // later.
        for _ in 0..500 {
            if !attached() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        lab.assert_nothing_left();
        let said = lab.run(["clean"]).good().stdout;
        assert!(
            said.starts_with("nothing to clean: "),
            "the list of runs is empty, because an inspection leaves nothing: {said}"
        );
        lab.run(["inspect", "volume.disk", "--json"]).good();
    }
}

#[test]
fn live_root_is_inspected_under_any_device_name() {
    if !root_or_skip("the root") {
        return;
    }
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = text.lines().rfind(|line| line.split(' ').nth(4) == Some("/")).unwrap();
    if !["ext4", "xfs", "btrfs"].iter().any(|kind| root.contains(&format!(" - {kind} "))) {
        eprintln!("skipped: the root lies on something else: {root}");
        return;
    }
    // A small part of it; the device is that of all.
    let lab = Lab::new();
    let json: Value = serde_json::from_str(&lab.run(["inspect", "/etc", "--json"]).good().stdout).unwrap();
    let device = json["target"]["device"].as_str().unwrap();
    assert!(device.starts_with("/dev/") && device != "/dev/root", "{device}");
    assert!(json["tree"]["files"].as_u64().unwrap() > 10);
}

#[test]
fn what_cannot_be_inspected_is_named() {
    let lab = Lab::new();
    std::fs::write(lab.path("text"), "no file system").unwrap();
    lab.run(["inspect", "text"]).refused(2, &["holds no file system", "ext4, XFS, Btrfs and F2FS"]);
    lab.run(["inspect", "absent"]).refused(2, &["cannot look up absent"]);
    lab.run(["inspect", "/proc"]).refused(2, &["is on proc", "ext4, XFS, Btrfs and F2FS"]);
    lab.run(["inspect", "/proc", "--offline"]).refused(2, &["it is a directory", "leave --offline out"]);
    lab.run(["inspect", "/", "-d", "floppy"]).refused(2, &["no device and no file \"floppy\"", "hdd-7200"]);
}

#[test]
fn impossible_device_descriptions_are_refused() {
    let lab = Lab::new();
    let listed = lab.run(["device", "list"]).good().stdout;
    for name in ["hdd-7200", "hdd-10k", "sata-ssd", "nvme"] {
        assert!(listed.contains(name), "{listed}");
        let shown = lab.run(["device", "show", name]).good().stdout;
        assert!(shown.contains("derived figures:"), "{shown}");
    }
    let toml = lab.run(["device", "show", "hdd-7200", "--toml"]).good().stdout;
    std::fs::write(lab.path("mine.toml"), &toml).unwrap();
    lab.run(["device", "show", "mine.toml"]).good();
    std::fs::write(lab.path("absurd.toml"), toml.replacen("value = 7200", "value = 0", 1)).unwrap();
    lab.run(["device", "show", "absurd.toml"]).refused(2, &["absurd.toml", "rotation", "0"]);
    std::fs::write(lab.path("odd.toml"), toml.replacen("[constants.rotation]", "[constants.rotatoin]", 1)).unwrap();
    lab.run(["device", "show", "odd.toml"]).refused(2, &["odd.toml", "rotatoin"]);
}

#[test]
fn trace_records_the_reads_of_a_command() {
    let lab = Lab::new();
    let blkparse = "  8,0    1        1     0.000000000  100  D   R 1000 + 8 [cat]\n  \
                    8,0    1        2     0.000100000  100  C   R 1000 + 8 [0]\n  \
                    8,0    1        3     0.000200000  100  D   R 1008 + 8 [cat]\n  \
                    8,0    1        4     0.000300000  100  C   R 1008 + 8 [0]\n";
    std::fs::write(lab.path("trace.txt"), blkparse).unwrap();
    let json: Value =
        serde_json::from_str(&lab.run(["trace", "--blkparse", "trace.txt", "--json"]).good().stdout).unwrap();
    assert_eq!((&json["requests"], &json["figures"]["reads"]["dynamic_layout_score"]), (&2.into(), &1.0.into()));
    std::fs::write(lab.path("broken.txt"), blkparse.replace("1008 + 8 [cat]", "1008 + x [cat]")).unwrap();
    lab.run(["trace", "--blkparse", "broken.txt"]).refused(2, &["line 3"]);
    lab.run(["trace"]).refused(2, &["either a command or --blkparse", "--on PATH"]);
    // Three reads in two rows, one jump of 2 MiB back; a write.
    let requests = [("R", 8000, 8), ("R", 8008, 16), ("R", 3928, 8), ("W", 50, 8)];
    let lines = requests.iter().enumerate().map(|(at, (kind, sector, sectors))| {
        format!("8,0 1 {at} 0.00010{at}000 100 D {kind} {sector} + {sectors} [cat]\n")
    });
    std::fs::write(lab.path("seeks.txt"), lines.collect::<String>()).unwrap();
    let text = lab.run(["trace", "--blkparse", "seeks.txt"]).good().stdout;
    let lines = [
        "  2 runs of adjacent requests, 2.0 blocks each\n",
        "           size  requests\n         4 KiB…         2  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n         8 KiB…         1  ▇▇▇▇▇▇▇▇▇▇\n",
        "           none         1         0  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n         2 MiB…         0         1  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇\n",
    ];
    for line in lines {
        assert!(text.contains(line), "{line}:\n{text}");
    }

    if !root_or_skip("tracefs") {
        return;
    }
    let (disk, mount) = filled_volume(&lab, "ext4", 64);
    let read = format!("if={}", disk.device);
    let args = ["trace", "--on", mount.point.to_str().unwrap(), "--requests", "r.csv", "--json", "--"];
    let command = ["dd", &read, "of=/dev/null", "bs=64k", "count=10", "skip=100", "iflag=direct"];
    let done = lab.run(args.iter().copied().chain(command)).good();
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["lost_events"], 0);
    let csv = std::fs::read_to_string(lab.path("r.csv")).unwrap();
    let direct = csv.lines().filter(|line| line.contains(",read,") && line.contains(",128,")).count();
    assert_eq!(direct, 10, "{csv}");
    // A command that reads nothing of the tree causes a warning. One that reads all of it does not.
    std::fs::write(mount.point.join("large"), vec![7; 8 << 20]).unwrap();
    must("sync", &["-f", &mount.point.to_string_lossy()]);
    for (words, is_warned) in
        [(vec!["true"], true), (vec!["dd", &read, "of=/dev/null", "bs=1M", "iflag=direct"], false)]
    {
        let point = mount.point.to_str().unwrap();
        let done = lab.run(["trace", "--on", point, "--"].iter().chain(&words)).good();
        assert_eq!(done.stdout.contains("warning: the command read"), is_warned, "{words:?} {}", done.stdout);
    }
    // The device of the directory it is called in, whatever file system that is.
    let here = |point: &std::path::Path| {
        let output = lab.command().current_dir(point).args(["trace", "--json", "--", "true"]).output().unwrap();
        super::lab::Done::of(output).good()
    };
    let done = here(&mount.point);
    assert!(done.stderr.contains(&format!("tracing {}, which holds", disk.device)), "{}", done.stderr);
    assert!(serde_json::from_str::<Value>(&done.stdout).unwrap()["figures"].is_object());
    {
        let lab = Lab::new();
        let (disk, mount) = filled_volume(&lab, "btrfs", 128);
        assert!(here(&mount.point).stderr.contains(&format!("tracing {}, which holds", disk.device)));
        std::fs::write(mount.point.join("file"), "x").unwrap();
        for on in [mount.point.clone(), mount.point.join("file")] {
            lab.run(["trace", "--on", on.to_str().unwrap(), "--json", "--", "true"]).good();
        }
    }
    // A user who is not root learns what he lacks.
    let binary = super::lab::SENESCE;
    let as_nobody = |arguments: &str| format!("cd /; exec setpriv --reuid 65534 --clear-groups {binary} {arguments}");
    let readable = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--clear-groups", binary, "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if readable {
        let said = ["no right to trace", "tracefs at /sys/kernel/", "hint: run as root"];
        lab.run_apart(&as_nobody(&format!("trace --on {} -- true", disk.device))).refused(3, &said);
    }
    let failing = lab.run(["trace", "--on", mount.point.to_str().unwrap(), "--", "false"]);
    failing.refused(1, &["the traced command ended with"]);
}

#[test]
fn calibration_prints_its_number_of_reads() {
    let lab = Lab::new();
    let curve = lab.run(["device", "show", "hdd-7200", "--curve"]).good().stdout;
    assert!(curve.contains("against the published curve"), "{curve}");
    let row = |size: &str| {
        let rows: Vec<&str> = curve.lines().filter(|line| line.trim_start().starts_with(size)).collect();
        rows.last().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // Size, unit, published, model and its error, twice.
    let (first, large) = (row("64 KiB"), row("16 MiB"));
    assert_eq!((first[2].as_str(), large[2].as_str()), ("18.0", "169.0"), "{curve}");
    let error = |row: &[String]| row[4].trim_end_matches('%').parse::<f64>().unwrap();
    assert!((-49.0..-45.0).contains(&error(&first)) && error(&large).abs() < 2.5, "{curve}");
    assert!(!lab.run(["device", "show", "nvme", "--curve"]).good().stdout.contains("published"));

    std::fs::write(lab.path("device"), vec![7; 33 << 20]).unwrap();
    // On a machine that does other things a large read can seem to take no longer than a small one:
    // that is reported, and one of many attempts finds a quieter moment.
    let calibrate = |more: &[&str]| {
        let args = ["device", "calibrate", "device", "--out", "fitted.toml", "--reads", "12"];
        for _ in 0..20 {
            let done = lab.run(args.iter().chain(more));
            if done.code == 0 {
                return done.good();
            }
            done.refused(1, &["determine no line with a positive rate", "quieter"]);
            assert!(!lab.path("fitted.toml").exists());
        }
        panic!("no calibration of twenty");
    };
    let done = calibrate(&[]);
    assert!(done.stderr.contains("--seconds and --reads end it earlier"), "{}", done.stderr);
    // An eighth of 33 MiB.
    let sizes = |text: &str| text.lines().filter(|line| line.contains("iB      12  ")).count();
    assert_eq!(sizes(&done.stdout), 11, "{}", done.stdout);
    assert!(done.stdout.contains("spread") && done.stdout.contains("natural transfer size at 90%"), "{}", done.stdout);
    std::fs::remove_file(lab.path("fitted.toml")).unwrap();
    let json = calibrate(&["--json", "--seconds", "9", "--html", "curve.html"]);
    assert!(
        std::fs::read_to_string(lab.path("curve.html")).unwrap().contains(" (commit "),
        "the page names the commit"
    );
    assert!(json.stderr.contains("at most 9 s for each of 11 sizes"), "{}", json.stderr);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["measured"].as_array().unwrap().len(), 11);
    assert!((10..=12).contains(&json["measured"][0]["reads"].as_u64().unwrap()), "{}", json["measured"]);
    // What is said to be off is what is off.
    let bad = json["residuals"].as_array().unwrap().iter();
    let bad = bad.filter(|residual| residual["error_percent"].as_f64().unwrap().abs() > 25.0).count();
    assert_eq!(json["warnings"].as_array().unwrap().len(), bad);
}

#[test]
fn comparisons_fail_only_on_selected_figures() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("[measure]", "[measure]\nrepetitions = 4"));
    for out in ["one", "two"] {
        lab.run(["run", "plan.toml", "--quiet", "--out", out]).good();
    }
    let table = lab.run(["compare", "one", "two"]).good().stdout;
    // Repetitions that other programs disturbed are left out, so their number depends on the
    // machine.
    assert!(table.contains("grep s/GiB") && table.contains("(n=") && table.contains("extents per file"), "{table}");
    lab.run(["compare", "one", "one", "--all", "--fail-if", "+5%"]).good();
    lab.run(["compare", "one", "two", "--fail-if", "-99%"]).good();
    let passed = lab.run(["compare", "one", "one", "--fail-if", "+5%"]).good().stdout;
    for part in [
        "none more than 5% worse in B than in A. Counted and modelled",
        "layout score",
        "requests",
        "show every change beyond +5% of this pair of runs",
    ] {
        assert!(passed.contains(part), "{passed}");
    }
    assert!(passed.starts_with("gate passed: ") && !passed.contains("undecided"), "{passed}");
    // With four values on a side, no change of a wall time can be shown.
    let noisy = lab.run(["compare", "one", "two", "--fail-if", "+5%", "--figure", "GREP", "--arm", "ext4"]);
    assert!([0, 6].contains(&noisy.code), "{}\n{}", noisy.stdout, noisy.stderr);
    assert!(!noisy.stdout.contains("layout score") && noisy.stdout.contains("ext4 unaged"), "{}", noisy.stdout);
    lab.run(["compare", "one", "two", "--figure", "nothing"]).refused(2, &["no common figure matches", "grep s/GiB"]);
    lab.run(["compare", "one", "two", "--figure", "grep", "--role", "full"]).refused(2, &["roles: empty, unaged"]);
    lab.run(["compare", "one", "nowhere"]).refused(2, &["nowhere does not exist"]);
    // Whatever the machine does, one of two runs is not exactly as fast as the other.
    let json: Value = serde_json::from_str(&lab.run(["compare", "one", "two", "--json"]).good().stdout).unwrap();
    assert_eq!(json["schema"], "senesce-compare/3");
    let tree = lab.path("arms");
    std::fs::create_dir_all(tree.join("sub")).unwrap();
    std::fs::write(tree.join("sub/file"), vec![1; 100_000]).unwrap();
    let trees = lab.run(["compare", "arms", "arms", "-r", "5", "--json"]).good().stdout;
    let trees: Value = serde_json::from_str(&trees).unwrap();
    assert_eq!(trees["rows"][0]["a"]["count"], 5);
    assert!(lab.run(["compare", "arms", "arms", "-r", "4", "--cold"]).good().stdout.contains("caches were dropped"));
    let gate = ["compare", "arms", "arms", "-r", "3", "--fail-if", "+5%"];
    lab.run(gate).refused(6, &["gate undecided", "at least 5 repetitions"]);
    lab.run([&gate[..], &["--on-undecided", "pass"]].concat()).good();
    lab.run([&gate[..], &["--on-undecided", "fail"]].concat()).refused(5, &["gate undecided"]);
    assert!(
        lab.run(["compare", "arms", "arms", "-r", "3"]).good().stdout.contains("cannot be distinguished from chance")
    );

    // What differs besides the figures is said; of a modelled disk its own time is compared, not
    // that of memory.
    lab.plan(&SINGLE.replace("seed = 7", "seed = 8").replace("backend = \"memory\"\n", "device = \"hdd-7200\"\n"));
    lab.run(["run", "plan.toml", "--quiet", "--out", "virtual"]).good();
    let unlike = lab.run(["compare", "one", "virtual"]).good().stdout;
    for part in ["plan.seed is 7 in A, 8 in B", "device: backend is image in A, virtual disk in B"] {
        assert!(unlike.contains(part), "{unlike}");
    }
    let alike = lab.run(["compare", "virtual", "virtual"]).good().stdout;
    assert!(alike.contains("(virtual-time) s/GiB") && !alike.contains("grep s/GiB"), "{alike}");
    assert!(alike.contains("(virtual-time) slowdown") && alike.contains("A lower cost is not a lower age."), "{alike}");
    assert!(!alike.contains("unlike:"), "{alike}");
    lab.run(["compare", "one", "arms"]).refused(2, &["one is a run and arms is a tree"]);
    lab.run(["compare", "one", "two", "--fail-if", "5"]).refused(2, &["+5%"]);
}
