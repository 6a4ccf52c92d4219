//! Merging: many sorted segments in, one ordered stretch of bytes out.
//!
//! ```text
//!   segments  the runs, in tie order, and how to compare their records
//!   exact   whole keys of fences, where the cut ones leave a place open
//!   plan    walks all fences in key order and cuts the output into windows of bounded memory
//!   window  the blocks of every run that one window needs: all asked for at once, merged when there
//!   tree    the loser tree
//!   kernel  what is in memory, merged by it
//!   width   how many key bytes it compares first
//!   sizes   how large windows are, within a budget
//!   stream  windows merged on all cores, handed out in order
//!   sorted_inputs  files that are sorted but have no fences (`sort -m`)
//!   step    the kernel for callers with their own buffers, step by step
//!   ifile   segments of Hadoop's map outputs, which fill themselves
//! ```
//!
//! A merge here has no read-ahead to tune. The fences say beforehand which blocks every part of the
//! output needs (Knuth's forecasting, TAOCP 5.4.9, for all runs at once), so a window submits all of
//! its reads together: the device serves them in whatever order its channels are free, which is
//! ActiveSort's rule (4.1.3) of never waiting for a busy channel while another could work. Windows
//! know nothing of each other, so they are merged on as many cores as there are.
//!
//! So random reads, streams and parallel file output are one piece of code, and skew costs nothing, because a
//! window is bounded in blocks and not in blocks per run. The price: a window needs about four blocks of every run,
//! which bounds the fan-in. More runs than that are merged in an extra pass.

pub(crate) mod exact;
#[doc(hidden)]
pub mod ifile;
pub(crate) mod kernel;
pub(crate) mod plan;
pub(crate) mod segments;
pub(crate) mod sizes;
mod sorted_inputs;
#[doc(hidden)]
pub mod step;
pub(crate) mod stream;
pub(crate) mod tree;
mod width;
pub(crate) mod window;

#[doc(hidden)]
pub use kernel::MergeCount;
pub use sorted_inputs::{MergedPiece, Merging, merge_sorted};
