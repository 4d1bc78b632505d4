//! Requests to a garden: to the process that serves it, or to the garden itself if no process does.

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use senesce_block::{BlockDevice, FileDevice, FileOptions};
use senesce_cli::registry_dir;
use senesce_core::Bytes;
use senesce_experiment::ErrorKind;
use senesce_garden::Garden;
use senesce_service::{
    Error, Failure as Refusal, FailureKind, MOST_CHANGES, MountStat, Name, Passes, Request, Response, Serves, Task,
    evergreen::refusal, garden::Service, socket::Client,
};
use senesce_volume::{DeviceNumber, Host, LinuxHost, Registry, interrupted, list_mounts};
use serde::Serialize;
use serde_json::Value;

use super::{
    control::socket_name,
    evergreen::Place as EvergreenPlace,
    held_mounts::token_of,
    mounts::is_on,
    place::{Devices, Place},
    sync::sync_one,
};
use crate::{
    clock::SystemClock,
    exit::{Failure, failed, usage},
    progress::Stretch,
};

/// A process that does not answer within this time counts as one that serves nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a garden that no process serves is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The command writes nothing, not even a replay of the log. Changes stay in memory.
    Look,
    /// It may change.
    Change,
}

impl Access {
    /// The access of a command with or without `--dry-run`.
    pub fn of(is_dry: bool) -> Self {
        if is_dry { Self::Look } else { Self::Change }
    }

    /// Opens the devices of a garden that no process serves.
    pub fn open(self, place: &Place) -> Result<Devices> {
        match self {
            Self::Look => place.look_without(None, MOST_CHANGES),
            Self::Change => place.open(),
        }
    }

    /// The request for the process that serves the garden. With [`Access::Look`], it executes a
    /// change on a copy in memory.
    pub fn wrap(self, request: &Request) -> Request {
        match self {
            Self::Look if request.changes() => Request::DryRun { of: Box::new(request.clone()) },
            _ => request.clone(),
        }
    }

    /// Prints that the next report is of a dry run.
    pub fn announce(self, place: &Place) {
        if self == Self::Look {
            println!("{place}: dry run on a copy in memory, nothing was changed; the command would report:");
        }
    }
}

/// Sends a request to the process that serves the garden, or answers it here if no process does.
/// With [`Access::Look`], a change is executed on a copy in memory.
pub fn ask(place: &Place, access: Access, request: &Request, quiet: bool) -> Result<Response> {
    if let Some(response) = ask_served(place, &access.wrap(request), quiet)? {
        return Ok(response);
    }
    answer_offline(&place.garden(&access.open(place)?)?, place, request, quiet)
}

/// Sends a request to the process that serves the garden. `None`: no process does.
///
/// Errors: the place is an evergreen, and the request is for gardens.
pub fn ask_served(place: &Place, request: &Request, quiet: bool) -> Result<Option<Response>> {
    if let Place::One(path) = place
        && let Some(why) = refusal(request)
        && EvergreenPlace::find_at(path).is_some()
    {
        return Err(usage(format!("{place} is an evergreen: {why}"), None));
    }
    let Some(server) = find_server(place)? else { return Ok(None) };
    if let Request::SnapshotCreate { volume, .. } = request {
        server.sync(volume)?;
    }
    let cannot = || format!("the process that serves {place} did not answer the request");
    let client = server.connect().with_context(cannot)?;
    client.ask(request, &mut Bars::new(quiet)).with_context(cannot)?.map(Some).map_err(refused)
}

/// Answers a request for an open garden that no process serves.
pub fn answer_offline(garden: &Garden, place: &Place, request: &Request, quiet: bool) -> Result<Response> {
    let objects = match request {
        Request::Tier { objects, .. } => Some(&objects[..]),
        _ => None,
    };
    let (name, passes) = (place.to_string(), Passes::default());
    let service = Service {
        garden,
        place: &name,
        mounts: &Vec::new(),
        passes: &passes,
        read_only: false,
        objects,
        store: None,
        devices: None,
        live: false,
    };
    service.answer(request, &mut Bars::new(quiet)).map_err(fault)
}

