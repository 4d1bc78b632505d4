//! Tests that need root run where root is, and say so where it is not.

/// Whether the test may go on: true for root. Otherwise says `skipped: needs root (why)`, or panics when the
/// environment says that skipping is not allowed (`SENESCE_REQUIRE_ROOT_TESTS=1`, as the CI sets it).
pub fn root_or_skip(why: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let must_run = std::env::var_os("SENESCE_REQUIRE_ROOT_TESTS").is_some_and(|value| value == "1");
    assert!(!must_run, "this test must not be skipped here, and needs root: {why}");
    eprintln!("skipped: needs root ({why})");
    false
}
