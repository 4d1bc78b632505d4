//! Previews of the commands that only write files which the user names.

use std::fs;

use super::{
    campaign::lab_of_directories,
    dry_run::{both_refuse, preview},
    lab::Lab,
};

#[test]
fn previews_of_outputs_write_nothing() {
    let lab = Lab::new();
    fs::create_dir(lab.path("tree")).unwrap();
    fs::write(lab.path("tree/file"), "x").unwrap();
    fs::write(lab.path("foreign"), "mine").unwrap();

    let said = preview(&lab, &["man", "--out", "pages", "--dry-run"]);
    assert!(said.ends_with(" pages would be written into pages, and would replace 0\n"), "{said}");
    both_refuse(&lab, &["man", "--out", "foreign"], 2, &["foreign is a file"]);
    both_refuse(&lab, &["man", "--out", "nowhere/pages"], 2, &["cannot make nowhere/pages"]);
    fs::create_dir_all(lab.path("man1/senesce.1")).unwrap();
    both_refuse(&lab, &["man", "--out", "man1"], 2, &["man1/senesce.1 is a directory"]);
    // A page that is written late.
    fs::create_dir_all(lab.path("man2/senesce-age.1")).unwrap();
    fs::create_dir_all(lab.path("man2/senesce-verify-bundle.1")).unwrap();
    both_refuse(&lab, &["man", "--out", "man2"], 2, &["is a directory"]);
    assert_eq!(fs::read_dir(lab.path("man2")).unwrap().count(), 2, "no page is written before the check");
    lab.run(["man", "--out", "pages"]).good();
    let said = preview(&lab, &["man", "--out", "pages", "--dry-run"]);
    let (all, replaced) = said.split_once(" pages would be written into pages, and would replace ").unwrap();
    assert_eq!(all, replaced.trim());
    lab.run(["man", "--dry-run"]).refused(2, &["--out"]);

    let inspect = ["inspect", "tree", "--html", "p.html", "--map", "m.svg", "--metrics", "m.prom"];
    let said = preview(&lab, &[&inspect[..], &["--dry-run"]].concat());
    let files = "p.html would be written\nm.svg would be written\nm.prom would be written\n";
    assert_eq!(said, format!("tree would be inspected; nothing was written\n{files}"));
    for (words, says) in [
        (["tree", "--html", "foreign"], "foreign exists already, and senesce did not write it"),
        (["tree", "--map", "tree"], "tree is a directory"),
        (["tree", "--metrics", "m.txt"], "m.txt"),
        (["tree", "--device", "floppy"], "floppy"),
        (["tree", "--volume", "main"], "--volume has an effect on a garden only"),
        (["tree", "--tree", "t.svg"], "--tree has an effect on an evergreen only"),
        (["nowhere", "--html", "p.html"], "nowhere"),
        (["foreign", "--html", "p.html"], "foreign"),
    ] {
        let real = lab.run([&["inspect"][..], &words].concat());
        both_refuse(&lab, &[&["inspect"][..], &words].concat(), real.code, &[says]);
        assert_ne!(real.code, 0, "{words:?}");
    }
    lab.run(inspect).good();
    let said = preview(&lab, &[&inspect[..], &["--dry-run"]].concat());
    assert!(said.contains("p.html would be replaced\n"), "{said}");

    fs::write(lab.path("requests"), "  8,0    1        1     0.000000000  100  D   R 1000 + 8 [cat]\n").unwrap();
    let trace = |path| ["trace", "--blkparse", path, "--requests", "r.csv"];
    let said = preview(&lab, &[&trace("requests")[..], &["--dry-run"]].concat());
    assert_eq!(said, "requests would be read; nothing was written\nr.csv would be written\n");
    both_refuse(&lab, &trace("nowhere"), 2, &["nowhere"]);
    both_refuse(&lab, &["trace", "--blkparse", "requests", "--requests", "foreign"], 2, &["did not write it"]);
    both_refuse(&lab, &["trace", "--blkparse", "requests", "--device", "floppy"], 2, &["floppy"]);
    both_refuse(&lab, &["trace", "--on", "tree", "--", "no-such-program"], 2, &["cannot run no-such-program"]);
    lab.assert_nothing_left();
}

#[test]
fn previews_of_a_campaign_write_nothing() {
    let lab = lab_of_directories();
    lab.run(["campaign", "plan", "grid.toml", "--out", "c"]).good();
    both_refuse(
        &lab,
        &["campaign", "merge", "c"],
        1,
        &["3 of 3 tasks have no result: 0 (host, plan, seed 1); 1 (host"],
    );
    both_refuse(&lab, &["campaign", "merge", "c", "--partial"], 2, &["no task is finished"]);
    both_refuse(&lab, &["campaign", "merge", "nowhere"], 2, &["nowhere"]);
    both_refuse(&lab, &["campaign", "report", "c"], 2, &["the campaign is not merged"]);
    // Another preview has the lock for a moment.
    let lock = fs::File::open(lab.path("c/merged.lock")).unwrap();
    lock.lock_shared().unwrap();
    lab.run(["campaign", "merge", "c", "--partial", "--dry-run"]).refused(2, &["no task is finished"]);
    lock.unlock().unwrap();
    lock.lock().unwrap();
    both_refuse(&lab, &["campaign", "merge", "c"], 2, &["is being merged by another process"]);
    drop(lock);
    for number in ["0", "1"] {
        lab.run(["campaign", "task", "c", number, "-q"]).good();
    }
    let said = preview(&lab, &["campaign", "merge", "c", "--partial", "--dry-run"]);
    assert!(
        said.starts_with("1 of 3 tasks has no result: 2 (host, plan, seed 3)\n2 tasks would be merged in "),
        "{said}"
    );
    lab.run(["campaign", "task", "c", "2", "-q"]).good();

    let table = lab.path("c/tasks/1/results/cells.parquet");
    let whole = fs::read(&table).unwrap();
    fs::write(&table, &whole[..whole.len() / 2]).unwrap();
    let code = lab.run(["campaign", "merge", "c"]).code;
    both_refuse(&lab, &["campaign", "merge", "c"], code, &["cells.parquet"]);
    assert_ne!(code, 0);
    fs::write(&table, whole).unwrap();

    let said = preview(&lab, &["campaign", "merge", "c", "--dry-run"]);
    assert!(said.starts_with("3 tasks would be merged in ") && said.ends_with("nothing was written\n"), "{said}");
    assert!(!lab.path("c/merged/results").exists());
    lab.run(["campaign", "merge", "c"]).good();
    let said = preview(&lab, &["campaign", "report", "c", "--dry-run"]);
    assert!(said.ends_with("/merged/campaign.html would be written\n"), "{said}");
    both_refuse(&lab, &["campaign", "report", "c", "--out", "grid.toml"], 2, &["senesce did not write it"]);
    lab.run(["campaign", "report", "c"]).good();
    let said = preview(&lab, &["campaign", "report", "c", "--dry-run"]);
    assert!(said.ends_with("/merged/campaign.html would be replaced\n"), "{said}");
}
