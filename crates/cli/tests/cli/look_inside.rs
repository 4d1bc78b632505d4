//! Looking into a garden: dumps of the contents of its devices, and its survey as an inspection.
//! None of it needs root.

use std::fs;

use serde_json::Value;

use super::lab::Lab;

/// A garden that a mail server wrote, in process.
fn grown(lab: &Lab) {
    lab.run(["fs", "mkfs", "garden", "g", "--size", "64MiB", "--data-drives", "3", "--seed", "7"]).good();
    fs::create_dir(lab.path("aged")).unwrap();
    let mut aging = vec!["age", "mail", "--on", "aged", "--log", "mail.senesce-log", "--set", "cycles=2"];
    aging.extend(["--set", "mailboxes=3", "--set", "messages=20", "--set", "operations=200"]);
    lab.run(&aging).good();
    let dir = lab.path(".").to_string_lossy().into_owned();
    lab.run(["replay", "mail.senesce-log", "--on", "garden:g", "--dir", &dir]).good();
}

#[test]
fn structures_are_dumped_as_text_and_json() {
    let lab = Lab::new();
    grown(&lab);
    let bytes = |name: &str| fs::read(lab.path(name)).unwrap();
    let before = ["g/drive-00.img", "g/drive-03.img", "g/log.img"].map(bytes);
    let cases: [(&[&str], &[&str]); 13] = [
        (&["label"], &["SNSCdriv", "stripes of a tetris", "SNSClog", "bytes of a half"]),
        (&["superblock"], &["SNSCsupr", ", the newest, of ", "last log record included", "inode of file 0"]),
        (&["volumes"], &["volume 0, main", "VVBNs in use", "seed of hashes", "container file"]),
        (&["aggregate", "16"], &["file 16 of the aggregate", "height of the tree", "RAID group"]),
        (&["inode", "main", "1"], &["2 (directory)", "generation"]),
        (&["file", "main", "/"], &["/: inode 1 of volume 0 (main)"]),
        (&["directory", "main", "/"], &["block 0", "cookie", "name"]),
        (&["vvbn", "main", "0..100"], &["container map of volume 0 (main), file 16", "bit of file 2"]),
        (&["pvbn", "0", "--hex"], &["RAID group", "byte of the drive", "allocation area"]),
        (&["bitmap"], &["PVBNs in use (file 1 of the aggregate)", "bit"]),
        (&["bitmap", "--volume", "main", "..50"], &["VVBNs in use (file 2 of volume main)"]),
        (&["areas"], &["SNSCareA", "listed", "score"]),
        (&["log"], &["half 0", "half 1", "last log record included"]),
    ];
    for (what, words) in cases {
        let all = [&["fs", "dump", "g"][..], what].concat();
        let told = lab.run(&all).good().stdout;
        for word in words {
            assert!(told.contains(word), "{what:?}: {word}\n{told}");
        }
        assert!(!told.contains("WRONG") || what == ["superblock"], "{what:?}\n{told}");
        let json: Value = serde_json::from_str(&lab.run([&all[..], &["--json"][..]].concat()).good().stdout).unwrap();
        assert_eq!(json["format"], "senesce-fs-dump/1");
        assert!(json["title"].is_string() && json["parts"].is_array(), "{json}");
    }
    let json: Value = serde_json::from_str(&lab.run(["fs", "dump", "g", "volumes", "--json"]).good().stdout).unwrap();
    assert_eq!(json["parts"][0]["fields"]["name"], "main");
    assert_eq!(json["parts"][0]["parts"][0]["fields"]["kind"], "1 (file)");
    assert_eq!(["g/drive-00.img", "g/drive-03.img", "g/log.img"].map(bytes), before, "it was only looked at");
    lab.run(["fs", "dump", "g", "inode", "other", "1"]).refused(2, &["no volume other; there are: main"]);
    lab.run(["fs", "dump", "g", "vvbn", "main", "7..3"]).refused(2, &["names no numbers"]);
    lab.run(["fs", "dump", "tmp", "label"]).refused(2, &["holds no file system of senesce"]);
}

#[test]
fn garden_is_inspected_like_other_file_systems() {
    let lab = Lab::new();
    grown(&lab);
    let screen = lab.run(["inspect", "garden:g", "--map", "map.svg", "--map-by", "file", "--html", "page.html"]);
    let screen = screen.good().stdout;
    for text in [
        "garden:g volume main  garden, ",
        "read straight from its drives",
        "model: 3 × HDD 7.2K",
        "layout score",
        "free space: ",
        "allocation areas of 7.99 MiB in RAID group 0, by free tenths",
    ] {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
    let json: Value = serde_json::from_str(&lab.run(["inspect", "garden:g", "--json"]).good().stdout).unwrap();
    assert_eq!(json["schema"], "senesce-inspect/2");
    assert!(json["tree"]["files"].as_u64().unwrap() > 10, "{}", json["tree"]);
    assert!(json["costs"][0]["metadata_seconds"]["as_it_lies"].as_f64().unwrap() > 0.0, "{}", json["costs"]);
    let free: u64 =
        json["free_space"]["areas"][0]["free_bytes"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(json["free_space"]["figures"]["bytes"], free);
    let svg = fs::read_to_string(lab.path("map.svg")).unwrap();
    assert!(svg.contains("garden:g volume main, garden") && svg.contains("64 MiB along a Hilbert curve"), "map");
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("volume-map") && page.contains("garden:g volume main"));
    lab.run(["inspect", "garden:g", "--volume", "other"]).refused(2, &["no volume other; there are: main"]);
    lab.run(["inspect", "tmp", "--volume", "main"]).refused(2, &["--volume has an effect on a garden only"]);
    lab.run(["inspect", "garden:tmp"]).refused(2, &["holds no file system of senesce"]);
}
