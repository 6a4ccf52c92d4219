//! A node without its network: one program for all tests, because each program links the crate again.

mod active_sort; // ActiveSort: formats, keys, chunks, reads, failing devices
mod blast_archive; // archives of BLAST, merged
mod builtin; // the built-in SSDlets against naive models, cut anywhere
mod frames; // a client of requests and frames, for the tests
mod hdfs; // map tasks on blocks of HDFS
mod isc; // SSDlets in sessions over storage in memory and in a modelled SSD
mod map; // the map engine against naive models
mod matrix; // products of matrices
mod pipeline_journal; // the journal of a pipeline: golden bytes, cuts, damage
mod place; // files of a real ext4, read by their addresses; needs root
mod session_wire; // golden bytes of the JSON of sessions
mod sessions; // the life and the limits of sessions
mod shuffle; // merges of spill segments
mod shuffle_server; // the server of the merge process, and clients that mean no good
mod smart_fam; // smartFAM: kills, torn records, a full disk, too few open files
mod virtual_time; // the engine on a modelled SSD: right results, repeatable times
