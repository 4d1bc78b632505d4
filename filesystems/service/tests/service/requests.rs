//! Requests to an open garden.

use std::sync::Arc;

use senesce_block::{BlockDevice, MemoryDevice};
use senesce_core::Bytes;
use senesce_fsapi::{Caller, FileSystem, Ino, NewNode, Timestamp};
use senesce_garden::{FormatOptions, Garden, Limits, LogDevices, VolumeOptions, check};
use senesce_service::{Devices, Error, MountStat, NoTask, Passes, Request, Response, Result, Task, garden::Service};

struct Rig {
    devices: Devices,
    drives: Vec<Arc<dyn BlockDevice>>,
    log: LogDevices,
    garden: Garden,
    mounts: Vec<MountStat>,
    passes: Passes,
    read_only: bool,
}

impl Rig {
    /// A garden with a volume `main` of 20 files, in pairs of equal contents.
    fn new() -> Self {
        let device = |name: String, bytes| Arc::new(MemoryDevice::new(name, Bytes(bytes))) as Arc<dyn BlockDevice>;
        let drives = (0..4).map(|number| device(format!("drive {number}"), 2051 * 4160)).collect();
        let log = LogDevices::from(vec![device("log".to_owned(), 1 << 20)]);
        let devices = Devices::new(drives, log);
        let (drives, log) = (devices.drives(), devices.log().clone());
        let options = FormatOptions {
            uuid: *b"senesce garden 1",
            groups: vec![(3, true)],
            media: Vec::new(),
            aa_stripes: vec![64],
            tetris_stripes: 16,
            zeroed: true,
        };
        Garden::format(&options, drives.clone(), log.clone()).unwrap();
        let garden = Garden::open(&drives, &log, Limits::default()).unwrap();
        garden.create_volume(b"main", &VolumeOptions { blocks: 6000, inodes: 1024, seed: 7 }).unwrap();
        let fs = garden.volume(b"main").unwrap();
        for file in 0..20u8 {
            write(&fs, &format!("file {file}"), &[file / 2; 20_000]);
        }
        Self { devices, drives, log, garden, mounts: Vec::new(), passes: Passes::default(), read_only: false }
    }

    fn ask_with(&self, request: &Request, task: &mut dyn Task) -> Result<Response> {
        // As on the socket.
        let text = serde_json::to_string(request).unwrap();
        let request: Request = serde_json::from_str(&text).unwrap();
        let (garden, passes, read_only) = (&self.garden, &self.passes, self.read_only);
        let mounts = &self.mounts;
        let service = Service {
            garden,
            place: "g",
            mounts,
            passes,
            read_only,
            objects: None,
            store: None,
            devices: Some(&self.devices),
            live: true,
        };
        let response = service.answer(&request, task)?;
        let text = serde_json::to_string(&response).unwrap();
        assert_eq!(serde_json::from_str::<Response>(&text).unwrap(), response, "{text}");
        Ok(response)
    }

    fn ask(&self, request: &Request) -> Result<Response> {
        self.ask_with(request, &mut NoTask)
    }

    fn check(&self) {
        self.garden.commit_checkpoint().unwrap();
        let report = check(&self.drives, &self.log).unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
    }
}

fn caller() -> Caller {
    Caller { uid: 0, gid: 0, now: Timestamp { seconds: 5, nanoseconds: 0 } }
}

fn write(fs: &dyn FileSystem, name: &str, bytes: &[u8]) {
    let ino = match fs.lookup(Ino::ROOT, name.as_bytes()) {
        Ok(found) => found.ino,
        Err(_) => fs.make_node(&caller(), Ino::ROOT, name.as_bytes(), &NewNode::file(0o600)).unwrap().ino,
    };
    fs.write(&caller(), ino, 0, bytes).unwrap();
}

fn read(fs: &dyn FileSystem, name: &str) -> Vec<u8> {
    let ino = fs.lookup(Ino::ROOT, name.as_bytes()).unwrap().ino;
    let mut bytes = vec![0; 20_000];
    let read = fs.read(ino, 0, &mut bytes).unwrap();
    bytes.truncate(read);
    bytes
}

