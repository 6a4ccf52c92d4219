//! Looks for bytes that break a promise of `sessions_wire` (`quality/fuzz/src/sessions_wire.rs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| merganser_fuzz::run("sessions_wire", bytes));
