//! Requirements of tests: root, or a part of the machine. A test without them is skipped with a
//! message.

/// Returns true for root. Otherwise prints `skipped: needs root (why)`, or panics if the
/// environment forbids skipping (`SENESCE_REQUIRE_ROOT_TESTS=1`, set by the CI).
pub fn root_or_skip(why: &str) -> bool {
    found_or_skip(rustix::process::geteuid().is_root().then_some(()), &format!("root ({why})")).is_some()
}

/// Returns the required part of the machine if it was found. Otherwise prints `skipped: needs
/// what`, or panics as [`root_or_skip`] does: a test must not pass because it did nothing.
pub fn found_or_skip<T>(found: Option<T>, what: &str) -> Option<T> {
    if found.is_none() {
        let must_run = std::env::var_os("SENESCE_REQUIRE_ROOT_TESTS").is_some_and(|value| value == "1");
        assert!(!must_run, "this test must not be skipped here, and needs {what}");
        eprintln!("skipped: needs {what}");
    }
    found
}