fn snapshot(name: &str) -> Request {
    Request::SnapshotCreate { volume: "main".into(), name: name.into(), unix_seconds: 77 }
}

#[test]
fn snapshots_and_volumes_come_and_go() {
    let rig = Rig::new();
    let Response::SnapshotMade(made) = rig.ask(&snapshot("monday")).unwrap() else { panic!("another response") };
    let made = made.made.unwrap();
    assert_eq!((&*made.name, made.created_unix_seconds), ("monday", 77));
    assert!(made.bytes >= 20 * 20_000);
    write(&rig.garden.volume(b"main").unwrap(), "file 3", &[99; 20_000]);
    let list = Request::SnapshotList { volume: "main".into() };
    let Response::Snapshots(all) = rig.ask(&list).unwrap() else { panic!("another response") };
    assert_eq!(all.snapshots, [made]);

    let clone = Request::Clone { volume: "main".into(), snapshot: "monday".into(), name: "try".into() };
    assert!(matches!(rig.ask(&clone).unwrap(), Response::Cloned(_)));
    assert_eq!(read(&rig.garden.volume(b"try").unwrap(), "file 3"), [1; 20_000]);
    let Response::Volumes(volumes) = rig.ask(&Request::VolumeList).unwrap() else { panic!("another response") };
    let origin = volumes.volumes[1].clone_of.clone().unwrap();
    assert_eq!((&*origin.volume, &*origin.snapshot), ("main", "monday"));

    let delete = |name: &str| Request::VolumeDelete { name: name.into() };
    assert!(matches!(rig.ask(&delete("try")).unwrap(), Response::Deleted(_)));
    let restore = Request::SnapshotRestore { volume: "main".into(), name: "monday".into() };
    assert!(matches!(rig.ask(&restore).unwrap(), Response::Deleted(_)));
    assert_eq!(read(&rig.garden.volume(b"main").unwrap(), "file 3"), [1; 20_000]);
    let delete = Request::SnapshotDelete { volume: "main".into(), name: "monday".into() };
    let Response::Deleted(deleted) = rig.ask(&delete).unwrap() else { panic!("another response") };
    assert_eq!(deleted.map_blocks_left, 0);
    let create =
        Request::VolumeCreate { name: "new".into(), bytes: Some(1 << 20), inodes: None, seed: 3, compress: 8192 };
    let Response::VolumeMade(made) = rig.ask(&create).unwrap() else { panic!("another response") };
    assert_eq!((made.bytes, made.inodes), (1 << 20, 1024));
    rig.check();
}

#[test]
fn passes_process_everything() {
    let rig = Rig::new();
    let Response::Deduped(done) = rig.ask(&Request::Dedup { volume: "main".into() }).unwrap() else {
        panic!("another response")
    };
    assert!(done.whole && done.newly_shared_blocks >= 10 && done.saved_blocks > done.saved_blocks_before, "{done:?}");
    let Response::Scrubbed(done) = rig.ask(&Request::Scrub { from: 5 }).unwrap() else { panic!("another response") };
    assert!(done.stripes == done.of && done.of > 2000 && done.lost.is_empty(), "{done:?}");
    let Response::Cleaned(done) = rig.ask(&Request::Clean { from: 0 }).unwrap() else { panic!("another response") };
    assert!(done.areas == done.of && done.of >= 31 && done.pointers > 0, "{done:?}");
    let defrag = |paths: &[&str]| Request::Defrag {
        volume: "main".into(),
        paths: paths.iter().map(|&path| path.into()).collect(),
        traditional: false,
        dry_run: false,
    };
    let Response::Defragmented(done) = rig.ask(&defrag(&["/file 1", "file 2"])).unwrap() else {
        panic!("another response")
    };
    assert_eq!((done.files, done.requests.after.is_some()), (2, true), "{done:?}");
    let Response::Stat(stat) = rig.ask(&Request::Stat).unwrap() else { panic!("another response") };
    assert_eq!((stat.aggregate.drives.len(), stat.volumes.len()), (4, 1));
    let Response::Figures(figures) = rig.ask(&Request::Figures).unwrap() else { panic!("another response") };
    assert!(figures["since_opening"]["write_chains"]["blocks"].as_u64().unwrap() > 0, "{figures}");
    for file in 0..20u8 {
        assert_eq!(read(&rig.garden.volume(b"main").unwrap(), &format!("file {file}")), [file / 2; 20_000]);
    }
    rig.check();
}

