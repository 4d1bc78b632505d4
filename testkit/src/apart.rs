//! Commands in a separate mount namespace.

use std::process::Command;

/// Returns a shell script in a separate mount namespace, so that its mounts end with it. The caller
/// adds the arguments `$0`, `$1` and so on.
///
/// The namespace starts as a copy of all mounts. A copied mount keeps a volume of another test in
/// use after that test has unmounted it: its loop device stays, and no second file system may have
/// its UUID. So the script first detaches the mounts in the directories of temporary files, except
/// those in the current directory.
pub fn apart(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-e", "-c", &format!("{DETACH}\n{script}")]);
    command
}

/// A mount that was detached with one above it is not an error.
const DETACH: &str = r#"
while read -r _ _ _ _ point _; do
    case "$point" in
        "$PWD"/*) ;;
        "${TMPDIR:-/tmp}"/*|/tmp/*|/dev/shm/*) echo "$point" ;;
    esac
done < /proc/self/mountinfo | tr '\n' '\0' | xargs -0r umount -l 2>/dev/null || true
"#;
