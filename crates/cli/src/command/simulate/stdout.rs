//! Printing to standard output.

use std::io::{self, Write};

use crate::failure::Failure;

/// Prints `text`.
pub fn print(text: &str) -> Result<(), Failure> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::on_stdout(&error))
}
