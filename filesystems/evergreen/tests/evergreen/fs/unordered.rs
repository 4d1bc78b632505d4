//! Names without a label, and homes that start a zone.

use std::{collections::BTreeSet, ops::ControlFlow};

use senesce_core::{Rng, Seed};
use senesce_evergreen::disk::KeyOrder;
use senesce_fsapi::{
    Caller, FileSystem, Ino, NewNode, RenameMode,
    conformance::{Subject, resolve},
};

use super::rig::{Rig, large};

/// Names of which each is between the two before it, which exhausts any numbering.
fn inwards(count: usize) -> Vec<Vec<u8>> {
    let (mut low, mut high) = (vec![b'a'], vec![b'b']);
    let mut all = vec![low.clone(), high.clone()];
    for n in 0..count {
        // After `low` and before `high`, whichever is longer.
        let name = [&low[..], &vec![b'A'; 1 + high.len().saturating_sub(low.len())], b"m"].concat();
        if n % 2 == 0 {
            low.clone_from(&name)
        } else {
            high.clone_from(&name)
        }
        all.push(name);
    }
    all
}

fn list(fs: &dyn FileSystem, directory: Ino) -> Vec<(Vec<u8>, u64)> {
    let mut names = Vec::new();
    fs.read_dir(directory, 0, &mut |entry| {
        names.push((entry.name.to_vec(), entry.cookie));
        ControlFlow::Continue(())
    })
    .unwrap();
    names
}

#[test]
fn names_without_a_label_are_listed() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let caller = Caller::default();
    let directory = rig.fs().make_node(&caller, Ino::ROOT, b"d", &NewNode::directory(0o755)).unwrap().ino;
    let names = inwards(100);
    for name in &names {
        rig.fs().make_node(&caller, directory, name, &NewNode::file(0o644)).unwrap();
    }
    rig.check().unwrap();
    let listed = list(rig.fs(), directory);
    let unordered = listed.iter().filter(|(_, cookie)| *cookie >= 1 << 61).count();
    assert!((20..names.len()).contains(&unordered), "{unordered} names have no label");
    assert!(listed.is_sorted_by_key(|(_, cookie)| *cookie) && listed.last().unwrap().1 < 1 << 62);
    assert!(listed[..listed.len() - unordered].is_sorted());
    let want: BTreeSet<&Vec<u8>> = names.iter().collect();
    assert_eq!(listed.iter().map(|(name, _)| name).collect::<BTreeSet<_>>(), want);

    // A cookie may be any number.
    rig.fs().read_dir(directory, u64::MAX, &mut |entry| panic!("{:?} is after the last cookie", entry.name)).unwrap();

    // With creations and removals meanwhile: each cookie continues with the names after it.
    let (stays, goes): (Vec<_>, Vec<_>) = listed.iter().partition(|(name, _)| name.len() % 3 > 0);
    let mut rng = Rng::for_purpose(Seed(1), "unordered");
    for (number, (name, _)) in goes.into_iter().enumerate() {
        match rng.below(3) {
            0 => rig.fs().unlink(&caller, directory, name).unwrap(),
            1 => {
                let to = format!("new {number}").into_bytes();
                rig.fs().rename(&caller, (directory, name), (directory, &to), RenameMode::Replace).unwrap();
            }
            _ => rig.fs().rename(&caller, (directory, name), (Ino::ROOT, b"out"), RenameMode::Replace).unwrap(),
        }
        if number % 8 == 0 {
            rig.check().unwrap();
            rig.reopen().unwrap();
        }
        let (_, from) = listed[rng.below(listed.len() as u64) as usize];
        let mut later = BTreeSet::new();
        rig.fs()
            .read_dir(directory, from, &mut |entry| {
                later.insert((entry.name.to_vec(), entry.cookie));
                ControlFlow::Continue(())
            })
            .unwrap();
        for entry in &stays {
            assert_eq!(later.contains(entry), entry.1 > from, "{entry:?} after {from}");
        }
    }
    rig.check().unwrap();
}

#[test]
fn listings_continue_after_removed_names() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let caller = Caller::default();
    for n in 0..1000 {
        rig.fs().make_node(&caller, Ino::ROOT, format!("{n:04}").as_bytes(), &NewNode::file(0o644)).unwrap();
    }
    // Like `rm -r`: removes all listed names before it continues.
    let (mut cookie, mut removed) = (0, 0);
    loop {
        let mut names = Vec::new();
        rig.fs()
            .read_dir(Ino::ROOT, cookie, &mut |entry| {
                names.push(entry.name.to_vec());
                cookie = entry.cookie;
                if names.len() < 70 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
        if names.is_empty() {
            break;
        }
        for name in names {
            assert_eq!(name, format!("{removed:04}").into_bytes());
            rig.fs().unlink(&caller, Ino::ROOT, &name).unwrap();
            removed += 1;
        }
        if removed == 350 {
            rig.reopen().unwrap();
        }
    }
    assert_eq!(removed, 1000);
    rig.check().unwrap();
}

#[test]
fn deep_trees_start_zones() {
    let mut rig = Rig::new(large(), KeyOrder::BirthPath);
    let caller = Caller::default();
    let name = [b'n'; 255];
    let (mut directory, mut path) = (Ino::ROOT, Vec::new());
    for _ in 0..120 {
        directory = rig.fs().make_node(&caller, directory, &name, &NewNode::directory(0o755)).unwrap().ino;
        path.extend_from_slice(b"/");
        path.extend_from_slice(&name);
    }
    let file = rig.fs().make_node(&caller, directory, b"file", &NewNode::file(0o644)).unwrap().ino;
    rig.fs().write(&caller, file, 0, b"deep").unwrap();
    rig.check().unwrap();
    rig.reopen().unwrap();
    let mut got = [0; 4];
    let found = resolve(rig.fs(), &[&path[1..], b"/file"].concat()).unwrap();
    assert_eq!((found, rig.fs().read(file, 0, &mut got).unwrap(), &got), (file, 4, b"deep"));
}
