//! Helpers for tests: volumes on loop devices, a failing disk, mount namespaces, an S3 server and
//! schemas of outputs. A dev-dependency only.

mod apart;
mod done;
mod failing;
mod root;
mod s3;
mod schemas;
mod tracefs;
mod volume;

pub use apart::apart;
pub use done::Done;
pub use failing::FailingDisk;
pub use root::{found_or_skip, root_or_skip};
pub use s3::{S3_BUCKET, S3_KEY_ID, S3Mood, S3Server};
pub use schemas::{
    FOREIGN_SCHEMAS, SchemaChecker, check_document, check_json, check_printed, read_schema, schemas_directory,
};
pub use tracefs::tracefs;
pub use volume::{Volume, VolumeOptions, run, scratch_directory, unmount, unmount_patiently};
