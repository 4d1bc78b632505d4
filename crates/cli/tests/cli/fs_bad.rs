//! Gardens that are not what they should be: what is said, and the exit code.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
};

use senesce_testkit::root_or_skip;

use super::{
    disk::must,
    lab::{Done, Lab, mount_points},
};

const SLOT: u64 = 4160;

/// One garden that something was done to: what the verbs say of it.
struct Wrong {
    what: &'static str,
    /// In a shell, with `g`, a garden of another seed `other` and one of the same seed and another
    /// size `large` beside it.
    done: &'static str,
    /// Afterwards: bytes that are changed, and checksums made right again.
    forged: &'static [Forged],
    code: i32,
    says: &'static [&'static str],
}

/// Bytes of a slot of an image.
struct Forged {
    image: &'static str,
    slot: u64,
    at: usize,
    bytes: &'static [u8],
    /// Whether the checksums fit, as if it was meant.
    fits: bool,
}

const fn damaged(image: &'static str, slot: u64) -> Forged {
    Forged { image, slot, at: 100, bytes: &[0x5a; 32], fits: false }
}

const fn version(image: &'static str, slot: u64, fits: bool) -> Forged {
    Forged { image, slot, at: 8, bytes: &[99, 0, 0, 0], fits }
}

/// What `fs stat` says, and `fs mount` with it.
const GARDENS: &[Wrong] = &[
    Wrong { what: "nothing was done", done: "true", forged: &[], code: 0, says: &[] },
    Wrong { what: "one drive missing", done: "rm g/drive-01.img", forged: &[], code: 0, says: &[] },
    Wrong {
        what: "two drives missing",
        done: "rm g/drive-01.img g/drive-03.img",
        forged: &[],
        code: 1,
        says: &["missing are drive 1", "drive 3", "parity makes up for one"],
    },
    Wrong { what: "all drives missing", done: "rm g/drive-*", forged: &[], code: 2, says: &["no drive-*.img"] },
    Wrong { what: "one copy of the log", done: "rm g/log.img", forged: &[], code: 0, says: &[] },
    Wrong { what: "no log of a closed garden", done: "rm g/log*.img", forged: &[], code: 0, says: &[] },
    Wrong {
        what: "drives swapped",
        done: "mv g/drive-00.img t; mv g/drive-03.img g/drive-00.img; mv t g/drive-03.img",
        forged: &[],
        code: 0,
        says: &[],
    },
    Wrong {
        what: "a drive twice",
        done: "cp g/drive-00.img g/drive-01.img",
        forged: &[],
        code: 2,
        says: &["g/drive-01.img: another drive has the same place", "hint: name the drives and the log of one garden"],
    },
    Wrong {
        what: "a drive of another aggregate",
        done: "cp other/drive-01.img g/drive-01.img",
        forged: &[],
        code: 2,
        says: &["g/drive-01.img: a drive of another aggregate", "hint: name the drives"],
    },
    Wrong {
        what: "one drive too many",
        done: "cp other/drive-01.img g/drive-04.img",
        forged: &[],
        code: 2,
        says: &["g/drive-04.img: a drive of another aggregate"],
    },
    Wrong {
        what: "a file that is no drive beside them",
        done: "head -c 100000 /dev/zero > g/drive-04.img",
        forged: &[],
        code: 2,
        says: &["g/drive-04.img: one device too many"],
    },
    Wrong {
        what: "the log of another aggregate",
        done: "cp other/log.img g/log.img",
        forged: &[],
        code: 2,
        says: &["g/log.img: the log of another aggregate"],
    },
    Wrong {
        what: "a copy of the log that holds nothing",
        done: "head -c 33554432 /dev/zero > g/log.img",
        forged: &[],
        code: 0,
        says: &[],
    },
    Wrong {
        what: "another geometry",
        done: "cp large/drive-01.img g/drive-01.img",
        forged: &[],
        code: 2,
        says: &["g/drive-01.img: its label has another geometry than those of the other drives"],
    },
    Wrong {
        what: "a drive that shrank",
        done: "truncate -s -4160 g/drive-02.img",
        forged: &[],
        code: 2,
        says: &["g/drive-02.img: shorter than when it was formatted: ", " bytes of "],
    },
    Wrong {
        what: "a drive of no bytes",
        done: "truncate -s 0 g/drive-02.img",
        forged: &[],
        code: 0, // it is missing
        says: &[],
    },
    Wrong {
        what: "a damaged label",
        done: "true",
        forged: &[damaged("g/drive-02.img", 0)],
        code: 0, // the drive has another one
        says: &[],
    },
    Wrong {
        what: "a damaged superblock on one drive",
        done: "true",
        forged: &[damaged("g/drive-02.img", 1)],
        code: 0,
        says: &[],
    },
    Wrong {
        what: "no superblock on any drive",
        done: "true",
        forged: &[
            damaged("g/drive-00.img", 1),
            damaged("g/drive-00.img", 3),
            damaged("g/drive-01.img", 1),
            damaged("g/drive-01.img", 3),
            damaged("g/drive-02.img", 1),
            damaged("g/drive-02.img", 3),
            damaged("g/drive-03.img", 1),
            damaged("g/drive-03.img", 3),
        ],
        code: 1,
        says: &["no superblock can be read on g/drive-00.img"],
    },
    Wrong {
        what: "a version of the label that is not known",
        done: "true",
        forged: &[version("g/drive-00.img", 0, true)],
        code: 2,
        says: &["label of g/drive-00.img", "version", "99", "hint: another version of senesce made it"],
    },
    Wrong {
        what: "a version of the superblock that is not known",
        done: "true",
        forged: &[version("g/drive-00.img", 1, true), version("g/drive-00.img", 3, true)],
        code: 2,
        says: &["of g/drive-00.img", "version", "99", "hint: another version of senesce made it"],
    },
    Wrong {
        what: "a file of no bytes in place of the directory",
        done: "mv g t; touch g",
        forged: &[],
        code: 2,
        says: &["g: 0 bytes are too few for a drive"],
    },
];

