//! Every verb that makes something besides its result, ended in the middle: by kill -9, after which
//! `senesce clean` leaves nothing, and by signals, after which nothing is left without it. What was
//! there before stays as it was.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    lab::{Done, Lab, loops, mount_points},
};

/// A verb, and when it is in the middle.
struct Case {
    name: &'static str,
    /// `LAB` in it is the lab's directory.
    args: &'static [&'static str],
    /// What is there when it is in the middle.
    middle: Middle,
    /// What `clean` says of it after a kill, besides other things.
    cleaned: &'static [&'static str],
}

enum Middle {
    /// Something below this directory with this in its name, for long enough.
    File(&'static str, &'static str),
    /// A file that the verb's command writes its number into before it waits for ever.
    Command,
}

const WAITS: &str = "echo $$ > LAB/pid.new; mv LAB/pid.new LAB/pid; exec sleep 10000";

const CASES: [Case; 9] = [
    Case {
        name: "record",
        args: &["record", "--dir", "LAB/backing", "--mount", "LAB/point", "--log", "LAB/out", "--", "sh", "-c", WAITS],
        middle: Middle::Command,
        cleaned: &["recording at", "/point: "],
    },
    Case {
        name: "record --overhead",
        args: &[
            "record",
            "--overhead",
            "--dir",
            "LAB/backing",
            "--mount",
            "LAB/point",
            "--log",
            "LAB/out",
            "--",
            "sh",
            "-c",
            WAITS,
        ],
        middle: Middle::Command,
        cleaned: &["directory tree", "senesce-plain."],
    },
    Case {
        name: "replay",
        args: &[
            "replay",
            "LAB/slow.senesce-log",
            "--pace",
            "recorded",
            "--on",
            "image:32MiB",
            "--fs",
            "ext4",
            "--dir",
            "LAB",
        ],
        middle: Middle::File("", "first-directory"),
        cleaned: &["mount at", "loop device of", "file ", "directory tree", "senesce-replay."],
    },
    Case {
        name: "age",
        args: &[
            "age",
            "mail",
            "--on",
            "image:64MiB",
            "--fs",
            "ext4",
            "--dir",
            "LAB",
            "--save",
            "LAB/out",
            "--set",
            "cycles=100000",
            "--set",
            "messages=10",
            "--set",
            "mailboxes=4",
        ],
        middle: Middle::File("", "mail"),
        cleaned: &["mount at", "loop device of", "file ", "directory tree", "senesce-age."],
    },
    Case {
        name: "bench",
        args: &["bench", "--dir", "LAB", "--aged", "LAB/volume", "--", "sh", "-c", WAITS],
        middle: Middle::Command,
        cleaned: &["mount at", "loop device of", "file ", "directory tree", "senesce-bench."],
    },
    Case {
        name: "image save",
        args: &["image", "save", "LAB/large", "LAB/out", "--level", "19", "--threads", "1"],
        middle: Middle::File("", "out."),
        cleaned: &["file ", ".partial: removed"],
    },
    Case {
        name: "image restore",
        args: &["image", "restore", "LAB/large.senesce-image", "LAB/out", "--threads", "1"],
        middle: Middle::File("", "out."),
        cleaned: &["file ", ".partial: removed"],
    },
    Case {
        name: "fragment",
        args: &["fragment", "LAB/mnt/table", "--extents", "4000"],
        middle: Middle::File("mnt", ".table."),
        cleaned: &["temporary files in", "/mnt: removed"],
    },
    Case {
        name: "fragment --free-space",
        args: &["fragment", "LAB/mnt", "--free-space", "4KiB:100%"],
        middle: Middle::File("mnt", ".senesce-free-space."),
        cleaned: &["temporary files in", "/mnt: removed"],
    },
];

#[test]
fn clean_leaves_nothing_after_a_kill() {
    if !root_or_skip("mounting") {
        return;
    }
    let set = Set::up();
    for case in &CASES {
        for signal in ["KILL", "TERM", "INT"] {
            set.end_in_the_middle(case, signal);
        }
    }
}

/// The files that the verbs work on, all of them a user's.
struct Set {
    lab: Lab,
    // In the order in which they go.
    _mount: Mount,
    _disk: Disk,
}

