//! What is done beside clients so that free space and files stay in one piece: that it is done, as
//! a user has it.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    process::Stdio,
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    garden_mount::{hold, start},
    lab::Lab,
};

fn mkfs(lab: &Lab, place: &str) {
    lab.run(["--quiet", "fs", "mkfs", "garden", place, "--size", "80MiB", "--data-drives", "3", "--seed", "7"]).good();
}

#[test]
fn each_policy_does_only_its_own_work() {
    let lab = Lab::new();
    for (policy, cleans, rewrites) in
        [("off", false, false), ("csc", true, false), ("war", false, true), ("all", true, true)]
    {
        // In memory: each operation waits until its record is durable.
        let place = lab.memory().join(policy).to_string_lossy().into_owned();
        mkfs(&lab, &place);
        let on = format!("garden:{place}");
        let mut args =
            vec!["--quiet", "age", "overwrite", "--on", &on, "--dir", "tmp", "--gardening", policy, "--json"];
        for set in ["pattern=oltp", "size=64MiB", "operations=3000", "rounds=16"] {
            args.extend(["--set", set]);
        }
        let told: Value = serde_json::from_str(&lab.run(&args).good().stdout).unwrap();
        let count = |key: &str| told["drives"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {told}"));
        for key in ["areas_cleaned", "relocations"] {
            assert_eq!(count(key) > 0, cleans, "{policy}: {key} is {}", count(key));
        }
        assert_eq!(count("rewritten_after_read") > 0, rewrites, "{policy}: {told}");
        assert!(count("sequential_reads") > 1000, "{policy}: {told}");
        lab.run(["fs", "check", &place]).good();
        fs::remove_dir_all(&place).unwrap();
    }
}

const BLOCK: usize = 4096;
const BLOCKS: usize = 3000;

fn block(number: usize, round: usize) -> Vec<u8> {
    [number as u8, (number >> 8) as u8, round as u8, 7].repeat(BLOCK / 4)
}

/// Blocks that were moved, and how much in percent of what is scarcest is in use, of a line such as
/// `gardening: 0 blocks a second, 97 % in use, …; 12 blocks moved, …`.
fn parse(line: &str) -> (u64, Option<u64>) {
    let before = |text: &str, mark: &str| -> Option<u64> {
        text.split(mark).next()?.rsplit([' ', ',', ';']).find(|word| !word.is_empty())?.parse().ok()
    };
    let moved = line.split_once("; ").and_then(|(_, rest)| before(rest, " blocks moved"));
    (moved.unwrap_or_else(|| panic!("{line}")), before(line, " % in use"))
}

#[test]
fn mount_gardens_by_load_or_reports_busy() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g");
    let options = ["--by-load", "--tell-every", "1", "--gardening", "all", "--point-every", "1"];
    let mut command = lab.command();
    command.args(["fs", "mount", "g", "mnt"]).args(options).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = start(&lab, &mut command);
    // To the end: no process may write to a pipe without a reader.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mounted = hold(&lab, child);
    let path = lab.path("mnt/file");
    let file = fs::OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    // In pieces: each round writes every fifth block over, and others lie between.
    for round in 0..5 {
        for number in (0..BLOCKS).filter(|number| round == 0 || number % 5 == round) {
            file.write_all_at(&block(number, round), (number * BLOCK) as u64).unwrap();
        }
        file.sync_all().unwrap();
    }
    let mut told = Vec::new();
    for line in lines.by_ref() {
        if !line.starts_with("gardening: ") {
            continue;
        }
        let (moved, used) = parse(&line);
        told.push((line, used));
        // A machine that is never idle is not to be gardened, and there is nothing to wait for: of
        // its last seconds none has what this test wrote in it.
        if moved > 0 || told.len() >= 30 {
            let is_busy = told.iter().rev().take(5).all(|(_, used)| used.is_some_and(|used| used > 50));
            assert!(moved > 0 || is_busy, "{told:?}");
            break;
        }
    }
    assert!(!told.is_empty(), "nothing was told");
    let mut data = vec![0; BLOCKS * BLOCK];
    file.read_exact_at(&mut data, 0).unwrap();
    for (number, found) in data.chunks_exact(BLOCK).enumerate() {
        assert!(found == block(number, number % 5), "block {number}");
    }
    drop(file);
    // Requests take turns with it.
    for words in ["scrub g", "clean g", "dedup g main", "volume create g other", "volume delete g other"] {
        let words: Vec<_> = ["-q", "fs"].into_iter().chain(words.split(' ')).collect();
        lab.run(words).good();
    }
    mounted.unmount();
    let told = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(told.starts_with("as it is: clean"), "{told}");
}
