//! Finds foreign signatures with libblkid.
//!
//! It runs `wipefs` of util-linux instead of `blkid`. If two signatures disagree, `wipefs` lists
//! both, and `blkid` none. `wipefs` also reports superblocks with a wrong checksum, which may be
//! worth a repair. A library would need C headers and clang to build.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use serde::Deserialize;

use super::{Host, LinuxHost};
use crate::{Error, Result};

#[derive(Deserialize)]
struct Listing {
    signatures: Vec<Probed>,
}

#[derive(Deserialize)]
struct Probed {
    #[serde(rename = "type")]
    kind: String,
}

/// Names the signatures on an open file or device, such as `a signature of swsuspend`. `None` if
/// there are none.
///
/// Errors: the program is missing or fails.
pub(super) fn find_probed(file: &File, path: &Path) -> Result<Option<String>> {
    let tool = "wipefs";
    let missing = || Error::SignatureToolMissing { device: path.to_owned(), tool };
    let program = LinuxHost::default().find_tool(tool).ok_or_else(missing)?;
    let input = file.try_clone().map_err(Error::std("open", path))?;
    // By its descriptor, so that no name is looked up again. The environment is empty, so that no
    // cache or configuration of the caller is read.
    let output = Command::new(&program)
        .args(["--no-act", "--json", "/proc/self/fd/0"])
        .env_clear()
        .env("LC_ALL", "C")
        .env("BLKID_FILE", "/dev/null")
        .stdin(Stdio::from(input))
        .output()
        .map_err(Error::std("run", &program))?;
    let failed = |problem: String| Error::ToolFailed {
        command: format!("{tool} --no-act {}", path.display()),
        status: output.status.to_string(),
        stderr: problem,
    };
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    // If there are no signatures, it prints nothing.
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let listing: Listing = serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    let mut kinds: Vec<String> = listing.signatures.into_iter().map(|found| found.kind).collect();
    kinds.sort();
    kinds.dedup();
    Ok((!kinds.is_empty()).then(|| format!("a signature of {}", kinds.join(", "))))
}
