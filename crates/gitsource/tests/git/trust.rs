//! Hostile and damaged repositories: no program that they name runs, and errors name missing
//! objects.

use std::{
    fs,
    io::Write,
    os::unix::fs::{FileExt, chown, symlink},
    path::{Path, PathBuf},
};

use senesce_gitsource::{
    Error, GitContents, History, HistoryOptions, ObjectCheck, RealGit, SpoolRepository, TrustedOwners,
};
use senesce_oplog::ContentSource;
use senesce_testkit::root_or_skip;
use senesce_workload::git::{PackKey, PackNames, PlannerOptions};
use tempfile::TempDir;

use crate::fixture::{Edit, Stream, git_output, git_text, ours, spool, try_spool};

const NOBODY: u32 = 65534;

/// Four commits; `wanted` is in the first, `later` in the third.
fn small(dir: &Path) {
    let mut stream = Stream::default();
    let mut tip = stream.commit(&[], &[Edit::File(b"wanted", b"one\n"), Edit::File(b"d/e/f", b"two\n")]);
    tip = stream.commit(&[tip], &[Edit::File(b"second", b"2\n")]);
    tip = stream.commit(&[tip], &[Edit::File(b"d/later", b"three\n")]);
    tip = stream.commit(&[tip], &[Edit::File(b"last", b"4\n")]);
    stream.import(dir, tip);
}

/// Makes every object loose.
fn unpack(dir: &Path) {
    let packs: Vec<PathBuf> =
        fs::read_dir(dir.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in packs {
        let moved = dir.join(path.file_name().unwrap());
        fs::rename(&path, &moved).unwrap();
        if moved.extension().is_some_and(|extension| extension == "pack") {
            let input = fs::File::open(&moved).unwrap();
            let status = crate::fixture::git(dir).args(["unpack-objects", "-q"]).stdin(input).status().unwrap();
            assert!(status.success());
        }
    }
}

fn loose(dir: &Path, oid: &str) -> PathBuf {
    dir.join("objects").join(&oid[..2]).join(&oid[2..])
}

fn chown_all(path: &Path, uid: u32) {
    chown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| chown_all(&entry.unwrap().path(), uid));
    }
}

/// Appends every key that names a program to the configuration. Each program would make `marker`.
fn arm(dir: &Path, marker: &Path) {
    let run = format!("touch {}", marker.display());
    let mut config = fs::OpenOptions::new().append(true).open(dir.join("config")).unwrap();
    let hooks = dir.join("evil-hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc", "pre-receive"] {
        let path = hooks.join(hook);
        fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    write!(
        config,
        "[core]\n\tfsmonitor = \"{run}\"\n\tsshCommand = \"{run};\"\n\tgitProxy = \"{run};\"\n\tpager = \"{run}\"\n\
         \teditor = \"{run}\"\n\taskPass = \"{run}\"\n\talternateRefsCommand = \"{run}\"\n\thooksPath = {hooks}\n\
         [uploadpack]\n\tpackObjectsHook = \"{run};\"\n[credential]\n\thelper = \"!{run}\"\n\
         [filter \"x\"]\n\tsmudge = \"{run}\"\n\tclean = \"{run}\"\n\trequired = true\n\
         [alias]\n\tpack-objects = \"!{run}\"\n\trev-parse = \"!{run}\"\n[gc]\n\trecentObjectsHook = \"{run}\"\n",
        hooks = hooks.display()
    )
    .unwrap();
    fs::create_dir_all(dir.join("info")).unwrap();
    fs::write(dir.join("info/attributes"), "* filter=x\n").unwrap();
}

/// Makes a partial clone whose remote runs a program to fetch missing objects.
fn promisor(dir: &Path, marker: &Path) -> String {
    format!(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\
         \tpromisor = true\n\turl = {}\n\tuploadpack = \"touch {}; git-upload-pack\"\n",
        dir.display(),
        marker.display()
    )
}

/// Uses a repository as a run does: both engines, all commits.
fn use_it(repository: &SpoolRepository, dir: &Path) -> Result<(), Error> {
    let history = History::open(repository, HistoryOptions::default())?;
    let contents = GitContents::new(&history, &dir.join("packs"))?;
    history.work_tree_bytes(0)?;
    let options = PlannerOptions::default();
    let native = contents.pack_name(PackKey::All(3));
    let mut real = RealGit::init(&dir.join("real"), &history, &options)?;
    for number in 1..history.len() {
        real.pull(number)?;
    }
    native.map(drop).map_err(Error::from)
}

#[test]
fn an_untrusted_repository_of_another_user_is_refused() {
    if !root_or_skip("to give a repository away") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    let copy =
        |owners: &TrustedOwners, name: &str| SpoolRepository::copy(&source, &dir.path().join(name), owners, &|| true);
    chown_all(&source, NOBODY);
    let error = copy(&ours(), "a").unwrap_err();
    assert!(matches!(error, Error::ForeignOwner { owner: NOBODY, .. }), "{error}");
    assert!(error.to_string().contains("--trust-repo"), "{error}");
    assert!(!dir.path().join("a").exists(), "nothing was copied");
    copy(&TrustedOwners::new(0, Some(NOBODY)), "b").unwrap();
    copy(&TrustedOwners::new(NOBODY, None), "c").unwrap();
    copy(&TrustedOwners::new(1000, Some(NOBODY)), "d").unwrap_err();
    copy(&ours().trusting_anyone(), "e").unwrap();
    // Another owner of any one of them makes the repository foreign.
    for part in ["", "objects", "config"] {
        chown_all(&source, 0);
        chown(source.join(part), Some(NOBODY), None).unwrap();
        let error = copy(&ours(), "f").unwrap_err();
        assert!(matches!(error, Error::ForeignOwner { .. }), "{part}: {error}");
    }
}

#[test]
fn partial_clone_is_refused_in_every_form() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    let config = fs::read_to_string(source.join("config")).unwrap();
    for sign in [
        "[extensions]\n\tpartialClone = origin\n",
        "[remote \"origin\"]\n\tpromisor = true\n",
        "[REMOTE \"x\"]\n\tPartialCloneFilter = blob:none\n",
    ] {
        fs::write(source.join("config"), format!("{config}{sign}")).unwrap();
        let error = try_spool(&source).unwrap_err();
        assert!(matches!(error, Error::Partial { .. }) && error.to_string().contains("hint:"), "{sign}: {error}");
    }
    fs::write(source.join("config"), config).unwrap();
    spool(&source);
    fs::write(source.join("objects/pack/pack-1.promisor"), "").unwrap();
    assert!(matches!(try_spool(&source), Err(Error::Partial { .. })));
}

