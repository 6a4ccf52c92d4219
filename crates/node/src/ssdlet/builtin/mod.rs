//! SSDlets that are part of the program, one file each.

mod wordcount;

use serde_json::Value;

use super::{Ssdlet, SsdletError};

/// A built-in SSDlet: its name, what it does in one line, and how it is opened.
pub struct Builtin {
    /// The name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    open: fn(&Value) -> Result<Box<dyn Ssdlet>, SsdletError>,
}

/// All of them, in the order of their names.
pub const ALL: &[Builtin] =
    &[Builtin { name: "wordcount", about: "how often each word occurs", open: wordcount::open }];

/// Opens the built-in SSDlet `name` with `args`, a JSON object.
///
/// # Errors
/// When there is none of this name, or its arguments make no sense.
pub fn open(name: &str, args: &Value) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let found = ALL.iter().find(|builtin| builtin.name == name);
    let builtin = found.ok_or_else(|| SsdletError::Unknown { name: name.to_owned() })?;
    (builtin.open)(args)
}