/// Writes whenever the work reports progress.
struct Writer<'a>(&'a Rig, u8);

impl Task for Writer<'_> {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {
        let fs = self.0.garden.volume(b"main").unwrap();
        write(&fs, &format!("file {}", self.1 % 20), &[self.1; 20_000]);
        self.1 = self.1.wrapping_add(1);
        self.0.garden.consistency_point().unwrap();
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}

#[test]
fn check_sees_one_moment_during_writes() {
    let rig = Rig::new();
    for round in 0..3 {
        write(&rig.garden.volume(b"main").unwrap(), "file 1", &[round; 20_000]);
        let mut writer = Writer(&rig, round);
        let Response::Checked(done) = rig.ask_with(&Request::Check { most_bytes: 64 << 20 }, &mut writer).unwrap()
        else {
            panic!("another response")
        };
        assert!(writer.1 > round, "nothing was written during the check");
        assert!(done.checks.iter().all(|part| part.clean && part.blocks > 100), "{done:?}");
    }
    let mut writer = Writer(&rig, 0);
    let error = rig.ask_with(&Request::Check { most_bytes: 65_536 }, &mut writer).unwrap_err();
    let Error::While { source, .. } = error else { panic!("{error}") };
    assert!(source.to_string().contains("were overwritten during the moment"), "{source}");
    rig.check();
}

/// Cancels after the first step.
struct Hasty(bool);

impl Task for Hasty {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {
        self.0 = true;
    }

    fn is_cancelled(&mut self) -> bool {
        self.0
    }
}

#[test]
fn dedup_after_a_cancelled_one_is_complete() {
    let rig = Rig::new();
    let fs = rig.garden.volume(b"main").unwrap();
    let ino = fs.make_node(&caller(), Ino::ROOT, b"big", &NewNode::file(0o600)).unwrap().ino;
    for at in 0..5000u64 {
        fs.write(&caller(), ino, at << 12, &at.to_le_bytes().repeat(512)).unwrap();
    }
    let dedup = Request::Dedup { volume: "main".into() };
    let looked_at = |response| match response {
        Response::Deduped(done) => (done.looked_at, done.whole),
        other => panic!("{other:?}"),
    };
    let (some, whole) = looked_at(rig.ask_with(&dedup, &mut Hasty(false)).unwrap());
    assert!(!whole);
    let all = looked_at(rig.ask(&dedup).unwrap());
    assert!(all.1 && all.0 > 5000 && some < all.0, "{some} and {all:?}");
    assert_eq!(looked_at(rig.ask(&dedup).unwrap()), all, "both were complete");
}

/// Gardening by load, which tries to take a turn whenever the pass of a request reports progress.
struct Gardener<'a> {
    rig: &'a Rig,
    turns: u64,
}

impl Gardener<'_> {
    /// Scrubs some stripes if it can take a turn. Returns the number of finished stripes.
    fn garden(&mut self) -> Option<u64> {
        let _turn = self.rig.passes.begin_turn()?;
        self.turns += 1;
        Some(self.rig.garden.scrub_step(16).unwrap().done)
    }
}

impl Task for Gardener<'_> {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {
        assert_eq!(self.garden(), None, "a turn during a pass");
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}

