//! The operations of aging (create, reserve, close; unlink) by plain system calls and by io_uring.
//!
//! Each way works in directories of its own on one file system. The ways alternate, so that a busy
//! machine disturbs all of them. With io_uring, a file is a chain of linked entries with a direct
//! descriptor, and 64 chains at a time go to the kernel. Processor time is that of the whole
//! process, with the kernel's worker threads for it.
//!
//! Environment: `SENESCE_BENCH_DIR` is an empty directory of the file system to try (default: a
//! temporary one). `SENESCE_BENCH_TURNS` is the number of turns of each way (default: 40). A turn
//! creates 1,000 files and removes 1,000.

use std::{env, ffi::CString, fs, os::fd::AsRawFd, path::PathBuf, thread, time::Instant};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::{
    fd::BorrowedFd,
    fs::{AtFlags, FallocateFlags, Mode, OFlags},
};
use senesce_core::{Rng, Seed};

const FILES: usize = 1_000;
const DIRECTORIES: usize = 20;
/// Chains in flight.
const CHAINS: usize = 64;
const FLAGS: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY);

/// Paths of files with their sizes.
type Files = Vec<(CString, u64)>;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Plain,
    Threads,
    Uring,
}

fn main() {
    // `cargo test` runs benches too, without this argument.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let dir = env::var_os("SENESCE_BENCH_DIR").map_or(temporary.path().to_owned(), PathBuf::from);
    let turns: usize = env::var("SENESCE_BENCH_TURNS").map_or(40, |turns| turns.parse().unwrap());
    let ways = [(Way::Plain, "plain"), (Way::Threads, "plain, 2 threads"), (Way::Uring, "io_uring")];
    let roots = ways.map(|(_, name)| {
        let root = dir.join(name);
        (0..DIRECTORIES).for_each(|at| fs::create_dir_all(root.join(format!("d{at}"))).unwrap());
        fs::File::open(root).unwrap()
    });
    let mut ring = IoUring::new(4 * CHAINS as u32).unwrap();
    ring.submitter().register_files_sparse(CHAINS as u32).unwrap();
    let mut rng = Rng::for_purpose(Seed(1), "uring");
    let mut old = Files::new();
    // Wall seconds and processor seconds of each turn.
    let mut figures = ways.map(|_| Vec::new());
    for turn in 0..turns {
        let name = |at: usize| CString::new(format!("d{}/f{turn}-{at}", at % DIRECTORIES)).unwrap();
        let new: Files = (0..FILES).map(|at| (name(at), (512 << rng.below(10)) & !511)).collect();
        for step in 0..ways.len() {
            let at = (turn + step) % ways.len();
            let root = rustix::fd::AsFd::as_fd(&roots[at]);
            let (began, cpu) = (Instant::now(), cpu_seconds());
            match ways[at].0 {
                Way::Plain => plain(root, &new, &old),
                Way::Threads => thread::scope(|scope| {
                    // Each thread has half of the directories.
                    for half in 0..2 {
                        let part = |files: &Files| -> Files {
                            files.iter().enumerate().filter(|(at, _)| at % 2 == half).map(|(_, f)| f.clone()).collect()
                        };
                        let (new, old) = (part(&new), part(&old));
                        scope.spawn(move || plain(root, &new, &old));
                    }
                }),
                Way::Uring => by_ring(&mut ring, root, &new, &old),
            }
            figures[at].push((began.elapsed().as_secs_f64(), cpu_seconds() - cpu));
            rustix::fs::syncfs(root).unwrap();
        }
        old = new;
    }
    for ((_, name), turns) in ways.iter().zip(&figures) {
        let mut ratios: Vec<f64> = figures[0].iter().zip(turns).map(|(plain, this)| plain.0 / this.0).collect();
        ratios.sort_by(f64::total_cmp);
        let quartile = |n: usize| ratios[ratios.len() * n / 4];
        let files = (turns.len() * FILES) as f64;
        println!(
            "{name:<17} {:.2} times the speed of plain calls (median; quartiles {:.2} and {:.2}); {:.0} files/s, {:.1} us of \
             processor time a file",
            quartile(2),
            quartile(1),
            quartile(3),
            files / turns.iter().map(|turn| turn.0).sum::<f64>(),
            1e6 * turns.iter().map(|turn| turn.1).sum::<f64>() / files,
        );
    }
}

fn plain(root: BorrowedFd<'_>, new: &Files, old: &Files) {
    for (path, len) in new {
        let file = rustix::fs::openat(root, path, FLAGS, Mode::from_raw_mode(0o644)).unwrap();
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, *len).unwrap();
    }
    for (path, _) in old {
        rustix::fs::unlinkat(root, path, AtFlags::empty()).unwrap();
    }
}

fn by_ring(ring: &mut IoUring, root: BorrowedFd<'_>, new: &Files, old: &Files) {
    let directory = types::Fd(root.as_raw_fd());
    for files in new.chunks(CHAINS) {
        let chain = |(slot, (path, len)): (usize, &(CString, u64))| {
            let slot = slot as u32;
            let place = types::DestinationSlot::try_from_slot_target(slot).unwrap();
            let open = opcode::OpenAt::new(directory, path.as_ptr()).flags(FLAGS.bits() as i32).mode(0o644);
            [
                open.file_index(Some(place)).build().flags(squeue::Flags::IO_LINK),
                opcode::Fallocate::new(types::Fixed(slot), *len).build().flags(squeue::Flags::IO_LINK),
                opcode::Close::new(types::Fixed(slot)).build(),
            ]
        };
        submit(ring, files.iter().enumerate().flat_map(chain).collect());
    }
    for files in old.chunks(CHAINS) {
        submit(ring, files.iter().map(|(path, _)| opcode::UnlinkAt::new(directory, path.as_ptr()).build()).collect());
    }
}

/// Submits entries to the kernel and waits until all are complete.
fn submit(ring: &mut IoUring, entries: Vec<squeue::Entry>) {
    // SAFETY: the entries point to paths of the caller's files, which outlive the wait below.
    unsafe { ring.submission().push_multiple(&entries) }.unwrap();
    ring.submit_and_wait(entries.len()).unwrap();
    let mut done = 0;
    for completion in ring.completion() {
        assert!(completion.result() >= 0, "{}", std::io::Error::from_raw_os_error(-completion.result()));
        done += 1;
    }
    assert_eq!(done, entries.len());
}

/// User and system seconds of the process, from /proc (in ticks of 10 ms).
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
