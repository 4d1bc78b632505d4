//! Real disks in virtual time, with real file systems on them. Needs root.
//!
//! The program is its own server, guard and (for tests that kill one) parent: see `main`. Tests run
//! one after the other. Each has a watchdog that aborts the disk's connection, so that a fault
//! fails a test instead of hanging it.

mod bench;
mod file_systems;
mod killed;
mod pressure;
mod refused;
mod time;
mod trace;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("vdisk-serve") => return senesce_vdisk::serve_stdio(Arc::new(bench::Monotonic)),
        Some("parent") => return killed::be_a_parent(),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests: [(&str, fn()); 14] = [
        ("file systems: ext4 lives on a virtual disk", file_systems::ext4),
        ("file systems: xfs lives on a virtual disk", file_systems::xfs),
        ("file systems: btrfs lives on a virtual disk", file_systems::btrfs),
        ("time: random reads cost a hard disk far more than sequential ones", time::random_against_sequential),
        ("time: the log gives the same times again", time::the_log_gives_the_same_times_again),
        ("time: in real time nothing is answered before it is due", time::real_time),
        ("trace: the log is the block trace of the same reading", trace::log_equals_block_trace),
        ("killed: a dead server fails all requests and nothing hangs", killed::server),
        ("killed: a server that stands still is given up", killed::stopped_server),
        ("killed: the disk of a dead parent is served until it falls out of use", killed::parent),
        ("killed: the disk of a dead parent ends with the grace period", killed::parent_beyond_grace),
        ("pressure: a writer finishes in a group smaller than its data", pressure::limited_writer),
        ("refused: what would hang or lose something is refused", refused::in_use_and_on_itself),
        ("refused: a disk that cannot start leaves nothing", refused::what_cannot_start),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            if senesce_testkit::root_or_skip("FUSE mounts and loop devices") {
                test();
            }
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}
