//! Operation logs as workloads of experiments: recordings, imported traces, the logs of agings and
//! of runs.

use std::{collections::BTreeSet, fs, time::Duration};

use senesce_core::Seed;
use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, must},
    lab::Lab,
    outputs::cells,
    repositories::Repository,
    resume::Trial,
};

/// A plan that replays `build.senesce-log`.
const PLAN: &str = r#"format = "senesce-plan/1"
name = "replayed"
seed = 4711
[workload]
kind = "replay"
[workload.replay]
log = "build.senesce-log"
operations = 40
[measure]
every = 3
[volumes]
empty = "96MiB"
unaged = "96MiB"
backend = "memory"
dir = "MEMORY"
[[file_system]]
kind = "ext4"
"#;

/// How the hash of an empty tree begins.
const HASH_OF_NOTHING: &str = "af1349b9f5f9a1a6";

/// Records what a program does in `src`, where something is already: objects that are made, linked
/// and replaced, a file with a hole, one that begins without a name, links of both kinds.
fn record(lab: &Lab) {
    fs::create_dir_all(lab.path("src/sources")).unwrap();
    fs::create_dir(lab.path("mnt")).unwrap();
    for number in 0..30 {
        let text = format!("int f{number};\n").repeat(100 + 50 * number);
        fs::write(lab.path(format!("src/sources/f{number}.c")), text).unwrap();
    }
    let script = "import os\n\
        proc=os.open('/proc',0)\n\
        for turn in range(3):\n\
        \x20for n in range(30):\n\
        \x20 text=open(f'sources/f{n}.c','rb').read()\n\
        \x20 with open(f'new{n}.o','wb') as f: f.write(text); f.write(bytes([turn])*n*900)\n\
        \x20 os.rename(f'new{n}.o',f'f{n}.o')\n\
        \x20fd=os.open('.',os.O_TMPFILE|os.O_RDWR,0o644)\n\
        \x20for n in range(30): os.write(fd,open(f'f{n}.o','rb').read())\n\
        \x20os.link(f'self/fd/{fd}',f'all{turn}',src_dir_fd=proc,follow_symlinks=True)\n\
        \x20os.close(fd)\n\
        os.remove('all0')\n\
        os.link('all1','again')\n\
        os.symlink('all2','latest')\n\
        fd=os.open('sparse',os.O_RDWR|os.O_CREAT); os.ftruncate(fd,8<<20); os.pwrite(fd,b'middle',4<<20); os.close(fd)\n";
    fs::write(lab.path("build.py"), script).unwrap();
    let args = ["record", "--dir", "src", "--mount", "mnt", "--log", "build.senesce-log", "--keep-contents", "--"];
    let program = lab.path("build.py").to_string_lossy().into_owned();
    lab.run(args.into_iter().chain(["python3", &program])).good();
}

/// Fails unless all cells of a run are valid and those of one checkpoint hold one tree.
#[track_caller]
fn assert_good(lab: &Lab, run: &str) -> Vec<u64> {
    let cells = cells(lab, run);
    assert!(cells.iter().all(|cell| cell.is_valid), "{cells:?}");
    for cell in &cells {
        let others = cells.iter().filter(|other| (&other.arm, other.pulls) == (&cell.arm, cell.pulls));
        assert!(others.clone().count() >= 2 && others.clone().all(|other| other.tree_hash == cell.tree_hash));
    }
    let mut checkpoints: Vec<u64> = cells.iter().map(|cell| cell.pulls).collect();
    checkpoints.sort_unstable();
    checkpoints.dedup();
    checkpoints
}

/// Replays the log of an arm into a new directory.
fn replay_arm(lab: &Lab, log: &str, to: &str) {
    fs::create_dir(lab.path(to)).unwrap();
    lab.run(["replay", log, "--on", to, "--dir", "."]).good();
}

#[track_caller]
fn assert_same(lab: &Lab, one: &str, other: &str) {
    must("diff", &["-r", "--no-dereference", &lab.path(one).to_string_lossy(), &lab.path(other).to_string_lossy()]);
}

#[test]
fn recording_is_a_workload_on_every_file_system() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    record(&lab);
    let others = "[[file_system]]\nkind = \"xfs\"\n[[file_system]]\nkind = \"btrfs\"\n";
    lab.plan(&(PLAN.replace("\"96MiB\"", "\"320MiB\"") + others));
    let preview = lab.run(["run", "plan.toml", "--dry-run"]).good();
    assert!(preview.stdout.contains("steps of replay"), "{}", preview.stdout);
    lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    let checkpoints = assert_good(&lab, "out");
    assert!(checkpoints.len() >= 4 && checkpoints[1] == 3, "{checkpoints:?}");
    // What the recording found is there before anything is counted.
    let first = cells(&lab, "out").into_iter().find(|cell| cell.pulls == 0).unwrap();
    assert!(!first.tree_hash.starts_with(HASH_OF_NOTHING));
    for arm in ["ext4", "xfs", "btrfs"] {
        replay_arm(&lab, &format!("out/arms/{arm}/oplog.senesce-log"), arm);
        assert_same(&lab, arm, "src");
    }
    let circumstances = lab.run(["export", "out", "--csv", "circumstances"]).good().stdout;
    for key in ["log_blake3,", "log_ended,complete", "log_steps,", "operations,40"] {
        assert!(circumstances.contains(&format!("workload.replay.{key}")), "{key}: {circumstances}");
    }
    let shown = lab.run(["show", "out"]).good().stdout;
    assert!(shown.contains("steps"), "{shown}");
    lab.assert_nothing_left();
}