#[test]
fn a_trusted_repository_still_runs_nothing() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    unpack(&source);
    let marker = dir.path().join("marker");
    arm(&source, &marker);
    // The remote for missing objects is in an included file, which the configuration itself does
    // not show.
    fs::write(source.join("evil.inc"), promisor(&source, &marker)).unwrap();
    let mut config = fs::OpenOptions::new().append(true).open(source.join("config")).unwrap();
    writeln!(config, "[include]\n\tpath = evil.inc").unwrap();
    let wanted = git_text(&source, &["-c", "core.fsmonitor=false", "rev-parse", "main~3:wanted"]);
    fs::remove_file(&marker).ok(); // the line above may have run an alias

    let owners = ours().trusting_anyone();
    let whole = SpoolRepository::copy(&source, &dir.path().join("whole"), &owners, &|| true).unwrap();
    use_it(&whole, &dir.path().join("use-whole").tap_create()).unwrap();
    assert!(!marker.exists(), "a complete repository ran a program");

    fs::remove_file(loose(&source, &wanted)).unwrap();
    let lacking = SpoolRepository::copy(&source, &dir.path().join("lacking"), &owners, &|| true).unwrap();
    let error = use_it(&lacking, &dir.path().join("use-lacking").tap_create()).unwrap_err();
    assert!(error.to_string().contains(&wanted), "{error}");
    assert!(!marker.exists(), "a missing object ran a program");
}

trait TapCreate {
    fn tap_create(self) -> PathBuf;
}

impl TapCreate for PathBuf {
    fn tap_create(self) -> PathBuf {
        fs::create_dir_all(&self).unwrap();
        self
    }
}

#[test]
fn stranger_cannot_point_to_foreign_files() {
    if !root_or_skip("to give a repository away") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let (secret, source) = (dir.path().join("secret"), dir.path().join("source"));
    small(&secret);
    let owners = ours().trusting_anyone();
    let mut copies = 0;
    let mut copy = |source: &Path| {
        copies += 1;
        SpoolRepository::copy(source, &dir.path().join(format!("copy-{copies}")), &owners, &|| true)
    };
    git_output(dir.path(), &["clone", "-q", "--bare", "--shared", "secret", "source"]);
    // From a repository of the same user, an alternate is followed.
    assert!(use_it(&copy(&source).unwrap(), &dir.path().join("use").tap_create()).is_ok());
    chown_all(&source, NOBODY);
    assert!(matches!(copy(&source), Err(Error::Elsewhere { owner: 0, .. })));
    // The same with links.
    fs::remove_file(source.join("objects/info/alternates")).unwrap();
    fs::remove_dir(source.join("objects/pack")).unwrap();
    symlink(secret.join("objects/pack"), source.join("objects/pack")).unwrap();
    assert!(matches!(copy(&source), Err(Error::Irregular { .. })));
    let link = dir.path().join("link");
    fs::create_dir(&link).unwrap();
    fs::write(link.join(".git"), format!("gitdir: {}\n", secret.display())).unwrap();
    copy(&link).unwrap();
    chown_all(&link, NOBODY);
    assert!(matches!(copy(&link), Err(Error::Elsewhere { owner: 0, .. })));
}

#[test]
fn irregular_files_are_refused_at_once() {
    let dir = TempDir::new().unwrap();
    for name in ["config", "HEAD", "packed-refs", "shallow"] {
        let source = dir.path().join(name);
        small(&source);
        // Some of these files do not exist.
        fs::remove_file(source.join(name)).ok();
        let made = std::process::Command::new("mkfifo").arg(source.join(name)).status().unwrap();
        assert!(made.success());
        let error = try_spool(&source).unwrap_err();
        assert!(matches!(error, Error::Irregular { .. }), "{name}: {error}");
    }
}

