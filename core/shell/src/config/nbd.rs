//! The settings of an NBD server.

use merganser_export::nbd::Address;

use crate::args::NbdArgs;
use crate::failure::Failure;

/// Where clients of NBD connect, and what protects the exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdConfig {
    /// Where to listen.
    pub address: Address,
    /// Whether other machines may connect without a secret.
    pub insecure: bool,
}

impl NbdConfig {
    /// The address as it was typed after `--nbd`, and the options that go with it.
    pub fn new(address: &str, typed: &NbdArgs) -> Result<Self, Failure> {
        let address = address.parse().map_err(|why| format!("--nbd: {why}"))?;
        Ok(NbdConfig { address, insecure: typed.insecure })
    }
}
