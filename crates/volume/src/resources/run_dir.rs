//! Checks the directory of a run before a resumed run writes to it, because another user may have
//! made it.
//!
//! A new run makes every name in its directory. A resumed run finds them: the directory may come
//! from an archive, or belong to another user. A link in it would redirect a write of root to any
//! file.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{Error, Result, guest_owners::is_own};

const WRITABLE_BY_ALL: u32 = 0o002;

/// Checks the directory of a run to resume. `volumes` are directories below it with volumes, which
/// may hold any tree. They are not entered.
///
/// Errors: another user owns the directory or an entry in it; all users can write one of them; an
/// entry is neither a file nor a directory. Cost: lists every directory below it.
pub fn check_run_dir(dir: &Path, volumes: &[PathBuf]) -> Result<()> {
    let wrong = |component: &Path, problem: String| Error::UnsafeDirectory {
        path: dir.to_owned(),
        component: component.to_owned(),
        problem,
    };
    let io = |path: &Path| Error::std("look up", path.to_owned());
    let check = |path: &Path, found: &fs::Metadata| {
        if !is_own(found.uid()) {
            return Err(wrong(path, format!("belongs to user {}", found.uid())));
        }
        if !found.is_symlink() && found.mode() & WRITABLE_BY_ALL != 0 {
            let problem = format!("can be written by other users (mode {:04o})", found.mode() & 0o7777);
            return Err(wrong(path, problem));
        }
        Ok(())
    };
    check(dir, &fs::symlink_metadata(dir).map_err(io(dir))?)?;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).map_err(io(&dir))? {
            let path = entry.map_err(io(&dir))?.path();
            let found = fs::symlink_metadata(&path).map_err(io(&path))?;
            check(&path, &found)?;
            match (found.is_dir(), found.is_file()) {
                (true, _) if volumes.contains(&path) => {}
                (true, _) => open.push(path),
                (_, true) => {}
                _ if found.is_symlink() => return Err(wrong(&path, "is a symbolic link, and a run makes none".into())),
                _ => return Err(wrong(&path, "is neither a file nor a directory".into())),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_run_directory_with_a_link_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, volumes) = (temp.path(), temp.path().join("volumes"));
        fs::create_dir_all(dir.join("arms/a")).unwrap();
        fs::create_dir_all(volumes.join("aged")).unwrap();
        fs::write(dir.join("journal.ndjson"), "{}").unwrap();
        symlink("/etc/hostname", volumes.join("aged/link")).unwrap();
        let check = || check_run_dir(dir, std::slice::from_ref(&volumes));
        check().unwrap();
        let problem = || check().unwrap_err().to_string();
        for name in ["report.html", "arms/a/feedback.ndjson"] {
            symlink("/etc/hostname", dir.join(name)).unwrap();
            assert!(problem().ends_with(&format!("{name} is a symbolic link, and a run makes none")), "{}", problem());
            fs::remove_file(dir.join(name)).unwrap();
        }
        let mode = |mode| fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o777);
        assert!(problem().ends_with("can be written by other users (mode 0777)"), "{}", problem());
        mode(0o700);
        check().unwrap();
        if senesce_testkit::root_or_skip("giving files to another user") {
            for foreign in [dir.join("arms/a"), dir.join("journal.ndjson"), dir.to_owned()] {
                std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
                assert!(problem().ends_with("belongs to user 65534"), "{}", problem());
                std::os::unix::fs::chown(&foreign, Some(0), None).unwrap();
            }
        }
    }
}
