//! What a result is made of.

use std::path::Path;

/// An input of a result, as it was typed.
#[derive(Debug, Clone, Copy)]
pub enum ResultSource<'a> {
    /// A stream, which is gone once it is read, and what it is called.
    Stream(&'a str),
    /// A file, a device or a named pipe.
    File(&'a Path),
}
