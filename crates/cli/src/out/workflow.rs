//! Workflow commands: lines of a log that GitHub Actions executes.

use std::mem::take;

/// Breaks the old form of commands, `##[`. GitHub executes it at any place of a line.
pub(super) fn remove_old_form(text: &str) -> String {
    text.replace("##[", "# #[")
}

/// Removes the commands of a line: `::` at its start, and the old form.
fn defuse(line: &str) -> String {
    let line = remove_old_form(line);
    if line.trim_start().starts_with("::") { format!("| {line}") } else { line }
}

/// The lines of an output stream, which GitHub may read.
pub(super) struct Lines {
    is_for_github: bool,
    /// The start of a line that is not complete.
    started: Vec<u8>,
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self { is_for_github: false, started: Vec::new() }
    }

    /// Removes commands from all later lines.
    pub(super) fn defuse(&mut self) {
        self.is_for_github = true;
    }

    /// Returns the bytes that may be written now. For GitHub these are complete lines, because a
    /// command may be split over two calls.
    pub(super) fn pass(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if !self.is_for_github {
            return bytes;
        }
        self.started.extend_from_slice(&bytes);
        let complete = self.started.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.started.split_off(complete);
        let lines = std::mem::replace(&mut self.started, rest);
        String::from_utf8_lossy(&lines).split_inclusive('\n').map(defuse).collect::<String>().into_bytes()
    }

    /// Returns the rest that is not a complete line.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        defuse(&String::from_utf8_lossy(&take(&mut self.started))).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of GitHub's log after these writes.
    fn log(writes: &[&str]) -> String {
        let mut lines = Lines::new();
        lines.defuse();
        let mut log: Vec<u8> = writes.iter().flat_map(|text| lines.pass(text.as_bytes().to_vec())).collect();
        log.extend(lines.finish());
        String::from_utf8(log).unwrap()
    }

    #[test]
    fn a_line_cannot_be_a_command() {
        assert_eq!(log(&["  ::set-output::x\nx ##[error]y\n\na::b"]), "|   ::set-output::x\nx # #[error]y\n\na::b");
        assert_eq!(log(&["\u{a0}::error::x\r\n###[[x"]), "| \u{a0}::error::x\r\n## #[[x");
    }

    #[test]
    fn command_over_several_writes_is_removed() {
        assert_eq!(log(&["a\n ", ":", ":error::x", "\n#", "#", "[error]x"]), "a\n|  ::error::x\n# #[error]x");
        assert_eq!(log(&["a", "::error::x\n"]), "a::error::x\n");
    }

    #[test]
    fn other_outputs_keep_their_bytes() {
        let mut lines = Lines::new();
        assert_eq!(lines.pass(b"::error::\xff##[x".to_vec()), b"::error::\xff##[x");
        assert!(lines.finish().is_empty());
    }
}
