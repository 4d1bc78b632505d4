//! Tests that need root, or something of the machine, run where that is, and say so where it is not.

/// Whether the test may go on: true for root. Otherwise says `skipped: needs root (why)`, or panics when the
/// environment says that skipping is not allowed (`SENESCE_REQUIRE_ROOT_TESTS=1`, as the CI sets it).
pub fn root_or_skip(why: &str) -> bool {
    found_or_skip(rustix::process::geteuid().is_root().then_some(()), &format!("root ({why})")).is_some()
}

/// What the test needs of the machine, if it was found. Otherwise says `skipped: needs what`, or panics as
/// [`root_or_skip`] does: a test must not pass because it did nothing.
pub fn found_or_skip<T>(found: Option<T>, what: &str) -> Option<T> {
    if found.is_none() {
        let must_run = std::env::var_os("SENESCE_REQUIRE_ROOT_TESTS").is_some_and(|value| value == "1");
        assert!(!must_run, "this test must not be skipped here, and needs {what}");
        eprintln!("skipped: needs {what}");
    }
    found
}
