//! Wrong uses of every verb: the exit code and the exact text of each.
//!
//! `wrong_uses.txt` has a command, its exit code and its stderr in each block. Set
//! `SENESCE_UPDATE_WRONG_USES=1` to write it again, and read the difference: each text says what
//! failed, on what, which value, and what to do.

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use senesce_testkit::root_or_skip;

use super::lab::{Done, Lab, SINGLE, without_progress};

/// The file of uses.
const USES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/wrong_uses.txt");
/// The least number of uses.
const LEAST: usize = 150;

/// Plans with one fault each: name, text of the good plan, its replacement.
const PLANS: &[(&str, &str, &str)] = &[
    ("typo.toml", "pulls = 4", "puls = 4"),
    ("value.toml", "\"ext4\"", "\"ext5\""),
    ("size.toml", "empty = \"64MiB\"", "empty = \"32 bananas\""),
    ("later.toml", "senesce-plan/1", "senesce-plan/2"),
    ("broken.toml", "[measure]", "[measure"),
    ("effect.toml", "[volumes]", "[volumes]\nfull = \"330MiB\""),
    ("small.toml", "empty = \"64MiB\"", "empty = \"1MiB\""),
    ("zfs.toml", "\"ext4\"", "\"zfs\""),
    ("every.toml", "every = 4", "every = 0"),
    ("type.toml", "every = 4", "every = \"often\""),
    ("place.toml", "empty = \"64MiB\"", "empty = \"/dev/sdb\""),
    ("mkfs.toml", "kind = \"ext4\"", "kind = \"ext4\"\nmkfs = [\"-I\", \"64\"]"),
    ("nodir.toml", "dir = \"MEMORY\"", "dir = \"nowhere\""),
    ("xsf.toml", "\"ext4\"", "\"xsf\""),
    // The last one: each plan is written to plan.toml first.
    ("plan.toml", "", ""),
];

/// A use as the file has it.
#[derive(PartialEq)]
struct Use {
    command: String,
    code: i32,
    stderr: String,
}

/// Reads the blocks of the file.
fn read_uses() -> Vec<Use> {
    let text = fs::read_to_string(USES).unwrap();
    let mut uses: Vec<Use> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ senesce") {
            uses.push(Use { command: command.trim().to_owned(), code: -1, stderr: String::new() });
        } else if let Some(code) = line.strip_prefix("exit ") {
            uses.last_mut().expect("a command comes first").code = code.parse().unwrap();
        } else if let (Some(used), Some(stderr)) = (uses.last_mut(), line.strip_prefix("| ")) {
            used.stderr.push_str(stderr);
            used.stderr.push('\n');
        } else {
            assert!(line.is_empty() || line.starts_with('#') || line == "|", "{line:?}");
            if let (Some(used), "|") = (uses.last_mut(), line) {
                used.stderr.push('\n');
            }
        }
    }
    uses
}

fn write_uses(uses: &[Use]) {
    let mut text = "# Wrong uses of senesce: command, exit code, stderr. Written by the test `wrong_uses` with\n\
                    # SENESCE_UPDATE_WRONG_USES=1. LAB is the directory in which the commands run.\n"
        .to_owned();
    for used in uses {
        text.push_str(&format!("\n$ senesce {}", used.command));
        text.truncate(text.trim_end().len());
        text.push_str(&format!("\nexit {}\n", used.code));
        for line in used.stderr.lines() {
            text.push_str(format!("| {line}").trim_end());
            text.push('\n');
        }
    }
    fs::write(USES, text).unwrap();
}

