//! Files that users write, with a line or a name for each item.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::failure::Failure;
use crate::input::Input;
use crate::{shown, standard};

/// Editors put it in front of a text; it belongs to no line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes of the file at `path`, or of standard input if that is `-`.
///
/// # Errors
/// When it can't be read.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = match Input::named(path) {
        Input::Stdin => {
            let mut bytes = Vec::new();
            standard::input().and_then(|mut list| list.read_to_end(&mut bytes)).map(|_| bytes)
        }
        Input::File(path) => fs::read(path),
    };
    bytes.map_err(|error| Failure::on(path, &error))
}

/// The text of the file that `flag` names, without a byte order mark.
///
/// # Errors
/// When it can't be read, or is UTF-16.
pub fn read_text(path: &Path, flag: &str) -> Result<Vec<u8>, Failure> {
    let mut text = read(path)?;
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        let shown = shown::name(path);
        return Err(format!("{flag} {shown}: is UTF-16; save it as UTF-8").into());
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// The lines of a text, without their ends, which are LF or CRLF. The last one may have none.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}
