//! Finds user-mode Linux on this machine: an adapter.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Modules, Result};

/// The Debian package with the kernel and its modules.
pub const PACKAGE: &str = "user-mode-linux";

/// Where distributions put the kernel.
const PROGRAMS: &[&str] = &["/usr/bin/linux.uml", "/usr/bin/linux"];
/// Where they put its modules, in a directory of the kernel's release.
const MODULES: &str = "/usr/lib/uml/modules";

/// A guest kernel.
#[derive(Clone, Debug)]
pub struct GuestKernel {
    /// The program that is the kernel.
    pub program: PathBuf,
    /// Its release, such as `6.1.176`.
    pub release: String,
    /// Its modules.
    pub modules: Modules,
}

/// Finds the kernel and its modules.
///
/// Errors: there is none, or its modules are missing. Cost: starts the kernel once, for its
/// release.
pub fn find_kernel() -> Result<GuestKernel> {
    find_among(PROGRAMS, Path::new(MODULES))
}

fn find_among(programs: &[&str], modules: &Path) -> Result<GuestKernel> {
    for program in programs.iter().map(PathBuf::from).filter(|program| program.is_file()) {
        let Some(release) = release_of(&program) else { continue };
        let dir = modules.join(&release);
        let Some(modules) = Modules::read(&dir) else { return Err(Error::NoModules { kernel: program, dir }) };
        return Ok(GuestKernel { program, release, modules });
    }
    Err(Error::NoKernel { searched: programs.iter().map(|&program| program.to_owned()).collect() })
}

/// What `linux --version` prints, if it looks like the release of a kernel.
fn release_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    let is_release = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+_~".contains(&byte));
    is_release.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_kernel_names_its_package() {
        let error = find_among(&["/nowhere/linux.uml"], Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/linux.uml"), "{error}");
        assert_eq!(error.hint().as_deref(), Some("apt-get install user-mode-linux"));
    }

    #[test]
    fn a_program_that_is_no_kernel_is_skipped() {
        assert!(matches!(find_among(&["/bin/ls"], Path::new("/nowhere")), Err(Error::NoKernel { .. })));
    }
}