/// A response as the document of a command.
pub fn with_format(format: &str, response: &impl Serialize) -> Result<Value> {
    let mut document = serde_json::to_value(response)?;
    document["format"] = format.into();
    Ok(document)
}

/// The error for a response that belongs to another request.
pub fn strange() -> anyhow::Error {
    failed("the process that serves the mount sent another answer; it may be another version of senesce")
}

/// A process that serves mounts.
struct Server {
    home: PathBuf,
    token: String,
    serves: Serves,
}

impl Server {
    /// The process with a socket in a home. `None`: it has none, it is dead, or it does not answer
    /// in time.
    fn in_home(home: &Path) -> Option<Self> {
        let (token, _) = home.file_name()?.to_str()?.split_once('.')?;
        let client = Client::connect(home, &socket_name(token)).ok()??;
        match client.ask_within(PATIENCE, &SystemClock::start(), &Request::Serves) {
            Ok(Ok(Response::Serves(serves))) => Some(Self { home: home.to_owned(), token: token.to_owned(), serves }),
            _ => None,
        }
    }

    fn connect(&self) -> Result<Client> {
        Client::connect(&self.home, &socket_name(&self.token))?.ok_or_else(|| failed("it ended"))
    }

    /// Writes the cached pages of programs to a volume. The client does this. A server would wait
    /// for itself, because the kernel sends it these pages, and no signal could stop it.
    fn sync(&self, volume: &Name) -> Result<()> {
        let is_written = |mount: &&MountStat| !mount.read_only && mount.volume == volume.lossy();
        for mount in self.serves.mounts.iter().filter(is_written) {
            let seen: Vec<_> = list_mounts()?.into_iter().filter(|seen| is_on(mount, seen.mount.device)).collect();
            match seen.iter().find(|seen| seen.process.is_none()) {
                Some(here) => sync_one(&here.mount.point, &|found| is_on(mount, found.device))?,
                // The mount was removed, so its pages are written.
                None if seen.is_empty() => {}
                None => {
                    let message = format!("volume {volume} is mounted in another mount namespace only");
                    return Err(usage(
                        message,
                        Some("run the command in that namespace: from here the mount cannot be synced"),
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Finds the process that serves a garden, or that serves a mount.
///
/// Errors: something is mounted there by a process that answers no requests.
fn find_server(place: &Place) -> Result<Option<Server>> {
    // Without a registry that this user can trust, no process of this user serves anything.
    let homes = || registry_dir().ok().and_then(|dir| Registry::new(&dir).runs().ok()).unwrap_or_default();
    let homes = || homes().into_iter().filter(|home| home.extension().is_some_and(|extension| extension == "home"));
    if let Some(FoundMount { token, device, .. }) = find_mount(place)? {
        let start = format!("{token}.");
        let is_its =
            |home: &PathBuf| home.file_name().is_some_and(|name| name.as_bytes().starts_with(start.as_bytes()));
        // Any user can forge the source of a mount, but not its device number.
        let is_mounted = |server: &Server| server.serves.mounts.iter().any(|mount| is_on(mount, device));
        return match homes().filter(is_its).find_map(|home| Server::in_home(&home)).filter(is_mounted) {
            Some(server) => Ok(Some(server)),
            None => Err(Failure {
                kind: ErrorKind::Environment,
                message: format!("the process that serves {place} answers no requests"),
                hint: Some(
                    "it may be stopped, or belong to another user; `senesce clean` removes a mount whose process is dead"
                        .to_owned(),
                ),
            }
            .into()),
        };
    }
    let files: Vec<String> = place.files().iter().filter_map(|path| identify(path)).collect();
    let is_its = |server: &Server| server.serves.files.iter().any(|file| files.contains(file));
    let Some(server) = homes().filter_map(|home| Server::in_home(&home)).find(is_its) else { return Ok(None) };
    // Files of two gardens name neither. In a directory of images there may be other files, too.
    let is_foreign = |path: &PathBuf| {
        let is_other = identify(path).is_some_and(|file| !server.serves.files.contains(&file));
        is_other && (!matches!(place, Place::Directory(_)) || is_of_garden(path))
    };
    if place.files().iter().any(is_foreign) {
        let message = format!("a part of {place} is mounted, and another part does not belong to that mount");
        return Err(usage(message, Some("name the drives and the log of one garden, or its mount point")));
    }
    Ok(Some(server))
}

/// A mount whose source has the form of ours. Any user can forge such a source: only the process
/// with the token can confirm the mount.
pub struct FoundMount {
    token: String,
    pub point: PathBuf,
    device: DeviceNumber,
}

/// The mount at a place, if its source has the form of ours.
pub fn find_mount(place: &Place) -> Result<Option<FoundMount>> {
    let (Place::Directory(path) | Place::One(path)) = place else { return Ok(None) };
    // The mount point of a dead process cannot be looked up. It is found by its path.
    let path = fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.clone());
    // Other namespaces have other mounts at this path, and any user can make them. A later mount
    // above it covers it.
    let mounts = LinuxHost::default().mounts()?;
    let found = mounts.iter().rev().find(|mount| path.starts_with(&mount.point));
    let Some(found) = found.filter(|mount| mount.point == path && mount.file_system == "fuse") else { return Ok(None) };
    let token = found.source.to_str().and_then(token_of);
    Ok(token.map(|token| FoundMount { token: token.to_owned(), point: path, device: found.device }))
}

/// The identity of a file or device, which servers and clients compare. It does not depend on the
/// path.
pub fn identify(path: &Path) -> Option<String> {
    // No process serves a file that does not exist.
    let found = fs::metadata(path).ok()?;
    Some(match found.file_type().is_block_device() {
        true => format!("device-{:x}", found.rdev()),
        false => format!("{:x}-{:x}", found.dev(), found.ino()),
    })
}

/// Whether a file is a drive of a garden, or another process holds it.
fn is_of_garden(path: &Path) -> bool {
    let options = FileOptions { read_only: true, ..FileOptions::default() };
    match FileDevice::open(path, Bytes(0), options) {
        Ok(device) => Garden::drive_length(&(Arc::new(device) as Arc<dyn BlockDevice>)).is_ok(),
        Err(_) => true,
    }
}

/// A refusal of a server as an error of this program.
fn refused(refusal: Refusal) -> anyhow::Error {
    let Refusal { kind, mut chain, hint } = refusal;
    let kind = match kind {
        FailureKind::Failed => ErrorKind::Failed,
        FailureKind::Usage => ErrorKind::Usage,
        FailureKind::Environment => ErrorKind::Environment,
        FailureKind::Internal => ErrorKind::Internal,
    };
    let message = chain.pop().unwrap_or_else(|| "the server gave no reason".to_owned());
    let error = anyhow::Error::from(Failure { kind, message, hint });
    chain.into_iter().rev().fold(error, anyhow::Error::context)
}

/// An error of the service as one of this program, with its causes.
pub fn fault(error: Error) -> anyhow::Error {
    match error {
        Error::Garden(error) => error.into(),
        Error::Evergreen(error) => error.into(),
        Error::Fs(error) => error.into(),
        Error::Usage { message, hint } => usage(message, hint.as_deref()),
        Error::Refused { message, hint } => Failure { kind: ErrorKind::Environment, message, hint }.into(),
        Error::While { what, source } => fault(*source).context(what),
    }
}

/// Progress on stderr, and the signals of this process.
pub struct Bars {
    quiet: bool,
    shown: Option<(String, Stretch)>,
}

impl Bars {
    pub fn new(quiet: bool) -> Self {
        Self { quiet, shown: None }
    }
}

impl Task for Bars {
    fn progress(&mut self, what: &str, unit: &str, done: u64, of: u64) {
        // They become parts of a template, and may come from another process.
        let is_plain = |text: &str| text.chars().all(|letter| letter.is_alphabetic() || letter == ' ');
        let (what, unit) = if is_plain(what) && is_plain(unit) { (what, unit) } else { ("working", "steps") };
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != what) {
            self.shown = None; // removes the bar before it draws the next one
            self.shown = Some((what.to_owned(), Stretch::for_stderr(self.quiet, what, unit, of)));
        }
        if let Some((_, bar)) = &mut self.shown {
            bar.reach(done);
        }
    }

    fn is_cancelled(&mut self) -> bool {
        interrupted().is_some()
    }
}
