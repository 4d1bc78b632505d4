//! Cold blocks of a mounted garden whose objects go away and come back: a directory, and a store
//! that speaks S3.

use std::{
    fs,
    io::{self, Read},
    process::{Child, Command, Stdio},
};

use senesce_testkit::{S3_BUCKET, S3_KEY_ID, S3Mood, S3Server, root_or_skip};
use serde_json::Value;

use super::{
    garden_mount::start,
    lab::{Done, Lab},
};

const BLOCK: usize = 4096;
const COLD: usize = 1200;

fn contents(blocks: usize, seed: u8) -> Vec<u8> {
    (0..blocks * BLOCK).map(|at| (at / BLOCK) as u8 ^ (at / BLOCK / 256) as u8 ^ (at % 251) as u8 ^ seed).collect()
}

/// A garden `g` with a cold file, a warm one, and its objects at a place; the program is given an
/// environment.
struct Garden<'a> {
    lab: &'a Lab,
    objects: &'a str,
    environment: Vec<(&'static str, String)>,
}

impl<'a> Garden<'a> {
    fn new(lab: &'a Lab, objects: &'a str, environment: Vec<(&'static str, String)>) -> Self {
        let garden = Self { lab, objects, environment };
        lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
        let mounted = garden.mount(false);
        fs::write(garden.at("cold"), contents(COLD, 1)).unwrap();
        garden.unmount(mounted);
        let told = garden.run(&["fs", "tier", "g", "--objects", objects, "--age", "0", "--json"]).good().stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["tiered_blocks"], &told["objects_put"]), (&COLD.into(), &2.into()), "{told}");
        // Pointers that still name the drives, where the blocks lie until they are written over,
        // are put right.
        lab.run(["fs", "clean", "g"]).good();
        garden
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.lab.path(format!("mnt/{name}"))
    }

    fn command(&self) -> Command {
        let mut command = self.lab.command();
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        Done::of(self.command().args(words).output().unwrap())
    }

    fn mount(&self, with_objects: bool) -> Child {
        let mut command = self.command();
        command.args(["--quiet", "fs", "mount", "g", "mnt", "--point-every", "1"]);
        if with_objects {
            command.args(["--objects", self.objects]);
        }
        start(self.lab, command.stdout(Stdio::null()).stderr(Stdio::piped()))
    }

    /// What the mount said.
    fn unmount(&self, mut child: Child) -> String {
        senesce_testkit::unmount(&self.lab.path("mnt"));
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        said
    }

    fn fails(&self, from: u64) {
        use std::os::unix::fs::FileExt;
        let cold = fs::File::open(self.at("cold")).unwrap();
        let error = cold.read_exact_at(&mut [0; BLOCK], from * BLOCK as u64).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5), "{error}");
    }

    /// The store goes and comes back while the garden is mounted.
    fn loses_its_store(&self, mut go: impl FnMut(), mut come: impl FnMut()) {
        let mounted = self.mount(true);
        let mut first = [0; BLOCK];
        fs::File::open(self.at("cold")).unwrap().read_exact(&mut first).unwrap();
        assert!(first[..] == contents(1, 1)[..]);
        fs::write(self.at("warm"), contents(100, 2)).unwrap();
        go();
        self.fails(1000);
        self.fails(600);
        assert!(fs::read(self.at("warm")).unwrap() == contents(100, 2));
        fs::write(self.at("new"), contents(300, 3)).unwrap();
        fs::File::open(self.at("new")).unwrap().sync_all().unwrap();
        // The second object is not wanted any more, and cannot be deleted now.
        fs::OpenOptions::new().write(true).open(self.at("cold")).unwrap().set_len(1000 * BLOCK as u64).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(fs::metadata(self.at("cold")).unwrap().len() as usize, 1000 * BLOCK);
        come();
        // A client that asks while it is away is not sent there each time.
        let cold = std::iter::repeat_with(|| fs::read(self.at("cold")).ok()).take(1_000_000).find_map(|read| read);
        assert!(cold.unwrap() == contents(1000, 1));
        let said = self.unmount(mounted);
        let away = said.matches("cold blocks cannot be read until the store answers").count();
        let back = said.matches("can be read again").count();
        assert_eq!((away, back), (1, 1), "{said}");
        let told = self.run(&["fs", "check", "g", "--objects", self.objects]).good().stdout;
        assert!(told.contains("clean") && told.contains("1000 cold blocks in"), "{told}");
        let mounted = self.mount(true);
        assert!(fs::read(self.at("cold")).unwrap() == contents(1000, 1));
        assert!(fs::read(self.at("new")).unwrap() == contents(300, 3));
        assert!(fs::read(self.at("warm")).unwrap() == contents(100, 2));
        self.unmount(mounted);
        let told = self.run(&["fs", "tier", "g", "--objects", self.objects, "--json"]).good().stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["objects"], &told["wanted_cold_blocks"]), (&1.into(), &1000.into()), "{told}");
        self.run(&["fs", "check", "g", "--objects", self.objects]).good();
    }
}

