//! `senesce fs defrag` of an evergreen: keys become those of where objects are, then leaves those
//! of the order of keys.

use std::fmt::Display;

use crate::version;
use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_evergreen::Limits;
use senesce_service::{
    EvergreenDefragmented, Response,
    evergreen::{refusal, sweep},
};
use senesce_volume::{check_interrupted, install_signal_cleanup};

use super::{
    super::{
        defrag::request,
        place::Place as Served,
        send_request::{Bars, ask_served, fault, strange, with_format},
    },
    Opened, Place,
};
use crate::{args::FsDefragArgs, exit::usage};

/// One sweep of all keys, and one of all leaves. What was moved until a signal stays moved. The
/// process that serves a mount does it while programs use it.
pub fn defrag(place: &Place, args: &FsDefragArgs, quiet: bool) -> Result<()> {
    if !args.drives.drive.is_empty() {
        return Err(usage("--drive names drives of a garden, and this is an evergreen", None));
    }
    let paths = args.words.iter().skip(1).map(|path| path.as_encoded_bytes().to_vec());
    let request = request(args, paths);
    if let Some(why) = refusal(&request) {
        return Err(usage(format!("{place} is an evergreen: {why}"), None));
    }
    install_signal_cleanup().context("cannot handle signals")?;
    let done = match ask_served(&Served::One(place.path().to_owned()), &request, quiet)? {
        Some(Response::EvergreenDefragmented(done)) => done,
        Some(_) => return Err(strange()),
        None => {
            // A dry run keeps what it writes in memory.
            let device = if args.dry_run { place.look()? } else { place.open()? };
            let Opened { fs, .. } = place.evergreen(device, Limits::default())?;
            let done = sweep(&fs, &mut Bars::new(quiet)).map_err(fault);
            let done = done.with_context(|| format!("cannot defragment {place}"))?;
            EvergreenDefragmented { dry_run: args.dry_run, ..done }
        }
    };
    print_defragmented(place, &done, args.json)?;
    Ok(check_interrupted("defragmenting")?)
}

/// Prints what became of keys and leaves.
pub fn print_defragmented(place: &dyn Display, done: &EvergreenDefragmented, as_json: bool) -> Result<()> {
    if as_json {
        println!("{}", with_format(version::DEFRAG_EVERGREEN, done)?);
        return Ok(());
    }
    let would = if done.dry_run { "would get" } else { "got" };
    println!(
        "{place}: {} of the objects of {} names {would} the keys of where they are ({})",
        done.moved_objects,
        done.names,
        Bytes(done.moved_bytes)
    );
    if done.too_large_objects > 0 {
        println!("  {} are larger than a batch and keep their keys", done.too_large_objects);
    }
    if done.objects_without_space > 0 {
        println!("  {} keep their keys because there is no space; free some and try again", done.objects_without_space);
    }
    if let Some(bytes) = done.swept_leaf_bytes {
        let would = if done.dry_run { "would be" } else { "were" };
        println!("  {} of leaves {would} written again, adjacent in the order of keys", Bytes(bytes));
    }
    if let Some(leaves) = done.unreadable_leaves.filter(|leaves| *leaves > 0) {
        println!("  {leaves} leaves or inner nodes cannot be read and were skipped; run `senesce fs check`");
    }
    if let Some(first) = &done.first_unreadable {
        println!("  {} cannot be read and keep their keys; run `senesce fs check`: {first}", done.unreadable_objects);
    }
    Ok(())
}