#[test]
fn requests_and_gardening_by_load_take_turns() {
    let rig = Rig::new();
    let mut gardener = Gardener { rig: &rig, turns: 0 };
    assert_eq!(gardener.garden(), Some(16));
    // A stripe within the next step of gardening.
    rig.garden.commit_checkpoint().unwrap();
    rig.drives[0].write_at(20 * 4160, &[0xff; 4160]).unwrap();
    let Response::Scrubbed(done) = rig.ask_with(&Request::Scrub { from: 0 }, &mut gardener).unwrap() else {
        panic!("another response")
    };
    assert_eq!(done.stripes, done.of);
    assert_eq!(done.repaired.len() + done.parity_repaired.len(), 1, "{done:?}");
    for request in [
        Request::Clean { from: 3 },
        Request::Dedup { volume: "main".into() },
        Request::Defrag { volume: "main".into(), paths: Vec::new(), traditional: false, dry_run: false },
    ] {
        rig.ask_with(&request, &mut gardener).unwrap();
    }
    assert_eq!(gardener.garden(), Some(32), "gardening continues from its position");
    rig.ask_with(&Request::VolumeDelete { name: "main".into() }, &mut gardener).unwrap();
    assert_eq!((gardener.garden(), gardener.turns), (Some(48), 3));
    rig.check();
}

#[test]
fn pass_waits_for_the_turn_of_gardening() {
    let rig = Rig::new();
    let turn = rig.passes.begin_turn().unwrap();
    let error = rig.ask_with(&Request::Scrub { from: 0 }, &mut Impatient).unwrap_err();
    assert_eq!(error.to_string(), "it was interrupted");
    assert!(rig.passes.begin_turn().is_none(), "one turn at a time");
    std::thread::scope(|scope| {
        let pass = scope.spawn(|| rig.ask(&Request::Scrub { from: 0 }));
        drop(turn);
        pass.join().unwrap().unwrap();
    });
    assert!(rig.passes.begin_turn().is_some());
}

/// Cancels at once.
struct Impatient;

impl Task for Impatient {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {}

    fn is_cancelled(&mut self) -> bool {
        true
    }
}

#[test]
fn cancelled_work_reports_its_progress() {
    let rig = Rig::new();
    let Response::Scrubbed(done) = rig.ask_with(&Request::Scrub { from: 3 }, &mut Impatient).unwrap() else {
        panic!("another response")
    };
    assert_eq!((done.from, done.stripes), (3, 3));
    let Response::Deduped(done) = rig.ask_with(&Request::Dedup { volume: "main".into() }, &mut Impatient).unwrap()
    else {
        panic!("another response")
    };
    assert!(!done.whole);
    let error = rig.ask_with(&Request::Check { most_bytes: 64 << 20 }, &mut Impatient).unwrap_err();
    let Error::While { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.to_string(), "it was interrupted");
    rig.check();
}

/// Requests a second pass while one is under way.
struct Second<'a>(&'a Rig, Option<String>);

impl Task for Second<'_> {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {
        let second = self.0.ask(&Request::Dedup { volume: "main".into() });
        self.1.get_or_insert(second.unwrap_err().to_string());
        self.0.ask(&Request::Stat).unwrap();
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}

#[test]
fn one_pass_at_a_time() {
    let rig = Rig::new();
    let mut second = Second(&rig, None);
    rig.ask_with(&Request::Scrub { from: 0 }, &mut second).unwrap();
    assert!(second.1.unwrap().contains("is under way"));
    rig.ask(&Request::Dedup { volume: "main".into() }).unwrap();
}

/// Tries a request on a copy while a pass is under way, and takes a turn while a copy is tried.
struct Trial<'a> {
    rig: &'a Rig,
    is_copy: bool,
    calls: u64,
}

impl Task for Trial<'_> {
    fn progress(&mut self, _: &str, _: &str, _: u64, _: u64) {
        self.calls += 1;
        if self.is_copy {
            assert!(self.rig.passes.begin_turn().is_some(), "a dry run stops gardening by load");
        } else if self.calls == 1 {
            self.rig.ask(&dry_dedup()).unwrap();
            assert!(self.rig.passes.begin_turn().is_none(), "a dry run ends the pass");
        }
    }

    fn is_cancelled(&mut self) -> bool {
        false
    }
}

