//! House work.
fn main() {}
