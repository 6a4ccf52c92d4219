//! The clients that may reach an NBD server.

use clap::Args;

/// The protection of exports at an address that other machines can reach.
#[derive(Debug, Args)]
pub struct NbdArgs {
    /// Serve other machines without protection: whoever reaches the port can read all data, and change what
    /// is writable
    #[arg(long, requires = "nbd", help_heading = "Other machines")]
    pub insecure: bool,
}
