//! The SSDlet of a name or a file.

use std::path::Path;

use merganser_map::ssdlet::{Alone, Ssdlet, SsdletError, builtin};
use merganser_serve::session::GuestLimits;
use merganser_shell::failure::Failure;
use serde_json::Value;

use crate::config::ProgramName;
use crate::sentences::Told;

/// Opens an SSDlet with its arguments, within `memory_bytes`: nothing else is in memory yet.
///
/// # Errors
/// When no SSDlet has this name, or its arguments make no sense.
pub(super) fn open(
    name: &ProgramName,
    args: &Value,
    limits: GuestLimits,
    memory_bytes: u64,
) -> Result<Box<dyn Ssdlet>, Failure> {
    let lender = Alone { memory_bytes };
    match name {
        ProgramName::Builtin(name) | ProgramName::OfNodes(name) => {
            match builtin::open_within(name, args, &lender) {
                Err(SsdletError::Unknown { name }) => {
                    let known: Vec<_> = builtin::ALL.iter().map(|builtin| builtin.name).collect();
                    Err(format!(
                        "there is no SSDlet named '{name}': choose {} or a FILE.wasm",
                        known.join(", ")
                    )
                    .into())
                }
                opened => opened.map_err(Told::told),
            }
        }
        ProgramName::Wasm(path) => wasm(path, args, limits, &lender),
    }
}

/// Opens an SSDlet in WebAssembly. Its arguments are a text.
fn wasm(
    path: &Path,
    args: &Value,
    limits: GuestLimits,
    lender: &Alone,
) -> Result<Box<dyn Ssdlet>, Failure> {
    let limits = merganser_guests::of_engine(limits);
    let module = crate::command::ssdlet::read(path, limits.module_bytes)?;
    let args = args.as_str().unwrap_or_default().as_bytes();
    match merganser_wasm::open_within(&module, args, limits, lender) {
        Ok(ssdlet) => Ok(Box::new(ssdlet)),
        Err(error) => Err(crate::command::ssdlet::failure(path, error)),
    }
}
