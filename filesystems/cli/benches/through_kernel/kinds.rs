//! The file systems that are compared, each mounted on one loop device.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    thread::sleep,
    time::Duration,
};

use senesce_fsapi::Timestamp;
use senesce_fuse::{KernelPages, MountOptions, Mounted};
use senesce_testkit::{Volume, run};

use crate::floor::Floor;

const SENESCE_FS: &str = env!("CARGO_BIN_EXE_senesce-fs");
/// Threads of the pass-through: the default of a mount.
const THREADS: usize = 2;

/// A measured file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file system of the kernel.
    Kernel(&'static str),
    /// The pass-through on ext4.
    Floor,
    /// An engine, with an option of its mount if there is one.
    Engine(&'static str, Option<&'static str>),
}

/// All kinds with their names in the output. The first one is the baseline.
pub const KINDS: [(&str, Kind); 10] = [
    ("ext4", Kind::Kernel("ext4")),
    ("btrfs", Kind::Kernel("btrfs")),
    ("floor", Kind::Floor),
    ("garden", Kind::Engine("garden", None)),
    ("garden-engine", Kind::Engine("garden", Some("--write-back=engine"))),
    ("garden-direct", Kind::Engine("garden", Some("--write-back=direct"))),
    ("evergreen", Kind::Engine("evergreen", None)),
    ("evergreen-kernel", Kind::Engine("evergreen", Some("--write-back=kernel"))),
    ("evergreen-engine", Kind::Engine("evergreen", Some("--write-back=engine"))),
    ("evergreen-direct", Kind::Engine("evergreen", Some("--write-back=direct"))),
];

impl Kind {
    /// Makes the file system; nothing may be mounted.
    pub fn make(self, device: &str) {
        match self {
            Self::Kernel("btrfs") => run("mkfs.btrfs", &["-q", "-f", "-K", device]),
            Self::Kernel(kind) => run(&format!("mkfs.{kind}"), &["-q", "-F", "-E", "nodiscard", device]),
            Self::Floor => run("mkfs.ext4", &["-q", "-F", "-E", "nodiscard", device]),
            Self::Engine(engine, _) => run(SENESCE_FS, &["--quiet", "mkfs", engine, "--force", device]),
        };
    }
}

enum Served {
    Kernel,
    Here(Option<Mounted>),
    Beside(Child),
}

/// A mounted file system.
pub struct Mount<'a> {
    volume: &'a Volume,
    served: Served,
    point: PathBuf,
}

impl<'a> Mount<'a> {
    pub fn new(volume: &'a Volume, kind: Kind) -> Self {
        let point = volume.mountpoint.clone();
        match kind {
            Kind::Kernel(_) => {
                volume.mount();
                Self { volume, served: Served::Kernel, point }
            }
            Kind::Floor => {
                volume.mount();
                let above = point.with_file_name("floor");
                fs::create_dir_all(&above).expect("a directory can be made");
                let floor = Floor::new(&point).expect("the pass-through opens its directory");
                let options = MountOptions {
                    source: format!("senesce-floor:{}", point.display()),
                    threads: THREADS,
                    now: Arc::new(Timestamp::default),
                    read_only: false,
                    pages: KernelPages::Through,
                    suid: false,
                    dev: false,
                };
                let mounted = Mounted::start(Arc::new(floor), &above, options).expect("the pass-through is mounted");
                Self { volume, served: Served::Here(Some(mounted)), point: above }
            }
            Kind::Engine(_, option) => {
                let server = serve(&volume.device, &point, option);
                Self { volume, served: Served::Beside(server), point }
            }
        }
    }

    /// A path below it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// Makes everything durable that the file system keeps in memory. FUSE passes `syncfs` on to no
    /// server, so a directory is synced too.
    pub fn sync(&self) {
        let root = fs::File::open(&self.point).expect("the root opens");
        rustix::fs::syncfs(&root).expect("syncfs works");
        root.sync_all().expect("the root can be synced");
    }

    /// Seconds of processors that a server beside this process took.
    pub fn server_seconds(&self) -> f64 {
        match &self.served {
            Served::Beside(server) => seconds_of(&server.id().to_string(), false),
            Served::Kernel | Served::Here(_) => 0.0,
        }
    }

    pub fn end(mut self) {
        match &mut self.served {
            Served::Kernel => {}
            Served::Here(mounted) => {
                let mounted = mounted.take().expect("it ends once");
                mounted.unmount().expect("the pass-through can be unmounted");
            }
            Served::Beside(server) => {
                run("umount", &[self.point.to_str().expect("a plain path")]);
                assert!(server.wait().expect("it ends").success(), "the engine could not be closed");
            }
        }
        if !matches!(self.served, Served::Beside(_)) {
            self.volume.unmount();
        }
        self.served = Served::Kernel;
    }
}

impl Drop for Mount<'_> {
    /// Does something only if a step failed: the server must not outlive the bench.
    fn drop(&mut self) {
        if let Served::Beside(server) = &mut self.served {
            let _ = Command::new("umount").arg("-l").arg(&self.point).status();
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn serve(device: &str, point: &Path, option: Option<&str>) -> Child {
    let point = point.to_str().expect("a plain path");
    let mut server = Command::new(SENESCE_FS)
        .args(["--quiet", "mount"])
        .args(option)
        .args([device, point])
        .stdout(Stdio::null())
        .spawn()
        .expect("senesce-fs can be run");
    while !fs::read_to_string("/proc/self/mounts").expect("mounts can be read").contains(point) {
        assert!(server.try_wait().expect("its state can be read").is_none(), "the mount ended early");
        sleep(Duration::from_millis(5));
    }
    server
}

/// Seconds of processors that a process took; with those of its children that have ended.
pub fn seconds_of(process: &str, with_children: bool) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process has a stat");
    // proc(5): after the name, which may hold spaces, field 14 is the 12th.
    let fields: Vec<&str> = text.rsplit_once(')').expect("it has a name").1.split_whitespace().collect();
    let end = if with_children { 15 } else { 13 };
    let ticks: u64 = fields[11..end].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
