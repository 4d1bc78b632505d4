//! The last lines that a guest kernel wrote on its console.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    sync::{Arc, Mutex, PoisonError},
};

/// Lines kept: a panic has about thirty.
const LINES: usize = 40;
/// The start of the kernel's last message.
const PANIC: &str = "Kernel panic";
/// Bytes kept of a line.
const LINE_BYTES: u64 = 400;

/// A console whose last lines are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console(Arc<Mutex<VecDeque<String>>>);

impl Console {
    /// Reads the console to its end.
    pub(crate) fn follow(&self, from: impl Read) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut from).take(LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => self.add(&line),
            }
        }
    }

    fn add(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        // `<4>` is the level of a message in a dump of the kernel's log.
        let text = text.trim();
        let text = match text.split_once('>') {
            Some((level, rest)) if level.len() == 2 && level.starts_with('<') => rest,
            _ => text,
        };
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES {
            // The registers and traces after a panic must not displace its message.
            if lines.iter().any(|line| line.contains(PANIC)) {
                return;
            }
            lines.pop_front();
        }
        lines.push_back(senesce_core::Printable::new(text).to_string());
    }

    /// The last lines for an error; empty if there are none. Of a panic, its message and what
    /// precedes it.
    pub(crate) fn tail(&self) -> String {
        const SHOWN: usize = 8;
        // Init's own last words come before a panic.
        const BEFORE: usize = 5;
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let panic = lines.iter().position(|line| line.contains(PANIC));
        let from = match panic {
            Some(at) => at.saturating_sub(BEFORE),
            None => lines.len().saturating_sub(SHOWN),
        };
        let shown: Vec<String> = lines.iter().skip(from).take(SHOWN).map(|line| format!("\n    {line}")).collect();
        if shown.is_empty() { String::new() } else { format!("; its console ends with{}", shown.concat()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_is_shown_before_its_registers() {
        let console = Console::default();
        assert_eq!(console.tail(), "");
        let text = (0..50).map(|number| format!("<6>line {number}\n")).collect::<String>();
        console.follow(text.as_bytes());
        assert!(console.tail().ends_with("line 49") && !console.tail().contains("line 41\n"), "{}", console.tail());
        let panic = "<0>Kernel panic - not syncing: x\x1b[2J\n".to_owned() + &"<4>rax\n".repeat(100);
        console.follow(panic.as_bytes());
        let tail = console.tail();
        assert!(tail.contains("line 49\n    Kernel panic - not syncing: x") && !tail.contains('\x1b'), "{tail}");
    }
}