impl Set {
    fn up() -> Self {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        for name in ["backing", "point"] {
            fs::create_dir(lab.path(name)).unwrap();
        }
        fs::write(lab.path("backing/theirs"), "theirs").unwrap();
        // Names like those of ours.
        for name in ["out.partial", "senesce-age.1-2-b", ".table.senesce-base"] {
            fs::write(lab.path(name), name).unwrap();
        }
        let volume = Disk::new(&lab.path("volume"), 32);
        volume.format_ext4();
        drop(volume);
        // No zeros, and nothing that compresses.
        let mut random = vec![0; 96 << 20];
        senesce_core::Rng::for_purpose(senesce_core::Seed(1), "a large volume").fill(&mut random);
        fs::write(lab.path("large"), random).unwrap();
        lab.run(["image", "save", &path("large"), &path("large.senesce-image"), "--level", "1"]).good();
        fs::write(
            lab.path("trace"),
            "1 1000.0 mkdir(\"/x/first-directory\", 0755) = 0\n1 9000.0 mkdir(\"/x/b\", 0755) = 0\n",
        )
        .unwrap();
        let (trace, log) = (path("trace"), path("slow.senesce-log"));
        lab.run(["record", "--import-strace", &trace, "--dir", "/x", "--log", &log]).good();
        let disk = Disk::new(&lab.path("scratch"), 256);
        disk.format_ext4();
        let mount = Mount::new(&[&disk.device], lab.path("mnt"));
        let bytes: Vec<u8> = (0..24_000_000u32).map(|n| (n >> 5) as u8).collect();
        fs::write(mount.point.join("table"), bytes).unwrap();
        fs::write(mount.point.join(".table.senesce-base"), "theirs").unwrap();
        must("sync", &["-f", &path("mnt")]);
        Self { lab, _mount: mount, _disk: disk }
    }

    fn end_in_the_middle(&self, case: &Case, signal: &str) {
        let what = format!("{} after SIG{signal}", case.name);
        let before = self.state();
        let lab = self.lab.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let args: Vec<String> = case.args.iter().map(|arg| arg.replace("LAB", &lab)).collect();
        let mut command = self.lab.command();
        let mut child = command.args(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        self.wait_for(&case.middle, &mut child, &what);
        must("kill", &[&format!("-{signal}"), &child.id().to_string()]);
        if let ("KILL", Ok(orphan)) = (signal, fs::read_to_string(self.lab.path("pid"))) {
            // What it started does not die with it, and holds the volume and its stderr.
            must("kill", &["-KILL", orphan.trim()]);
        }
        let done = Done::of(child.wait_with_output().unwrap());
        if signal == "KILL" {
            assert_ne!(self.state(), before, "{what}: it was in the middle of something");
            let cleaned = self.lab.run(["clean"]).good().stdout;
            for says in case.cleaned {
                assert!(cleaned.contains(says), "{what}: {says:?} is not in:\n{cleaned}");
            }
            assert!(!cleaned.contains("STILL THERE") && !cleaned.contains("virtual disk"), "{what}: {cleaned}");
            let again = self.lab.run(["clean"]).good().stdout;
            assert!(again.starts_with("nothing to clean: "), "{what}: the second time there is nothing: {again}");
        } else {
            let code = if signal == "TERM" { 143 } else { 130 };
            assert_eq!(done.code, code, "{what}: {}", done.stderr);
            assert!(done.stderr.contains("signal"), "{what}: {}", done.stderr);
        }
        let _ = fs::remove_file(self.lab.path("pid"));
        if case.name.starts_with("record") {
            // The log is a result: it is good as far as it goes.
            let _ = fs::remove_file(self.lab.path("out"));
        }
        assert_eq!(self.state(), before, "{what}");
    }

    fn wait_for(&self, middle: &Middle, child: &mut Child, what: &str) {
        loop {
            let is_there = match middle {
                Middle::Command => self.lab.path("pid").exists(),
                Middle::File(dir, part) => find(&self.lab.path(dir), part),
            };
            if is_there {
                return;
            }
            assert!(child.try_wait().unwrap().is_none(), "{what}: it ended before it was in the middle");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Everything in the lab that a verb could leave or spoil: files with sizes, times and
    /// contents, mounts, loop devices.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        let root = self.lab.path("");
        look(&root, &mut state);
        let is_ours = |text: &str| text.starts_with(&*root.to_string_lossy());
        let mounts = mount_points().into_iter().filter(|point| is_ours(point));
        state.extend(mounts.map(|point| (format!("mount {point}"), String::new())));
        let loops = loops().into_iter().filter(|(_, image)| is_ours(image));
        state.extend(loops.map(|(name, image)| (format!("loop {name}"), image)));
        let in_memory = fs::read_dir(self.lab.memory()).unwrap().count();
        state.insert("in memory".into(), in_memory.to_string());
        state
    }
}

/// Whether something below `dir` has this in its name and is not the set's own; a mount that goes
/// just now is passed over.
fn find(dir: &Path, part: &str) -> bool {
    const OWN: [&str; 2] = ["out.partial", ".table.senesce-base"];
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| !path.ends_with("registry") && !path.ends_with("point"));
    paths.iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.contains(part) && !OWN.contains(&&*name) || path.is_dir() && !path.is_symlink() && find(path, part)
    })
}

fn look(dir: &Path, state: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(dir) else {
        state.insert(dir.display().to_string(), "cannot be listed".into());
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let is_large = found.len() > 1 << 20;
        let contents = match found.is_file() && !is_large {
            true => format!("{:?}", fs::read(&path).unwrap_or_default()),
            false => String::new(),
        };
        // The volume that is mounted writes to its image as it likes.
        let times = if path.ends_with("scratch") || found.is_dir() { 0 } else { found.mtime_nsec() };
        let size = if found.is_dir() { 0 } else { found.len() };
        state.insert(path.display().to_string(), format!("{size} {times} {contents}"));
        if found.is_dir() {
            look(&path, state);
        }
    }
}