fn dry_dedup() -> Request {
    Request::DryRun { of: Box::new(Request::Dedup { volume: "main".into() }) }
}

#[test]
fn dry_runs_and_passes_do_not_wait_for_each_other() {
    let rig = Rig::new();
    for (request, is_copy) in [(Request::Scrub { from: 0 }, false), (dry_dedup(), true)] {
        let mut trial = Trial { rig: &rig, is_copy, calls: 0 };
        rig.ask_with(&request, &mut trial).unwrap();
        assert!(trial.calls > 0, "no progress");
    }
    rig.check();
}

#[test]
fn wrong_requests_are_refused_with_hints() {
    let mut rig = Rig::new();
    rig.ask(&snapshot("a")).unwrap();
    let usage = |rig: &Rig, request: &Request, hints: &str| {
        let mut error = rig.ask(request).unwrap_err();
        while let Error::While { source, .. } = error {
            error = *source;
        }
        let Error::Usage { message, hint } = error else { panic!("{error}") };
        assert!(hint.as_ref().is_some_and(|hint| hint.contains(hints)), "{message} {hint:?}");
    };
    usage(&rig, &snapshot("a"), "volume main has the snapshots: a");
    usage(&rig, &Request::SnapshotList { volume: "other".into() }, "its volumes: main");
    usage(&rig, &Request::Clean { from: 99 }, "without --from");
    let defrag = Request::Defrag { volume: "main".into(), paths: vec!["no".into()], traditional: false, dry_run: true };
    usage(&rig, &defrag, "paths begin at the root");
    let create = Request::VolumeCreate { name: "v".into(), bytes: None, inodes: None, seed: 1, compress: 5 };
    usage(&rig, &create, "8KiB");
    usage(&rig, &Request::Tier { objects: "dir".into(), age: 1, prices: None }, "--objects dir");
    // Sizes are not trusted.
    for bytes in [0, u64::MAX] {
        let create =
            Request::VolumeCreate { name: "v".into(), bytes: Some(bytes), inodes: Some(bytes), seed: 1, compress: 0 };
        rig.ask(&create).unwrap_err();
    }
    rig.ask(&Request::Scrub { from: u64::MAX }).unwrap_err();

    let mount = |volume: &str, snapshot: Option<&str>| MountStat {
        point: "/mnt".into(),
        volume: volume.into(),
        snapshot: snapshot.map(str::to_owned),
        read_only: false,
        device: None,
    };
    let refused = |rig: &Rig, request: &Request, says: &str| match rig.ask(request).unwrap_err() {
        Error::Refused { message, .. } => assert!(message.contains(says), "{message}"),
        error => panic!("{error}"),
    };
    rig.mounts = vec![mount("main", Some("a"))];
    let remove = Request::SnapshotDelete { volume: "main".into(), name: "a".into() };
    refused(&rig, &remove, "it is mounted on /mnt");
    rig.mounts = vec![mount("main", None)];
    refused(&rig, &Request::SnapshotRestore { volume: "main".into(), name: "a".into() }, "it is mounted on /mnt");
    refused(&rig, &Request::VolumeDelete { name: "main".into() }, "it is mounted on /mnt");
    rig.ask(&remove).unwrap();
    rig.read_only = true;
    refused(&rig, &snapshot("b"), "read-only");
    rig.ask(&Request::Stat).unwrap();
    rig.check();
}

#[test]
fn malformed_requests_are_refused() {
    for text in [
        "{}",
        "null",
        "[]",
        r#"{"request":"format"}"#,
        r#"{"request":"scrub"}"#,
        r#"{"request":"scrub","from":-1}"#,
        r#"{"request":"scrub","from":18446744073709551616}"#,
        r#"{"request":"scrub","from":1,"more":1}"#,
        r#"{"request":"tier","objects":"d","age":70000,"prices":null}"#,
        r#"{"request":"dedup","volume":{"a":1}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(60_000), "]".repeat(60_000));
    assert!(serde_json::from_str::<Request>(&deep).is_err());
}
