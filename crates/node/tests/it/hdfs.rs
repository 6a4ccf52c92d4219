//! Map tasks on blocks of HDFS: whole maps, replicas that are damaged, and clients that mean no good.
//!
//! ```text
//!   frames    a client of requests and frames
//!   support   a DataNode's folder, files in blocks, spills read back
//!   maps      the result of a map against a simple one
//!   clients   the server, its limits, hostile clients
//! ```

#[path = "hdfs/clients.rs"]
mod clients;
mod frames;
#[path = "hdfs/maps.rs"]
mod maps;
#[path = "hdfs/support.rs"]
mod support;
