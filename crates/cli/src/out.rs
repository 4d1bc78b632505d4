//! What is printed, by whom and what becomes of it if it cannot be written.
//!
//! The macros `print!`, `println!` and `eprintln!` of this room take the place of the standard library's, which panic where
//! a reader went away or a disk is full. A result that cannot be printed ends the program by unwinding, so that guards run:
//! quietly if its reader closed the pipe (`senesce show | head`), else as an error of the environment. What goes to stderr
//! is for whoever listens: if nobody does, it is lost, and the work goes on.

use std::{
    fmt::Arguments,
    io::{self, Write},
    panic::resume_unwind,
};

/// Why the results cannot be printed; what the program unwinds with.
pub struct Unwritable(pub io::Error);

/// To stdout, and no further if that is not possible.
pub fn print(text: Arguments<'_>) {
    if let Err(error) = io::stdout().write_fmt(text) {
        unwritable(error);
    }
}

/// To stderr, if anybody listens.
pub fn note(text: Arguments<'_>) {
    // In one piece: others may write there, too.
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Brings out what is still to be printed.
pub fn flush() {
    if let Err(error) = io::stdout().flush() {
        unwritable(error);
    }
}

fn unwritable(error: io::Error) -> ! {
    // Past the hook: this is no panic.
    resume_unwind(Box::new(Unwritable(error)))
}

/// Stdout as something to write into.
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(|error| unwritable(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        flush();
        Ok(())
    }
}

macro_rules! print {
    ($($text:tt)*) => { $crate::out::print(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::out::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::print(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprintln {
    ($($text:tt)*) => { $crate::out::note(format_args!("{}\n", format_args!($($text)*))) };
}