#[test]
fn vanished_store_directory_fails_only_cold_reads() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let garden = Garden::new(&lab, "o", Vec::new());
    let (here, away) = (lab.path("o"), lab.path("away"));
    let rename = |from, to| fs::rename(from, to).unwrap_or_else(|error: io::Error| panic!("{error}"));
    garden.loses_its_store(|| rename(&here, &away), || rename(&away, &here));
}

#[test]
fn silent_store_delays_only_cold_reads() {
    use std::os::unix::fs::FileExt;

    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let server = S3Server::new();
    let environment = vec![
        ("AWS_ENDPOINT_URL", server.endpoint()),
        ("AWS_ACCESS_KEY_ID", S3_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let place = format!("s3://{S3_BUCKET}/lab/one");
    let garden = Garden::new(&lab, &place, environment);
    let mounted = garden.mount(true);
    let gets =
        || server.requests().iter().filter(|request| request.starts_with("GET") && request.contains("/00000")).count();
    let before = gets();
    server.set_mood(S3Mood::Silent);
    // More than threads that serve, each at another place.
    let readers = [5, 205, 405, 605].map(|block: usize| {
        let cold = fs::File::open(garden.at("cold")).unwrap();
        std::thread::spawn(move || {
            let mut got = [0; BLOCK];
            cold.read_exact_at(&mut got, (block * BLOCK) as u64).unwrap();
            (block, got)
        })
    });
    while gets() < before + readers.len() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    fs::write(garden.at("warm"), contents(100, 2)).unwrap();
    fs::File::open(garden.at("warm")).unwrap().sync_all().unwrap();
    assert!(fs::read(garden.at("warm")).unwrap() == contents(100, 2));
    fs::rename(garden.at("warm"), garden.at("other")).unwrap();
    assert_eq!(fs::metadata(garden.at("cold")).unwrap().len() as usize, COLD * BLOCK);
    // None of them has an answer yet.
    assert!(readers.iter().all(|reader| !reader.is_finished()));
    server.set_mood(S3Mood::Well);
    let data = contents(COLD, 1);
    for (block, got) in readers.map(|reader| reader.join().unwrap()) {
        assert!(got[..] == data[block * BLOCK..(block + 1) * BLOCK], "{block}");
    }
    assert!(fs::read(garden.at("cold")).unwrap() == data);
    assert_eq!(garden.unmount(mounted), "");
    garden.run(&["fs", "check", "g", "--objects", &place]).good();
}

#[test]
fn cold_files_move_to_an_s3_store() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    let server = std::cell::RefCell::new(S3Server::new());
    let environment = vec![
        ("AWS_ENDPOINT_URL", server.borrow().endpoint()),
        ("AWS_ACCESS_KEY_ID", S3_KEY_ID.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let place = format!("s3://{S3_BUCKET}/lab/one");
    let garden = Garden::new(&lab, &place, environment.clone());
    let keys = server.borrow().keys();
    assert!(keys.len() == 2 && keys.iter().all(|key| key.starts_with("lab/one/garden-")), "{keys:?}");
    garden.loses_its_store(|| server.borrow_mut().stop(), || server.borrow_mut().start());
    assert_eq!(server.borrow().keys(), keys[..1]);
    let dump = garden.run(&["fs", "dump", "g", "object", "0", "--objects", &place, "--most", "3"]).good().stdout;
    assert!(dump.contains("SNSCobjt") && dump.contains("and 1001 more") && !dump.contains("WRONG"), "{dump}");

    garden.run(&["fs", "dump", "g", "object", "0"]).refused(2, &["--objects"]);
    garden.run(&["fs", "check", "g", "--objects", "s3://nothing/lab"]).refused(1, &["there is no such bucket"]);
    garden.run(&["fs", "check", "g", "--objects", "s3://B/lab"]).refused(2, &["is no bucket"]);
    garden
        .run(&["fs", "tier", "g", "--objects", &format!("s3://{S3_BUCKET}/other")])
        .refused(1, &["which holds 1000 cold blocks", "nothing was put or deleted"]);
    let stranger = Garden {
        environment: vec![("AWS_ACCESS_KEY_ID", "stranger".to_owned()), environment[0].clone(), environment[2].clone()],
        ..garden
    };
    stranger.run(&["fs", "check", "g", "--objects", &place]).refused(1, &["does not let us in: InvalidAccessKeyId"]);
    let nobody = Garden { environment: Vec::new(), ..stranger };
    nobody.run(&["fs", "check", "g", "--objects", &place]).refused(3, &["AWS_ACCESS_KEY_ID is not set"]);
}
