//! Durability without a call, after `fs sync` and after an fsync, on both engines in every mode of
//! writing.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use memchr::memmem;
use memmap2::MmapMut;
use senesce_testkit::root_or_skip;

use super::{
    disk::must,
    garden_mount::{assert_as_copied, hold, mount, start, write_and_copy},
    lab::Lab,
};

/// A test that would wait for ever fails then.
const STUCK: Duration = Duration::from_secs(120);

const MODES: [&[&str]; 4] = [&[], &["--write-back"], &["--write-back=engine"], &["--write-back=direct"]];

/// How `g` is made.
const ENGINES: [&[&str]; 3] =
    [&["garden", "--size", "64MiB"], &["garden", "--size", "64MiB", "--no-parity"], &["evergreen", "--size", "128MiB"]];

/// Calls `test` with a new `g` of each engine for each mode. No checkpoint comes before the hour is
/// over.
fn for_all(test: impl Fn(&Lab, &[&str])) {
    if !root_or_skip("mounting") {
        return;
    }
    for engine in ENGINES {
        for mode in MODES {
            let lab = Lab::new();
            lab.run(["fs", "mkfs", engine[0], "g"].iter().chain(&engine[1..])).good();
            eprintln!("{engine:?} {mode:?}");
            test(&lab, &[mode, &["--point-every", "3600"]].concat());
        }
    }
}

fn serve(lab: &Lab, more: &[&str]) -> Child {
    start(lab, lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]).args(more).stdout(Stdio::null()))
}

/// Kills the server, and removes what it leaves.
fn kill(lab: &Lab, mut server: Child) {
    server.kill().unwrap();
    server.wait().unwrap();
    lab.run(["clean"]).good();
    let checked = lab.run(["fs", "check", "g"]).good().stdout;
    assert!(checked.contains("clean"), "{checked}");
}

/// The images of `g` hold these bytes now.
fn is_in_images(lab: &Lab, bytes: &[u8]) -> bool {
    let images = match fs::read_dir(lab.path("g")) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![lab.path("g")], // an evergreen is one file
    };
    let holds = |image: &PathBuf| memmem::find(&fs::read(image).unwrap(), bytes).is_some();
    images.iter().any(holds)
}

/// After the next mount, the tree is what was written.
fn assert_kept(lab: &Lab) {
    let mounted = mount(lab, &[]);
    assert_as_copied(lab);
    mounted.unmount();
}

#[test]
fn written_files_become_durable_without_any_call() {
    for_all(|lab, how| {
        let server = serve(lab, how);
        write_and_copy(lab);
        let marker = b"the last of all that was written before the kill";
        fs::write(lab.path("mnt/marker"), marker).unwrap();
        fs::write(lab.path("copy/marker"), marker).unwrap();
        let begin = Instant::now();
        while !is_in_images(lab, marker) {
            assert!(begin.elapsed() < STUCK, "nothing makes it durable");
            std::thread::sleep(Duration::from_millis(50));
        }
        kill(lab, server);
        assert_kept(lab);
    });
}

#[test]
fn fs_sync_makes_open_and_mapped_files_durable() {
    for_all(|lab, how| {
        let server = serve(lab, how);
        write_and_copy(lab);
        let open =
            |name: &str| OpenOptions::new().read(true).write(true).create_new(true).open(lab.path(name)).unwrap();
        let (mut written, mapped) = (open("mnt/open"), open("mnt/mapped"));
        let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at / 5) as u8).collect();
        written.write_all(&bytes).unwrap();
        mapped.set_len(bytes.len() as u64).unwrap();
        // SAFETY: no process truncates the file while it is mapped.
        let mut map = unsafe { MmapMut::map_mut(&mapped) }.unwrap();
        map.copy_from_slice(&bytes);
        drop(mapped);
        lab.run(["fs", "sync", "mnt"]).good();
        kill(lab, server);
        drop((written, map));
        fs::write(lab.path("copy/open"), &bytes).unwrap();
        fs::write(lab.path("copy/mapped"), &bytes).unwrap();
        assert_kept(lab);
    });
}

