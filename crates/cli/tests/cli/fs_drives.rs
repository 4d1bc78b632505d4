//! Drives of a garden as a user has them: gone, replaced, filled, scrubbed, too old; named devices,
//! and what is not touched.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead, BufReader},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
};

use senesce_testkit::root_or_skip;
use serde_json::Value;

use super::{
    disk::{Disk, Mount, must},
    lab::{Done, Lab, mount_points},
};

/// A garden of three data drives and one of parity.
fn mkfs(lab: &Lab, name: &str, size: &str, seed: &str) {
    lab.run(["fs", "mkfs", "garden", name, "--size", size, "--data-drives", "3", "--seed", seed]).good();
}

/// Files in it, without a mount.
fn fill(lab: &Lab, name: &str) {
    let on = format!("garden:{name}");
    let mut args = vec!["--quiet", "age", "mail", "--on", &on, "--set", "cycles=2", "--set", "mailboxes=3"];
    args.extend(["--set", "messages=40", "--set", "operations=300", "--dir", "tmp"]);
    lab.run(&args).good();
}

fn check(lab: &Lab, args: &[&str]) {
    let told = lab.run([&["fs", "check"], args].concat()).good().stdout;
    assert!(told.starts_with("as it is: clean") && !told.contains("without drive"), "{told}");
}

/// Overwrites blocks of a drive after its label and superblocks.
fn ruin(path: &Path, slots: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&vec![0x5a; 4160 * slots as usize], 4160 * 4).unwrap();
}

