//! What runs next to Hadoop's own processes of a node.
//!
//! - [`shuffle`] merges the spills of maps while reducers fetch them, next to the NodeManager.
//! - [`hdfs`] runs map tasks on the blocks of this node, next to the DataNode.
//!
//! `message` and `talk` are what the two protocols have in common. Their clients are in Java (`hadoop/java`).

pub mod hdfs;
mod message;
pub mod shuffle;
mod talk;
