//! A program that uses a mount: a second process of this test. It executes the system calls that
//! its parent requests.
//!
//! The parent serves the mount, so it must not map files of it. To unmap a file, the kernel waits
//! for the server while it holds the lock of the process's memory, which the server also needs.

use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{fs::FileExt, process::ExitStatusExt},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use super::syscalls;

const IS_CHILD: &str = "SENESCE_TEST_PROGRAM";
/// Starts each answer, because the test harness prints lines of its own.
const ANSWER: &str = "@ ";

/// The side of the parent.
pub struct Program(RefCell<Pipes>);

struct Pipes {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Pipes {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program::programs_write_the_given_bytes", "--nocapture"])
            .env(IS_CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, requests, answers }
    }

    /// `None`: the program died.
    fn call(&mut self, request: &str, data: &[u8]) -> Option<io::Result<Vec<u8>>> {
        writeln!(self.requests, "{request} {}", data.len()).and_then(|()| self.requests.write_all(data)).ok()?;
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).ok()? == 0 {
                return None;
            }
            // The first answer may follow the harness's line without a newline.
            let Some((_, answer)) = line.trim_end().split_once(ANSWER) else { continue };
            return Some(match answer.split_once(' ').unwrap() {
                ("errno", number) => Err(io::Error::from_raw_os_error(number.parse().unwrap())),
                ("error", text) => Err(io::Error::other(text.to_owned())),
                (_, len) => {
                    let mut data = vec![0; len.parse().unwrap()];
                    self.answers.read_exact(&mut data).map(|()| data)
                }
            });
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Program {
    pub fn start() -> Self {
        Self(RefCell::new(Pipes::start()))
    }

    /// Errors: those of the system call. A store to an unreadable page kills the program, and
    /// returns `EFAULT`.
    fn call(&self, request: &str, data: &[u8]) -> io::Result<Vec<u8>> {
        let mut pipes = self.0.borrow_mut();
        if let Some(done) = pipes.call(request, data) {
            return done;
        }
        let ended = pipes.child.wait()?;
        assert_eq!(ended.signal(), Some(libc::SIGBUS), "{request}: {ended}");
        *pipes = Pipes::start();
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }

    /// Writes the contents of a file in one of the [ways](syscalls::WAYS).
    pub fn put(&self, way: &str, path: &Path, data: &[u8]) -> io::Result<()> {
        self.call(&format!("{way} {}", path.display()), data).map(drop)
    }

    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(&format!("read {}", path.display()), &[])
    }

    pub fn read_by_mapping(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(&format!("map {}", path.display()), &[])
    }

    /// Opens a file for the calls below; creates it if necessary.
    pub fn open(&self, path: &Path) -> io::Result<()> {
        self.call(&format!("open {}", path.display()), &[]).map(drop)
    }

    /// Writes to the open file.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call(&format!("write-at {offset}"), data).map(drop)
    }

    /// Stores to the open file through a mapping, and syncs the mapping.
    pub fn store_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.call(&format!("store-at {offset}"), data).map(drop)
    }

    /// Syncs the open file.
    pub fn sync(&self) -> io::Result<()> {
        self.call("sync -", &[]).map(drop)
    }

    /// Closes the open file.
    pub fn close(&self) -> io::Result<()> {
        self.call("shut -", &[]).map(drop)
    }
}

/// The side of the child.
fn answer_all() {
    let (mut requests, mut answers) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut open) = (String::new(), None);
    while requests.read_line(&mut line).unwrap() > 0 {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        let [verb, about, len] = words[..] else { panic!("{line}") };
        let mut data = vec![0; len.parse().unwrap()];
        requests.read_exact(&mut data).unwrap();
        match answer(verb, about, &data, &mut open) {
            Ok(data) => {
                writeln!(answers, "{ANSWER}ok {}", data.len()).unwrap();
                answers.write_all(&data).unwrap();
            }
            Err(error) => match error.raw_os_error() {
                Some(errno) => writeln!(answers, "{ANSWER}errno {errno}").unwrap(),
                None => writeln!(answers, "{ANSWER}error {error}").unwrap(),
            },
        }
        answers.flush().unwrap();
        line.clear();
    }
}

fn answer(verb: &str, about: &str, data: &[u8], open: &mut Option<File>) -> io::Result<Vec<u8>> {
    let path = Path::new(about);
    if let Some((_, way)) = syscalls::WAYS.iter().find(|(name, _)| *name == verb) {
        return way(path, data).map(|()| Vec::new());
    }
    let none = || io::Error::other("no file is open");
    match verb {
        "read" => return fs::read(path),
        "map" => return syscalls::read_by_mapping(path),
        "open" => *open = Some(OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?),
        "write-at" => open.as_ref().ok_or_else(none)?.write_all_at(data, about.parse().unwrap())?,
        "store-at" => syscalls::store(open.as_ref().ok_or_else(none)?, about.parse().unwrap(), data)?,
        "sync" => open.as_ref().ok_or_else(none)?.sync_all()?,
        "shut" => syscalls::close(open.take().ok_or_else(none)?)?,
        _ => panic!("{verb}"),
    }
    Ok(Vec::new())
}

/// The other tests also start this test.
#[test]
fn programs_write_the_given_bytes() {
    if std::env::var_os(IS_CHILD).is_some() {
        return answer_all();
    }
    let dir = tempfile::tempdir().unwrap();
    let data: Vec<u8> = (0..70_001u32).map(|at| (at / 7) as u8).collect();
    let program = Program::start();
    for (way, _) in syscalls::WAYS {
        let path = dir.path().join(way);
        program.put(way, &path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == data, "{way}");
        assert!(program.read(&path).unwrap() == data && program.read_by_mapping(&path).unwrap() == data, "{way}");
        let missing = program.put(way, &dir.path().join("missing/file"), &data).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT), "{way}");
    }
    program.open(&dir.path().join("open")).unwrap();
    program.write_at(0, &data).unwrap();
    program.store_at(4096, b"stored").unwrap();
    program.sync().unwrap();
    program.close().unwrap();
    let found = fs::read(dir.path().join("open")).unwrap();
    assert!(found[4096..].starts_with(b"stored") && found[..4096] == data[..4096] && found[4102..] == data[4102..]);
    assert!(program.close().is_err(), "no file is open");
}
