//! Placeholder of the scanner bench.
fn main() {}
