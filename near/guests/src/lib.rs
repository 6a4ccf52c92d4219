//! Options and limits of guests, for the commands that run them. Guests are SSDlets in WebAssembly.
//!
//! ```text
//!   args     the options that limit a guest
//!   limits   what they mean
//!   judge    what a compiler says about a stranger's module
//! ```

mod args;
mod judge;
mod limits;

pub use args::GuestArgs;
pub use judge::judged;
pub use limits::{flag, limits, of_engine};
