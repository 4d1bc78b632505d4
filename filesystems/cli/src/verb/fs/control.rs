//! The control socket of a mount: it lives in the private directory of the mount's journal, and
//! goes with it.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{AcqRel, Release},
        },
    },
    thread::{self, Scope, Thread},
};

use anyhow::{Context, Result};
use senesce_fuse::Alarm;
use senesce_garden::Garden;
use senesce_objects::ObjectStore;
use senesce_service::{
    Devices, Failure, Passes, Request, Response,
    garden::Service,
    socket::{Connection, Server},
};
use senesce_volume::{Custodian, FileId, Resource, ResourceId};

use super::{
    mounts::Mounts,
    send_request::{fault, identify},
};
use crate::{clock::SystemClock, exit::refusal_of};

/// A socket that was bound and is in the journal.
pub struct Control<'a> {
    server: Server,
    custodian: &'a Custodian,
    id: ResourceId,
}

/// A control socket that is served until this is dropped.
pub struct Serving<'a>(&'a Server);

/// The state with which a mount of a garden answers requests.
pub struct Mounted<'a> {
    pub garden: &'a Garden,
    /// The garden's name in messages.
    pub place: String,
    /// The files and devices that it holds.
    pub files: Vec<String>,
    pub mounts: Mounts,
    pub passes: Passes,
    pub read_only: bool,
    /// The store of objects that it was opened with.
    pub objects: Option<String>,
    pub store: Option<Arc<dyn ObjectStore>>,
    pub devices: Devices,
    pub wake: Wake,
}

/// Requests that change something wake the thread that holds the mount, as calls of programs do.
pub struct Wake {
    holder: Thread,
    is_changed: AtomicBool,
}

/// The name of a process' socket in the home of its journal.
pub fn socket_name(token: &str) -> String {
    format!("control.{token}")
}

/// The names of files and devices that a process holds; those that it only reads are not
/// its own.
pub fn held_files(files: Vec<PathBuf>, read_only: bool) -> Vec<String> {
    if read_only { Vec::new() } else { files.iter().filter_map(|path| identify(path)).collect() }
}

impl<'a> Control<'a> {
    /// Binds the socket of this process.
    pub fn bind(custodian: &'a Custodian) -> Result<Self> {
        // A journal holds paths without links only.
        let dir = fs::canonicalize(custodian.dir()).context("cannot look up the directory of the journal")?;
        let name = socket_name(custodian.token());
        let path = dir.join(&name);
        let resource = Resource::File { path: path.clone() };
        let clock = Arc::new(SystemClock::start());
        let mut server = None;
        let (id, _) = custodian.acquire_file(resource, |_| {
            let failed =
                |source| senesce_volume::Error::Io { operation: "bind the control socket", path: path.clone(), source };
            server = Some(Server::bind(&dir, &name, clock).map_err(failed)?);
            let found = fs::symlink_metadata(&path).map_err(failed)?;
            Ok(FileId { device: found.dev(), inode: found.ino() })
        })?;
        let server = server.context("the control socket was not bound")?;
        Ok(Self { server, custodian, id })
    }

    /// Answers requests in threads of a scope until the result is dropped. Then requests under way
    /// end after their step.
    pub fn serve<'scope, A>(&'scope self, scope: &'scope Scope<'scope, '_>, answer: &'scope A) -> Serving<'scope>
    where
        A: Fn(Request, &mut Connection) -> Result<Response, Failure> + Sync + 'scope,
    {
        scope.spawn(move || self.server.serve(scope, answer));
        Serving(&self.server)
    }
}

impl Drop for Control<'_> {
    fn drop(&mut self) {
        // A resource that is not released stays in the journal, for `senesce clean`.
        let _ = self.custodian.release(self.id);
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Wake {
    /// Wakes the calling thread.
    pub fn of_this_thread() -> Self {
        Self { holder: thread::current(), is_changed: AtomicBool::new(false) }
    }

    fn note_change(&self) {
        self.is_changed.store(true, Release);
        self.holder.unpark();
    }

    /// Raises the alarm of the mount if a request changed something.
    pub fn pass_on(&self, alarm: &Alarm) {
        if self.is_changed.swap(false, AcqRel) {
            alarm.note_change();
        }
    }
}

impl Mounted<'_> {
    /// Answers a request.
    pub fn answer(&self, request: &Request, connection: &mut Connection) -> Result<Response, Failure> {
        let service = Service {
            garden: self.garden,
            place: &self.place,
            mounts: &self.mounts,
            passes: &self.passes,
            read_only: self.read_only,
            objects: self.objects.as_deref(),
            store: self.store.as_ref(),
            devices: Some(&self.devices),
            live: true,
        };
        let answer = service.answer(request, connection).map_err(|error| refusal_of(&fault(error)));
        if request.changes() {
            self.wake.note_change();
        }
        match answer {
            Ok(Response::Serves(mut serves)) => {
                serves.files.clone_from(&self.files);
                Ok(Response::Serves(serves))
            }
            answer => answer,
        }
    }
}