#[test]
fn fsync_of_one_file_makes_earlier_files_durable() {
    for_all(|lab, how| {
        let server = serve(lab, how);
        write_and_copy(lab);
        fs::write(lab.path("copy/last"), b"last").unwrap();
        let mut last = File::create(lab.path("mnt/last")).unwrap();
        last.write_all(b"last").unwrap();
        last.sync_all().unwrap();
        kill(lab, server);
        drop(last);
        assert_kept(lab);
    });
}

#[test]
fn fs_sync_refuses_other_file_systems() {
    let lab = Lab::new();
    lab.run(["fs", "sync", "tmp"]).refused(2, &["tmp is not on a mount of senesce", "sync --file-system"]);
    lab.run(["fs", "sync", "nothing"]).refused(2, &["cannot open nothing"]);
    lab.run(["fs", "sync"]).refused(2, &["<POINT>"]);
}

/// How often threads of a process went to sleep so far: each time something had woken them.
fn sleeps(process: u32) -> u64 {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        sum += count.trim().parse::<u64>().unwrap();
    }
    sum
}

#[test]
fn clean_mount_does_not_wake() {
    if !root_or_skip("mounting") {
        return;
    }
    for engine in ENGINES {
        let lab = Lab::new();
        lab.run(["fs", "mkfs", engine[0], "g"].iter().chain(&engine[1..])).good();
        let child = serve(&lab, &["--point-every", "1"]);
        let process = child.id();
        let mounted = hold(&lab, child);
        fs::write(lab.path("mnt/file"), b"something to make durable").unwrap();
        // Until all is in a checkpoint there is something to do; then there is nothing, for as long
        // as one waits.
        let begin = Instant::now();
        loop {
            let before = sleeps(process);
            std::thread::sleep(Duration::from_secs(2));
            if sleeps(process) - before < 10 {
                break;
            }
            assert!(begin.elapsed() < STUCK, "it polls: {engine:?}");
        }
        mounted.unmount();
    }
}

/// The options of `mnt`, as the kernel lists them.
fn options(lab: &Lab) -> Vec<String> {
    let listed = must("findmnt", &["--noheadings", "--output", "OPTIONS", &lab.path("mnt").to_string_lossy()]);
    listed.split(',').map(str::to_owned).collect()
}

#[test]
fn mounts_are_nosuid_nodev_and_remountable() {
    if !root_or_skip("mounting") {
        return;
    }
    for engine in ENGINES {
        let lab = Lab::new();
        lab.run(["fs", "mkfs", engine[0], "g"].iter().chain(&engine[1..])).good();
        let has = |option: &str| options(&lab).iter().any(|is| is == option);
        let remount =
            |how: &str| must("mount", &["-i", "-o", &format!("remount,{how}"), &lab.path("mnt").to_string_lossy()]);
        let write = || fs::write(lab.path("mnt/file"), b"x").map_err(|error| error.raw_os_error());

        let mounted = mount(&lab, &["-o", "suid,dev"]);
        assert!(!has("nosuid") && !has("nodev"));
        mounted.unmount();

        let mounted = mount(&lab, &[]);
        assert!(has("nosuid") && has("nodev"), "{:?}", options(&lab));
        // A program with a set-id bit runs as its caller, and a device node opens nothing.
        must("mknod", &[&lab.path("mnt/null").to_string_lossy(), "c", "1", "3"]);
        let opened = || File::open(lab.path("mnt/null")).map(drop).map_err(|error| error.raw_os_error());
        assert_eq!(opened(), Err(Some(13)));
        remount("dev");
        assert_eq!((has("nosuid"), has("nodev"), opened()), (true, false, Ok(())));
        remount("nodev,noexec");
        fs::copy("/bin/true", lab.path("mnt/true")).unwrap();
        let run = || Command::new(lab.path("mnt/true")).status().map_err(|error| error.raw_os_error());
        assert_eq!((opened(), run().map(|done| done.success())), (Err(Some(13)), Err(Some(13))));
        remount("ro");
        assert_eq!(write(), Err(Some(30)));
        remount("rw,exec");
        assert_eq!((write(), run().map(|done| done.success())), (Ok(()), Ok(true)));
        mounted.unmount();
        lab.run(["fs", "check", "g"]).good();
    }
}