#[test]
fn objects_with_wrong_bytes_are_refused() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    unpack(&source);
    let oid = git_text(&source, &["rev-parse", "main~3:wanted"]);
    let other = git_text(&source, &["rev-parse", "main:last"]);
    fs::remove_file(loose(&source, &oid)).unwrap();
    fs::copy(loose(&source, &other), loose(&source, &oid)).unwrap();
    let history = History::open(&spool(&source), HistoryOptions::default()).unwrap();
    let contents = GitContents::new(&history, &dir.path().join("packs")).unwrap();
    let error = contents.payload(&format!("blob {oid}")).unwrap_err();
    assert!(error.problem.contains(&oid) && error.problem.contains("damaged"), "{error:?}");
    // Git copies the bytes into the pack without comparing them with their id.
    let error = contents.pack_name(PackKey::All(0)).unwrap_err();
    assert!(error.to_string().contains(&oid), "{error}");
}

#[test]
fn claimed_object_sizes_are_not_trusted() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    unpack(&source);
    let oid = git_text(&source, &["rev-parse", "main~3:wanted"]);
    let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(b"blob 4611686018427387904\0one\n").unwrap();
    fs::remove_file(loose(&source, &oid)).unwrap();
    fs::write(loose(&source, &oid), stream.finish().unwrap()).unwrap();
    let history = History::open(&spool(&source), HistoryOptions::default()).unwrap();
    let contents = GitContents::new(&history, &dir.path().join("packs")).unwrap();
    let error = contents.payload(&format!("blob {oid}")).unwrap_err();
    assert!(error.problem.contains(&oid), "{error:?}");
}

#[test]
fn a_truncated_pack_is_named() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    git_output(&source, &["repack", "-a", "-d", "-q"]);
    let pack = fs::read_dir(source.join("objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "pack"))
        .unwrap();
    let bytes = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    for len in [0, 20, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&pack, &bytes[..len]).unwrap();
        let error = try_spool(&source).unwrap_err();
        assert!(matches!(&error, Error::DamagedPack { pack: named, .. } if *named == pack), "{len}: {error}");
        assert!(error.to_string().contains("truncated"), "{len}: {error}");
    }
}

#[test]
fn a_sparse_pack_is_not_copied() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    git_output(&source, &["repack", "-a", "-d", "-q"]);
    let mut packs = fs::read_dir(source.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    let pack = packs.find(|path| path.extension().is_some_and(|extension| extension == "pack")).unwrap();
    let bytes = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    let file = fs::File::create(&pack).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    // It ends with the checksum that its index records.
    file.write_all_at(&bytes[bytes.len() - 20..], 1 << 40).unwrap();
    let error = try_spool(&source).unwrap_err();
    let problem = std::error::Error::source(&error).unwrap().to_string();
    assert!(problem.contains("it has a hole"), "{error}: {problem}");
    assert!(error.to_string().contains(&*pack.to_string_lossy()), "{error}");
}

#[test]
fn missing_objects_of_a_range_are_named() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    unpack(&source);
    let check = || {
        let history = History::open(&spool(&source), HistoryOptions::default()).unwrap();
        let mut check = ObjectCheck::new(&history);
        (1..4).try_for_each(|number| check.check_commit(number)).and_then(|()| check.finish())
    };
    check().unwrap();
    let (blob, tree) = ("main:d/later", "main~2^{tree}");
    let [blob, tree] = [blob, tree].map(|name| git_text(&source, &["rev-parse", name]));
    fs::remove_file(loose(&source, &blob)).unwrap();
    fs::remove_file(loose(&source, &tree)).unwrap();
    let error = check().unwrap_err();
    let Error::MissingObjects { missing, .. } = &error else { panic!("{error}") };
    assert!(missing[0].contains(&tree), "{error}");
    assert!(missing.iter().any(|line| line.contains(&blob) && line.contains("d/later")), "{error}");
    // Objects that only an earlier commit has are not part of the range.
    let wanted = git_text(&source, &["rev-parse", "main~3:wanted"]);
    assert!(!error.to_string().contains(&wanted), "{error}");
}

#[test]
fn copy_that_leads_elsewhere_is_not_adopted() {
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("source");
    small(&source);
    let copy = spool(&source).git_dir().to_owned();
    fs::write(copy.join("config"), "[core]\n\tbare = true\n[alias]\n\trev-parse = \"!false\"\n").unwrap();
    let adopted = SpoolRepository::adopt(&copy, &source).unwrap();
    History::open(&adopted, HistoryOptions::default()).unwrap();
    assert!(!fs::read_to_string(copy.join("config")).unwrap().contains("alias"), "the configuration is ours again");
    for name in ["commondir", "config.worktree", "objects/info/alternates"] {
        fs::write(copy.join(name), "/elsewhere\n").unwrap();
        assert!(matches!(SpoolRepository::adopt(&copy, &source), Err(Error::Irregular { .. })), "{name}");
        fs::remove_file(copy.join(name)).unwrap();
    }
}
