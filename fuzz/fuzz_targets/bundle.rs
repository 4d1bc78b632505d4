//! Bundles with a changed archive, a right seal and a right frame: each is read, or refused with a printable reason.
//!
//! The changes of the input apply to the archive of a small bundle. An input that starts with 0 is the archive itself.
#![no_main]

use std::{collections::BTreeMap, io::{Seek, Write}, path::Path, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use senesce_bundle::{Content, Contents, Licence, Limits, PlanEntry, Prepared, Research, TableEntry, read};
use senesce_fuzz::patches::patch;
use sha2::{Digest, Sha256};

const LIMITS: Limits = Limits { files: 16, bytes: 1 << 20, kept_bytes: 1 << 19 };
const SEAL_HEAD: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
const SEAL_BYTES: usize = 40;

fn contents() -> Contents {
    let file = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    Contents {
        senesce_version: "0.1.0 (commit 1a2b)".to_owned(),
        plan: PlanEntry { name: "small".to_owned(), hash: "00".to_owned() },
        inputs: Vec::new(),
        tables: vec![TableEntry { name: "cells".to_owned(), rows: 1 }],
        research: Research {
            plan_name: "small".to_owned(),
            description: String::new(),
            begun_unix_seconds: Some(1_700_000_000),
            senesce_version: "0.1.0 (commit 1a2b)".to_owned(),
            inputs: Vec::new(),
            outputs: vec!["results/cells.parquet".to_owned()],
            licence: Licence::NotStated,
        },
        files: BTreeMap::from([
            ("plan.toml".to_owned(), file("name = \"small\"\n")),
            ("results/cells.parquet".to_owned(), file("PAR1")),
            ("figures/empty.csv".to_owned(), file("")),
        ]),
    }
}

/// The archive in a small bundle.
fn base() -> &'static [u8] {
    static ARCHIVE: OnceLock<Vec<u8>> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let prepared = Prepared::new(contents(), Limits::default(), |_| true, &|| Ok(())).expect("the contents are good");
        let bundle = prepared.write(Vec::new(), Path::new("x"), &|| Ok(())).expect("the output cannot fail");
        zstd::decode_all(&bundle[..bundle.len() - SEAL_BYTES]).expect("its frame is good")
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, changes)) = input.split_first() else { return };
    let archive = if choice == 0 { changes.to_vec() } else { patch(base(), changes) };
    let mut bundle = zstd::encode_all(&archive[..], 1).expect("any bytes can be compressed");
    let hash = Sha256::digest(&bundle);
    bundle.extend(SEAL_HEAD);
    bundle.extend(&hash[..]);
    let mut file = tempfile::tempfile().expect("temporary files can be made");
    file.write_all(&bundle).and_then(|()| file.rewind()).expect("and written");
    match read(&file, Path::new("x"), LIMITS, |_| true) {
        Ok(bundle) => {
            for entry in &bundle.manifest.files {
                assert!(!entry.path.starts_with('/') && !entry.path.contains(".."), "{}", entry.path);
                assert_eq!(bundle.file(&entry.path).map(|bytes| bytes.len() as u64), Some(entry.bytes), "{}", entry.path);
            }
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error:?}"),
    }
});
