//! Aged volumes without an experiment: images, devices and directories, what was reached, what is
//! kept, what is refused.

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{Disk, Mount, must},
    lab::{Lab, SMALL},
};

fn reached(stdout: &str) -> Value {
    serde_json::from_str::<Value>(stdout).unwrap()["reached"].take()
}

#[test]
fn images_are_aged_kept_and_their_logs_replayed() {
    if !root_or_skip("formatting and mounting") {
        return;
    }
    for (kind, size, mkfs) in [("ext4", "48MiB", "-m 0"), ("xfs", "320MiB", "-K"), ("btrfs", "320MiB", "-m single")] {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        let (on, dir) = (format!("image:{size}"), path("."));
        let (image, container, log) = (path("kept"), path("aged.senesce-image"), path("log"));
        let mut args =
            vec!["age", "fsfb", "--on", &on, "--fs", kind, "--mkfs", mkfs, "--until", "fullness=50%,turnover=0.2"];
        args.extend(["--set", "directories=20", "--seed", "5", "--dir", &dir, "--json"]);
        args.extend(["--image", &image, "--save", &container, "--log", &log]);
        let report = reached(&lab.run(&args).good().stdout);
        assert_eq!((report["ended"].as_str(), report["missed"].as_array().unwrap().len()), (Some("reached"), 0));
        let fullness = report["fullness"].as_f64().unwrap();
        assert!((0.495..0.6).contains(&fullness), "{kind}: {fullness}");
        // Rounds replace a twentieth each.
        let turnover = report["turnover"].as_f64().unwrap();
        assert!((0.2..0.27).contains(&turnover), "{kind}: {turnover}");
        assert!(report["layout"]["extents_per_file"].as_f64().unwrap() >= 1.0);
        lab.run(["image", "restore", &container, &path("restored")]).good();
        must("cmp", &[&image, &path("restored")]);
        let listed = lab.run(["image", "list", &container]).good();
        let made = listed.stdout.lines().find(|line| line.contains("age.mkfs")).unwrap();
        assert!(listed.stdout.contains("age.workload  fsfb") && made.contains(mkfs), "{}", listed.stdout);

        // The log and the tree agree.
        std::fs::create_dir(lab.path("again")).unwrap();
        lab.run(["replay", &log, "--on", &path("again"), "--dir", &dir]).good();
        let disk = Disk::attach(&lab.path("restored"));
        let mount = Mount::new(&[&disk.device], lab.path("mnt"));
        must("diff", &["-r", "--exclude=lost+found", &mount.point.to_string_lossy(), &path("again")]);
        lab.run(&args).refused(2, &["exists already"]);
        drop((mount, disk));
        lab.assert_nothing_left();
    }
}

#[test]
fn aging_a_directory_touches_nothing_else() {
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    let (on, dir) = (path("place"), path("."));
    std::fs::create_dir(lab.path("place")).unwrap();
    let mut args = vec!["age", "mail", "--on", &on, "--dir", &dir, "--json"];
    for set in ["mailboxes=3", "messages=10", "operations=50", "cycles=3"] {
        args.extend(["--set", set]);
    }
    let steps = [args.clone(), vec!["--until", "steps=2"]].concat();
    let report = reached(&lab.run(&steps).good().stdout);
    assert_eq!((report["ended"].as_str(), report["counted_steps"].as_u64()), (Some("steps"), Some(2)));
    // The same again, beside what is there.
    let before = must("find", &[&on, "-printf", "%p %s %T@\\n"]);
    let again = lab.run(&steps).good();
    assert!(again.stdout.contains("place/senesce-aged"), "{}", again.stdout);
    assert_eq!(reached(&again.stdout)["written_bytes"], report["written_bytes"]);
    must("diff", &["-r", &format!("{on}/mail"), &format!("{on}/senesce-aged/mail")]);
    let still = must("find", &[&on, "-not", "-path", "*/senesce-aged*", "-printf", "%p %s %T@\\n"]);
    let without_top = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(without_top(&still), without_top(&before));
    lab.run(&steps).refused(2, &["senesce-aged exists"]);

    // The workload ends before that age.
    std::fs::create_dir(lab.path("other")).unwrap();
    let on = path("other");
    args[3] = &on;
    let ended = lab.run([args, vec!["--until", "turnover=1000"]].concat());
    ended.refused(1, &["not reached", "no more steps", "turnover 1000"]);
    assert_eq!(reached(&ended.stdout)["counted_steps"], 3);
    lab.assert_nothing_left();
}

