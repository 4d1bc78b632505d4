//! `senesce fs dedup`: blocks of files that hold the same become one.

use crate::version;
use anyhow::{Context, Result};
use senesce_core::Bytes;
use senesce_service::{Request, Response};
use senesce_volume::{check_interrupted, install_signal_cleanup};

use super::{
    name_arguments::{show, split_volume},
    place::BLOCK_BYTES,
    send_request::{Access, ask, strange, with_format},
};
use crate::args::FsChangeVolumeArgs;

/// One pass over the files of a volume. What was shared until a signal stays shared.
pub fn dedup(FsChangeVolumeArgs { of: args, trial }: &FsChangeVolumeArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    let (place, name) = split_volume(&args.words, &args.drives)?;
    let request = Request::Dedup { volume: name[..].into() };
    let access = Access::of(trial.dry_run);
    let Response::Deduped(done) = ask(&place, access, &request, quiet)? else { return Err(strange()) };
    access.announce(&place);
    if args.json {
        println!("{}", with_format(version::DEDUP, &done)?);
    } else {
        let volume = show(&name);
        println!(
            "{place}: volume {volume}: {} blocks and inodes, {} blocks shared",
            done.looked_at, done.newly_shared_blocks
        );
        println!(
            "  {} saved, {} before; {} had the fingerprint of other bytes, {} could not be read",
            Bytes(done.saved_blocks * BLOCK_BYTES),
            Bytes(done.saved_blocks_before * BLOCK_BYTES),
            done.same_fingerprint_other_bytes,
            done.unread
        );
    }
    Ok(check_interrupted("looking for what is the same")?)
}
