//! Journals that name resources that their owner did not make, on a fake host.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use senesce_core::{Rng, Seed};
use senesce_vdisk::{Footprint, ProcessRef};

use super::{
    CleanAction, CleanMode, JOURNAL_FILE_NAME, MountSource, Outcome, Resource, clean,
    custodian::{ResourceId, token_of},
    release::preview,
    resource_journal::{Entry, VERSION},
};
use crate::host::{DeviceNumber, FileId, Host, MountEntry, ProcessId, fake::FakeHost};

const TOKEN: &str = "1-2-fake";
/// Names that this owner makes, and similar names.
const OURS: [&str; 4] = ["v.1-2-fake", "v.1-2-fake.img", ".t.1-2-fake.senesce-new", "d.1-2-fake-00ff00ff"];
const THEIRS: [&str; 6] = ["home", "precious.img", "1-2-fake", "v.11-2-fake.img", "v.1-2-fakes", "v.9-9-fake.img"];

/// A journal of a dead owner that names these resources.
fn write_journal(dir: &Path, token: &str, resources: &[(Resource, Option<FileId>)]) {
    let process = ProcessId { pid: 1, start_ticks: 2, boot_id: "fake".to_owned() };
    let mut entries =
        vec![Entry::Owner { version: VERSION, process, token: token.to_owned(), home: false, place: None }];
    for (id, (resource, file)) in (0..).map(ResourceId).zip(resources) {
        entries.push(Entry::Acquire { id, resource: resource.clone() });
        entries.extend(file.map(|file| Entry::Confirm { id, file }));
    }
    let lines: Vec<String> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    fs::write(dir.join(JOURNAL_FILE_NAME), lines.concat()).unwrap();
}

fn clean_forged(host: &FakeHost, resources: &[(Resource, Option<FileId>)]) -> Vec<CleanAction> {
    let temp = tempfile::tempdir().unwrap();
    host.owner_lives.store(false, Ordering::SeqCst);
    write_journal(temp.path(), TOKEN, resources);
    clean(host, temp.path(), CleanMode::Act).unwrap()
}

/// Everything on the machine, as text.
fn inventory(host: &FakeHost) -> Vec<String> {
    let world = host.world();
    let files = world.files.iter().map(|(path, id)| format!("file {} {}", path.display(), id.inode));
    let loops = world.loops.iter().map(|(path, id)| format!("loop {} {}", path.display(), id.inode));
    let mounts = world.mounts.iter().map(|m| format!("mount {} {}", m.source.display(), m.point.display()));
    let processes = world.processes.iter().map(|(pid, mark)| format!("process {pid} {mark}"));
    let disks = world.disks.keys().map(|name| format!("disk {name}"));
    files.chain(loops).chain(mounts).chain(processes).chain(disks).collect()
}

#[test]
fn a_token_of_another_owner_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::default();
    host.owner_lives.store(false, Ordering::SeqCst);
    let tree = Resource::Tree { path: "/srv/x.home".into() };
    for token in ["home", "", "9-9-fake"] {
        write_journal(temp.path(), token, &[(tree.clone(), None)]);
        for mode in [CleanMode::Act, CleanMode::DryRun] {
            let error = clean(&host, temp.path(), mode).unwrap_err().to_string();
            assert!(error.contains("does not belong to its owner (1-2-fake)"), "{error}");
        }
    }
    assert_eq!(token_of(&host.this_process().unwrap()), TOKEN);
}

