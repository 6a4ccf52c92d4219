//! Map tasks of Hadoop, on the node where their blocks are (the ISC paper's mapper in the device, section 3).
//!
//! ```text
//!   map task (Java)                       this process, the DataNode's user
//!   request ──► server ──► replica ──► block ──► split ──► mapper ──► output ──► frames ──► map task
//!               admission  blk_N below  .meta    records    keys,     table,     the bytes  writes them
//!               limits     the folder   checked  as Hadoop  values    spills     of spills
//!                          of the data           has them
//! ```
//!
//! The result is what the task would have written itself: the records of a split are those of Hadoop's
//! `LineRecordReader`, words those of Java's `StringTokenizer`, partitions those of `HashPartitioner`, and a
//! spill has the bytes of a sorted `IFile` (version 3.4.2 of Hadoop). A map that can't be like that is
//! refused before it begins, and the task runs its own mapper.
//!
//! ```text
//!   request, protocol         messages             replica, meta, block   files of HDFS, checked
//!   delimiter, split, batch   records of a split   java_text              texts as Java decodes them
//!   mapper/                   the programs         output, ifile          table, spills
//!   task                      one map              server, answer         many, for clients
//!   module                    SSDlets that jobs bring
//!   counts                    what the process did since it started
//! ```
//!
//! A map takes one thread and a fixed memory, and writes no file: whole records pass from a block to the mapper in
//! batches, without a copy; a full table is sorted by partition and key, and its rows are framed while they leave.
//! Maps get their turns from the admission that sessions have, too.

mod answer;
mod batch;
mod block;
mod counts;
mod delimiter;
mod error;
mod ifile;
mod java_text;
mod mapper;
pub mod meta;
mod module;
mod output;
mod partition;
pub mod protocol;
mod replica;
mod request;
pub mod server;
mod split;
mod task;

pub use error::{HdfsBlock, HdfsError, HdfsResult};
pub use ifile::{SegmentIndex, Sink};
pub use module::{Compile, MODULE_BYTES_MAX, Modules};
pub use replica::{DataDirs, FolderState};
pub use request::{
    BlockRange, Codec, CombineKind, MapRequest, Order, Partitioner, SsdletName, Writable,
};
pub use task::{MapCounters, MapTask};
