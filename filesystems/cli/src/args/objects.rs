//! Arguments about objects of a garden.

use std::{
    ffi::OsString,
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use clap::{
    Args, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use senesce_objects::S3Place;

/// Where objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectsPlace {
    /// In a directory.
    Directory(PathBuf),
    /// In a bucket of a store that speaks the protocol of S3.
    S3(S3Place),
}

impl ObjectsPlace {
    /// A directory, or `s3://BUCKET/PREFIX`. Errors: no name of a bucket.
    fn parse(text: OsString) -> Result<Self, String> {
        let Some(rest) = text.as_bytes().strip_prefix(b"s3://") else { return Ok(Self::Directory(text.into())) };
        let rest = str::from_utf8(rest).map_err(|_| "the names of a bucket and of keys are UTF-8".to_owned())?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let may_be = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if bucket.len() < 3 || !bucket.bytes().all(may_be) {
            return Err(format!(
                "{bucket:?} is no bucket: a name has at least 3 small letters, digits, dots and hyphens"
            ));
        }
        let prefix = prefix.trim_matches('/');
        if prefix.split('/').any(|word| word.is_empty() && !prefix.is_empty() || word == "." || word == "..") {
            return Err(format!("{prefix:?} is no prefix of keys: it has words between slashes"));
        }
        Ok(Self::S3(S3Place { bucket: bucket.to_owned(), prefix: prefix.to_owned() }))
    }

    fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(Self::parse)
    }

    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(dir) => Some(dir),
            Self::S3(_) => None,
        }
    }
}

impl fmt::Display for ObjectsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => write!(f, "{}", dir.display()),
            Self::S3(place) => write!(f, "{place}"),
        }
    }
}

/// Where the objects of an aggregate are.
#[derive(Clone, Debug, Args)]
pub struct FsObjectsArgs {
    /// The objects of `fs tier`: DIRECTORY or s3://BUCKET/PREFIX.
    ///
    /// Without this option cold blocks cannot be read; all other blocks can.
    #[arg(long, value_name = "STORE", value_parser = ObjectsPlace::parser())]
    pub objects: Option<ObjectsPlace>,
}

/// The store of objects, as the verb that writes objects needs it.
#[derive(Clone, Debug, Args)]
pub struct FsNewObjectsArgs {
    /// The store of objects: DIRECTORY or s3://BUCKET/PREFIX.
    ///
    /// A directory is made the first time. A bucket must exist. The key of an S3 store is
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), and its region AWS_REGION.
    /// AWS_ENDPOINT_URL is its URL if it is not Amazon's. Later verbs need this option to read
    /// cold blocks.
    #[arg(long, value_name = "STORE", value_parser = ObjectsPlace::parser())]
    pub objects: ObjectsPlace,
}

/// A price list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PricesArg {
    /// Amazon S3 Standard.
    S3,
    /// Azure Blob Storage, hot.
    Azure,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let parsed = |text: &str| ObjectsPlace::parse(text.into());
        let bucket = |bucket: &str, prefix: &str| {
            Ok(ObjectsPlace::S3(S3Place { bucket: bucket.to_owned(), prefix: prefix.to_owned() }))
        };
        assert_eq!(parsed("s3://lab"), bucket("lab", ""));
        assert_eq!(parsed("s3://lab/"), bucket("lab", ""));
        assert_eq!(parsed("s3://lab.7/of/two/"), bucket("lab.7", "of/two"));
        assert_eq!(parsed("s3://lab/of").unwrap().to_string(), "s3://lab/of");
        assert_eq!(parsed("some/s3:"), Ok(ObjectsPlace::Directory("some/s3:".into())));
        for bad in ["s3://", "s3:///of", "s3://Lab", "s3://lab/a//b", "s3://lab/../b"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