#[test]
fn paths_that_are_not_plain_are_left_alone() {
    for path in ["home.1-2-fake", "../v.1-2-fake", "/srv/../v.1-2-fake", "/"] {
        let host = FakeHost::default();
        host.world().files.insert(path.into(), FileId { device: 1, inode: 1 });
        for resource in [
            Resource::File { path: path.into() },
            Resource::Tree { path: path.into() },
            Resource::Directory { path: path.into() },
        ] {
            let actions = clean_forged(&host, &[(resource, None)]);
            assert!(matches!(actions[0].outcome, Outcome::NotOurs { .. }), "{path}: {actions:?}");
        }
        assert_eq!(inventory(&host).len(), 1);
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let host = FakeHost::default();
    let temp = tempfile::tempdir().unwrap();
    host.owner_lives.store(false, Ordering::SeqCst);
    host.world().files.insert("/srv/v.1-2-fake.img".into(), FileId { device: 1, inode: 1 });
    let file = Resource::File { path: "/srv/v.1-2-fake.img".into() };
    write_journal(temp.path(), TOKEN, &[(file, None)]);
    let journal = fs::read(temp.path().join(JOURNAL_FILE_NAME)).unwrap();
    let actions = clean(&host, temp.path(), CleanMode::DryRun).unwrap();
    assert_eq!(actions[0].to_string(), "file /srv/v.1-2-fake.img: would be removed");
    assert_eq!(fs::read(temp.path().join(JOURNAL_FILE_NAME)).unwrap(), journal);
    assert_eq!(inventory(&host).len(), 1);
    assert_eq!(clean(&host, temp.path(), CleanMode::Act).unwrap()[0].outcome, Outcome::Removed);
    assert!(host.is_clean());
}

#[test]
fn dry_run_sees_that_mounts_hide_directories() {
    let host = FakeHost::default();
    let (image, below, seen) =
        (FileId { device: 1, inode: 7 }, FileId { device: 1, inode: 8 }, FileId { device: 9, inode: 2 });
    {
        let mut world = host.world();
        world.files.insert("/srv/v.1-2-fake.img".into(), image);
        world.files.insert("/srv/v.1-2-fake".into(), seen);
        world.loops.insert("/dev/loop0".into(), image);
        world.mounts.push(mount("/dev/loop0", "/srv/v.1-2-fake"));
    }
    let directory = Resource::Directory { path: "/srv/v.1-2-fake".into() };
    let look = || {
        let outcome = preview(&host, &directory, Some(below), TOKEN);
        CleanAction { resource: directory.clone(), outcome }.to_string()
    };
    assert_eq!(look(), "directory /srv/v.1-2-fake: the directory, once nothing is mounted on it, would be removed");
    host.world().mounts.clear();
    assert!(look().contains("is another file now"), "{}", look());
    host.world().files.insert("/srv/v.1-2-fake".into(), below);
    assert_eq!(look(), "directory /srv/v.1-2-fake: would be removed");
}

#[test]
fn moved_mounts_are_found_by_their_source() {
    let host = FakeHost::default();
    let file = FileId { device: 1, inode: 7 };
    {
        let mut world = host.world();
        world.files.insert("/srv/new/v.1-2-fake.img".into(), file);
        world.loops.insert("/dev/loop0".into(), file);
        world.mounts.push(mount("/dev/loop0", "/srv/new/v.1-2-fake"));
        world.mounts.push(mount("/dev/loop0", "/home/user/bind"));
    }
    let resource = Resource::Mount { point: "/srv/old/v.1-2-fake".into(), source: MountSource::Image { file } };
    let actions = clean_forged(&host, &[(resource, None)]);
    assert_eq!(actions[0].outcome, Outcome::Removed);
    let points: Vec<_> = host.world().mounts.iter().map(|mount| mount.point.clone()).collect();
    assert_eq!(points, [Path::new("/home/user/bind")], "the user's own mount stays");
}

#[test]
fn a_mount_above_ours_is_not_unmounted() {
    let host = FakeHost::default();
    let file = FileId { device: 1, inode: 7 };
    {
        let mut world = host.world();
        world.files.insert("/srv/v.1-2-fake.img".into(), file);
        world.loops.insert("/dev/loop0".into(), file);
        world.mounts.push(mount("/dev/loop0", "/srv/v.1-2-fake"));
        world.mounts.push(mount("tmpfs", "/srv/v.1-2-fake"));
    }
    let resource = Resource::Mount { point: "/srv/v.1-2-fake".into(), source: MountSource::Image { file } };
    let actions = clean_forged(&host, &[(resource, None)]);
    assert!(matches!(actions[0].outcome, Outcome::NotOurs { .. }), "{actions:?}");
    assert_eq!(host.world().mounts.len(), 2);
}

#[test]
fn only_the_server_of_the_engine_is_killed() {
    for (mark, is_killed) in [("senesce-fs:v.1-2-fake", true), ("sleep", false), ("senesce-fs:v.9-9-fake", false)] {
        let host = FakeHost::default();
        host.world().processes.insert(77, mark.to_owned());
        let server = Some(ProcessId { pid: 77, start_ticks: 5, boot_id: "fake".to_owned() });
        let (point, name) = ("/srv/v.1-2-fake".into(), "senesce-fs:v.1-2-fake".to_owned());
        let actions = clean_forged(&host, &[(Resource::Engine { point, name, server }, None)]);
        assert_eq!(host.world().processes.is_empty(), is_killed, "{actions:?}");
        let said = actions[0].to_string();
        assert_eq!(said.contains("process 77 was killed"), is_killed, "{said}");
        assert_eq!(said.contains("not removed"), !is_killed, "{said}");
    }
}

fn mount(source: &str, point: &str) -> MountEntry {
    MountEntry {
        device: DeviceNumber { major: 7, minor: 0 },
        root: "/".into(),
        point: point.into(),
        file_system: "ext4".to_owned(),
        source: source.into(),
        options: String::new(),
    }
}

/// A machine with resources of the owner and of others, and a journal that names some of both with
/// the right numbers.
struct Forgery {
    host: FakeHost,
    resources: Vec<(Resource, Option<FileId>)>,
    /// The resources that must remain.
    foreign: Vec<String>,
}

fn forge(rng: &mut Rng) -> Forgery {
    let host = FakeHost::default();
    let mut resources = Vec::new();
    let mut foreign = Vec::new();
    for number in 0..1 + rng.below(6) {
        let is_ours = rng.below(2) == 0;
        let names: &[&str] = if is_ours { &OURS } else { &THEIRS };
        let name = names[rng.below(names.len() as u64) as usize];
        let dir = PathBuf::from(format!("/d{number}"));
        let (path, point) = (dir.join(name), dir.join("points").join(name));
        let file = FileId { device: 1, inode: 100 + number };
        let device = PathBuf::from(format!("/dev/loop{number}"));
        let pid = 1000 + number as u32;
        let process = ProcessId { pid, start_ticks: 5, boot_id: "fake".to_owned() };
        let before = inventory(&host);
        let has_file = rng.below(2) == 0;
        let confirmed = (rng.below(2) == 0).then_some(file);
        let mut world = host.world();
        let resource = match rng.below(8) {
            kind @ 0..3 => {
                world.files.insert(path.clone(), file);
                match kind {
                    0 => Resource::File { path },
                    1 => Resource::Directory { path },
                    _ => Resource::Tree { path },
                }
            }
            3 => {
                world.files.insert(path, file);
                Resource::Files { dir }
            }
            4 => {
                world.files.insert(path.clone(), file);
                world.loops.insert(device, file);
                Resource::Loop { image: path, file }
            }
            5 => {
                world.files.insert(path, file);
                world.loops.insert(device.clone(), file);
                world.mounts.push(mount(&device.to_string_lossy(), &point.to_string_lossy()));
                let source = match has_file {
                    true => MountSource::Image { file },
                    // All devices of the fake host have this number.
                    false => MountSource::Device { number: DeviceNumber { major: 8, minor: 0 } },
                };
                Resource::Mount { point, source }
            }
            6 => {
                // With any name, the process may serve something else.
                let serves = if is_ours && has_file { format!("senesce-fs:{name}") } else { "sleep".to_owned() };
                if serves == "sleep" {
                    foreign.push(format!("process {pid} sleep"));
                }
                world.processes.insert(pid, serves);
                Resource::Engine { point, name: format!("senesce-fs:{name}"), server: Some(process) }
            }
            _ => {
                world.disks.insert(name.to_owned(), (dir.clone(), false));
                world.files.insert(dir.join("disk"), file);
                let server = Some(ProcessRef { pid, start_ticks: 5, boot: None });
                let (mount_point, name) = (dir, name.to_owned());
                let footprint = Footprint { name, mount_point, backing_file: None, server, guard: None };
                Resource::VirtualDisk { footprint }
            }
        };
        drop(world);
        if !is_ours {
            foreign.extend(inventory(&host).into_iter().filter(|thing| !before.contains(thing)));
        }
        resources.push((resource, confirmed));
    }
    Forgery { host, resources, foreign }
}

#[test]
fn forged_journals_remove_only_resources_with_the_token() {
    let mut removed = 0;
    for seed in 0..400 {
        let forgery = forge(&mut Rng::for_purpose(Seed(seed), "a forged journal"));
        let actions = clean_forged(&forgery.host, &forgery.resources);
        let left = inventory(&forgery.host);
        for thing in &forgery.foreign {
            assert!(left.contains(thing), "seed {seed}: {thing} is gone; {actions:#?}");
        }
        removed += actions.iter().filter(|action| action.outcome == Outcome::Removed).count();
    }
    assert!(removed > 100, "resources of the owner are removed: {removed}");
}
