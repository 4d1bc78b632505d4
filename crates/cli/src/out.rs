//! Prints results and notes, and decides what happens when they cannot be written.
//!
//! The macros `print!`, `println!` and `eprintln!` of this module replace those of the standard
//! library. Those panic if a reader closed the pipe or a disk is full. A result that cannot be
//! printed unwinds the program, so that guards run. The program then exits quietly if its reader
//! closed the pipe (`senesce show | head`), else with an error of the environment. A note that
//! cannot be written to stderr is dropped.
//!
//! A terminal executes control characters. The texts of this program have none but newline and tab;
//! others can only come from file names, images, logs or other programs. All output therefore
//! passes a [`TerminalFilter`]. Progress bars write to the terminal themselves: they escape their
//! texts.
//!
//! GitHub executes lines of a log that have the form of its commands. After [`defuse_commands`], no
//! line of stdout or stderr has that form, except the lines of [`print_command`].

mod workflow;

use std::{
    fmt::Arguments,
    io::{self, Write},
    panic::resume_unwind,
    sync::{Mutex, MutexGuard, PoisonError},
};

use senesce_core::TerminalFilter;

use self::workflow::{Lines, remove_old_form};

/// The error with which stdout could not be written; the program unwinds with it.
pub struct Unwritable(pub io::Error);

/// The state of stdout between two writes.
struct Results {
    filter: TerminalFilter,
    lines: Lines,
}

static STDOUT: Mutex<Results> = Mutex::new(Results { filter: TerminalFilter::new(), lines: Lines::new() });
static STDERR: Mutex<Lines> = Mutex::new(Lines::new());

/// Removes GitHub's commands from all later output. A foreign plan, run or file name can contain
/// such a command. From then on, output is written in complete lines.
pub fn defuse_commands() {
    lock(&STDOUT).lines.defuse();
    lock(&STDERR).defuse();
}

/// Prints a line that GitHub executes. Removes the old form of commands from the line.
pub fn print_command(line: &str) {
    let mut started = lock(&STDOUT).lines.finish();
    if !started.is_empty() {
        started.push(b'\n');
    }
    let line = shown(&format!("{}\n", remove_old_form(line)));
    write_results(&[started, line].concat());
}

/// Prints a result to stdout.
pub fn print(text: Arguments<'_>) {
    // In one piece, so that lines of several threads do not mix. A failed write unwinds and never
    // returns.
    let _ = Stdout.write_all(text.to_string().as_bytes());
}

/// Prints a note to stderr, if stderr can be written.
pub fn note(text: Arguments<'_>) {
    // In one piece: other programs may write to the same terminal. A note that cannot be written is
    // dropped.
    note_bytes(shown(&text.to_string()));
}

/// Writes the results of another process of this program to stdout. Drops them if stdout cannot be
/// written; an own result unwinds the program.
pub fn pass_on(bytes: Vec<u8>) {
    let bytes = lock(&STDOUT).lines.pass(bytes);
    let mut stdout = io::stdout();
    let _ = stdout.write_all(&bytes).and_then(|()| stdout.flush());
}

/// Writes to stderr without the filter, for texts that may have colours. Drops them if stderr
/// cannot be written.
pub fn note_bytes(bytes: Vec<u8>) {
    let bytes = lock(&STDERR).pass(bytes);
    let _ = io::stderr().write_all(&bytes);
}

/// The bytes of a text that may go to a terminal.
fn shown(text: &str) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    TerminalFilter::new().filter(text.as_bytes(), &mut shown);
    shown
}

/// Writes all that is buffered.
pub fn flush() {
    let mut rest = Vec::new();
    let mut results = lock(&STDOUT);
    results.filter.finish(&mut rest);
    let mut rest = results.lines.pass(rest);
    rest.append(&mut results.lines.finish());
    drop(results);
    let _ = io::stderr().write_all(&lock(&STDERR).finish());
    write_results(&rest);
    io::stdout().flush().unwrap_or_else(|error| unwritable(error));
}

fn write_results(bytes: &[u8]) {
    io::stdout().write_all(bytes).unwrap_or_else(|error| unwritable(error));
}

fn unwritable(error: io::Error) -> ! {
    // Without the panic hook: this is no fault of the program.
    resume_unwind(Box::new(Unwritable(error)))
}

fn lock<T>(state: &'static Mutex<T>) -> MutexGuard<'static, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer to stdout.
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut shown = Vec::with_capacity(bytes.len());
        let mut results = lock(&STDOUT);
        results.filter.filter(bytes, &mut shown);
        let shown = results.lines.pass(shown);
        drop(results);
        write_results(&shown);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // A character may still be incomplete here: only the end of the program finishes the
        // filter.
        io::stdout().flush().map_err(|error| unwritable(error))
    }
}

/// Prints to stdout, as that of the standard library, through [`print`].
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::out::print(format_args!($($text)*)) };
}

/// Prints a line to stdout, as that of the standard library, through [`print`].
#[macro_export]
macro_rules! println {
    () => { $crate::out::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a line to stderr, as that of the standard library, through [`note`].
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::out::note(format_args!("{}\n", format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_no_control_characters() {
        let text = "a\u{1b}]0;title\u{7}\r\u{9b}2J\u{202e}\0b\n";
        assert_eq!(shown(text), b"a\\u001b]0;title\\u0007\\u000d\\u009b2J\\u202e\\u0000b\n");
    }
}
