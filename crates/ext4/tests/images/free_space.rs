//! Free extents against `e2freefrag` and, extent by extent, against `dumpe2fs`.

use std::fs::File;

use senesce_ext4::{FileSystem, FreeExtent};

use crate::{
    aging::{Plan, age},
    support::{Image, run},
};

const PLAN: Plan = Plan { steps: 1500, large_directory: 200, pieces: 500, preallocates: true };

/// The figures that `e2freefrag` prints, in KiB, with the number of extents for each power of two
/// of bytes.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    free_blocks: u64,
    least_kib: u64,
    most_kib: u64,
    mean_kib: u64,
    number: u64,
    /// Lower bound of the bucket, extents, blocks.
    buckets: Vec<(u64, u64, u64)>,
}

fn read_printed(image: &Image) -> Printed {
    let text = run("e2freefrag", &[image.text()]);
    let field = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    let buckets = text.lines().skip_while(|line| !line.starts_with("Extent Size Range")).skip(1).map(|line| {
        // "   64K...  128K-  :             3            64   12.50%"
        let (range, numbers) = line.split_once(':').unwrap();
        let low = range.split("...").next().unwrap().trim();
        let (digits, unit) = low.split_at(low.len() - 1);
        let shift = match unit {
            "K" => 10,
            "M" => 20,
            "G" => 30,
            other => panic!("unit {other}"),
        };
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        (digits.parse::<u64>().unwrap() << shift, numbers[0].parse().unwrap(), numbers[1].parse().unwrap())
    });
    Printed {
        free_blocks: field("Free blocks:"),
        least_kib: field("Min. free extent:"),
        most_kib: field("Max. free extent:"),
        mean_kib: field("Avg. free extent:"),
        number: field("Num. free extent:"),
        buckets: buckets.collect(),
    }
}

/// The same figures from the extents of the reader.
fn compute_printed(extents: &[FreeExtent], block_bytes: u64) -> Printed {
    let blocks: Vec<u64> = extents.iter().map(|extent| extent.length_bytes / block_bytes).collect();
    let kib = |blocks: u64| blocks * block_bytes / 1024;
    let total: u64 = blocks.iter().sum();
    let mut buckets: Vec<(u64, u64, u64)> = Vec::new();
    let mut sorted = blocks.clone();
    sorted.sort_unstable();
    for length in sorted {
        let low = (1 << length.ilog2()) * block_bytes;
        match buckets.last_mut() {
            Some((last, extents, blocks)) if *last == low => {
                *extents += 1;
                *blocks += length;
            }
            _ => buckets.push((low, 1, length)),
        }
    }
    Printed {
        free_blocks: total,
        least_kib: kib(blocks.iter().copied().min().unwrap()),
        most_kib: kib(blocks.iter().copied().max().unwrap()),
        mean_kib: kib(total / blocks.len() as u64),
        number: blocks.len() as u64,
        buckets,
    }
}

/// The free extents that `dumpe2fs` lists by group, neighbours merged.
fn read_listed(image: &Image, block_bytes: u64, cluster_blocks: u64) -> Vec<FreeExtent> {
    let text = run("dumpe2fs", &[image.text()]);
    let mut extents: Vec<FreeExtent> = Vec::new();
    let lists = text.lines().filter_map(|line| line.strip_prefix("  Free blocks: "));
    for range in lists.flat_map(|list| list.split(", ")).filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
        // With clusters, the end is the first block of the last cluster.
        let last = last + cluster_blocks - 1;
        let next = FreeExtent { start_bytes: first * block_bytes, length_bytes: (last - first + 1) * block_bytes };
        match extents.last_mut() {
            Some(open) if open.start_bytes + open.length_bytes == next.start_bytes => {
                open.length_bytes += next.length_bytes;
            }
            _ => extents.push(next),
        }
    }
    extents
}

fn check(image: &Image, arguments: &str) {
    let fs: FileSystem<File> = image.open();
    let block_bytes = fs.superblock().block_bytes;
    let free = fs.collect_free_space().unwrap_or_else(|error| panic!("{arguments}: {error}"));
    assert_eq!(free.report.warnings, [], "{arguments}");
    assert_eq!(free.extents, read_listed(image, block_bytes, fs.superblock().cluster_blocks), "{arguments}");
    assert_eq!(free.total_bytes(), fs.superblock().free_blocks * block_bytes, "{arguments}");
    // e2freefrag 1.47 finds nothing free if clusters have several blocks.
    if !arguments.contains("bigalloc") {
        assert_eq!(compute_printed(&free.extents, block_bytes), read_printed(image), "{arguments}");
    }
}

#[test]
fn free_space_of_new_images_matches_e2freefrag() {
    // A group whose bitmap was never written, copies of the superblock, spread descriptors, a short
    // last group.
    for arguments in [
        "-b 1024",
        "-b 1024 -O ^resize_inode",
        "-b 1024 -O meta_bg,^resize_inode",
        "-b 1024 -O meta_bg,^resize_inode,^64bit",
        "-b 1024 -O ^flex_bg",
        "-b 1024 -O ^metadata_csum,uninit_bg",
        "-b 1024 -O ^metadata_csum,^uninit_bg",
        "-b 1024 -O sparse_super2",
        "-b 1024 -O ^sparse_super,^resize_inode",
        "-b 1024 -g 1024",
        "-b 1024 -O bigalloc",
        "-b 1024 -O bigalloc -C 4096",
        "-b 4096",
        "-b 4096 -O bigalloc",
        "-b 4096 -g 4096",
        "-b 4096 -O ^flex_bg -g 4096",
        "-b 65536",
    ] {
        check(&Image::new(201, arguments), arguments);
    }
}

#[test]
fn free_space_of_aged_images_matches_e2freefrag() {
    if !senesce_testkit::root_or_skip("mounts an image to age it") {
        return;
    }
    for arguments in
        ["-b 4096", "-b 1024", "-b 1024 -O meta_bg,^resize_inode", "-b 4096 -O bigalloc", "-b 1024 -O ^flex_bg"]
    {
        let image = Image::new(200, arguments);
        let mount = image.mount("defaults");
        age(&mount.mountpoint, 2, PLAN);
        drop(mount);
        check(&image, arguments);
    }
}
