//! Modelled times of a real file system.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    time::Instant,
};

use rustix::fs::{Advice, fadvise};
use senesce_core::Nanos;
use senesce_vdisk::{Pace, VirtualClock, find_device, read_log};

use crate::bench::{Disk, pattern, write_synced};

const FILE_BYTES: usize = 400 << 20;

pub fn random_against_sequential() {
    let mut disk = Disk::new(512, "hdd-7200", Pace::Device);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    let file = disk.attached.root.join("file");
    write_synced(&file, &pattern(1, FILE_BYTES)).unwrap();

    disk.attached.remount("ext4");
    disk.server.mark("sequential").unwrap();
    assert_eq!(fs::read(&file).unwrap().len(), FILE_BYTES);
    let sequential = disk.server.mark("between").unwrap().phase;

    disk.attached.remount("ext4");
    let open = File::open(&file).unwrap();
    fadvise(&open, 0, None, Advice::Random).unwrap();
    disk.server.mark("random").unwrap();
    let blocks = FILE_BYTES as u64 / 4096;
    let mut block = [0; 4096];
    for n in 0..1000u64 {
        // A step that has no common factor with the number of blocks visits them in scattered
        // order.
        open.read_exact_at(&mut block, n * 7919 % blocks * 4096).unwrap();
    }
    let random = disk.server.mark("after").unwrap().phase;

    let per_mib = |phase: &senesce_vdisk::Phase| {
        phase.totals.elapsed().0 as f64 / 1e9 / (phase.totals.read.bytes as f64 / f64::from(1 << 20))
    };
    let (fast, slow) = (per_mib(&sequential), per_mib(&random));
    eprintln!("model: sequential {:.1} MiB/s, random 4 KiB {:.2} MiB/s", 1.0 / fast, 1.0 / slow);
    // No 7,200 rpm disk reads sequentially below 50 MB/s, nor scattered 4 KiB blocks above 4 MB/s.
    assert!(fast < 1.0 / 50.0, "sequential: {fast} s/MiB");
    assert!(slow > 1.0 / 4.0, "random: {slow} s/MiB");
    assert!(random.totals.discontinuities >= 900, "{:?}", random.totals);
    drop(open);
    disk.end();
}

pub fn the_log_gives_the_same_times_again() {
    let mut disk = Disk::new(320, "hdd-7200", Pace::Device);
    let path = disk.place.file("log");
    disk.server.start_log(&path).unwrap();
    disk.attached.mkfs("xfs");
    disk.attached.mount("xfs");
    for n in 0..50 {
        write_synced(&disk.attached.root.join(format!("{n}")), &pattern(n, 30_000)).unwrap();
    }
    disk.attached.remount("xfs");
    disk.server.mark("grep").unwrap();
    for n in 0..50 {
        fs::read(disk.attached.root.join(format!("{n}"))).unwrap();
    }
    disk.attached.unmount();
    let end = disk.server.stop_log().unwrap();
    let log = read_log(&path).unwrap();
    assert_eq!((log.torn_bytes, log.marks.len()), (0, 1));
    assert_eq!(log.header.device, end.device);
    // The loop device was read before the log started; the model continues from that state.
    let mut again = VirtualClock::new(find_device("plain").unwrap(), Pace::Device);
    let totals = end.totals;
    let logged = log.requests.len() as u64;
    let all = totals.read.requests + totals.write.requests + totals.discard.requests + totals.flush.requests;
    assert!(logged > 200 && logged <= all, "{logged} of {all}");
    for pair in log.requests.windows(2) {
        assert_eq!(pair[1].0.issued, pair[0].1, "one after the other, without a gap");
    }
    for (request, _) in &log.requests {
        again.serve(request.op, request.sector, request.sectors, Nanos(0));
    }
    let phase_sum: u64 = log.requests.iter().map(|(request, done)| done.0 - request.issued.0).sum();
    assert_eq!(phase_sum + log.header.began_ns, end.virtual_ns);
    disk.end();
}

pub fn real_time() {
    // Virtual time zero is the first request, which comes after this.
    let begin = Instant::now();
    let mut disk = Disk::new(64, "hdd-7200", Pace::RealTime);
    disk.attached.mkfs("ext4");
    disk.attached.mount("ext4");
    for n in 0..20 {
        write_synced(&disk.attached.root.join(format!("{n}")), &pattern(n, 5000)).unwrap();
    }
    disk.attached.unmount();
    let time = disk.server.time().unwrap();
    let real_ns = begin.elapsed().as_nanos() as u64;
    let busy_ns = time.virtual_ns - time.totals.idle_ns;
    assert!(busy_ns > 20_000_000, "twenty syncs take a disk a while: {busy_ns} ns");
    // The last request may still be delayed: 100 ms is more than the longest one.
    let due_ns = time.virtual_ns.saturating_sub(100_000_000);
    assert!(real_ns >= due_ns, "{} ns of the disk in {real_ns} ns", time.virtual_ns);
    disk.end();
}
