//! Recordings as a user makes them: ended by signals, of a build, replayed on other file systems
//! and on full ones.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    garden_mount::{abort, start},
    lab::{Done, Lab, mount_points},
};

/// Source files of the program that is built.
const MODULES: usize = 40;

/// A C program of some dozens of files with a library of its own, a generated header, dependency
/// files, and an archive.
fn write_program(lab: &Lab) {
    let at = |name: &str| lab.path("src").join(name);
    for dir in ["", "lib", "include"] {
        fs::create_dir_all(at(dir)).unwrap();
    }
    let mut sum = String::from("#include \"generated.h\"\nint total(void) { int n = FIRST;\n");
    for number in 0..MODULES {
        let header = format!("#pragma once\nint module_{number}(int n);\n");
        fs::write(at(&format!("include/module_{number}.h")), header).unwrap();
        let body: String = (0..20).map(|line| format!("  n = n * {} % 9973;\n", number * 31 + line)).collect();
        let source = format!("#include \"module_{number}.h\"\nint module_{number}(int n) {{\n{body}  return n;\n}}\n");
        fs::write(at(&format!("lib/module_{number}.c")), source).unwrap();
        sum.push_str(&format!("  extern int module_{number}(int); n = module_{number}(n + 1);\n"));
    }
    fs::write(at("total.c"), sum + "  return n;\n}\n").unwrap();
    fs::write(
        at("main.c"),
        "#include <stdio.h>\nint total(void);\nint main(void) { return printf(\"%d\\n\", total()) < 0; }\n",
    )
    .unwrap();
    let rules = "SOURCES := $(wildcard lib/*.c)\nOBJECTS := $(SOURCES:.c=.o)\nCFLAGS := -Iinclude -Ibuild -MMD -g\n\
        build/program: main.o total.o build/libmodules.a\n\tcc -o $@.new $^ && strip $@.new && mv $@.new $@ && ln -f $@ program\n\
        build/libmodules.a: $(OBJECTS)\n\tar rcs $@ $^\n\
        total.o: build/generated.h\n\
        build/generated.h:\n\tmkdir -p build && echo '#define FIRST 7' > $@.tmp && mv $@.tmp $@\n\
        -include $(OBJECTS:.o=.d)\n";
    fs::write(at("Makefile"), rules).unwrap();
}

#[test]
fn recorded_build_replays_to_an_equal_tree() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    write_program(&lab);
    fs::create_dir(lab.path("mnt")).unwrap();
    let log = path("build.senesce-log");
    let mut args = vec!["record", "--dir", "src", "--mount", "mnt", "--log", &log, "--keep-contents"];
    let nameless = "import os;proc=os.open('/proc',0);lost=os.open('lib',os.O_TMPFILE|os.O_RDWR);os.write(lost,b'lost'*999);\
        fd=os.open('build',os.O_TMPFILE|os.O_RDWR,0o644);os.write(fd,b'x'*300000);\
        os.link(f'self/fd/{fd}','build/named',src_dir_fd=proc,follow_symlinks=True)";
    let script = format!("mkdir build && make -s -j2 && ./program && python3 -c \"{nameless}\"");
    args.extend(["--", "sh", "-c", &script]);
    let recorded = lab.run(&args).good();
    assert!(recorded.stdout.contains("operations"), "{}", recorded.stdout);
    assert!(lab.path("src/build/libmodules.a").metadata().unwrap().len() > 10_000);
    assert_eq!(lab.path("src/build/named").metadata().unwrap().len(), 300_000);
    for (kind, size) in [("ext4", "64MiB"), ("xfs", "320MiB"), ("btrfs", "160MiB")] {
        let on = format!("image:{size}");
        let dir = path(".");
        let replayed = lab.run(["replay", &log, "--on", &on, "--fs", kind, "--against", "src", "--dir", &dir]).good();
        assert!(replayed.stdout.contains("the tree equals that of src"), "{kind}: {}", replayed.stdout);
    }
    // The built program runs from a replay, too.
    fs::create_dir(lab.path("again")).unwrap();
    lab.run(["replay", &log, "--on", "again", "--against", "src", "--dir", &path("."), "--threads", "3"]).good();
    assert_eq!(must(&path("again/program"), &[]), must(&path("src/program"), &[]));
    lab.assert_nothing_left();
}