/// Bit by bit: the tests must not trust the program's own sums.
fn crc32c(bytes: impl IntoIterator<Item = u8>) -> u32 {
    !bytes.into_iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 })
    })
}

fn forge(lab: &Lab, forged: &Forged) {
    let file = OpenOptions::new().read(true).write(true).open(lab.path(forged.image)).unwrap();
    let mut slot = vec![0; SLOT as usize];
    file.read_exact_at(&mut slot, forged.slot * SLOT).unwrap();
    slot[forged.at..][..forged.bytes.len()].copy_from_slice(forged.bytes);
    if forged.fits {
        let sum = crc32c(slot[..4096].iter().copied());
        slot[4096..4100].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c(slot[4096..4100].iter().chain(&slot[4104..]).copied());
        slot[4100..4104].copy_from_slice(&sum.to_le_bytes());
    }
    file.write_all_at(&slot, forged.slot * SLOT).unwrap();
}

fn mkfs(lab: &Lab, name: &str, size: &str, seed: &str) {
    lab.run(["fs", "mkfs", "garden", name, "--size", size, "--data-drives", "3", "--seed", seed]).good();
}

#[test]
fn faults_of_a_garden_are_reported_without_writes() {
    let lab = Lab::new();
    for (name, size, seed) in [("good", "12MiB", "7"), ("other", "12MiB", "8"), ("large", "24MiB", "7")] {
        mkfs(&lab, name, size, seed);
    }
    for wrong in GARDENS {
        println!("{}", wrong.what);
        let shell = format!("rm -rf g t; cp -r --sparse=always good g; {}", wrong.done);
        must("sh", &["-e", "-c", &format!("cd '{}'; {shell}", lab.path("").display())]);
        wrong.forged.iter().for_each(|forged| forge(&lab, forged));
        let hash = || must("sh", &["-c", &format!("cd '{}'; cat g/* 2>/dev/null | sha256sum", lab.path("").display())]);
        let before = hash();
        let done = lab.run(["fs", "stat", "g"]);
        match wrong.code {
            0 => drop(done.good()),
            code => done.refused(code, wrong.says),
        }
        assert_eq!(hash(), before, "{}", wrong.what);
        if wrong.code != 0 {
            // Verbs that write say the same.
            lab.run(["fs", "scrub", "g"]).refused(wrong.code, wrong.says);
            assert_eq!(hash(), before, "{}", wrong.what);
        }
    }
}

#[test]
fn the_check_names_what_opening_can_do_without() {
    let lab = Lab::new();
    mkfs(&lab, "g", "12MiB", "7");
    let whole = fs::read(lab.path("g/drive-02.img")).unwrap();
    for (slot, says) in [(0, "label"), (1, "superblock 0"), (2, "label"), (3, "superblock 1")] {
        forge(&lab, &damaged("g/drive-02.img", slot));
        let done = lab.run(["fs", "check", "g"]);
        println!("{}", done.stdout);
        assert!(done.stdout.contains(says) || done.stdout.contains("without drive"), "{}", done.stdout);
        fs::write(lab.path("g/drive-02.img"), &whole).unwrap();
    }
}

#[test]
fn full_garden_still_accepts_removals() {
    if !root_or_skip("mounting") {
        return;
    }
    let lab = Lab::new();
    mkfs(&lab, "g", "12MiB", "7");
    fs::create_dir(lab.path("mnt")).unwrap();
    let point = lab.path("mnt").to_string_lossy().into_owned();
    let mut child = lab.command().args(["--quiet", "fs", "mount", "g", "mnt"]).spawn().unwrap();
    while !mount_points().contains(&point) {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for round in 0..3 {
        let mut names = Vec::new();
        let failure = loop {
            let name = lab.path(format!("mnt/{round}-{}", names.len()));
            match fs::write(&name, vec![7; 300_000]) {
                Ok(()) => names.push(name),
                Err(error) => break error,
            }
            assert!(names.len() < 100, "12 MiB hold no 30 MB");
        };
        assert_eq!(failure.raw_os_error(), Some(28), "{failure}");
        assert!(names.len() > 15, "{} files", names.len());
        names.iter().for_each(|name| fs::remove_file(name).unwrap());
        let _ = fs::remove_file(lab.path(format!("mnt/{round}-{}", names.len())));
    }
    senesce_testkit::unmount(point.as_ref());
    assert!(child.wait().unwrap().success());
    let told: Done = lab.run(["fs", "check", "g"]).good();
    assert!(told.stdout.starts_with("as it is: clean"), "{}", told.stdout);
}