/// The files that the commands name.
fn fill(lab: &Lab) {
    for dir in ["empty", "tree", "before/results"] {
        fs::create_dir_all(lab.path(dir)).unwrap();
    }
    (1..=3).for_each(|file| fs::write(lab.path(format!("tree/{file}")), format!("{file}\n")).unwrap());
    fs::write(lab.path("text.txt"), "hello\n").unwrap();
    fs::write(lab.path("empty-file"), "").unwrap();
    fs::write(lab.path("strace.txt"), "31117 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3\n").unwrap();
    let sized = |name: &str, bytes| fs::File::create(lab.path(name)).unwrap().set_len(bytes).unwrap();
    sized("zeros.img", 4 << 20);
    sized("e.img", 32 << 20);
    // The mark of an ext4, at its place.
    let mut ext4 = vec![0; 4 << 20];
    ext4[1080..1082].copy_from_slice(&[0x53, 0xef]);
    fs::write(lab.path("ext4.img"), ext4).unwrap();
    for (name, from, to) in PLANS {
        let made = lab.plan(&SINGLE.replacen(from, to, usize::from(!from.is_empty())));
        fs::rename(made, lab.path(name)).unwrap();
    }
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--seed", "1"]).good();
    lab.run(["fs", "mkfs", "evergreen", "e.img", "--seed", "1"]).good();
    lab.run(["image", "save", "zeros.img", "c.senesce-image", "--quiet"]);
    lab.run(["profile", "capture", "tree", "-o", "p.toml", "--quiet"]).good();
    lab.run(["synth", "h.git", "--files", "500", "--commits", "2"]).good();
    fs::create_dir(lab.path("aged")).unwrap();
    lab.run(["age", "git:h.git", "--on", "aged", "--log", "a.log", "--quiet"]).good();
    let cut = |from: &str, to: &str, bytes: usize| {
        let all = fs::read(lab.path(from)).unwrap();
        fs::write(lab.path(to), &all[..bytes.min(all.len())]).unwrap();
    };
    cut("a.log", "cut.log", 20_000);
}

/// Runs a command as a shell does. Results on stdout do not count.
fn run(lab: &Lab, used: &Use) -> Use {
    let script = format!("exec \"$SENESCE\" {}", used.command);
    let mut command = std::process::Command::new("sh");
    lab.confine(&mut command);
    let command = command.args(["-c", &script]).env("SENESCE", super::lab::SENESCE).stdin(Stdio::null());
    let done = Done::of(command.env("HOME", lab.path("")).output().unwrap());
    let stderr = [(lab.path(""), "LAB"), (lab.memory().to_owned(), "MEMORY")]
        .iter()
        .fold(done.stderr, |text, (path, name)| text.replace(path.to_string_lossy().trim_end_matches('/'), name));
    let stderr = without_progress(&stderr);
    let stderr: String = stderr.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    Use { command: used.command.clone(), code: done.code, stderr }
}

#[test]
fn wrong_uses_have_documented_codes_and_texts() {
    if !root_or_skip("bench and fs mount") {
        return;
    }
    let lab = Lab::new();
    fill(&lab);
    let wanted = read_uses();
    assert!(wanted.len() >= LEAST, "{} uses", wanted.len());
    // A file system of this project is locked while it is open: one thread uses them, in order.
    let locks = |used: &&Use| {
        used.command.starts_with("fs ") || ["garden:", "e.img"].iter().any(|name| used.command.contains(name))
    };
    let (locking, others): (Vec<&Use>, Vec<&Use>) = wanted.iter().partition(locks);
    let found = Mutex::new(Vec::new());
    let work = |uses: &[&Use], next: &AtomicUsize| {
        while let Some(used) = uses.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = run(&lab, used);
            found.lock().unwrap().push(done);
        }
    };
    let (first, rest) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| work(&locking, &first));
        for _ in 0..3 {
            scope.spawn(|| work(&others, &rest));
        }
    });
    let place = |used: &Use| wanted.iter().position(|wanted| wanted.command == used.command);
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(place);
    if std::env::var_os("SENESCE_UPDATE_WRONG_USES").is_some() {
        write_uses(&found);
    }
    for used in &found {
        assert!([1, 2, 3].contains(&used.code), "{}: exit {}\n{}", used.command, used.code, used.stderr);
        assert!(!used.stderr.trim().is_empty(), "{}: no text", used.command);
        assert!(!used.stderr.contains("panicked"), "{}: {}", used.command, used.stderr);
    }
    assert!(!Path::new(&lab.path("senesce-runs")).exists(), "a wrong use made a run");
    if std::env::var_os("SENESCE_UPDATE_WRONG_USES").is_some() {
        return;
    }
    let changed: Vec<String> = wanted
        .iter()
        .zip(&found)
        .filter(|(wanted, found)| wanted != found)
        .map(|(wanted, found)| {
            let Use { command, code, stderr } = found;
            format!("$ senesce {command}\nexit {code}, not {}\n{stderr}instead of\n{}", wanted.code, wanted.stderr)
        })
        .collect();
    let hint = "SENESCE_UPDATE_WRONG_USES=1 writes wrong_uses.txt again";
    assert!(changed.is_empty(), "{} of {} uses ({hint}):\n{}", changed.len(), wanted.len(), changed.join("\n"));
}
