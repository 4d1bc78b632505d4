//! `senesce fs mount`.

use std::{fs, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result};
use senesce_fuse::{MountOptions, Mounted};
use senesce_garden::{Garden, Limits};
use senesce_volume::{Custodian, MountSource, Outcome, Resource, install_signal_cleanup, interrupted};

use super::place;
use crate::{args::FsMountArgs, clock::SystemClock, exit::usage, verb::home::with_home};

/// How often it is looked whether the mount is still there.
const LOOK: Duration = Duration::from_millis(20);

/// Serves a volume until somebody unmounts it, or a signal ends it; then everything is in a consistency point.
pub fn mount(args: &FsMountArgs, quiet: bool) -> Result<()> {
    install_signal_cleanup().context("cannot handle signals")?;
    with_home(|custodian| serve(custodian, args, quiet))
}

fn serve(custodian: &Custodian, args: &FsMountArgs, quiet: bool) -> Result<()> {
    let point = fs::canonicalize(&args.point).with_context(|| format!("cannot look up {}", args.point.display()))?;
    // Opening may do again what the log holds; a read-only mount keeps even that in memory.
    let devices = if args.read_only { place::look(&args.place)? } else { place::open(&args.place)? };
    let opened = Garden::open(&devices.drives, devices.log, Limits::default());
    let garden = opened.with_context(|| format!("cannot open {}", args.place.display()))?;
    let missing = garden.report().missing_drives;
    if !missing.is_empty() && !quiet {
        eprintln!("senesce: drives {missing:?} are missing; their blocks come from parity");
    }
    let volume = garden.volume(args.volume.as_bytes()).map_err(|error| {
        let names = garden.volumes();
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        usage(error.to_string(), Some(&format!("it has: {}", names.join(", "))))
    })?;
    // In the journal before it is there.
    let name = format!("senesce-fs:{}", custodian.token());
    let resource = Resource::Mount { point: point.clone(), source: MountSource::Engine { name: name.clone() } };
    let now = Arc::new(SystemClock::unix_time);
    let options = MountOptions { source: name, threads: args.threads, now, read_only: args.read_only };
    let (id, started) = custodian.acquire(resource, |_| Ok(Mounted::start(Arc::new(volume), &point, options)))?;
    let mounted = match started {
        Ok(mounted) => mounted,
        Err(error) => {
            custodian.release(id)?;
            return Err(error.into());
        }
    };
    if !quiet {
        eprintln!("{} is mounted on {}; Ctrl-C or umount ends it", args.place.display(), point.display());
    }
    while !mounted.is_over() && interrupted().is_none() {
        thread::sleep(LOOK);
    }
    if let Outcome::DetachedLazily = custodian.release(id)?
        && !quiet
    {
        eprintln!("somebody still uses {}; it ends with the last of them", point.display());
    }
    mounted.join()?;
    garden.consistency_point().with_context(|| format!("cannot close {}", args.place.display()))
}
