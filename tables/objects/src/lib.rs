//! Tables in object stores: S3, Google Cloud Storage, Azure and servers of files.
//!
//! ```text
//!   address    s3://bucket/in/*.parquet          connect, aws_profile   settings and credentials of other tools
//!   find       ─► objects, in order              requests               threads of tokio; waits that can be cancelled
//!   read       ranges of an object that stays    sentence               why it failed, without secrets
//!   upload     ─► an object, or nothing
//! ```
//!
//! The door is [`ObjectStores`]. What it finds are inputs of [`merganser_tables::Table`], which decides what is read, and when:
//! this crate knows no formats. What it writes is whole or not there: the parts of an upload are no object before it is
//! completed, which is the last step. A note in a folder of this machine names an upload as long as it is open, so that one that
//! a killed process left can be found, and aborted by the next process that makes the same result.
//!
//! This is the only crate with `object_store`, and no thread of tokio leaves it.

mod address;
mod aws_profile;
mod connect;
mod error;
mod find;
mod read;
mod requests;
mod sentence;
mod stores;
mod upload;

pub use error::ObjectsError;
pub use stores::ObjectStores;
pub use upload::{ObjectFolder, ObjectWriter, UploadPlan};
