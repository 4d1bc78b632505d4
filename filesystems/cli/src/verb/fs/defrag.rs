//! `senesce fs defrag`: files whose blocks lie scattered are written together again.

use std::os::unix::ffi::OsStrExt;

use crate::version;
use anyhow::{Context, Result};
use senesce_service::{Defragmented, Request, Response};
use senesce_volume::{check_interrupted, install_signal_cleanup};

use super::{
    evergreen::print_defragmented,
    name_arguments::{show, split},
    place::Place,
    send_request::{Access, ask, strange, with_format},
};
use crate::args::FsDefragArgs;

/// Repeats passes over the files of a volume until one moves nothing. A signal keeps the blocks
/// that were moved.
pub fn defrag(args: &FsDefragArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, paths) = split(&args.words, &args.drives, 0..=usize::MAX)?;
    let request = request(args, paths.into_iter());
    // A dry run leaves even the log as it is.
    let access = Access::of(args.dry_run);
    match ask(&place, access, &request, quiet)? {
        Response::Defragmented(done) if args.json => println!("{}", with_format(version::DEFRAG, &done)?),
        Response::Defragmented(done) => print(&place, args, &done),
        Response::EvergreenDefragmented(done) => print_defragmented(&place, &done, args.json)?,
        _ => return Err(strange()),
    }
    Ok(check_interrupted("defragmenting")?)
}

/// The request of a command that names these paths.
pub fn request(args: &FsDefragArgs, paths: impl Iterator<Item = Vec<u8>>) -> Request {
    Request::Defrag {
        volume: args.volume.as_bytes().into(),
        paths: paths.map(|path| path[..].into()).collect(),
        traditional: args.traditional,
        dry_run: args.dry_run,
    }
}

fn print(place: &Place, args: &FsDefragArgs, done: &Defragmented) {
    let volume = show(args.volume.as_bytes());
    let would = if args.dry_run { "would move" } else { "moved" };
    println!("{place}: volume {volume}: {} blocks of {} files, {} {would}", done.blocks, done.files, done.moved_blocks);
    let chain = |chain: Option<f64>| chain.map_or("none".to_owned(), |chain| format!("{chain:.2}"));
    let chains = &done.read_chain;
    let now = done.requests.after.map_or(String::new(), |_| format!(", {} now", chain(chains.after)));
    println!("  read chain: {} blocks before, {} predicted{now}", chain(chains.before), chain(chains.predicted));
    if done.unread_blocks + done.windows_without_space > 0 {
        println!(
            "  {} blocks cannot be read; {} times there was no space",
            done.unread_blocks, done.windows_without_space
        );
    }
    if !args.dry_run {
        println!(
            "  snapshots hold {} blocks more; {} pointers named an old location and were corrected",
            done.newly_held_blocks, done.fixed_pointers
        );
    }
}
