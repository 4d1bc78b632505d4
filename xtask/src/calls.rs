//! Calls that only adapters may make, and tests that were switched off.

use std::path::Path;

use crate::files::sources;

/// What must not be written, why, and the places (prefixes below the root) where it may.
const BANNED: &[(&str, &str, &[&str])] = &[
    ("Instant::now", "time enters through core::Clock", &["crates/cli/src/", "filesystems/cli/src/"]),
    ("SystemTime::now", "time enters through core::Clock", &["crates/cli/src/"]),
    ("thread_rng", "randomness is core::Rng", &[]),
    (
        "env::var",
        "the environment is read by the command line only",
        &[
            "crates/cli/src/",
            "filesystems/cli/src/",
            "crates/cli/build.rs",             // what a package is built from
            "crates/guest/build.rs",           // the target of the build
            "crates/gitsource/src/command.rs", // the adapter that gives the git binary its PATH
            "testkit/",
            "xtask/",
        ],
    ),
    (
        "println!",
        "only the command line prints",
        &[
            "crates/cli/src/",
            "filesystems/cli/src/",
            "crates/cli/build.rs",
            "crates/guest/build.rs", // cargo reads it
            "testkit/",
            "xtask/",
        ],
    ),
    ("#[ignore", "a test that is switched off is not a test", &[]),
    ("todo!(", "unfinished", &[]),
    ("unimplemented!(", "unfinished", &[]),
];

pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut complaints = Vec::new();
    for path in sources(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        // Tests, benches and this table may name what they check.
        if ["/tests/", "/benches/", "/examples/"].iter().any(|part| shown.contains(part))
            || shown == "xtask/src/calls.rs"
        {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("#[cfg(test)]") {
                break; // unit tests stand at the end of a file
            }
            if code.starts_with("//") {
                continue;
            }
            for (call, why, allowed) in BANNED {
                if code.contains(call) && !allowed.iter().any(|prefix| shown.starts_with(prefix)) {
                    complaints.push(format!("{shown}:{}: {call} ({why})", number + 1));
                }
            }
        }
    }
    Ok(complaints)
}
