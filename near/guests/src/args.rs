//! The limits of guests: options of every command that runs WebAssembly.

use clap::Args;
use merganser_shell::args::TypedSize;

/// What a guest may use.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Guests")]
pub struct GuestArgs {
    /// A guest, an SSDlet in WebAssembly, may use this much fuel for each byte of a chunk, in addition to
    /// 200,000,000 for each call; one instruction takes about 1 [default: 10000]
    #[arg(long, value_name = "N")]
    pub fuel_per_byte: Option<u64>,

    /// The longest that one call of a guest may take, in seconds [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time_limit: Option<f64>,

    /// The most memory that a guest may declare for one worker [default: 256M]
    #[arg(long, value_name = "SIZE")]
    pub guest_memory: Option<TypedSize>,
}
