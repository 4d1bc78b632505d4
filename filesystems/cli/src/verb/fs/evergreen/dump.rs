//! Any structure of an evergreen as it is on its device. Nothing is written.

use anyhow::{Context, Result};
use senesce_evergreen::DumpWhat;

use super::{super::dump::print, Place};
use crate::{
    args::{FsDumpArgs, FsDumpWhat},
    exit::usage,
};

/// Shows a structure, with what is wrong with it.
pub fn dump(place: &Place, args: &FsDumpArgs) -> Result<()> {
    let what = match &args.what {
        FsDumpWhat::Superblock => DumpWhat::Superblocks,
        FsDumpWhat::Map => DumpWhat::Map,
        FsDumpWhat::Space => DumpWhat::Space,
        FsDumpWhat::Tree => DumpWhat::Tree,
        FsDumpWhat::Node { id } => DumpWhat::Node { id: *id },
        FsDumpWhat::Log => DumpWhat::Log,
        _ => {
            let hint = "name one of superblock, map, space, tree, node, log";
            return Err(usage("an evergreen has no such structure", Some(hint)));
        }
    };
    let shown = senesce_evergreen::dump(&place.look()?, &what, args.most);
    print(&shown.with_context(|| format!("cannot look into {place}"))?, args.json)
}
