//! Guests that cannot start, and runs that a guest cannot execute.

use std::{fs, os::unix::process::CommandExt, process::Command};

use senesce_testkit::root_or_skip;

use super::{
    guest::Guests,
    lab::{Done, Lab, SINGLE},
};

#[test]
fn memory_out_of_bounds_is_refused() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    for (size, says) in [("16MiB", "at least 192"), ("8191TiB", "available")] {
        let args = ["run", "plan.toml", "--out", "run", "--guest", "uml", "--guest-memory", size];
        guests.run(&args).refused(3, &[says, "--guest-memory"]);
    }
    guests.assert_nothing_left();
}

#[test]
fn a_missing_kernel_names_its_package() {
    if !root_or_skip("hiding a program") {
        return;
    }
    let lab = Lab::new();
    lab.plan(SINGLE);
    let script = "for kernel in /usr/bin/linux.uml /usr/bin/linux; do \
                  [ -e $kernel ] && mount --bind /dev/null $kernel; done; \
                  $SENESCE run plan.toml --out run --guest uml";
    lab.run_apart(script).refused(3, &["user-mode Linux is not installed", "apt-get install user-mode-linux"]);
    assert!(!lab.path("run").exists());
    lab.assert_nothing_left();
}

#[test]
fn f2fs_without_a_guest_names_the_guest() {
    let is_known = fs::read_to_string("/proc/filesystems").unwrap().contains("\tf2fs");
    if is_known || !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    lab.plan(&SINGLE.replace("64MiB", "96MiB").replace("\"ext4\"", "\"f2fs\""));
    lab.run(["run", "plan.toml", "--out", "run"]).refused(3, &["does not know the file system f2fs", "--guest uml"]);
}

#[test]
fn plans_that_need_the_host_are_refused() {
    let lab = Lab::new();
    for (from, to, says) in [
        ("empty = \"64MiB\"", "empty = { device = \"/dev/null\" }", "its volume /dev/null is on the host"),
        (
            "synthetic = { model = \"linux-like\", files = 500, commits = 8 }",
            "repo = \"https://localhost/x.git\"",
            "it has no network",
        ),
    ] {
        lab.plan(&SINGLE.replace(from, to));
        lab.run(["run", "plan.toml", "--out", "run", "--guest", "uml"]).refused(2, &[says]);
        assert!(!lab.path("run").exists());
    }
}

#[test]
fn inputs_that_a_guest_does_not_see_are_refused() {
    let lab = Lab::new();
    let synthetic = "synthetic = { model = \"linux-like\", files = 500, commits = 8 }";
    for (from, to, says) in [
        (synthetic, "trace = \"/proc/version\"", "cannot see /proc/version"),
        (synthetic, "repo = \"/sys/kernel\"", "cannot see /sys/kernel"),
        ("every = 4", "every = 4\ndevices = [\"/dev/null\"]", "cannot see /dev/null"),
    ] {
        lab.plan(&SINGLE.replace(from, to));
        lab.run(["run", "plan.toml", "--out", "run", "--guest", "uml"]).refused(2, &[says, "copy it"]);
        assert!(!lab.path("run").exists(), "{says}");
    }
}

#[test]
fn a_run_that_the_guest_refuses_leaves_no_directory() {
    let Some(guests) = Guests::set_up() else { return };
    guests.lab.plan(&SINGLE.replace("64MiB", "9MiB").replace("backend = \"memory\"\ndir = \"MEMORY\"\n", ""));
    let args = ["run", "plan.toml", "--out", "small", "--guest", "uml"];
    guests.run(&args).refused(2, &["its contents need", "hint"]);
    assert!(!guests.lab.path("small").exists());
    guests.plan("kind = \"ext4\"", "dir = \"missing\"\n");
    guests.run(&["run", "plan.toml", "--out", "new", "--guest", "uml"]).refused(2, &["missing"]);
    assert!(!guests.lab.path("new").exists());
    guests.assert_nothing_left();
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_SET: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
const REFUSE: (u32, u32) = (RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
const ALLOW: (u32, u32) = (RETURN, libc::SECCOMP_RET_ALLOW);
/// Of `struct seccomp_data`: the number of the call, the lower half of its first argument.
const CALL: u32 = 0;
const ARGUMENT: u32 = 16;

/// Filters the system calls of the command and of all that it starts. A condition that does not
/// hold goes to the last step.
fn filter(command: &mut Command, steps: &[(u32, u32)]) {
    let step = |(at, &(code, k)): (usize, &(u32, u32))| {
        let is_condition = code & 0x07 == libc::BPF_JMP;
        let jf = if is_condition { (steps.len() - at - 2) as u8 } else { 0 };
        libc::sock_filter { code: code as u16, jt: 0, jf, k }
    };
    let mut filter: Vec<libc::sock_filter> = steps.iter().enumerate().map(step).collect();
    let act = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the kernel only reads the program, which lives until the call returns.
        match unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes one system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(act) };
}

#[test]
fn without_ptrace_the_machine_is_at_fault() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let mut command = guests.command(&["run", "plan.toml", "--out", "run", "--guest", "uml"]);
    filter(&mut command, &[(LOAD, CALL), (IF_EQUAL, libc::SYS_ptrace as u32), REFUSE, ALLOW]);
    Done::of(command.output().unwrap()).refused(3, &["may not trace", "hint", "SYS_PTRACE"]);
    assert!(!guests.lab.path("run").exists());
    guests.assert_nothing_left();
}

#[test]
fn without_namespaces_the_guard_is_the_keeper() {
    let Some(guests) = Guests::set_up() else { return };
    guests.plan("kind = \"ext4\"", "");
    let mut command = guests.command(&["run", "plan.toml", "--out", "run", "--guest", "uml"]);
    // The profiles of containers forbid it.
    let namespaces = (libc::CLONE_NEWPID | libc::CLONE_NEWUSER) as u32;
    let is_clone = (IF_EQUAL, libc::SYS_clone as u32);
    filter(&mut command, &[(LOAD, CALL), is_clone, (LOAD, ARGUMENT), (IF_SET, namespaces), REFUSE, ALLOW]);
    Done::of(command.output().unwrap()).good();
    guests.assert_nothing_left();
}
