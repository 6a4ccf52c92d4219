//! Variables of the environment that take the place of options that are left out: for containers and profiles of shells.

use std::fmt::Display;
use std::str::FromStr;

use crate::failure::Failure;

/// For `--memory`.
pub(super) const MEMORY: &str = "MERGANSER_MEMORY";
/// For `--threads`.
pub(super) const THREADS: &str = "MERGANSER_THREADS";
/// For `--temp-dir`; several folders are separated by colons.
pub(super) const TEMP_DIR: &str = "MERGANSER_TEMP_DIR";

/// The value of a variable; `None` if it is not set, or empty.
///
/// # Errors
/// A sentence that names the variable, if it can't be read.
pub(super) fn read<T: FromStr<Err: Display>>(name: &str) -> Result<Option<T>, Failure> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let read = match value.to_str() {
        Some(text) => text.parse().map_err(|error: T::Err| error.to_string()),
        None => Err("it is no UTF-8".to_owned()),
    };
    read.map(Some).map_err(|why| format!("{name}={}: {why}", value.display()).into())
}
