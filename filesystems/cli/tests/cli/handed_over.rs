//! Commands that `senesce` hands over, and the same commands without it.

use super::rig::{Done, Lab};

#[test]
fn another_version_of_senesce_is_refused() {
    let lab = Lab::new();
    for arguments in [&["for-senesce", "0.0.9 (commit 1)", "fs", "mkfs", "evergreen", "new"][..], &["for-senesce"]] {
        let done = lab.run(arguments);
        done.refused(3, &["senesce is ", ", and ", "senesce-fs is 0.1.0", "cargo build -p senesce -p senesce-fs"]);
    }
    assert!(!lab.path("new").exists());
}

#[test]
fn verbs_of_the_laboratory_alone_are_refused() {
    let lab = Lab::new();
    let version = lab.run(["--version"]).good().stdout;
    let version = version.trim().strip_prefix("senesce-fs ").unwrap();
    lab.run(["for-senesce", version, "exit-codes"]).refused(2, &["senesce does not hand this verb over"]);
    lab.run(["for-senesce", version, "schema", "--of", "gate"]).refused(1, &["the kind has no schema"]);
    lab.run(["for-senesce", version, "schema", "--of", "fs-check"]).good();
}

#[test]
fn a_shell_completes_the_words_of_engines() {
    let lab = Lab::new();
    let version = lab.run(["--version"]).good().stdout;
    let version = version.trim().strip_prefix("senesce-fs ").unwrap();
    let mut command = lab.command();
    command.args(["for-senesce", version, "--", "senesce", "fs", "mk"]);
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
    assert_eq!(Done::of(command.output().unwrap()).good().stdout, "mkfs");
}

#[test]
fn the_program_has_the_same_verbs_without_senesce() {
    let lab = Lab::new();
    let version = lab.run(["--version"]).good().stdout;
    let version = version.trim().strip_prefix("senesce-fs ").unwrap();
    lab.run(["mkfs", "evergreen", "new", "--size", "64MiB"]).good();
    let own = lab.run(["check", "new"]).good().stdout;
    let handed_over = lab.run(["for-senesce", version, "fs", "check", "new"]).good().stdout;
    assert!(own == handed_over && !own.is_empty(), "{own}\n{handed_over}");
    let help = lab.run(["for-senesce", version, "fs", "check", "--help"]).good().stdout;
    assert!(help.contains("Usage: senesce fs check "), "{help}");
    let help = lab.run(["check", "--help"]).good().stdout;
    assert!(help.contains("Usage: senesce-fs check "), "{help}");
    lab.run(["chekc", "new"]).refused(2, &["unrecognized subcommand"]);
}

#[test]
fn a_survey_has_the_entries_of_the_file_system() {
    let lab = Lab::new();
    lab.run(["mkfs", "garden", "new", "--size", "64MiB"]).good();
    // Only the program of the same commit reads a survey, so no schema is published.
    let survey = |place| Done::of(lab.command().args(["survey", place, "--json"]).output().unwrap());
    let surveys = ["garden:new", "new"].map(|place| survey(place).good().stdout);
    let told: [senesce_inspect::Told; 2] = surveys.map(|text| serde_json::from_str(&text).unwrap());
    for told in told {
        assert_eq!((told.file_system.as_str(), told.entries.len()), ("garden", 1));
        assert!(told.entries[0].entry.path.is_root() && !told.free.is_empty() && told.capacity_bytes > 0);
    }
    survey("none").refused(2, &["none"]);
}
