//! The timed jobs, and their input.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

use senesce_core::{Rng, Seed};
use senesce_testkit::{Volume, run};

use crate::kinds::{Kind, Mount, seconds_of};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Of the large file.
    pub mib: usize,
    /// Files that are made, and files of the source tree.
    pub files: usize,
}

/// The timed jobs, in this order. The page cache is empty before the cold ones.
pub const JOBS: [&str; 7] = ["untar", "create", "clone", "write", "read cold", "grep cold", "rm"];

/// Files of a directory of the source tree.
const IN_ONE: usize = 32;
/// The content that `create` writes to each file.
const SMALL: usize = 4096;

/// The input that each file system receives.
pub struct Material {
    directory: tempfile::TempDir,
    size: Size,
}

/// The cost of one job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// By the clock.
    pub seconds: f64,
    /// Of processors: programs and servers, not the kernel's own threads.
    pub processor: f64,
}

impl Material {
    /// Makes a tree of text, a repository and an archive of it, and a file that cannot be
    /// compressed.
    pub fn make(size: Size) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let material = Self { directory, size };
        let mut rng = Rng::for_purpose(Seed(1), "bench-through-kernel");
        let tree = material.path("tree");
        for number in 0..size.files {
            let (above, below) = (number / IN_ONE / 16, number / IN_ONE % 16);
            let parent = tree.join(format!("part-{above:02}/section-{below:02}"));
            fs::create_dir_all(&parent).expect("the tree can be made");
            let text = write_text(&mut rng);
            fs::write(parent.join(format!("file-{number:05}.c")), text).expect("the tree can be written");
        }
        let mut file = fs::File::create(material.path("large")).expect("the large file can be made");
        let mut bytes = vec![0; 1 << 20];
        for _ in 0..size.mib {
            rng.fill(&mut bytes);
            file.write_all(&bytes).expect("the large file can be written");
        }
        let at = |name: &str| material.text(name);
        run("tar", &["-cf", &at("tree.tar"), "-C", &at("tree"), "."]);
        let git = |arguments: &[&str]| {
            let who = ["-C", &at("tree"), "-c", "user.name=bench", "-c", "user.email=bench@localhost"];
            run("git", &[&who[..], arguments].concat());
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "all"]);
        git(&["gc", "-q"]);
        material
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a plain path").to_owned()
    }
}

/// Lines of words, about as long as sources are: most have some KiB, some a hundred.
fn write_text(rng: &mut Rng) -> String {
    let lines = 1 << rng.below(11);
    let mut text = String::new();
    for _ in 0..lines + rng.below(lines) {
        for _ in 0..8 {
            text.push_str(
                ["let", "return", "struct", "static", "value", "index", "node", "(x)"][rng.below(8) as usize],
            );
            text.push(' ');
        }
        text.push_str(&format!("{:08x};\n", rng.below(1 << 32)));
    }
    text
}

fn time(mount: &Mount<'_>, work: impl FnOnce()) -> Took {
    let processor = || seconds_of("self", true) + mount.server_seconds();
    let (start, before) = (Instant::now(), processor());
    work();
    Took { seconds: start.elapsed().as_secs_f64(), processor: processor() - before }
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Times all jobs on a file system that is made for them.
pub fn measure(volume: &Volume, kind: Kind, material: &Material) -> [Took; JOBS.len()] {
    kind.make(&volume.device);
    run("sync", &[]);
    let mount = Mount::new(volume, kind);
    let (tree, small, clone, large) =
        (mount.path("tree"), mount.path("small"), mount.path("clone"), mount.path("large"));
    // The input is in memory.
    for name in ["tree.tar", "large"] {
        fs::read(material.path(name)).expect("the material can be read");
    }
    fs::create_dir(&tree).expect("a directory can be made");
    let untar = time(&mount, || {
        run("tar", &["-xf", &material.text("tree.tar"), "-C", text_of(&tree)]);
        mount.sync();
    });
    let create = time(&mount, || {
        create_files(&small, material.size.files);
        mount.sync();
    });
    let cloned = time(&mount, || {
        run("git", &["clone", "-q", "--no-hardlinks", &material.text("tree"), text_of(&clone)]);
        mount.sync();
    });
    let written = time(&mount, || {
        let (from, to) = (format!("if={}", material.text("large")), format!("of={}", text_of(&large)));
        run("dd", &[&from, &to, "bs=1M", "conv=fsync", "status=none"]);
    });
    mount.end();
    run("sync", &[]);
    let mount = Mount::new(volume, kind);
    empty_caches();
    let read = time(&mount, || {
        run("dd", &[&format!("if={}", text_of(&large)), "of=/dev/null", "bs=1M", "status=none"]);
    });
    run("cmp", &[text_of(&large), &material.text("large")]);
    empty_caches();
    let grepped = time(&mount, || {
        let counts = run("grep", &["-rc", "static value", text_of(&tree)]);
        assert_eq!(counts.lines().count(), material.size.files, "grep reads every file");
    });
    run("diff", &["-r", "-x", ".git", text_of(&tree), &material.text("tree")]);
    let removed = time(&mount, || {
        run("rm", &["-rf", text_of(&tree), text_of(&small), text_of(&clone), text_of(&large)]);
        mount.sync();
    });
    mount.end();
    [untar, create, cloned, written, read, grepped, removed]
}

fn empty_caches() {
    fs::write("/proc/sys/vm/drop_caches", "3").expect("caches can be dropped");
}

fn create_files(directory: &Path, files: usize) {
    let bytes = [7; SMALL];
    for number in 0..files {
        let parent = directory.join(format!("{:03}", number / 256));
        if number % 256 == 0 {
            fs::create_dir_all(&parent).expect("a directory can be made");
        }
        fs::write(parent.join(format!("small-{number}")), bytes).expect("a file can be made");
    }
}
