//! Text in state files, UTF-8 or not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes that are usually text: a path, a word of a command line, a header row. In JSON they are a
/// string, or an array of numbers where they are not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalText(pub Vec<u8>);

impl JournalText {
    /// As a path or a word of a command line.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl From<OsString> for JournalText {
    fn from(text: OsString) -> Self {
        JournalText(text.into_vec())
    }
}

impl From<&OsStr> for JournalText {
    fn from(text: &OsStr) -> Self {
        JournalText(text.as_bytes().to_vec())
    }
}

impl Serialize for JournalText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => to.serialize_str(text),
            Err(_) => self.0.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for JournalText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = JournalText;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an array of bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<JournalText, E> {
                Ok(JournalText(text.as_bytes().to_vec()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<JournalText, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(JournalText(bytes))
            }
        }
        from.deserialize_any(Visitor)
    }
}