#[test]
fn device_with_contents_is_refused() {
    if !root_or_skip("formatting and mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let disk = Disk::new(&lab.path("volume"), 64);
    let mut args = vec!["age", "synthetic", "--set", "files=500", "--set", "commits=12", "--on", &disk.device];
    args.extend(["--fs", "ext4", "--dir", &dir]);
    let aged = lab.run(&args).good();
    assert!(aged.stdout.contains("layout score") && aged.stdout.contains("extents per file"), "{}", aged.stdout);
    lab.run(&args).refused(3, &[&disk.device, "--force"]);
    {
        let mount = Mount::new(&[&disk.device], lab.path("mnt"));
        assert!(std::fs::read_dir(&mount.point).unwrap().count() > 1);
        lab.run([args.clone(), vec!["--force"]].concat()).refused(3, &["in use"]);
        // Neither its size nor the words come first, and no history is made.
        let xfs = ["age", "synthetic", "--set", "files=500000", "--on", &disk.device, "--fs", "xfs", "--dir", &dir];
        lab.run([&xfs[..], &["--force"]].concat()).refused(3, &["in use", "is mounted on"]);
    }
    let words = [&args[..], &["--force", "--mkfs", "-d /etc"]].concat();
    lab.run(words).refused(2, &["\"-d\"", "allowed are", "-O"]);
    lab.run([args, vec!["--force"]].concat()).good();
    drop(disk);
    lab.assert_nothing_left();
}

#[test]
fn volume_too_small_for_set_up_is_refused() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let disk = Disk::new(&lab.path("volume"), 30);
    let age = |workload: &[&str], fs| {
        lab.run([&["age"], workload, &["--on", &disk.device, "--fs", fs, "--dir", &dir]].concat())
    };
    for workload in [
        &["mail"][..],
        &["overwrite", "--set", "size=27MiB"],
        &["interfile"],
        &["intrafile", "--set", "files=30", "--set", "file_size=1MiB"],
    ] {
        age(workload, "ext4").refused(
            2,
            &[&disk.device, " has 30 MiB, which is too small", "its contents need", "hint: make the volume larger"],
        );
    }
    age(&["fsfb"], "xfs").refused(2, &["30 MiB is too small for xfs: at least 300 MiB"]);
    must("cmp", &["-n", "31457280", &disk.device, "/dev/zero"]);
    let narrow = Mount::new(&["-t", "tmpfs", "-o", "size=8m", "none"], lab.path("narrow"));
    let image = |size: &str| {
        let place = narrow.point.to_string_lossy();
        lab.run(["age", "fsfb", "--on", size, "--fs", "ext4", "--dir", &place, "--save", "x"])
    };
    image("image:99999TiB").refused(2, &["is too large: 16 TiB at most", "hint: "]);
    let mail = ["age", "mail", "--on", "image:30MiB", "--fs", "ext4", "--dir", &dir, "--save", "x"];
    lab.run(mail).refused(2, &["image:30MiB has 30 MiB, which is too small"]);
    // Its metadata alone.
    image("image:1GiB").refused(3, &["/narrow has ", " free, and 16 MiB are needed", "hint: "]);
    drop(narrow);
    drop(disk);
    lab.assert_nothing_left();
}