fn json(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn missing_drive_is_replaced_and_scrub_repairs() {
    let lab = Lab::new();
    mkfs(&lab, "g", "24MiB", "7");
    lab.run(["fs", "replace", "g", "1"])
        .refused(2, &["drive 1 is not missing: it is g/drive-01.img", "hint: only a drive that is"]);
    lab.run(["fs", "replace", "g", "9"]).refused(2, &["there is no drive 9", "has drives 0 to 3"]);
    lab.run(["fs", "replace", "gone", "1"]).refused(2, &["at gone: it does not exist"]);
    let told = lab.run(["fs", "rebuild", "garden:g"]).good().stdout;
    assert_eq!(told, "g: no drive is being filled\n");

    fs::rename(lab.path("g/drive-01.img"), lab.path("old.img")).unwrap();
    fill(&lab, "g"); // without it
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains("drive 1 is MISSING: it was not given"), "{told}");
    let told = json(&lab.run(["fs", "stat", "g", "--json"]).good().stdout);
    assert!(told.contains(r#""drive":1,"group":0,"medium":"hdd","parity":false,"state":"missing""#), "{told}");

    // Drives that cannot take its place, none of which is written to.
    mkfs(&lab, "other", "24MiB", "8");
    fs::write(lab.path("short"), [0; 100_000]).unwrap();
    fs::write(lab.path("letter"), vec![b'x'; 20 << 20]).unwrap();
    let with = |path: &str, more: &[&str]| lab.run([&["fs", "replace", "g", "1", "--with", path], more].concat());
    with("short", &[]).refused(1, &["short", "it has 100000 bytes, and ", " are needed"]);
    with("letter", &[]).refused(2, &["letter holds data", "it was not touched", "--force"]);
    with("other/drive-01.img", &[]).refused(2, &["holds a drive of a garden of senesce", "--force"]);
    with("g/drive-02.img", &["--force"]).refused(2, &["g/drive-02.img is drive 2 of this garden"]);
    with("g/log.img", &["--force"]).refused(3, &["g/log.img is in use"]);
    with(".", &[]).refused(2, &["neither a file nor a block device"]);
    assert!(fs::read(lab.path("letter")).unwrap() == vec![b'x'; 20 << 20]);
    check(&lab, &["other"]);

    // The old one comes back: too old, and taken only if that is said.
    fs::rename(lab.path("old.img"), lab.path("g/drive-01.img")).unwrap();
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains("not used: g/drive-01.img (too old"), "{told}");
    lab.run(["fs", "replace", "g", "1"]).refused(2, &["holds a drive of a garden", "--force"]);
    let told = json(&lab.run(["fs", "replace", "g", "1", "--force", "--json"]).good().stdout);
    assert!(told.starts_with(r#"{"drives":[{"drive":1,"of":2048,"stripes":2048}]"#), "{told}");
    check(&lab, &["g"]);

    // A new one, of a place of its own: the directory leads to it.
    fs::remove_file(lab.path("g/drive-03.img")).unwrap();
    let done = with_new(&lab, "3", "new.img");
    assert!(done.stdout.contains("g: drive 3 holds 2048 of 2048 stripes"), "{}", done.stdout);
    assert_eq!(fs::canonicalize(lab.path("g/drive-03.img")).unwrap(), fs::canonicalize(lab.path("new.img")).unwrap());
    check(&lab, &["g"]);

    ruin(&lab.path("g/drive-02.img"), 600);
    lab.run(["fs", "check", "g"]).refused(1, &["is damaged"]);
    let told = lab.run(["fs", "scrub", "g"]).good().stdout;
    assert!(told.starts_with("g: 2048 of 2048 stripes; ") && told.ends_with(" more\n"), "{told}");
    assert!(told.contains("  put right: ") && told.contains(", 0 lost\n"), "{told}");
    check(&lab, &["g"]);
    let told = json(&lab.run(["fs", "scrub", "g", "--json", "--from", "2000"]).good().stdout);
    assert!(told.contains(r#""from":2000"#) && told.contains(r#""repaired":[],"stripes":2048"#), "{told}");
    lab.run(["fs", "scrub", "g", "--from", "2048"]).refused(1, &["there is no stripe 2048"]);

    // Two of a stripe: reported, and nothing is guessed.
    ruin(&lab.path("g/drive-00.img"), 600);
    ruin(&lab.path("g/drive-02.img"), 600);
    let done = lab.run(["fs", "scrub", "g"]);
    done.refused(1, &["are damaged and cannot be rebuilt"]);
    assert!(done.stdout.contains("  lost: "), "{}", done.stdout);
}

fn with_new(lab: &Lab, number: &str, path: &str) -> Done {
    // It must exist or be made in a directory that does.
    lab.run(["fs", "replace", "g", number, "--with", path]).good()
}

#[test]
fn interrupted_fill_resumes() {
    let lab = Lab::new();
    let interrupted = (0..5).any(|round| {
        let _ = fs::remove_dir_all(lab.path("g"));
        mkfs(&lab, "g", "192MiB", "7");
        fill(&lab, "g");
        fs::remove_file(lab.path("g/drive-02.img")).unwrap();
        let mut command = lab.command();
        command.args(["fs", "replace", "g", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("g/drive-02.img is now drive 2 of g"), "{line}");
        must("kill", &["-INT", &child.id().to_string()]);
        let done = Done::of(child.wait_with_output().unwrap());
        println!("round {round}: {} {}", done.code, done.stdout);
        done.code == 130 && done.stdout.contains("`senesce fs rebuild` continues from there")
    });
    assert!(interrupted, "it is never interrupted in the middle");
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(told.contains("drive 2, g/drive-02.img, is being filled: "), "{told}");
    lab.run(["fs", "replace", "g", "2"]).refused(2, &["was replaced and holds", "`senesce fs rebuild` continues"]);
    let told = lab.run(["fs", "rebuild", "g"]).good().stdout;
    assert!(told.contains("g: drive 2 holds 16384 of 16384 stripes"), "{told}");
    check(&lab, &["g"]);
}

/// The arguments that name these drives and the log.
fn named<'a>(drives: &[&'a str], log: &'a str) -> Vec<&'a str> {
    drives.iter().flat_map(|drive| ["--drive", drive]).chain(["--log", log]).collect()
}

#[test]
fn mkfs_refuses_files_with_contents() {
    let lab = Lab::new();
    let all = named(&["a", "b", "c"], "l");
    let mkfs = |args: &[&str], more: &[&str]| lab.run([&["fs", "mkfs", "garden"], args, more].concat());
    mkfs(&all, &[]).refused(2, &["a does not exist, and its size is not known", "--size"]);
    mkfs(&named(&["a", "b", "a"], "l"), &["--size", "16MiB"]).refused(2, &["a and a are the same"]);
    mkfs(&named(&["a"], "l"), &["--size", "16MiB"])
        .refused(2, &["1 drive(s) do not fill RAID groups of 1 data drive(s) and one"]);
    assert!(!lab.path("a").exists() && !lab.path("l").exists());
    let made = mkfs(&all, &["--size", "16MiB"]).good().stdout;
    assert!(made.contains("a + b + c: 16 MiB in 3 drives, one of them parity"), "{made}");
    check(&lab, &all);

    mkfs(&all, &[]).refused(2, &["holds a drive of a garden of senesce; it was not touched"]);
    // Several groups, on files that are there.
    let six = named(&["a", "b", "c", "d", "e", "f"], "l");
    for name in ["d", "e", "f"] {
        fs::File::create(lab.path(name)).unwrap().set_len(12 << 20).unwrap();
    }
    let made = mkfs(&six, &["--data-drives", "2", "--force"]).good().stdout;
    assert!(made.contains("in 6 drives in 2 RAID groups, one of each parity"), "{made}");
    check(&lab, &six);
    let five = named(&["a", "b", "d", "e", "f"], "l");
    let told = lab.run([&["fs", "stat"][..], &five].concat()).good().stdout;
    assert!(told.contains("drive 2 is MISSING") && told.contains("RAID group 1: "), "{told}");

    // A log that is a text, and one that is too short.
    fs::write(lab.path("text"), "dear").unwrap();
    mkfs(&named(&["a", "b"], "text"), &["--force", "--no-parity"]).refused(1, &["text", "it has 4 bytes"]);
    mkfs(&named(&["text", "b"], "l"), &["--force"]).refused(2, &["is too small"]);
    assert_eq!(fs::read_to_string(lab.path("text")).unwrap(), "dear");
}

#[test]
fn mkfs_refuses_devices_in_use() {
    if !root_or_skip("loop devices") {
        return;
    }
    let lab = Lab::new();
    let disks: Vec<Disk> = (0..4).map(|number| Disk::new(&lab.path(format!("disk-{number}")), 16)).collect();
    let log = Disk::new(&lab.path("disk-log"), 4);
    let names: Vec<&str> = disks.iter().map(|disk| &*disk.device).collect();
    let all = named(&names, &log.device);
    let run = |verb: &[&str], args: &[&str], more: &[&str]| lab.run([&["fs"], verb, args, more].concat());
    let mkfs = |more: &[&str]| run(&["mkfs", "garden"], &all, more);

    // Of another user.
    disks[1].format_ext4();
    mkfs(&[]).refused(3, &[names[1], "holds an ext2, ext3 or ext4 file system; it was not touched", "--force"]);
    let mount = Mount::new(&[names[1]], lab.path("precious"));
    fs::write(mount.point.join("letter"), "dear").unwrap();
    for force in [&[][..], &["--force"]] {
        mkfs(force).refused(3, &[names[1], "is in use and was not touched", "is mounted on"]);
    }
    assert_eq!(fs::read_to_string(mount.point.join("letter")).unwrap(), "dear");
    drop(mount);
    let image = lab.path("disk-0").to_string_lossy().into_owned();
    run(&["mkfs", "garden"], &named(&[&image, names[1]], &log.device), &["--force"])
        .refused(3, &["disk-0 is in use and was not touched: the loop device /dev/loop", "is attached to"]);
    run(&["mkfs", "garden"], &named(&[names[0], names[0]], &log.device), &["--force"])
        .refused(2, &["and", "are the same", "for each drive and for the log"]);
    run(&["mkfs", "garden"], &named(&[names[0], names[2]], names[0]), &[]).refused(2, &["are the same"]);
    mkfs(&["--size", "16MiB", "--force"]).refused(2, &["--size is the size of new drives"]);
    mkfs(&["--data-drives", "2", "--force"])
        .refused(2, &["4 drive(s) do not fill RAID groups of 2 data drive(s) and one"]);

    let made = mkfs(&["--force"]).good().stdout;
    assert!(
        made.contains(
            "in 4 drives, one of them parity; two copies of the log: both on one device of 4 MiB; volume main"
        ),
        "{made}"
    );
    assert_eq!(must("sh", &["-c", &format!("blkid -p {} || true", names[1])]), "", "nothing of the old is left");
    run(&["check"], &all, &[]).good();
    mkfs(&[]).refused(3, &["holds a drive of a garden of senesce", "--force"]);

    // Mounted by their names, in another order.
    fs::create_dir(lab.path("mnt")).unwrap();
    let mut other = names.clone();
    other.reverse();
    let mut child = lab.command().args(["fs", "mount"]).args(named(&other, &log.device)).arg("mnt").spawn().unwrap();
    let point = lab.path("mnt").to_string_lossy().into_owned();
    while !mount_points().contains(&point) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    fs::write(lab.path("mnt/file"), vec![7; 3 << 20]).unwrap();
    for (verb, more) in [(&["mkfs", "garden"][..], &["--force"][..]), (&["rebuild"], &[])] {
        run(verb, &all, more).refused(3, &["hint: "]);
    }
    // The process that serves them is found by any of them.
    let told = run(&["stat"], &named(&names[2..3], &log.device), &[]).good().stdout;
    assert!(told.contains(&format!("is mounted on {point}")), "{told}");
    run(&["scrub"], &all, &[]).good();
    senesce_testkit::unmount(point.as_ref());
    assert!(child.wait().unwrap().success());
    check(&lab, &all);

    // One of them gone, another in its place.
    let less = named(&names[1..], &log.device);
    let told = run(&["stat"], &less, &[]).good().stdout;
    assert!(told.contains("drive 0 is MISSING"), "{told}");
    run(&["replace"], &less, &["0"]).refused(2, &["replace needs a new drive", "--with"]);
    let spare = Disk::new(&lab.path("disk-spare"), 16);
    run(&["replace"], &less, &["0", "--with", &spare.device]).good();
    let mut with_spare = names.clone();
    with_spare[0] = &spare.device;
    check(&lab, &named(&with_spare, &log.device));
    run(&["check"], &named(&[], &log.device), &[]).refused(2, &["--drive"]);
}

#[test]
fn change_reaches_a_consistency_point_by_itself() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g", "24MiB", "7");
    fs::create_dir(lab.path("mnt")).unwrap();
    let point = lab.path("mnt").to_string_lossy().into_owned();
    let mut child = lab.command().args(["fs", "mount", "g", "mnt", "--point-every", "1"]).spawn().unwrap();
    while !mount_points().contains(&point) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let drive = fs::File::open(lab.path("g/drive-00.img")).unwrap();
    let superblocks = || {
        let mut bytes = vec![0; 3 * 4160];
        drive.read_exact_at(&mut bytes, 4160).unwrap();
        bytes
    };
    let before = superblocks();
    fs::write(lab.path("mnt/file"), "content").unwrap();
    while superblocks() == before {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut command = Command::new("umount");
    assert!(command.arg(&point).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    check(&lab, &["g"]);
}

/// The requests to a medium are the sum of those to its drives, and all media together are all
/// requests.
fn assert_chains_by_medium_and_drive(told: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {told}"));
    let media = told["media"].as_array().unwrap();
    let names: Vec<&str> = media.iter().map(|medium| medium["medium"].as_str().unwrap()).collect();
    assert_eq!(names, ["hdd", "ssd", "objects"]);
    let drives = told["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 8);
    for span in ["since_opening", "last_consistency_point"] {
        for kind in ["write_chains", "read_chains", "parity_read_chains", "cleaning_read_chains"] {
            for count in ["blocks", "requests"] {
                let of_medium = |medium: &Value| {
                    let is_in = |drive: &&Value| {
                        drive["medium"] == medium["medium"]
                            && (kind == "parity_read_chains" || drive["parity"] == false)
                    };
                    let sum: u64 = drives.iter().filter(is_in).map(|drive| number(&drive[span][kind][count])).sum();
                    assert_eq!(number(&medium[span][kind][count]), sum, "{span} {kind} {count} of {medium}");
                    sum
                };
                let all: u64 = media[..2].iter().map(of_medium).sum();
                assert_eq!(number(&told[span][kind][count]), all, "{span} {kind} {count}");
            }
        }
    }
    for (medium, name) in media[..2].iter().zip(names) {
        assert!(
            number(&medium["since_opening"]["write_chains"]["requests"]) > 0,
            "nothing was written to {name}: {told}"
        );
    }
    let parity = drives.iter().find(|drive| drive["parity"] == true).unwrap();
    assert!(number(&parity["since_opening"]["write_chains"]["blocks"]) > 0, "{parity}");
    assert_eq!(media[2]["since_opening"]["write_chains"]["blocks"], 0);
}

#[test]
fn flash_pool_reports_disks_and_flash() {
    let lab = Lab::new();
    let mkfs = |args: &[&str]| lab.run([&["fs", "mkfs", "garden"], args].concat());
    let made =
        mkfs(&["g", "--size", "64MiB", "--data-drives", "3", "--flash-size", "12MiB", "--seed", "7"]).good().stdout;
    assert!(made.contains("in 4 drives, one of them parity, and of flash 4 drives, one of them parity,"), "{made}");
    let age = ["--quiet", "age", "fsfb", "--on", "garden:g", "--until", "fullness=50%,turnover=1", "--dir", "tmp"];
    let aged: Value = serde_json::from_str(&lab.run([&age[..], &["--json"]].concat()).good().stdout).unwrap();
    assert_chains_by_medium_and_drive(&aged["drives"]);
    mkfs(&["h", "--size", "64MiB", "--data-drives", "3", "--flash-size", "12MiB", "--seed", "7"]).good();
    let mut age = vec!["--quiet", "age", "mail", "--on", "garden:h", "--set", "cycles=2", "--set", "mailboxes=3"];
    age.extend(["--set", "messages=40", "--set", "operations=300", "--dir", "tmp"]);
    let told = lab.run(&age).good().stdout;
    let mut lines =
        told.lines().filter(|line| line.starts_with("  chains, hdd: ") || line.starts_with("  chains, ssd: "));
    assert!(lines.any(|line| line.contains(": write ") && line.contains(" requests)")), "{told}");
    check(&lab, &["g"]);
    let told = lab.run(["fs", "stat", "g", "-v"]).good().stdout;
    assert!(told.contains("  chains, hdd: read "), "{told}");
    let rows: Vec<&str> = told.lines().skip_while(|line| !line.contains("parity read chain")).collect();
    assert!(rows.len() == 9 && rows[5].contains("ssd"), "eight drives and a heading: {told}");
    let told = lab.run(["fs", "stat", "g"]).good().stdout;
    assert!(!told.contains("parity read chain"), "{told}");
    assert!(told.contains("RAID group 0: hdd, ") && told.contains("RAID group 1: ssd, "), "{told}");
    let told = json(&lab.run(["fs", "stat", "g", "--json"]).good().stdout);
    assert!(told.contains(r#""drive":3,"group":0,"medium":"hdd","parity":true"#), "{told}");
    assert!(told.contains(r#""drive":4,"group":1,"medium":"ssd","parity":false"#), "{told}");
    let told = lab.run(["fs", "dump", "g", "label"]).good().stdout;
    // An area is an eighth of its own group's stripes, however small another group is.
    let row = |words: &str| told.lines().any(|line| line.split_whitespace().eq(words.split(' ')));
    assert!(row("0 3 1 hdd 682 5462") && row("1 3 1 ssd 128 1024"), "{told}");
    // A drive of either group is replaced.
    for (number, image) in [("1", "g/drive-01.img"), ("6", "g/drive-06.img")] {
        fs::remove_file(lab.path(image)).unwrap();
        lab.run(["fs", "replace", "g", number]).good();
    }
    check(&lab, &["g"]);

    let named = ["--drive", "a", "--drive", "b", "--flash-drive", "c", "--flash-drive", "d", "--log", "l"];
    mkfs(&[&named[..], &["--size", "16MiB"]].concat())
        .refused(2, &["c does not exist, and its size is not known", "--flash-size"]);
    mkfs(&[&named[..6], &named[8..], &["--size", "16MiB", "--flash-size", "8MiB"]].concat())
        .refused(2, &["1 SSDs make no RAID group: it has 1 to 64 data drives and one parity drive"]);
    mkfs(&[&named[..], &["--size", "16MiB", "--flash-size", "8MiB", "--medium", "ssd"]].concat())
        .refused(2, &["--flash adds SSDs to disks"]);
    mkfs(&[&named[..], &["--size", "16MiB", "--flash-size", "8MiB"]].concat()).good();
    check(&lab, &["--drive", "d", "--drive", "a", "--drive", "c", "--drive", "b", "--log", "l"]);
    mkfs(&["flash", "--size", "16MiB", "--medium", "ssd"]).good();
    let told = lab.run(["fs", "stat", "flash"]).good().stdout;
    assert!(told.contains("RAID group 0: ssd, "), "{told}");
}