#[test]
fn signal_stops_the_command_and_completes_log() {
    if !root_or_skip("mounting") {
        return;
    }
    for (signal, code, has_command) in [("INT", 130, true), ("TERM", 143, true), ("INT", 0, false)] {
        let lab = Lab::new();
        let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
        for dir in ["backing", "mnt"] {
            fs::create_dir(lab.path(dir)).unwrap();
        }
        fs::write(lab.path("backing/found"), "found").unwrap();
        let mut command = lab.command();
        command.args(["record", "--dir", "backing", "--mount", "mnt", "--log", "log", "--keep-contents"]);
        if has_command {
            // What it does when it is asked to end is recorded, too.
            let script = "trap 'echo late > late; exit 3' TERM; echo early > early; while :; do sleep 0.05; done";
            command.args(["--", "sh", "-c", script]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mounted = || mount_points().contains(&path("mnt"));
        let is_ready = || if has_command { lab.path("backing/early").exists() } else { mounted() };
        while !is_ready() {
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
            std::thread::sleep(Duration::from_millis(2));
        }
        if !has_command {
            fs::write(lab.path("mnt/early"), "early\n").unwrap();
        }
        must("kill", &[&format!("-{signal}"), &child.id().to_string()]);
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.code, code, "{}", done.stderr);
        assert!(!mounted());
        assert_eq!(lab.path("backing/late").exists(), has_command);
        // It says so, and what it has is whole.
        assert!(done.stdout.contains("operations"), "{}", done.stdout);
        lab.run(["log", "verify", "log"]).good();
        fs::create_dir(lab.path("again")).unwrap();
        lab.run(["replay", "log", "--on", "again", "--against", "backing", "--dir", &path(".")]).good();
        lab.assert_nothing_left();
    }
}

#[test]
fn third_signal_exits_without_waiting() {
    if !root_or_skip("mounting") {
        return;
    }
    for is_patient in [true, false] {
        let lab = Lab::new();
        fs::create_dir(lab.path("backing")).unwrap();
        let mut recorder = lab.command();
        recorder.args(["record", "--dir", "backing", "--mount", "mnt", "--log", "log"]);
        let child = start(&lab, recorder.stdout(Stdio::piped()).stderr(Stdio::piped()));
        // The unmount of a mount in use is tried for 5 s.
        let user = fs::File::open(lab.path("mnt")).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        if !is_patient {
            // Three signals of different numbers, because the kernel merges equal ones.
            let recorder = Pid::from_child(&child);
            for signal in [Signal::TERM, Signal::HUP] {
                kill_process(recorder, signal).unwrap();
            }
        }
        let done = Done::of(child.wait_with_output().unwrap());
        let is_mounted = mount_points().contains(&lab.path("mnt").to_string_lossy().into_owned());
        drop(user);
        if is_patient {
            assert!(done.good().stderr.contains("a third one exits at once, and `senesce clean` then removes"));
        } else {
            assert!([129, 130, 143].contains(&done.code), "{}", done.code);
            assert!(is_mounted, "it was not waited for");
            lab.run(["clean"]).good();
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn aborted_recording_leaves_a_whole_log() {
    if !root_or_skip("mounting") {
        return;
    }
    for command in [&[][..], &["--", "sleep", "1000"]] {
        let lab = Lab::new();
        fs::create_dir(lab.path("backing")).unwrap();
        let words = ["record", "--dir", "backing", "--mount", "mnt", "--log", "log", "--keep-contents"];
        let mut recorder = lab.command();
        recorder.args(words).args(command).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = start(&lab, &mut recorder);
        fs::write(lab.path("mnt/early"), "early\n").unwrap();
        abort(&lab);
        let done = Done::of(child.wait_with_output().unwrap());
        done.refused(1, &["the FUSE connection of ", "was aborted", "the log is good up to that moment"]);
        lab.run(["log", "verify", "log"]).good();
        fs::create_dir(lab.path("again")).unwrap();
        lab.run(["replay", "log", "--on", "again"]).good();
        assert_eq!(fs::read_to_string(lab.path("again/early")).unwrap(), "early\n");
        lab.assert_nothing_left();
    }
}

#[test]
fn replay_without_space_names_the_operation() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let path = |name: &str| lab.path(name).to_string_lossy().into_owned();
    let mut trace = String::from("1 1.0 mkdir(\"/x/d\", 0755) = 0\n");
    for number in 0..40 {
        let at = number as f64 + 2.0;
        trace.push_str(&format!(
            "1 {at} openat(AT_FDCWD, \"/x/d/f{number}\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3\n1 {at} write(3, \"\"..., 1048576) = 1048576\n1 {at} close(3) = 0\n"
        ));
    }
    fs::write(lab.path("trace"), trace).unwrap();
    lab.run(["record", "--import-strace", "trace", "--dir", "/x", "--log", "log"]).good();
    let dir = path(".");
    for threads in ["1", "3"] {
        // What is made for it is refused before; of a place that is there the size is not asked.
        let small = ["replay", "log", "--on", "image:32MiB", "--fs", "ext4", "--dir", &dir, "--threads", threads];
        lab.run(small).refused(2, &["has 32 MiB, which is too small: its contents need 39.9 MiB"]);
        let disk = Disk::new(&lab.path("small"), 32);
        disk.format_ext4();
        let mount = Mount::new(&[&disk.device], lab.path("small-mnt"));
        fs::create_dir(mount.point.join("replayed")).unwrap();
        let onto = mount.point.join("replayed").to_string_lossy().into_owned();
        let small = lab.run(["replay", "log", "--on", &onto, "--dir", &dir, "--threads", threads]);
        small.refused(1, &["write d/f", "no space left on the volume that replays"]);
        drop((mount, disk));
        lab.assert_nothing_left();
        let large = ["replay", "log", "--on", "image:64MiB", "--fs", "ext4", "--dir", &dir, "--threads", threads];
        lab.run(large).good();
    }
    // Onto one that is aged and holds something, below a directory of its own.
    let disk = Disk::new(&lab.path("volume"), 96);
    disk.format_ext4();
    let mount = Mount::new(&[&disk.device], lab.path("mnt"));
    let place = mount.point.to_string_lossy().into_owned();
    let mut aging = vec!["age", "intrafile", "--on", &place, "--dir", &dir, "--set", "files=4", "--set", "rounds=5"];
    aging.extend(["--set", "file_size=1MiB"]);
    lab.run(&aging).good();
    fs::create_dir(mount.point.join("replayed")).unwrap();
    lab.run(["replay", "log", "--on", &format!("{place}/replayed"), "--dir", &dir]).good();
    drop((mount, disk));
    lab.assert_nothing_left();
}

#[test]
fn busy_mount_after_a_failure_is_cleaned_later() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    for dir in ["src", "mnt"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    // The command without the recorder fails, and leaves a mount in the copy that it ran in.
    let script = "mkdir sub && mount -t tmpfs none sub && exit 7";
    let args = ["record", "--dir", "src", "--mount", "mnt", "--log", "log", "--overhead", "--", "sh", "-c", script];
    let done = lab.run(args);
    let is_ours = |point: &String| point.starts_with(&*lab.path("senesce-plain").to_string_lossy());
    let left: Vec<String> = mount_points().into_iter().filter(is_ours).collect();
    left.iter().for_each(|point| drop(must("umount", &[point])));
    done.refused(1, &["fails without the recorder, too", "directory tree", "hint: run `senesce clean`"]);
    assert_eq!(left.len(), 1);
    lab.run(["clean"]).good();
    assert!(
        fs::read_dir(lab.path(""))
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with("senesce-plain") })
    );
    lab.assert_nothing_left();
}

#[test]
fn failed_command_leaves_no_log() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    for dir in ["src", "mnt"] {
        fs::create_dir(lab.path(dir)).unwrap();
    }
    let args = ["record", "--dir", "src", "--mount", "mnt", "--log", "log", "--"];
    let with = |command: &[&str]| lab.run([&args, command].concat());
    for _ in 0..2 {
        with(&["/bin/nonexist"]).refused(2, &["cannot run /bin/nonexist"]);
        assert!(!lab.path("log").exists());
        // One word for a shell fails after the start, and changes nothing.
        with(&["sh", "-c", "nosuchcmd there"]).refused(1, &["changed nothing: no log was kept", "absolute paths"]);
        assert!(!lab.path("log").exists());
        with(&["nosuchcmd"]).refused(2, &["cannot run nosuchcmd"]);
        // The tree that existed is in every log, and is no change.
        fs::write(lab.path("src/before"), "before").unwrap();
    }
    let args_without_point = ["record", "--on", "src", "--mount", "point", "--log", "log", "--", "true"];
    lab.run(args_without_point).refused(2, &["--mount: point does not exist", "mkdir point"]);
    // The mount is empty before the recording, and a program below it appears with the mount.
    let below = lab.path("mnt/configure").to_string_lossy().into_owned();
    with(&[&below]).refused(2, &["cannot run", "mnt/configure"]);
    assert!(!lab.path("log").exists());
    // A change that another program makes in the directory itself keeps the log.
    let foreign = format!("touch {}; test -e foreign; exit 7", lab.path("src/foreign").display());
    let kept = with(&["sh", "-c", &foreign]);
    assert!(kept.stdout.contains("1 names came or went in the backing directory"), "{}", kept.stdout);
    kept.refused(1, &["exit status: 7"]);
    fs::remove_file(lab.path("log")).unwrap();
    fs::write(lab.path("src/configure"), "#!/bin/sh\ntouch configured\n").unwrap();
    fs::set_permissions(lab.path("src/configure"), PermissionsExt::from_mode(0o755)).unwrap();
    with(&[&below]).good();
    assert!(lab.path("src/configured").exists());
    fs::remove_file(lab.path("log")).unwrap();
    // The cost of the recorder was measured, and is printed although no log is kept.
    let mount = lab.path("mnt").to_string_lossy().into_owned();
    let fails_recorded = format!("test \"$PWD\" != {mount}");
    let overhead = [&args[..args.len() - 1], &["--overhead", "--", "sh", "-c", &fails_recorded]].concat();
    let failed = lab.run(overhead);
    assert!(failed.stdout.contains("s recorded and"), "{}", failed.stdout);
    failed.refused(1, &["changed nothing: no log was kept"]);
    assert!(!lab.path("log").exists());
    with(&["touch", "made"]).good();
    with(&["touch", "again"]).refused(2, &["log exists already", "hint: give another name"]);
    assert!(lab.path("src/made").exists() && !lab.path("src/again").exists());
    lab.assert_nothing_left();
}
