//! `inspect` of an unmounted image in a guest kernel: without root, and without the host's kernel.
//!
//! The guest mounts the image read-only and writes the figures to a file of its private directory.
//! The launcher reads them and shows them, so the guest writes nothing else.

use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use senesce_core::Printable;
use senesce_guest::{Writable, find_kernel};
use senesce_volume::{Medium, is_guest};
use serde::{Deserialize, Serialize};

use super::{super::home::with_home, Job, Words, check_visible, start};
use crate::{
    args::InspectArgs,
    exit::{failed, passed, usage},
};

/// In a guest, holds an [`Order`].
const ORDER: &str = "SENESCE_GUEST_INSPECT";
/// The most bytes of figures that are read: a map and the names of its files.
const MOST_BYTES: usize = 256 << 20;

/// The part of the launcher's request that is not in the arguments.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The file for the figures.
    pub figures: PathBuf,
    /// Whether the figures have a map.
    pub has_map: bool,
    /// The disk below the image, which only the host sees. None if the user named a model.
    pub medium: Option<Medium>,
}

impl Order {
    /// The order of the launcher, if this is its guest.
    pub fn read() -> Option<Self> {
        let text = env::var(ORDER).ok().filter(|_| is_guest())?;
        serde_json::from_str(&text).ok()
    }
}

/// Checks that a guest can inspect the image, and returns the name of the image in the guest.
///
/// Errors: there is no guest kernel, or it does not see the image.
pub fn check_inspection(args: &InspectArgs) -> Result<String> {
    find_kernel().with_context(|| {
        let path = Printable::new(&args.path);
        format!("{path} holds a file system that a kernel must mount; without root, a guest kernel does it")
    })?;
    let image = std::fs::canonicalize(&args.path).with_context(|| format!("cannot look up {}", args.path.display()))?;
    check_visible(&image)?;
    for description in args.device.iter().map(Path::new).filter(|path| path.exists()) {
        check_visible(description)?;
    }
    image.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("the name {} is not UTF-8, and cannot be passed to a guest", Printable::new(&image));
        usage(message, Some("rename the image, or inspect it as root"))
    })
}

/// Inspects the image `args.path` in a guest. Returns the figures as JSON.
///
/// Errors: those of [`check_inspection`]; the command in the guest fails.
pub fn inspect(args: &InspectArgs, medium: Option<Medium>, has_map: bool, quiet: bool) -> Result<serde_json::Value> {
    let mut words = Words::new("inspect", true);
    words.0.push(check_inspection(args)?);
    words.text("--device", (!args.device.is_empty()).then(|| args.device.join(",")));
    words.text("--read-ahead-kib", args.read_ahead_kib.map(|size| size.to_string()));
    words.text("--max-seconds", args.limits.max_seconds.map(|most| most.to_string()));
    words.text("--top", Some(args.limits.top.to_string()));
    words.flag("--idle", args.idle);
    with_home(|custodian| {
        let (_, dir) = custodian.acquire_tree(&env::temp_dir(), "senesce-inspect")?;
        let order = Order { figures: dir.join("figures.json"), has_map, medium };
        let environment = vec![(ORDER.to_owned(), serde_json::to_string(&order)?)];
        let writable = vec![Writable::Host { path: dir }];
        passed(start(custodian, args.guest_memory, Job { words, writable, environment }, quiet)?)?;
        read_figures(&order.figures)
    })
}

/// The figures come from a kernel that has read a foreign image, so their size is limited.
fn read_figures(path: &Path) -> Result<serde_json::Value> {
    let wrong = || "cannot read the figures of the guest";
    let bytes =
        senesce_core::input::read_bytes(File::open(path).with_context(wrong)?, MOST_BYTES).with_context(wrong)?;
    let figures: serde_json::Value = serde_json::from_slice(&bytes).with_context(wrong)?;
    match figures.get("schema").and_then(|schema| schema.as_str()) {
        Some(senesce_inspect::INSPECT_SCHEMA) => Ok(figures),
        _ => Err(failed("the guest returned no figures of an inspection")),
    }
}
