//! Looks for bytes that break a promise of `hdfs` (`quality/fuzz/src/hdfs.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("hdfs", bytes));
