//! `senesce clean` of run directories whose journals were forged, as root: a run directory that
//! came in an archive has a journal that belongs to root. `clean` must not remove resources of
//! other programs.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use senesce_testkit::root_or_skip;

use super::{
    disk::{Disk, Mount, must},
    lab::{Lab, SMALL, loops, mount_points},
};

/// Resources of other programs, and the values that a journal needs to name them.
struct Others {
    sleeper: Child,
    // In the order in which they are dropped.
    mount: Mount,
    disk: Disk,
    lab: Lab,
    boot: String,
    token: String,
}

impl Drop for Others {
    fn drop(&mut self) {
        // The tested program may have killed it.
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

impl Others {
    fn set_up() -> Self {
        let lab = Lab::new();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
        // Process 1 did not start at tick 1, so this owner is dead.
        let token = format!("1-1-{}", &boot.replace('-', "")[..8]);
        for dir in ["home2", "etc", "real", "forged"] {
            fs::create_dir(lab.path(dir)).unwrap();
        }
        fs::write(lab.path("home2/letter"), "dear").unwrap();
        fs::write(lab.path("etc/passwd"), "root").unwrap();
        fs::create_dir(lab.path(format!("real/home.{token}"))).unwrap();
        symlink(lab.path("real"), lab.path("link")).unwrap();
        let disk = Disk::new(&lab.path("their-image"), 32);
        disk.format_ext4();
        let mount = Mount::new(&[&disk.device], lab.path("their-mount"));
        fs::write(mount.point.join("letter"), "dear").unwrap();
        let sleeper = Command::new("sleep").arg("10000").stdin(Stdio::null()).spawn().unwrap();
        Self { lab, mount, disk, sleeper, boot, token }
    }

    /// The fields of a JSON object that name the sleeping process.
    fn sleeper(&self, boot_key: &str) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.sleeper.id())).unwrap();
        let ticks = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
        format!(r#"{{"pid":{},"start_ticks":{ticks},"{boot_key}":"{}"}}"#, self.sleeper.id(), self.boot)
    }

    fn journal(&self) -> PathBuf {
        self.lab.path("forged/resources.ndjson")
    }

