//! The laboratory for file system aging.
fn main() {}
