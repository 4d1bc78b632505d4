//! Stores of the `object_store` library, whose calls are asynchronous: each call blocks here.

use std::{
    fs,
    future::Future,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object_store::{ObjectStore as Library, local::LocalFileSystem};
use tokio::runtime::{Builder, Runtime};

use crate::{ObjectError, ObjectErrorKind, ObjectOperation, ObjectResult, s3::explain};

/// A store of the library.
#[derive(Debug)]
pub struct LibraryObjects {
    pub(crate) name: String,
    pub(crate) store: Box<dyn Library>,
    runtime: Runtime,
    directory: Option<Directory>,
}

/// A directory and its identity when it was opened. Another directory in its place, such as its
/// mount point after an unmount, would receive objects that are lost once the right one is back.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Directory {
    fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
        fs::metadata(path).map(|found| (found.dev(), found.ino()))
    }

    /// Errors: the reason why it is not the directory that was opened.
    fn look(&self) -> Result<(), String> {
        match Self::identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err("another directory is in its place".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl LibraryObjects {
    /// Objects as files of a directory, which is created if needed. A put syncs the file and its
    /// directory. If the directory is missing or replaced, all calls fail.
    ///
    /// Errors: the directory cannot be created or read.
    pub fn directory(dir: &Path) -> ObjectResult<Self> {
        let name = dir.display().to_string();
        let failed = |problem: &dyn std::fmt::Display| ObjectError::cannot_open(&name, problem);
        fs::create_dir_all(dir).map_err(|error| failed(&error))?;
        let path = dir.canonicalize().map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| failed(&error))?.with_fsync(true);
        let identity = Directory::identity(&path).map_err(|error| failed(&error))?;
        let objects = Self::over(name.clone(), Box::new(store))?;
        Ok(Self { directory: Some(Directory { path, identity }), ..objects })
    }

    /// Errors: the operating system cannot create the runtime.
    pub(crate) fn over(name: String, store: Box<dyn Library>) -> ObjectResult<Self> {
        match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => Ok(Self { name, store, runtime, directory: None }),
            Err(error) => Err(ObjectError::cannot_open(&name, &error)),
        }
    }

    pub(crate) fn wait<T>(
        &self,
        operation: ObjectOperation,
        key: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> ObjectResult<T> {
        let failed = |kind, problem: String| {
            let (store, key) = (self.name.clone(), key.to_owned());
            ObjectError { store, operation, key, kind, problem }
        };
        if let Some(directory) = &self.directory {
            directory.look().map_err(|problem| failed(ObjectErrorKind::Away, problem))?;
        }
        self.runtime.block_on(call).map_err(|error| {
            let (kind, problem) = explain(&error);
            failed(kind, problem)
        })
    }
}
