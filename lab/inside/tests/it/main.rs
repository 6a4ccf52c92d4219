//! Programs inside devices: one program for all tests, because each program links the crate again.

mod active_sort; // ActiveSort: formats, keys, chunks, reads, failing devices
mod isc; // SSDlets in sessions over storage in memory and in a modelled SSD
mod place; // files of a real ext4, read by their addresses; needs root
