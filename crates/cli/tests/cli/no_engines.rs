//! The laboratory without senesce-fs, the program with the file systems of this project.

use std::fs;

use super::lab::{Done, Lab, SENESCE, SINGLE};

const SAYS: [&str; 2] =
    ["the program senesce-fs, which has the file systems", "build it by `cargo build -p senesce-fs`"];

/// Runs a copy of the program that has no senesce-fs beside it.
fn run(lab: &Lab, args: &[&str]) -> Done {
    let program = lab.path("alone/senesce");
    if !program.exists() {
        fs::create_dir(lab.path("alone")).unwrap();
        // By a process of its own: a descriptor that a fork inherits would forbid to execute the
        // copy.
        senesce_testkit::run("cp", &["--reflink=auto", SENESCE, &program.to_string_lossy()]);
    }
    let mut command = std::process::Command::new(program);
    lab.confine(&mut command);
    // Only git and the like; a relative directory is not searched.
    let path = format!("/usr/bin:/bin:.:{}", lab.path("none").display());
    Done::of(command.args(args).env("PATH", path).output().unwrap())
}

#[test]
fn commands_that_need_an_engine_say_which_package_has_it() {
    let lab = Lab::new();
    // In the working directory, which is no place to search.
    senesce_testkit::run("cp", &["/bin/true", &lab.path("senesce-fs").to_string_lossy()]);
    lab.plan(&SINGLE.replace("\"ext4\"", "\"garden\""));
    for args in [
        &["fs", "stat", "new"][..],
        &["-q", "fs"],
        &["garden", "reproduce", "E5"],
        &["help", "fs", "mkfs"],
        &["man", "fs", "mkfs"],
        &["age", "fsfb", "--on", "garden:new"],
        &["replay", "log", "--on", "evergreen:new"],
        &["inspect", "garden:new"],
        &["run", "plan.toml", "--dry-run"],
    ] {
        run(&lab, args).refused(3, &SAYS);
    }
    lab.assert_nothing_left();
}

#[test]
fn senesce_fs_of_another_version_does_not_stop_man_and_completion() {
    let lab = Lab::new();
    run(&lab, &["--version"]).good();
    let other = lab.path("alone/senesce-fs");
    fs::write(&other, "#!/bin/sh\necho another version >&2\nexit 3\n").unwrap();
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(run(&lab, &["man", "record"]).good().stdout.contains("\\-\\-keep\\-contents"));
    run(&lab, &["man", "fs"]).refused(3, &["another version"]);
    let mut command = std::process::Command::new(lab.path("alone/senesce"));
    lab.confine(&mut command);
    command.envs([("COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", "1"), ("_CLAP_IFS", "\n")]);
    let done = Done::of(command.args(["--", "senesce", "ins"]).output().unwrap()).good();
    assert!(done.stdout.contains("inspect"), "{}", done.stdout);
    assert!(!done.stderr.contains("another version"), "{}", done.stderr);
}

#[test]
fn all_other_commands_work() {
    let lab = Lab::new();
    let help = run(&lab, &["--help"]).good().stdout;
    assert!(help.contains("Make, mount") && help.contains("File systems"), "{help}");
    assert!(run(&lab, &["man", "run"]).good().stdout.contains("\\-\\-resume"));
    assert!(run(&lab, &["man", "--markdown"]).good().stdout.contains("## senesce inspect"));
    run(&lab, &["inspect", "."]).good();
}