/// A plan whose full volume has no space for all repetitions.
fn full_plan() -> String {
    PLAN.replace("operations = 40", "operations = 200\nrepeat = 17")
        .replace("every = 3", "every = 50")
        .replace("[volumes]", "[volumes]\nfull = \"34MiB\"")
}

#[test]
fn repetitions_keep_a_volume_full_across_resume() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    record(&lab);
    let plan = lab.plan(&full_plan());
    let trial = Trial::new(lab, plan);
    assert_good(&trial.lab, "reference");
    let log = "reference/arms/ext4/oplog.senesce-log";
    let shown = trial.lab.run(["log", "show", log]).good().stdout;
    for text in ["[no space", "remove repetition 1 to make room", "begin repetition 17", ", continued"] {
        assert!(shown.contains(text), "{text}");
    }
    // The last repetition is whole, and so is the log: both volumes followed it.
    replay_arm(&trial.lab, log, "again");
    assert_same(&trial.lab, "again/repeat-17", "src");
    let differences = trial.kill(Seed(1), 2, 2);
    let ours: Vec<_> = differences.iter().filter(|text| text.matches(" B written]").count() != 2).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

/// Starts the plan into `out`, and kills it as soon as its journal holds `text`.
fn kill_after(lab: &Lab, out: &str, text: &str) {
    let mut child = lab.command().args(["run", "plan.toml", "--quiet", "--out", out]).spawn().unwrap();
    while !fs::read_to_string(lab.path(out).join("journal.ndjson")).unwrap_or_default().contains(text) {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn run_refuses_to_resume_with_another_log() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    record(&lab);
    fs::rename(lab.path("build.senesce-log"), lab.path("right")).unwrap();
    let trace = "1 1.0 mkdir(\"/x/d\", 0755) = 0\n";
    fs::write(lab.path("trace"), trace).unwrap();
    lab.run(["record", "--import-strace", "trace", "--dir", "/x", "--log", "wrong"]).good();
    let second = "[[file_system]]\nkind = \"ext4\"\nname = \"second\"\n";
    lab.plan(&(full_plan() + second));
    // In the first arm with the second not begun, and between them: the first is at its end and has
    // no snapshots.
    for (out, text) in [("within", "checkpoint-done"), ("between", "arm-done")] {
        fs::copy(lab.path("right"), lab.path("build.senesce-log")).unwrap();
        kill_after(&lab, out, text);
        let journal = || fs::read_to_string(lab.path(out).join("journal.ndjson")).unwrap();
        let circumstances = || lab.run(["export", out, "--csv", "circumstances"]).good().stdout;
        let before = (journal(), circumstances());
        fs::copy(lab.path("wrong"), lab.path("build.senesce-log")).unwrap();
        let says = ["the source of the workload was changed", "workload.log.blake3 was", "restore the source"];
        lab.run(["run", "--resume", out, "--quiet"]).refused(2, &says);
        assert_eq!((journal(), circumstances()), before, "{out}");
        fs::copy(lab.path("right"), lab.path("build.senesce-log")).unwrap();
        lab.run(["run", "--resume", out, "--quiet"]).good();
        assert_good(&lab, out);
        let arms: BTreeSet<_> = cells(&lab, out).into_iter().map(|cell| cell.arm).collect();
        assert_eq!(arms.len(), 2, "{arms:?}");
        assert!(!journal().contains("arm-failed"), "{}", journal());
    }
    lab.assert_nothing_left();
}

#[test]
fn unusable_logs_are_refused_before_any_write() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    record(&lab);
    let path = |name: &str| lab.path(name);
    let log = fs::read(path("build.senesce-log")).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut log = log.clone();
        log[at] = byte;
        log
    };
    fs::write(path("newer"), changed(8, 9)).unwrap();
    fs::write(path("damaged"), changed(log.len() / 2, !log[log.len() / 2])).unwrap();
    fs::write(path("cut"), &log[..log.len() - 100]).unwrap();
    fs::write(path("text"), "no log").unwrap();
    let trace = "1 1.0 openat(AT_FDCWD, \"/x/f\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3\n1 2.0 write(3, \"\"..., 67108864) = 67108864\n";
    fs::write(path("trace"), trace).unwrap();
    lab.run(["record", "--import-strace", "trace", "--dir", "/x", "--log", "large"]).good();
    fs::write(path("trace"), "1 1.0 +++ exited with 0 +++\n").unwrap();
    lab.run(["record", "--import-strace", "trace", "--dir", "/x", "--log", "nothing"]).good();
    // A git history's contents come from the repository.
    Repository::with_commits(&path("repo"), 6);
    fs::create_dir(path("aged")).unwrap();
    let git = format!("git:{}", path("repo").display());
    lab.run(["age", &git, "--on", "aged", "--log", "git.senesce-log", "--dir", "."]).good();
    fs::rename(path("repo"), path("moved")).unwrap();
    for (log, code, says) in [
        ("missing", 2, &["cannot open", "missing"][..]),
        ("newer", 2, &["newer", "version 9"]),
        ("damaged", 1, &["damaged", "frame"]),
        ("cut", 1, &["cut could not be verified", "in the middle of a frame"]),
        ("text", 2, &["text", "magic number"]),
        ("nothing", 1, &["no step that counts"]),
        ("large", 2, &["volumes.empty", "has 48 MiB, which is too small: its contents need 64 MiB"]),
        ("git.senesce-log", 2, &["repo"]),
    ] {
        lab.plan(&PLAN.replace("build.senesce-log", log).replace("\"96MiB\"", "\"48MiB\""));
        for dry in [true, false] {
            let mut args = vec!["run", "plan.toml", "--quiet"];
            args.extend(if dry { ["--dry-run"].as_slice() } else { &["--out", "out"] });
            let done = lab.run(args);
            println!("{log}: {}", done.stderr);
            done.refused(code, says);
        }
        assert!(!path("out").exists(), "{log}");
    }
    let age = ["age", "replay:large", "--on", "image:48MiB", "--fs", "ext4", "--dir", ".", "--image", "kept"];
    lab.run(age).refused(2, &["has 48 MiB, which is too small: its contents need 64 MiB"]);
    // Nor does it cost what is on a device.
    let disk = Disk::new(&path("disk"), 48);
    for (workload, code, says) in
        [("replay:damaged", 1, "damaged"), ("replay:git.senesce-log", 2, "repo"), (git.as_str(), 2, "repo")]
    {
        lab.run(["age", workload, "--on", &disk.device, "--fs", "ext4", "--dir", "."]).refused(code, &[says]);
        must("cmp", &["-n", "50331648", &disk.device, "/dev/zero"]);
    }
    drop(disk);
    // Where the repository has gone to, the plan can say.
    let table = "log = \"git.senesce-log\"\nrepo = \"moved\"";
    lab.plan(&PLAN.replace("log = \"build.senesce-log\"\noperations = 40", table));
    lab.run(["run", "plan.toml", "--quiet", "--out", "out"]).good();
    assert_eq!(assert_good(&lab, "out").last(), Some(&5));
    lab.assert_nothing_left();
}

