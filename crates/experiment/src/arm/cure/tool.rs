//! The cure by another program.

use std::{fs, path::Path, process::Command};

use senesce_volume::{Error as VolumeError, Host, run_supervised};

use super::{super::state::ArmContext, Work};
use crate::{Error, plan::CureTool};

/// Lines of a failed tool's output in the error.
const SHOWN_LINES: usize = 4;
/// The directories of programs.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs the tool on the root of a mounted volume.
///
/// Errors: it is not installed; it fails, with its last lines; a signal.
pub(super) fn run(context: &mut ArmContext<'_>, tool: CureTool, root: &Path) -> Result<Work, Error> {
    let scratch = context.paths.arm(&context.arm.name).join("cure");
    fs::create_dir_all(&scratch).map_err(Error::io("create", &scratch))?;
    let mut command = command_of(&*context.world.host, tool, root)?;
    let ended = run_supervised(&mut command, &scratch, &*context.world.clock)?;
    if !ended.status.success() {
        let errors = ended.last_errors(SHOWN_LINES);
        let lines = if errors.is_empty() { ended.last_output(SHOWN_LINES) } else { errors };
        let words: Vec<&str> = [tool.name()].into_iter().chain(tool.arguments().iter().copied()).collect();
        return Err(VolumeError::ToolFailed {
            command: format!("{} {}", words.join(" "), root.display()),
            status: ended.status.to_string(),
            stderr: lines.join("; "),
        }
        .into());
    }
    fs::remove_dir_all(&scratch).map_err(Error::io("remove", &scratch))?;
    Ok(Work::default())
}

/// The line in which a tool prints its version. `None` for this program, and for a tool that prints
/// none.
pub(super) fn find_version(host: &dyn Host, tool: CureTool) -> Option<String> {
    let program = host.find_tool(tool.program()?)?;
    let output = host
        .run_tool(&program, &tool.version_arguments().iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        .ok()?;
    let is_version = |word: &str| word.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
    let mut lines = output.stdout.lines().chain(output.stderr.lines());
    lines.find(|line| line.split_whitespace().any(is_version)).map(|line| line.trim().to_owned())
}

/// The command of the tool. If this process is killed, the tool is killed too. Otherwise it would
/// keep the volume mounted.
fn command_of(host: &dyn Host, tool: CureTool, root: &Path) -> Result<Command, Error> {
    let name = tool.program().unwrap_or_default();
    let missing = || VolumeError::ToolMissing { tool: name.to_owned(), package: tool.debian_package() };
    let program = host.find_tool(name).ok_or_else(missing)?;
    let mut command = match host.find_tool("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.args(tool.arguments()).arg(root).env_clear().env("PATH", PATH).env("LC_ALL", "C");
    Ok(command)
}