    /// Cleans after a forged owner with this token, who claims this resource. Returns the exit code
    /// and all output.
    fn clean(&self, token: &str, resource: &str) -> (i32, String) {
        let resource = resource.replace("LAB", self.lab.path("").to_string_lossy().trim_end_matches('/'));
        let process = format!(r#"{{"pid":1,"start_ticks":1,"boot_id":"{}"}}"#, self.boot);
        let text = format!(
            "{{\"event\":\"owner\",\"version\":6,\"process\":{process},\"token\":\"{token}\"}}\n\
             {{\"event\":\"acquire\",\"id\":0,\"resource\":{resource}}}\n"
        );
        fs::write(self.journal(), text).unwrap();
        let done = self.lab.run(["clean", "forged"]);
        (done.code, done.stdout + &done.stderr)
    }

    fn assert_untouched(&mut self, what: &str) {
        for (file, text) in [("home2/letter", "dear"), ("etc/passwd", "root"), ("their-mount/letter", "dear")] {
            assert_eq!(fs::read_to_string(self.lab.path(file)).ok().as_deref(), Some(text), "{what}: {file}");
        }
        assert!(self.lab.path(format!("real/home.{}", self.token)).is_dir(), "{what}");
        let point = self.mount.point.to_string_lossy().into_owned();
        assert!(mount_points().contains(&point), "{what}: it is mounted");
        assert!(loops().iter().any(|(_, image)| image.ends_with("their-image")), "{what}: it is attached");
        assert!(self.sleeper.try_wait().unwrap().is_none(), "{what}: the process was killed");
    }
}

#[test]
fn a_forged_journal_removes_nothing() {
    if !root_or_skip("mounting") {
        return;
    }
    let mut others = Others::set_up();
    let token = others.token.clone();
    let image = fs::metadata(others.lab.path("their-image")).unwrap();
    let image = format!(r#"{{"device":{},"inode":{}}}"#, image.dev(), image.ino());
    let rdev = fs::metadata(&others.disk.device).unwrap().rdev();
    let number = format!(r#"{{"major":{},"minor":{}}}"#, rustix::fs::major(rdev), rustix::fs::minor(rdev));
    let device = others.disk.device.clone();
    let (sleeper, boot_sleeper) = (others.sleeper("boot"), others.sleeper("boot_id"));
    let tree = |path: &str| format!(r#"{{"kind":"tree","path":"{path}"}}"#);
    let mount = |source: &str| format!(r#"{{"kind":"mount","point":"LAB/their-mount","source":{source}}}"#);
    let refused = [
        ("a token of the forger's choice", "home", tree("LAB/home2")),
        ("a token that is a file's name", "passwd", r#"{"kind":"files","dir":"LAB/etc"}"#.to_owned()),
        ("no token", "", tree("LAB/home2")),
    ];
    for (what, token, resource) in refused {
        let (code, said) = others.clean(token, &resource);
        assert!(code == 1 && said.contains("does not belong to its owner"), "{what}: {code} {said}");
        others.assert_untouched(what);
    }
    let left_alone = [
        ("a tree without the token", tree("LAB/home2")),
        ("a file without the token", r#"{"kind":"file","path":"LAB/etc/passwd"}"#.to_owned()),
        ("a relative path", tree("home2")),
        ("a relative path with the token", tree(&format!("real/home.{token}"))),
        ("a path with ..", tree(&format!("LAB/etc/../real/home.{token}"))),
        ("a path through a link", tree(&format!("LAB/link/home.{token}"))),
        ("a mount of a device", mount(&format!(r#"{{"of":"device","number":{number}}}"#))),
        ("a mount of an image", mount(&format!(r#"{{"of":"image","file":{image}}}"#))),
        ("a mount by its source", mount(&format!(r#"{{"of":"engine","name":"{device}"}}"#))),
        ("a loop device", format!(r#"{{"kind":"loop","image":"LAB/their-image","file":{image}}}"#)),
        (
            "a loop device by its mark",
            r#"{"kind":"disk_loop","path":"LAB/their-image","mark":"their-image"}"#.to_owned(),
        ),
        (
            "a process as a disk's server",
            format!(
                r#"{{"kind":"virtual_disk","footprint":{{"name":"d.{token}-00ff00ff","mount_point":"/x",
                "backing_file":null,"server":{sleeper},"guard":{sleeper}}}}}"#
            )
            .replace('\n', " "),
        ),
        (
            "a process as an engine's server",
            format!(
                r#"{{"kind":"engine","point":"/x.{token}","name":"senesce-fs:x.{token}","server":{boot_sleeper}}}"#
            ),
        ),
    ];
    for (what, resource) in left_alone {
        let (code, said) = others.clean(&token, &resource);
        let is_said = said.contains(": not removed") || said.contains("already gone");
        assert!(code == 0 && is_said, "{what}: {code} {said}");
        others.assert_untouched(what);
    }
    // A name like that of a run is the proof. `clean` removes this file and prints the act.
    let (code, said) = others.clean(&token, &tree(&format!("LAB/real/home.{token}")));
    assert!(code == 0 && said.contains(": removed"), "{code} {said}");
    assert!(!others.lab.path(format!("real/home.{token}")).exists());
}

#[test]
fn a_pipe_as_journal_is_refused_at_once() {
    let lab = Lab::new();
    fs::create_dir(lab.path("run")).unwrap();
    must("mkfifo", &["-m", "600", &lab.path("run/resources.ndjson").to_string_lossy()]);
    let mut command = Command::new("timeout");
    command.args(["60", super::lab::SENESCE, "clean", "run"]);
    lab.confine(&mut command);
    super::lab::Done::of(command.output().unwrap()).refused(1, &["it is no regular file"]);
}

/// Kills a run of [`SMALL`] in `out` while both its volumes are mounted.
fn kill_a_run(lab: &Lab) {
    lab.plan(SMALL);
    let mut child = lab.command().args(["--quiet", "run", "plan.toml", "--out", "out"]).spawn().unwrap();
    let volumes = lab.path("out/volumes").to_string_lossy().into_owned();
    while mount_points().iter().filter(|point| point.starts_with(&volumes)).count() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before both volumes were mounted");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_moved_killed_run_is_cleaned() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    kill_a_run(&lab);
    fs::rename(lab.path("out"), lab.path("moved")).unwrap();
    let cleaned = lab.run(["clean", "moved"]).good();
    assert!(cleaned.stdout.contains("mount at") && !cleaned.stdout.contains("STILL THERE"), "{}", cleaned.stdout);
    lab.assert_nothing_left();
    // The registry's entry of the old path leads nowhere, and is removed.
    lab.run(["clean"]).good();
    assert!(lab.run(["clean"]).good().stdout.starts_with("nothing to clean: "));
}

#[test]
fn a_remaining_resource_makes_the_exit_code_1() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    kill_a_run(&lab);
    // A user has mounted the volume at another place, too.
    let prefix = lab.path("out/volumes").to_string_lossy().into_owned();
    let ours = mount_points().into_iter().find(|point| point.starts_with(&prefix)).unwrap();
    let beside = lab.path("beside");
    fs::create_dir(&beside).unwrap();
    must("mount", &["--bind", &ours, &beside.to_string_lossy()]);
    let first = lab.run(["clean"]);
    senesce_testkit::unmount(&beside);
    assert!(first.code == 1 && first.stdout.contains("STILL THERE"), "{} {}", first.code, first.stdout);
    assert!(first.stderr.contains("could not be cleaned"), "{}", first.stderr);
    lab.run(["clean"]).good();
    lab.assert_nothing_left();
}

#[test]
fn a_registry_that_another_user_prepared_is_refused() {
    if !root_or_skip("giving files to another user") {
        return;
    }
    let lab = Lab::new();
    fs::create_dir(lab.path("registry")).unwrap();
    std::os::unix::fs::chown(lab.path("registry"), Some(65_534), None).unwrap();
    fs::write(lab.path("small"), "x").unwrap();
    for args in [&["clean"][..], &["image", "save", "small", "container"]] {
        lab.run(args).refused(3, &["is not used", "belongs to user 65534", "SENESCE_REGISTRY"]);
    }
    assert!(fs::read_dir(lab.path("registry")).unwrap().next().is_none());
}