#[test]
fn profile_is_followed_to_the_requested_fullness() {
    if !root_or_skip("formatting and mounting") {
        return;
    }
    let lab = Lab::new();
    let (dir, image) = (lab.path("."), lab.path("kept"));
    let (dir, image) = (dir.to_string_lossy(), image.to_string_lossy());
    // A profile from a file, whose name ends as that of a plan.
    std::fs::write(lab.path("mine.toml"), lab.run(["profile", "show", "--toml", "agrawal"]).good().stdout).unwrap();
    let mine = format!("profile:{}", lab.path("mine.toml").display());
    let mut args = vec!["age", &mine, "--on", "image:64MiB", "--fs", "ext4", "--until", "fullness=60%"];
    args.extend(["--set", "churn=1", "--set", "content=allocate", "--dir", &dir, "--image", &image]);
    args.extend(["--threads", "2", "--json"]);
    let run = lab.run(args).good();
    assert!(run.stderr.contains("warning: the profile was not reached as closely as requested"), "{}", run.stderr);
    let report = reached(&run.stdout);
    // Of so few files a single one matters. Births after the filling, and the files' times at the
    // end.
    assert_eq!((&report["ended"], report["counted_steps"].as_u64()), (&"workload".into(), Some(100)), "{report}");
    assert!((report["fullness"].as_f64().unwrap() - 0.6).abs() < 0.05, "{report}");
    assert!(report["turnover"].as_f64().unwrap() > 0.3, "{report}");
    let own = &report["workload"];
    assert!(own["age.shares"].is_string() && own["files"].as_u64() > Some(100), "{report}");
    // Nothing is written, and all of it counts.
    assert!(report["written_bytes"] == 0 && report["reserved_bytes"].as_u64() > Some(30 << 20), "{report}");

    // Captured from the image, and from its mount: the same profile, but for blocks that are kept
    // for root.
    let capture = |place: &str| {
        let mut args = vec!["profile", "capture", place, "--like", "agrawal", "--extents", "--quiet"];
        args.extend(["--now", "1704067200"]);
        let found = lab.run(args).good().stdout;
        found.lines().filter(|line| !line.starts_with("fullness")).map(str::to_owned).collect::<Vec<_>>()
    };
    let offline = capture(&image);
    let disk = Disk::attach(&lab.path("kept"));
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    assert_eq!(offline, capture(&mount.point.to_string_lossy()));
    drop((mount, disk));
    std::fs::write(lab.path("junk"), vec![7; 1 << 20]).unwrap();
    lab.run(["profile", "capture", &lab.path("junk").to_string_lossy()])
        .refused(2, &["holds no ext4", "mount another file system"]);
    lab.assert_nothing_left();
}

#[test]
fn a_layout_score_is_waited_for() {
    if !root_or_skip("formatting and mounting") {
        return;
    }
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    let (dir, image) = (path("."), path("kept"));
    // Files that grow in turn lie in many pieces soon.
    let mut args = vec!["age", "intrafile", "--on", "image:64MiB", "--fs", "ext4", "--dir", &dir, "--image", &image];
    args.extend(["--set", "files=10", "--set", "file_size=16KiB", "--set", "append=4KiB", "--set", "rounds=200"]);
    args.extend(["--until", "layout-score=0.7", "--json"]);
    let report = reached(&lab.run(&args).good().stdout);
    assert_eq!(report["ended"], "reached", "{report}");
    assert!(report["layout"]["layout_score"].as_f64().unwrap() <= 0.75, "{report}");
    assert!(report["counted_steps"].as_u64().unwrap() < 200, "{report}");
    lab.assert_nothing_left();
}

#[test]
fn contradictory_options_are_refused_before_any_work() {
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    for (args, says) in [
        (vec!["fsbf", "--on", "image:1GiB", "--fs", "ext4"], "is unknown"),
        (vec!["fsfb", "--on", "image:1GiB", "--fs", "ext4"], "--save"),
        (vec!["fsfb", "--on", "image:1GiB", "--image", "x"], "--fs"),
        (vec!["fsfb", "--on", "image:many", "--fs", "ext4", "--image", "x"], "--on"),
        (vec!["fsfb", "--on", ".", "--image", "x"], "keep a volume"),
        (vec!["fsfb", "--on", ".", "--fs", "ext4", "--mkfs", "-m 0"], "a volume that senesce formats"),
        (vec!["fsfb", "--on", ".", "--until", "fullness=95"], "above 1"),
        (vec!["fsfb", "--on", ".", "--set", "round=7"], "did you mean `rounds`?"),
        (vec!["profile:nobody", "--on", "."], "nobody"),
        (vec!["fsfb", "--on", ".", "--log", "."], "exists already"),
        (vec!["fsfb", "--on", ".", "--threads", "2"], "--threads"),
    ] {
        lab.run([vec!["age", "--dir", &dir], args].concat()).refused(2, &[says]);
    }
    assert!(!lab.path("senesce-aged").exists());
    lab.assert_nothing_left();
}

