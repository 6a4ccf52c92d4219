//! The meaning of these parts: defaults are filled in, conflicts are found, and every refusal names the flag.

pub mod destination;
mod door;
pub mod list;
pub mod memory;
mod nbd;
pub mod order;
mod progress;
pub mod report;
mod threads;

pub use destination::Destination;
pub use door::DoorConfig;
pub use memory::{machine_bytes, memory_bytes};
pub use merganser_sort::files::view_name;
pub use nbd::NbdConfig;
pub use order::{flags as order_flags, order, words as order_words};
pub use progress::progress_form;
pub use report::{ReportConfig, ReportForm};
pub use threads::threads;
