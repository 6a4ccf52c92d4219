//! Looks for bytes that break a promise of `whole_sort` (`quality/fuzz/src/whole_sort.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("whole_sort", bytes));