#[test]
fn repositories_and_traces_age_a_directory() {
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    let dir = path(".");
    let git = |args: &[&str]| {
        must("git", &[&["-C", &*path("repo"), "-c", "user.name=t", "-c", "user.email=t@t"], args].concat())
    };
    std::fs::create_dir(lab.path("repo")).unwrap();
    git(&["init", "-q", "-b", "main"]);
    for commit in 0..6 {
        for file in 0..=commit {
            std::fs::write(lab.path(format!("repo/f{file}")), format!("{file} {commit}\n").repeat(300)).unwrap();
        }
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "more"]);
    }
    std::fs::create_dir(lab.path("pulled")).unwrap();
    let (workload, on) = (format!("git:{}", path("repo")), path("pulled"));
    let mut args = vec!["age", &workload, "--on", &on, "--dir", &dir, "--log", "git.senesce-log", "--json"];
    args.extend(["--set", "pulls=4"]);
    let report = reached(&lab.run(&args).good().stdout);
    assert_eq!((&report["ended"], report["counted_steps"].as_u64()), (&"workload".into(), Some(4)), "{report}");
    // Before git reads the copy, and writes to its index.
    std::fs::create_dir(lab.path("again")).unwrap();
    lab.run(["replay", "git.senesce-log", "--on", "again", "--against", "pulled", "--dir", &dir]).good();
    let head = must("git", &["-C", &path("repo"), "rev-parse", "main~1"]);
    let copy = must("find", &[&on, "-name", "f4"]);
    let copy = std::path::Path::new(&copy).parent().unwrap().to_string_lossy().into_owned();
    assert_eq!(must("git", &["-C", &copy, "rev-parse", "HEAD"]), head);
    must("git", &["-C", &copy, "diff", "--exit-code", "HEAD"]);

    std::fs::write(lab.path("sizes"), "S a/x 5000\nS b 9000\nW a/y 100\nC 100\nD b\nW a/x 6000\nC 6000\n").unwrap();
    std::fs::create_dir(lab.path("traced")).unwrap();
    let (workload, on) = (format!("trace:{}", path("sizes")), path("traced"));
    let report = reached(&lab.run(["age", &workload, "--on", &on, "--dir", &dir, "--json"]).good().stdout);
    assert_eq!((&report["ended"], report["layout"]["files"].as_u64()), (&"workload".into(), Some(2)), "{report}");
    let found = must("find", &[&on, "-type", "f", "-printf", "%f %s\\n"]);
    assert!(found.contains("x 6000") && found.contains("y 100") && !found.contains("b "), "{found}");
    lab.assert_nothing_left();
}

#[test]
fn overwrites_report_latencies_direct_and_cached() {
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    for (io, pattern) in [("direct", "random"), ("buffered", "random"), ("direct", "oltp"), ("buffered", "streams")] {
        let on = lab.path(format!("{io}-{pattern}")).to_string_lossy().into_owned();
        std::fs::create_dir(&on).unwrap();
        let (io, pattern) = (format!("io={io}"), format!("pattern={pattern}"));
        let mut args = vec!["age", "overwrite", "--on", &on, "--dir", &dir, "--set", &io, "--set", &pattern];
        args.extend(["--set", "size=16MiB", "--set", "operations=200", "--set", "rounds=2"]);
        // The shares of reads of OLTP are its own.
        args.extend(match pattern == "pattern=oltp" {
            true => &["--set", "size=48MiB"][..],
            false => &["--set", "size=16MiB", "--set", "files=2", "--set", "read_percent=50"],
        });
        let text = lab.run(&args).good().stdout;
        assert!(text.contains("p99.9") && text.contains("  write "), "{text}");
        std::fs::remove_dir_all(&on).unwrap();
        std::fs::create_dir(&on).unwrap();
        args.push("--json");
        let report = reached(&lab.run(&args).good().stdout);
        let rows = report["latencies"].as_array().unwrap();
        let count = |kind: &str| -> u64 {
            rows.iter().filter(|row| row["kind"] == kind).map(|row| row["operations"].as_u64().unwrap()).sum()
        };
        // Those of set-up are not among them.
        assert_eq!(count("read") + count("write"), 400, "{io} {pattern}: {report}");
        assert!(count("create") == 0 && count("read") > 0, "{report}");
        for row in rows {
            let at = |name: &str| row[name].as_u64().unwrap();
            assert!(at("p50_ns") > 0 && at("p50_ns") <= at("p99_ns") && at("p99_ns") <= at("p999_ns"), "{row}");
            assert!(at("p999_ns") <= at("max_ns"), "{row}");
        }
    }
}

