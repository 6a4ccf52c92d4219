//! Looks for bytes that break a promise of `shuffle_wire` (`quality/fuzz/src/shuffle_wire.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("shuffle_wire", bytes));
