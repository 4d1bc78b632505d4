//! Panics of libraries that decode bytes of strangers.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`, and returns the text of its panic as an error. Use it only for decoders of
/// other projects, which may panic on malicious bytes. Such a panic is not a bug of this program,
/// so panic hooks call [`is_caught_panic`] and stay silent.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = IS_CAUGHT.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    ended.map_err(|payload| panic_text(&*payload).to_owned())
}

/// Whether [`catch_panic`] on this thread will catch a panic.
pub fn is_caught_panic() -> bool {
    IS_CAUGHT.get()
}

/// The text of a panic.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_text() {
        assert_eq!(catch_panic(|| 3), Ok(3));
        assert_eq!(catch_panic(|| -> u8 { panic!("fixed") }), Err("fixed".to_owned()));
        assert_eq!(catch_panic(|| -> u8 { panic!("row {}", 3) }), Err("row 3".to_owned()));
        assert!(catch_panic(is_caught_panic).unwrap());
        assert!(!is_caught_panic());
    }
}
