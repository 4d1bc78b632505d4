//! Every command of the README works.

use std::{fs, path::Path, process::Command};

use senesce_testkit::root_or_skip;

use super::{
    disk::volume,
    lab::{Lab, SINGLE},
};

fn project() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The commands of the README's code blocks, without prompts and comments.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(project().join("README.md")).unwrap();
    let is_command =
        |line: &str| ["senesce ", "sudo ", "make ", "git ", "cargo "].iter().any(|word| line.starts_with(word));
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    let lines = lines.map(|line| line.strip_prefix("$ ").unwrap_or(line)).filter(|line| is_command(line));
    lines.map(|line| line.split(" #").next().unwrap_or(line).trim_end().to_owned()).collect()
}

/// What stands for the places of the README, in the order in which they are replaced.
const PLACES: [(&str, &str); 8] = [
    ("plans/hotstorage19-full-disk.toml --repo ~/linux", "plan.toml"),
    ("/srv/data", "disk/tree"),
    ("/usr/share", "tree"),
    ("inspect / ", "inspect tree "),
    ("arms/xfs", "arms/ext4"),
    ("image:8GiB", "image:320MiB"),
    ("'", ""),
    ("sudo ", ""),
];

#[test]
fn commands_of_the_readme_work() {
    if !root_or_skip("mounting and defragmenting") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let (_disk, _mount) = volume("ext4", &[], &lab.path("disk.img"), 64, lab.path("disk"));
    for tree in ["tree", "disk/tree"] {
        fs::create_dir(lab.path(tree)).unwrap();
        (0..20).for_each(|file| fs::write(lab.path(format!("{tree}/{file}")), [7; 9000]).unwrap());
    }
    let (mut run, mut made) = (0, 0);
    for command in commands() {
        if let Some(target) = command.strip_prefix("make ") {
            let dry = Command::new("make").args(["--dry-run", target]).current_dir(project()).output().unwrap();
            assert!(dry.status.success(), "make {target}");
            made += 1;
        }
        let words = PLACES.iter().fold(command.clone(), |words, (place, ours)| words.replace(place, ours));
        let Some(words) = words.strip_prefix("senesce ") else { continue };
        if words.starts_with("compare before after") {
            for side in ["before", "after"] {
                let copied =
                    Command::new("cp").args(["-r", "full-disk", side]).current_dir(lab.path("")).status().unwrap();
                assert!(copied.success());
            }
        }
        let done = lab.run(words.split_whitespace());
        assert_eq!(done.code, 0, "{command}, as {words}: {}\n{}", done.stdout, done.stderr);
        run += 1;
    }
    assert!(run >= 10 && made >= 1, "{run} commands were run, {made} targets of make looked up");
}

#[test]
fn files_and_targets_of_the_readme_are_there() {
    let text = fs::read_to_string(project().join("README.md")).unwrap();
    let makefile = fs::read_to_string(project().join("Makefile")).unwrap();
    for (before, file) in [("plans/", "hotstorage19-full-disk.toml"), ("", "CITATION.cff")] {
        assert!(text.contains(file) && project().join(before).join(file).is_file(), "{file}");
    }
    for target in ["demo", "demo-full", "docs", "test"] {
        assert!(text.contains(&format!("make {target}")), "make {target} is not in the README");
        let is_rule = |line: &str| {
            let targets = line.split(':').next().unwrap_or_default();
            !line.starts_with(['\t', '.', '#']) && targets.split(' ').any(|word| word == target)
        };
        assert!(makefile.lines().any(is_rule), "the Makefile has no {target}");
    }
}

#[test]
fn plan_of_the_demo_is_the_shipped_one() {
    let lab = Lab::new();
    let plan = lab.run(["demo", "--plan"]).good().stdout;
    assert_eq!(plan, fs::read_to_string(project().join("plans/demo.toml")).unwrap());
    lab.run(["demo", "--plan", "--pulls", "3"]).refused(2, &["--plan"]);
}

#[test]
fn demo_writes_a_page_after_one_arm() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let done = lab.run(["demo", "--pulls", "6", "--out", "demo"]).good();
    for arms in 1..=2 {
        assert!(done.stderr.contains(&format!("report of {arms} of 3 arms: ")), "{}", done.stderr);
    }
    assert!(!done.stderr.contains("report of 3 of 3"), "{}", done.stderr);
    assert!(done.stdout.trim_end().lines().last().unwrap().starts_with("next:   senesce inspect /"), "{}", done.stdout);
    let page = fs::read_to_string(lab.path("demo/report.html")).unwrap();
    assert!(!page.contains("http-equiv=\"refresh\""), "the finished page reloads itself");
    assert!(["ext4", "xfs", "btrfs"].iter().all(|arm| page.contains(arm)));
    lab.run(["demo", "--out", "demo"]).refused(2, &["demo"]);
}