#[test]
fn log_with_no_space_ages_another_volume() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let mut args = vec!["age", "fsfb", "--on", "image:24MiB", "--fs", "ext4", "--dir", ".", "--log", "fsfb.log"];
    args.extend(["--image", "aged"]);
    args.extend(["--set", "directories=20", "--set", "rounds=12", "--set", "fill_percent=98"]);
    lab.run(&args).good();
    assert!(!lab.run(["log", "stat", "fsfb.log"]).good().stdout.contains("no space: 0"));
    for name in ["once", "again", "nested"] {
        fs::create_dir(lab.path(name)).unwrap();
    }
    lab.run(["replay", "fsfb.log", "--on", "once", "--dir", "."]).good();
    let aged =
        lab.run(["age", "replay:fsfb.log", "--on", "again", "--log", "again.log", "--dir", ".", "--json"]).good();
    // Its steps are what they were there.
    assert!(
        aged.stdout.contains("\"counted_steps\": 12") || aged.stdout.contains("\"counted_steps\":12"),
        "{}",
        aged.stdout
    );
    assert_same(&lab, "once", "again");
    // The log of the replay holds all that it needs, the beginnings of contents too.
    lab.run(["replay", "again.log", "--on", "nested", "--dir", "."]).good();
    assert_same(&lab, "once", "nested");
    lab.assert_nothing_left();
}

#[test]
fn direct_overwrites_are_replayed_direct() {
    let lab = Lab::new();
    for name in ["once", "again"] {
        fs::create_dir(lab.path(name)).unwrap();
    }
    let mut args = vec!["age", "overwrite", "--on", "once", "--dir", ".", "--log", "oltp.log", "--set", "size=48MiB"];
    args.extend(["--set", "operations=50", "--set", "rounds=2"]);
    lab.run(&args).good();
    lab.run(["age", "replay:oltp.log", "--on", "again", "--log", "again.log", "--dir", "."]).good();
    assert_same(&lab, "once", "again");
    let header = |log: &str| lab.run(["log", "show", log, "-n", "0"]).good().stdout;
    assert!(header("again.log").contains("\"io\":\"direct\""), "{}", header("again.log"));
}
