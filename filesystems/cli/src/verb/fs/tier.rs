//! `senesce fs tier`: moves cold blocks from the drives to objects.

use std::{fs, sync::Arc};

use crate::version;
use anyhow::{Context, Result};
use senesce_cli::check_new;
use senesce_core::Bytes;
use senesce_garden::{Accepted, Limits};
use senesce_objects::{MemoryObjects, ObjectStore, OverlayObjects};
use senesce_service::{Prices, Request, Response, Tiered};
use senesce_volume::{check_interrupted, install_signal_cleanup};

use super::{
    objects::open_objects,
    place::{BLOCK_BYTES, Place},
    send_request::{Access, answer_offline, ask_served, strange, with_format},
};
use crate::{
    args::{FsTierArgs, PricesArg},
    exit::usage,
};

/// Keys of a response that the command does not print as JSON.
pub const TIER_INNER: [&str; 2] = ["objects_tiered", "bytes"];

impl PricesArg {
    fn request(self) -> Prices {
        match self {
            Self::S3 => Prices::S3,
            Self::Azure => Prices::Azure,
        }
    }
}

/// Deletes unknown objects, and writes cold blocks of all volumes to objects. With a price list, it
/// rewrites objects with few used blocks. Then it deletes unused objects. A signal stops it between
/// two steps. Blocks that were moved stay in objects.
pub fn tier(args: &FsTierArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let place = Place::of(&args.place)?;
    let objects = &args.objects.objects;
    let request =
        Request::Tier { objects: objects.to_string(), age: args.age, prices: args.prices.map(PricesArg::request) };
    let access = Access::of(args.trial.dry_run);
    let response = match ask_served(&place, &access.wrap(&request), quiet)? {
        Some(response) => response,
        None => offline(&place, args, &request, quiet)?,
    };
    let Response::Tiered(done) = response else { return Err(strange()) };
    access.announce(&place);
    if args.json {
        let mut document = with_format(version::TIER, &done)?;
        for inner in TIER_INNER {
            document.as_object_mut().and_then(|document| document.remove(inner));
        }
        println!("{document}");
    } else {
        print(args, &place, &done);
    }
    Ok(check_interrupted("tiering")?)
}

fn offline(place: &Place, args: &FsTierArgs, request: &Request, quiet: bool) -> Result<Response> {
    let objects = &args.objects.objects;
    let new = objects.directory().filter(|dir| !dir.is_dir());
    let is_dry = args.trial.dry_run;
    let store: Arc<dyn ObjectStore> = match new {
        // A dry run makes no directory.
        Some(dir) if is_dry => {
            check_new(dir)?;
            Arc::new(MemoryObjects::default())
        }
        _ => open_objects(objects, true)?,
    };
    let store = if is_dry { Arc::new(OverlayObjects::new(store)) } else { store };
    let devices = Access::of(is_dry).open(place)?;
    let garden = place.garden_with(&devices, Limits::default(), Some(store), Accepted::NOTHING)?;
    if let (Some(dir), 1..) = (new, garden.cold().live) {
        if !is_dry {
            // The store is new and empty. The next call must not find it.
            let _ = fs::remove_dir(dir);
        }
        let message = format!("{place} has cold blocks, and none of their objects are in {objects}");
        return Err(usage(message, Some("name the store that `fs tier` used before")));
    }
    answer_offline(&garden, place, request, quiet)
}

fn print(args: &FsTierArgs, place: &Place, done: &Tiered) {
    println!(
        "{place}: {} of {} blocks are cold and are in {} new objects; {} could not be read",
        done.tiered_blocks, done.looked_at, done.objects_tiered, done.unread
    );
    if args.prices.is_some() {
        println!(
            "  {} objects rewritten, {} blocks: costs {:.6} dollars, saves {:.6} in a month",
            done.objects_written_anew, done.blocks_written_anew, done.cost_dollars, done.saved_in_a_month_dollars
        );
    }
    println!(
        "  {} objects with {}, {} of which is needed; {} deleted, {} unknown ones",
        done.objects,
        Bytes(done.cold_blocks * BLOCK_BYTES),
        Bytes(done.wanted_cold_blocks * BLOCK_BYTES),
        done.objects_deleted,
        done.orphans_deleted
    );
    println!("  {} of {} free", Bytes(done.free_bytes), Bytes(done.bytes));
}
