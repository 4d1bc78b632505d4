//! Stores of the `object_store` library, whose calls are asynchronous: each is waited for here.

use std::{fs, future::Future, ops::Range, path::Path as FilePath};

use object_store::{ObjectStore as _, ObjectStoreExt, local::LocalFileSystem, path::Path};
use tokio::runtime::{Builder, Runtime};

use crate::{ObjectError, ObjectOperation, ObjectResult, ObjectStore};

/// A store of the library.
#[derive(Debug)]
pub struct LibraryObjects {
    name: String,
    store: LocalFileSystem,
    runtime: Runtime,
}

impl LibraryObjects {
    /// Objects as files of a directory, which is made. What is put is synchronised with its directory.
    ///
    /// Errors: the directory cannot be made or looked at.
    pub fn directory(dir: &FilePath) -> ObjectResult<Self> {
        let name = dir.display().to_string();
        let failed = |problem: &dyn std::fmt::Display| ObjectError {
            store: name.clone(),
            operation: ObjectOperation::Open,
            key: String::new(),
            problem: problem.to_string(),
        };
        fs::create_dir_all(dir).map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(dir).map_err(|error| failed(&error))?;
        let runtime = Builder::new_current_thread().build().map_err(|error| failed(&error))?;
        Ok(Self { store: store.with_fsync(true), runtime, name })
    }

    fn wait<T>(
        &self,
        operation: ObjectOperation,
        key: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> ObjectResult<T> {
        self.runtime.block_on(call).map_err(|error| ObjectError {
            store: self.name.clone(),
            operation,
            key: key.to_owned(),
            problem: match error {
                object_store::Error::NotFound { .. } => "there is no such object".to_owned(),
                error => error.to_string(),
            },
        })
    }
}

impl ObjectStore for LibraryObjects {
    fn name(&self) -> &str {
        &self.name
    }

    fn put(&self, key: &str, bytes: &[u8]) -> ObjectResult<()> {
        let (path, bytes) = (Path::from(key), bytes.to_vec());
        self.wait(ObjectOperation::Put, key, async { self.store.put(&path, bytes.into()).await.map(|_| ()) })
    }

    fn get_range(&self, key: &str, range: Range<u64>) -> ObjectResult<Vec<u8>> {
        let path = Path::from(key);
        let read = async {
            let length = self.store.head(&path).await?.size;
            if range.start >= length || range.is_empty() {
                return Ok(Vec::new());
            }
            let bytes = self.store.get_range(&path, range.start..range.end.min(length)).await?;
            Ok(bytes.to_vec())
        };
        self.wait(ObjectOperation::Get, key, read)
    }

    fn delete(&self, key: &str) -> ObjectResult<()> {
        let path = Path::from(key);
        let deleted = async {
            match self.store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                done => done,
            }
        };
        self.wait(ObjectOperation::Delete, key, deleted)
    }

    fn list(&self, under: &str) -> ObjectResult<Vec<String>> {
        let path = Path::from(under);
        let listed =
            self.wait(ObjectOperation::List, under, async { self.store.list_with_delimiter(Some(&path)).await })?;
        let mut keys: Vec<String> = listed.objects.into_iter().map(|object| object.location.to_string()).collect();
        keys.sort();
        Ok(keys)
    }
}
