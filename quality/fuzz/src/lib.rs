//! Promises of decoders, protocols and whole sorts, for any bytes: each module is one target, which panics if a promise
//! is broken.
//!
//! libFuzzer looks for such bytes with `make fuzz` (`quality/fuzz/libfuzzer/`). The tests of this crate try each target
//! on changed examples for a second, without the compiler and the sanitizer that libFuzzer needs.

use arbitrary::{Arbitrary, Unstructured};

/// A target, and what it is tried on.
pub struct Target {
    /// The name of its module, and of its program for libFuzzer.
    pub name: &'static str,
    /// Tries one input. It panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs that get far, to be changed. Formats that a few numbers describe need none.
    pub examples: fn() -> Vec<Vec<u8>>,
}

/// Declares a module for each target, and the list of all.
macro_rules! targets {
    ($($(#[$when:meta])? $name:ident, $examples:expr;)*) => {
        $($(#[$when])? mod $name;)*

        /// All targets.
        pub const TARGETS: &[Target] = &[
            $($(#[$when])? Target { name: stringify!($name), run: $name::run, examples: $examples },)*
        ];
    };
}

targets! {
    array, Vec::new;
    array_volume, Vec::new;
    blast_archive, Vec::new;
    bucket_file, Vec::new;
    descriptor, Vec::new;
    frames, frames::examples;
    #[cfg(feature = "guests")] guests, Vec::new;
    hdfs, Vec::new;
    ifile, Vec::new;
    journals, journals::examples;
    keys, Vec::new;
    manifest, manifest::examples;
    nbd, Vec::new;
    numbers_and_versions, Vec::new;
    pipeline_journal, pipeline_journal::examples;
    records, Vec::new;
    run_file, Vec::new;
    sequences, Vec::new;
    sessions_wire, sessions_wire::examples;
    shuffle_wire, Vec::new;
    sorted_files, sorted_files::examples;
    table_view, table_view::examples;
    traces, traces::examples;
    unpacking, Vec::new;
    whole_sort, Vec::new;
}

/// Tries one input on the target of this name.
///
/// # Panics
/// If a promise is broken, or no target has this name.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of this name").run)(bytes);
}

/// A value that all of these bytes stand for; nothing if they are too few.
fn value_of<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    let least = T::size_hint(0).0;
    if bytes.len() < least { None } else { T::arbitrary_take_rest(Unstructured::new(bytes)).ok() }
}

/// A golden file without its last line, the checksum, which the target writes itself.
fn without_checksum(golden: &str) -> Vec<u8> {
    let end = golden.trim_end().rfind('\n').map_or(golden.len(), |end| end + 1);
    golden.as_bytes()[..end].to_vec()
}
