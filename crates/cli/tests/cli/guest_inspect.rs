//! `inspect` of unmounted images in a guest kernel.

use std::{fs, path::Path};

use senesce_testkit::{found_or_skip, root_or_skip};
use serde_json::Value;

use super::{disk::must, guest::Guests, inspect::filled_volume, lab::Lab};

const READ: &str = "mounted read-only in a guest kernel for the inspection";

fn state(image: &Path) -> (String, std::time::SystemTime) {
    let hash = must("sha256sum", &[&image.to_string_lossy()]);
    (hash, fs::metadata(image).unwrap().modified().unwrap())
}

#[test]
fn an_unprivileged_inspection_has_the_figures_of_the_host() {
    for (kind, mib) in [("xfs", 300), ("btrfs", 128)] {
        let Some(guests) = Guests::set_up() else { return };
        drop(filled_volume(&guests.lab, kind, mib));
        let image = guests.lab.path("volume.disk");
        let before = state(&image);
        let by_host: Value =
            serde_json::from_str(&guests.lab.run(["inspect", "volume.disk", "--json"]).good().stdout).unwrap();
        let done = guests.run(&["inspect", "volume.disk", "--json"]).good();
        assert!(done.stderr.contains("guest: user-mode Linux"), "{}", done.stderr);
        let by_guest: Value = serde_json::from_str(&done.stdout).unwrap();
        for key in ["tree", "costs", "worst_files", "free_space", "map", "grade", "device", "judgements"] {
            assert_eq!(by_guest[key], by_host[key], "{kind}: {key}");
        }
        assert_eq!(by_guest["target"]["read"], READ);
        assert_ne!(by_guest["target"]["kernel"], by_host["target"]["kernel"]);
        assert_eq!(state(&image), before, "{kind}: nothing is written");
        guests.assert_nothing_left();
    }
}

#[test]
fn an_f2fs_image_has_a_screen_a_page_and_a_map() {
    let tools = ["mkfs.f2fs", "sload.f2fs"].map(|tool| Path::new("/usr/sbin").join(tool));
    if found_or_skip(tools.iter().all(|tool| tool.is_file()).then_some(()), "f2fs-tools").is_none() {
        return;
    }
    let Some(guests) = Guests::set_up() else { return };
    let image = guests.lab.path("image");
    let tree = guests.lab.path("tree");
    fs::create_dir(&tree).unwrap();
    (0..50).for_each(|number| fs::write(tree.join(format!("f{number}")), vec![number; 30_000]).unwrap());
    fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
    must("mkfs.f2fs", &["-q", "-f", &image.to_string_lossy()]);
    must("sload.f2fs", &["-f", &tree.to_string_lossy(), &image.to_string_lossy()]);
    let before = state(&image);
    let args = ["inspect", "image", "--html", "tmp/page.html", "--map", "tmp/map.svg", "--device", "sata-ssd"];
    let screen = guests.run(&args).good().stdout;
    for text in ["reading all 50 files cold", "f2fs", "free space:", READ] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    assert!(fs::read_to_string(guests.lab.path("tmp/page.html")).unwrap().contains(READ));
    assert!(fs::read_to_string(guests.lab.path("tmp/map.svg")).unwrap().contains("<svg"));
    assert_eq!(state(&image), before, "nothing is written");
    for name in ["page.html", "map.svg"] {
        fs::remove_file(guests.lab.path("tmp").join(name)).unwrap();
    }
    guests.assert_nothing_left();
}

#[test]
fn root_may_choose_the_guest() {
    if Guests::set_up().is_none() {
        return;
    }
    let lab = Lab::new();
    drop(filled_volume(&lab, "btrfs", 128));
    let screen = lab.run(["inspect", "volume.disk", "--guest", "uml"]).good().stdout;
    assert!(screen.contains(READ) && screen.contains("reading all 200 files"), "{screen}");
    lab.assert_nothing_left();
}

#[test]
fn a_damaged_image_is_the_error_of_the_guest() {
    let Some(guests) = Guests::set_up() else { return };
    drop(filled_volume(&guests.lab, "xfs", 300));
    let file = fs::File::options().write(true).open(guests.lab.path("volume.disk")).unwrap();
    // `sb_blocksize`.
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 4], 4).unwrap();
    let done = guests.run(&["inspect", "volume.disk"]);
    done.refused(3, &["the kernel does not mount the xfs"]);
    guests.assert_nothing_left();
}

#[test]
fn places_that_need_no_guest_are_refused() {
    if !root_or_skip("volumes") {
        return;
    }
    let lab = Lab::new();
    let (disk, mount) = filled_volume(&lab, "btrfs", 128);
    lab.run(["inspect", "mnt", "--guest", "uml"]).refused(2, &["it is mounted on this machine"]);
    drop(mount);
    lab.run(["inspect", &disk.device, "--guest", "uml"]).refused(2, &["a guest sees no devices of this machine"]);
    drop(disk);
    drop(filled_volume(&lab, "ext4", 64));
    lab.run(["inspect", "volume.disk", "--guest", "uml"]).refused(2, &["senesce reads ext4 itself"]);
}

#[test]
fn without_a_guest_kernel_the_package_is_named() {
    if !root_or_skip("hiding a program") {
        return;
    }
    let lab = Lab::new();
    drop(filled_volume(&lab, "btrfs", 128));
    let script = "for kernel in /usr/bin/linux.uml /usr/bin/linux; do \
                  [ -e $kernel ] && mount --bind /dev/null $kernel; done; \
                  $SENESCE inspect volume.disk --guest uml";
    lab.run_apart(script).refused(3, &["a kernel must mount", "apt-get install user-mode-linux"]);
}
