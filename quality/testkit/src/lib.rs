//! Helpers for tests of sorters and storages.
//!
//! - [`patterns`] makes records whose keys hurt: sorted, reversed, all equal, long common prefixes,
//!   NULs, nothing at all.
//! - [`oracle`] judges every sorted output: order, permutation, stability.
//! - [`examples`] finds the command lines in help texts.
//! - [`faulty`] wraps a directory that fails as a seed says, and forgets data that was not synced.
//! - [`within`] fails a test that would hang.
//! - [`has`] says whether another program can be run, [`has_blast`] whether BLAST+ can; [`install_program`] copies one.
//! - [`program`] is the `merganser` that was built, and [`check_program`] holds one against the rules of all programs.
//! - [`word_counts`] reads the rows of a word count.
//!
//! Everything is drawn from a seed with [`Random`], and every complaint names it.
//!
//! ```
//! use merganser_testkit::oracle;
//! use merganser_testkit::patterns::{RecordLayout, Pattern, SampleInput};
//!
//! let sample = SampleInput::new(Pattern::FewDistinct, RecordLayout::Keyed, 100, 42);
//! let mut sorted = sample.records.clone();
//! sorted.sort_by(|a, b| sample.layout.key(a).cmp(&sample.layout.key(b)));
//! oracle::check_sample(&sample, &sorted.concat());
//! ```

pub mod examples;
pub mod faulty;
pub mod oracle;
mod outlines;
pub mod patterns;
mod programs;
mod watchdog;
mod words;

pub use merganser_random::Random;
pub use outlines::check_program;
pub use programs::{has, has_blast, install_program, program};
pub use watchdog::within;
pub use words::word_counts;