#[test]
fn interfile_makes_a_volume_for_every_copy() {
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let settings = ["--set", "files=2500", "--set", "step_percent=50", "--dir", &dir, "--json"];
    std::fs::create_dir(lab.path("place")).unwrap();
    lab.run(["age", "interfile", "--on", "place"].iter().chain(&settings)).refused(2, &["new volume", "image:SIZE"]);
    assert_eq!(std::fs::read_dir(lab.path("place")).unwrap().count(), 0);
    if !root_or_skip("formatting and mounting") {
        return;
    }
    let image = lab.path("kept").to_string_lossy().into_owned();
    let args = ["age", "interfile", "--on", "image:64MiB", "--fs", "ext4", "--image", &image];
    let report = reached(&lab.run(args.iter().chain(&settings)).good().stdout);
    assert_eq!(
        (report["counted_steps"].as_u64(), report["layout"]["files"].as_u64()),
        (Some(2), Some(2500)),
        "{report}"
    );
    // One copy was written to this volume, not three: those have over 30 MB. A busy machine writes
    // some metadata twice.
    let disk = Disk::attach(&lab.path("kept"));
    let told = must("dumpe2fs", &["-h", &disk.device]);
    let line = told.lines().find(|line| line.starts_with("Lifetime writes:")).unwrap();
    let [.., number, "MB"] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert!((8..27).contains(&number.parse::<u64>().unwrap()), "{line}");
    drop(disk);
    // A device, too: what it carries from the copy before is ours.
    let disk = Disk::new(&lab.path("disk"), 64);
    let args = ["age", "interfile", "--on", &disk.device, "--fs", "ext4"];
    lab.run(args.iter().chain(&settings)).good();
    drop(disk);
    lab.assert_nothing_left();
}

#[test]
fn shared_file_system_is_filled_only_on_request() {
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    std::fs::create_dir(lab.path("place")).unwrap();
    for workload in ["fsfb", "profile:agrawal"] {
        let age = ["age", workload, "--on", "place", "--dir", &dir];
        for more in [&[][..], &["--dry-run"], &["--until", "turnover=2"]] {
            let refused = lab.run([&age[..], more].concat());
            refused.refused(2, &["would fill the file system of /", "free space", "--until fullness=", "--force"]);
        }
        for more in [&["--force"][..], &["--until", "fullness=1%"]] {
            let said = lab.run([&age[..], more, &["--dry-run"]].concat()).good().stdout;
            assert!(said.contains(&format!("{workload} would fill the file system of /")), "{said}");
        }
    }
    // Plans and the full-disk editions of git do not take their fullness from --until.
    let fsfb = "format = \"senesce-plan/1\"\nname = \"t\"\n[workload]\nkind = \"fsfb\"\n[workload.fsfb]\n\
                fill_percent = 60\n[[file_system]]\nkind = \"ext4\"\n";
    let copies = SMALL.replace("full-disk-paper\"\nfill_percent = 90", "full-disk-code\"");
    for (plan, percent, less) in [(fsfb, 60, "59%"), (SMALL, 90, "89%"), (&copies, 100, "99%")] {
        lab.plan(plan);
        let age = ["age", "plan.toml", "--on", "place", "--dir", &dir, "--dry-run"];
        let filling = format!(" to {percent}%: writes up to");
        lab.run(age).refused(2, &[&filling, "--until fullness="]);
        let less = format!("fullness={less}");
        lab.run([&age[..], &["--until", &less]].concat()).refused(2, &[&filling, "fills more than --until fullness"]);
        let enough = format!("fullness={percent}%");
        let said = lab.run([&age[..], &["--until", &enough]].concat()).good().stdout;
        assert!(said.contains(&filling), "{said}");
        lab.run([&age[..], &["--force"]].concat()).good();
    }
    // A workload with a size of its own fills nothing.
    let said = lab.run(["age", "mail", "--on", "place", "--dir", &dir, "--dry-run"]).good().stdout;
    assert!(!said.contains("fill"), "{said}");
    lab.run(["age", "mail", "--on", "place", "--dir", &dir, "--force"]).refused(2, &["--fs and --force apply"]);
    assert_eq!(std::fs::read_dir(lab.path("place")).unwrap().count(), 0);
    lab.assert_nothing_left();
}

#[test]
fn mount_point_is_filled_without_force() {
    if !root_or_skip("formatting and mounting") {
        return;
    }
    let lab = Lab::new();
    let dir = lab.path(".").to_string_lossy().into_owned();
    let disk = Disk::new(&lab.path("volume"), 24);
    must("mke2fs", &["-q", "-F", &disk.device]);
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let fsfb = ["age", "fsfb", "--on", "mnt", "--dir", &dir, "--set", "directories=5", "--set", "rounds=1"];
    let aged = lab.run(fsfb).good();
    assert!(aged.stderr.contains("mnt to 95%: writes up to"), "{}", aged.stderr);
    std::fs::create_dir(mount.point.join("below")).unwrap();
    lab.run(["age", "fsfb", "--on", "mnt/below", "--dir", &dir])
        .refused(2, &["mnt/below is no file system of its own"]);
    drop((mount, disk));
    lab.assert_nothing_left();
}
