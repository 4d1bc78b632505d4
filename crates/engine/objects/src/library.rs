//! Stores of the `object_store` library, whose calls are asynchronous: each is waited for here.

use std::{fs, future::Future, ops::Range, os::unix::fs::MetadataExt, path::Path as FilePath, path::PathBuf};

use object_store::{GetOptions, ObjectStore as Library, ObjectStoreExt, local::LocalFileSystem, path::Path};
use tokio::runtime::{Builder, Runtime};

use crate::{ObjectError, ObjectOperation, ObjectResult, ObjectStore, error::ABSENT};

/// A store of the library.
#[derive(Debug)]
pub struct LibraryObjects {
    name: String,
    store: Box<dyn Library>,
    runtime: Runtime,
    directory: Option<Directory>,
}

/// A directory, and which one it was when it was opened. Another one in its place, such as that on which it was mounted, would
/// take objects that nobody finds when it is back.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl Directory {
    fn identity(path: &FilePath) -> std::io::Result<(u64, u64)> {
        fs::metadata(path).map(|found| (found.dev(), found.ino()))
    }

    /// Errors: why it is not the one that was opened.
    fn look(&self) -> Result<(), String> {
        match Self::identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err("another directory is in its place".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl LibraryObjects {
    /// Objects as files of a directory, which is made. What is put is synchronised with its directory. While it is gone, or another
    /// one in its place, all calls fail.
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
        let path = dir.canonicalize().map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| failed(&error))?.with_fsync(true);
        let identity = Directory::identity(&path).map_err(|error| failed(&error))?;
        let objects = Self::over(name.clone(), Box::new(store))?;
        Ok(Self { directory: Some(Directory { path, identity }), ..objects })
    }

    /// Errors: the system has no place for what waits.
    pub(crate) fn over(name: String, store: Box<dyn Library>) -> ObjectResult<Self> {
        match Builder::new_current_thread().enable_time().build() {
            Ok(runtime) => Ok(Self { name, store, runtime, directory: None }),
            Err(error) => Err(ObjectError {
                store: name,
                operation: ObjectOperation::Open,
                key: String::new(),
                problem: error.to_string(),
            }),
        }
    }

    /// Asks for nothing but an answer: errors of a store that cannot be used are those of opening it.
    pub(crate) fn knock(&self) -> ObjectResult<()> {
        let listed = async { self.store.list_with_delimiter(None).await };
        self.wait(ObjectOperation::Open, "", listed).map(drop)
    }

    fn wait<T>(
        &self,
        operation: ObjectOperation,
        key: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> ObjectResult<T> {
        let failed =
            |problem: String| ObjectError { store: self.name.clone(), operation, key: key.to_owned(), problem };
        if let Some(directory) = &self.directory {
            directory.look().map_err(failed)?;
        }
        self.runtime.block_on(call).map_err(|error| failed(explain(&error)))
    }
}

/// What a store says, in words.
fn explain(error: &object_store::Error) -> String {
    let told = error.to_string();
    let between = |from: &str, to: &str| Some(told.split_once(from)?.1.split_once(to)?.0);
    // The answer of a cloud is XML.
    let code = between("<Code>", "</Code>");
    let is_locked = told.contains("401 Unauthorized") || told.contains("403 Forbidden");
    match (error, code) {
        (_, Some("NoSuchBucket")) => "there is no such bucket".to_owned(),
        (object_store::Error::NotFound { .. }, _) => ABSENT.to_owned(),
        (_, Some(code)) if is_locked => {
            format!("it does not let us in: {code}: {}", between("<Message>", "</Message>").unwrap_or_default())
        }
        _ => told,
    }
}

/// Whether a range was refused because the object ends before it.
fn is_behind_the_end(error: &object_store::Error) -> bool {
    let told = error.to_string();
    told.contains("416 Range Not Satisfiable") || told.contains("Requested range was invalid")
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
            if range.is_empty() {
                return self.store.head(&path).await.map(|_| Vec::new());
            }
            let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
            match self.store.get_opts(&path, options).await {
                Ok(found) => Ok(found.bytes().await?.to_vec()),
                Err(error) if is_behind_the_end(&error) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
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
