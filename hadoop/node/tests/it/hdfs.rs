//! Map tasks on blocks of HDFS: whole maps, replicas that are damaged, and clients that mean no good.
//!
//! ```text
//!   support   a DataNode's folder, files in blocks, spills read back
//!   maps      the result of a map against a simple one
//!   clients   the server, its limits, hostile clients
//! ```

mod clients;
mod maps;
mod support;
