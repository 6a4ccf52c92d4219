//! Keys of fixed-length records: `OFFSET:LENGTH[:TYPE][:r]`.

use super::binary::Binary;
use super::numeric::complement;

/// A parsed key of fixed-length records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldKey {
    pub(super) offset: usize,
    pub(super) len: usize,
    /// `None` for bytes that sort unchanged.
    pub(super) binary: Option<Binary>,
    pub(super) descending: bool,
}

impl FieldKey {
    /// Parses a key; the error is the reason alone.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
        let (Some(offset), Some(len)) = (number(), number()) else {
            return Err("it must begin with OFFSET:LENGTH, two numbers of bytes".to_owned());
        };
        if len == 0 {
            return Err("a key is at least 1 byte long".to_owned());
        }
        let mut key = FieldKey { offset, len, binary: None, descending: false };
        let mut part = parts.next();
        if let Some(name) = part.filter(|&name| name != "r") {
            key.binary = match name.parse::<Binary>() {
                Ok(binary) if binary.width != len => {
                    return Err(format!("{name} is {} bytes long, not {len}", binary.width));
                }
                Ok(binary) => Some(binary).filter(|binary| !binary.is_bytes()),
                Err(()) if name == "bytes" => None,
                Err(()) => {
                    return Err(format!(
                        "'{name}' is no type; types are bytes, u8, i8 and u16, i16, u32, i32, \
                         u64, i64, f32, f64 with le or be behind"
                    ));
                }
            };
            part = parts.next();
        }
        if part == Some("r") {
            key.descending = true;
            part = parts.next();
        }
        match part {
            Some(part) => Err(format!("'{part}' is out of place; only r follows the type")),
            None => Ok(key),
        }
    }

    /// The first byte behind the key.
    pub(super) fn end(&self) -> Option<usize> {
        self.offset.checked_add(self.len)
    }

    /// Appends the key of `record`.
    #[inline]
    pub(super) fn encode(&self, record: &[u8], out: &mut Vec<u8>) {
        let mark = out.len();
        let bytes = &record[self.offset..self.offset + self.len];
        match self.binary {
            Some(binary) => binary.encode(bytes, out),
            None => out.extend_from_slice(bytes),
        }
        if self.descending {
            complement(&mut out[mark..]);
        }
    }
}
