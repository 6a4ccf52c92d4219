//! Merges of spills and map tasks on blocks: one program for all tests, because each program links the crate again.

mod frames; // a client of requests and frames, for the tests
mod hdfs; // map tasks on blocks of HDFS
mod shuffle; // merges of spill segments
mod shuffle_server; // the server of the merge process, and clients that mean no good
