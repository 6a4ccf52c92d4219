//! Looks for bytes that break a promise of `bucket_file` (`quality/fuzz/src/bucket_file.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("bucket_file", bytes));
