//! Requests of clients, as they write them in JSON. docs/formats.md has the same fields with examples.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::guest_limits::GuestLimits;
use super::{SessionError, SessionResult};

/// The most ranges in one SET, and in a run.
pub const RANGES_MAX: usize = 65_536;
/// The most bytes of the names in the ranges of a run. A session keeps them until its next run.
pub const NAMES_BYTES_MAX: usize = 8 << 20;
/// The longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// The longest name of a blob, in bytes.
pub const BLOB_NAME_BYTES_MAX: usize = 255;

/// OPEN: which SSDlet, and what its runs may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// The name of a built-in SSDlet or of a file in the server's folder of SSDlets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssdlet: Option<String>,
    /// Instead of a name: the SHA-256 of an uploaded one, 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its arguments: a JSON object, or a text. A built-in SSDlet takes an object. A guest takes a text;
    /// an object is the text of its JSON.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// Memory of a run in bytes. The server may give less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Threads of a run. The server may give fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The most fuel per byte of input, for guests. The server may have less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel_per_byte: Option<u64>,
    /// The longest that a call of a guest may take, in seconds. The server may have less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,
    /// The most memory that a guest may declare for a worker, in bytes. The server may have less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_memory: Option<u64>,
}

/// The SSDlet that an [`OpenRequest`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// By name.
    Name(&'a str),
    /// By the SHA-256 of its bytes, 64 lower-case hexadecimal digits.
    Sha256(&'a str),
}

impl OpenRequest {
    /// Which SSDlet is meant.
    ///
    /// # Errors
    /// When there is no name, or more than one.
    pub fn wanted(&self) -> SessionResult<Wanted<'_>> {
        match (self.ssdlet.as_deref(), self.sha256.as_deref()) {
            (Some(name), None) => Ok(Wanted::Name(name)),
            (None, Some(sha256)) if is_sha256(sha256) => Ok(Wanted::Sha256(sha256)),
            (None, Some(_)) => {
                let told = "sha256 has 64 digits of 0 to 9 and a to f, as the upload returned it";
                Err(SessionError::Invalid(told.to_owned()))
            }
            _ => Err(SessionError::Invalid("open needs either ssdlet or sha256".to_owned())),
        }
    }

    /// The arguments: an object (empty by default) or a text.
    ///
    /// # Errors
    /// When they are something else.
    pub fn arguments(&self) -> SessionResult<Cow<'_, Value>> {
        match &self.args {
            Value::Null => Ok(Cow::Owned(Value::Object(Map::new()))),
            args @ (Value::Object(_) | Value::String(_)) => Ok(Cow::Borrowed(args)),
            _ => Err(SessionError::Invalid("args is a JSON object, or a text".to_owned())),
        }
    }

    /// The limits of a guest.
    ///
    /// # Errors
    /// When a limit leaves nothing, or is no time.
    pub fn guest_limits(&self) -> SessionResult<GuestLimits> {
        let invalid = |told: &str| Err(SessionError::Invalid(told.to_owned()));
        if self.fuel_per_byte == Some(0) || self.guest_memory == Some(0) {
            return invalid("fuel_per_byte and guest_memory are at least 1");
        }
        let seconds = self.time_limit.map(Duration::try_from_secs_f64).transpose();
        match seconds {
            Ok(call_time) if call_time.is_none_or(|time| !time.is_zero()) => Ok(GuestLimits {
                fuel_per_byte: self.fuel_per_byte,
                call_time,
                memory_bytes: self.guest_memory,
            }),
            _ => invalid("time_limit is a number of seconds, more than 0"),
        }
    }
}

/// Whether `text` is a SHA-256 in lower-case hexadecimal digits.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// SET: more input for the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// Added behind those of earlier SETs of the same run. Each is an input of its own.
    #[serde(default, deserialize_with = "ranges", skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<SessionRange>,
    /// Whether this was the last one, so that the run begins. Otherwise it begins with the first GET.
    #[serde(default)]
    pub run: bool,
}

/// Reads a list of at most [`RANGES_MAX`] ranges. A message has room for a million of `{}`, and each takes
/// 72 bytes of memory.
pub(super) fn ranges<'de, D: Deserializer<'de>>(
    from: D,
) -> SessionResult<Vec<SessionRange>, D::Error> {
    struct RangesVisitor;

    impl<'de> Visitor<'de> for RangesVisitor {
        type Value = Vec<SessionRange>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of ranges")
        }

        fn visit_seq<A: SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> SessionResult<Vec<SessionRange>, A::Error> {
            let mut ranges = Vec::new();
            while let Some(range) = list.next_element()? {
                if ranges.len() == RANGES_MAX {
                    return Err(A::Error::custom(format!("a set has at most {RANGES_MAX} ranges")));
                }
                ranges.push(range);
            }
            Ok(ranges)
        }
    }

    from.deserialize_seq(RangesVisitor)
}

/// A range of a file below the data folder, or of a blob of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRange {
    /// A path below the data folder: plain names with `/` between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Instead of a path: the name of a blob that was PUT in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// The first byte. The run gets the records whose first byte is in the range.
    #[serde(default)]
    pub start: u64,
    /// How many bytes; without it, all up to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// The file that a [`SessionRange`] names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSource<'a> {
    /// A path below the data folder, checked by [`check_path`].
    Path(&'a str),
    /// A blob, whose name is checked by [`check_blob_name`].
    Blob(&'a str),
}

impl SessionRange {
    /// All of the file at `path`.
    #[must_use]
    pub fn of_path(path: impl Into<String>) -> Self {
        SessionRange { path: Some(path.into()), ..SessionRange::default() }
    }

    /// Which file is meant.
    ///
    /// # Errors
    /// When there is no name, more than one, or one that can't be.
    pub fn source(&self) -> SessionResult<RangeSource<'_>> {
        match (self.path.as_deref(), self.blob.as_deref()) {
            (Some(path), None) => check_path(path).map(|()| RangeSource::Path(path)),
            (None, Some(blob)) => check_blob_name(blob).map(|()| RangeSource::Blob(blob)),
            _ => Err(SessionError::Invalid("a range needs either path or blob".to_owned())),
        }
    }

    /// Bytes of its name.
    pub(super) fn name_bytes(&self) -> usize {
        self.path.as_ref().or(self.blob.as_ref()).map_or(0, String::len)
    }

    /// Its bytes, in a file of `size` bytes.
    ///
    /// # Errors
    /// When it begins behind the end, or its end is no number of 64 bits.
    pub fn bytes(&self, size: u64) -> SessionResult<std::ops::Range<u64>> {
        let end = self.length.map_or(Some(size), |length| self.start.checked_add(length));
        match end {
            Some(end) if self.start <= size => Ok(self.start..end.min(size)),
            _ => {
                let name = self.path.as_deref().or(self.blob.as_deref()).unwrap_or_default();
                let start = self.start;
                Err(SessionError::Invalid(format!(
                    "{name}: the range at byte {start} is not within its {size} bytes"
                )))
            }
        }
    }
}

/// Whether `path` is one below the data folder.
///
/// # Errors
/// When it is absolute, goes up, or is too long.
pub fn check_path(path: &str) -> SessionResult<()> {
    let refuse = |reason: &str| {
        let mut shown: String =
            path.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        shown.truncate(shown.floor_char_boundary(128));
        Err(SessionError::Refused { path: shown, reason: reason.to_owned() })
    };
    if path.is_empty() || path.len() > PATH_BYTES_MAX {
        return refuse("a path has 1 to 4096 bytes");
    }
    if path.starts_with('/') {
        return refuse("paths are below the data folder and don't begin with /");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("a path has no .., no . and no empty name in it");
    }
    if path.contains('\0') {
        return refuse("a path has no NUL in it");
    }
    Ok(())
}

/// Whether `name` can be that of a blob.
///
/// # Errors
/// When it is empty, too long, or has characters other than letters, digits and `.-_`.
pub fn check_blob_name(name: &str) -> SessionResult<()> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    if name.is_empty() || name.len() > BLOB_NAME_BYTES_MAX || !name.bytes().all(plain) {
        let told = "the name of a blob has 1 to 255 letters, digits, dots, dashes or underscores";
        return Err(SessionError::Invalid(told.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_folder() {
        for path in ["a", "a/b.txt", "a b/..c", "..."] {
            check_path(path).expect(path);
        }
        let long = "x".repeat(PATH_BYTES_MAX + 1);
        for path in ["", "/", "/etc/passwd", "..", "a/../b", "./a", "a//b", "a/", "a\0b", &long] {
            assert!(matches!(check_path(path), Err(SessionError::Refused { .. })), "{path:?}");
        }
        check_blob_name("part-1.bin").expect("plain");
        for name in ["", "a/b", "ä", "a b", &"x".repeat(256)] {
            check_blob_name(name).expect_err(name);
        }
    }

    #[test]
    fn ranges_are_cut_at_the_end_and_never_behind_it() {
        let range = |start, length| SessionRange { start, length, ..SessionRange::of_path("f") };
        assert_eq!(range(0, None).bytes(10).expect("all"), 0..10);
        assert_eq!(range(3, Some(4)).bytes(10).expect("inside"), 3..7);
        assert_eq!(range(3, Some(40)).bytes(10).expect("cut"), 3..10);
        assert_eq!(range(10, None).bytes(10).expect("empty"), 10..10);
        range(11, None).bytes(10).expect_err("behind the end");
        range(5, Some(u64::MAX)).bytes(10).expect_err("no number");
    }

    #[test]
    fn exactly_one_name_is_given() {
        let both = SessionRange { blob: Some("b".to_owned()), ..SessionRange::of_path("a") };
        both.source().expect_err("two");
        SessionRange::default().source().expect_err("none");
        let open = |text: &str| serde_json::from_str::<OpenRequest>(text);
        open("{}").expect("parses").wanted().expect_err("no name");
        assert_eq!(
            open(r#"{"ssdlet":"wordcount"}"#).expect("parses").wanted().expect("a name"),
            Wanted::Name("wordcount")
        );
        open(&format!(r#"{{"sha256":"{}"}}"#, "A".repeat(64)))
            .expect("parses")
            .wanted()
            .expect_err("case");
        open(r#"{"ssdlet":"a","memroy":1}"#).expect_err("a field that there is not");
    }

    #[test]
    fn a_list_of_ranges_ends_where_a_run_has_enough() {
        let set = |count: usize| {
            let list = vec!["{}"; count].join(",");
            serde_json::from_str::<SetRequest>(&format!("{{\"ranges\":[{list}]}}"))
        };
        assert_eq!(set(RANGES_MAX).expect("as many").ranges.len(), RANGES_MAX);
        let told = set(RANGES_MAX + 1).expect_err("too many").to_string();
        assert!(told.starts_with("a set has at most 65536 ranges"), "{told}");
        serde_json::from_str::<SetRequest>(r#"{"ranges":{}}"#).expect_err("no list");
    }

    #[test]
    fn arguments_are_an_object_or_a_text() {
        let args = |text: &str| {
            let open = serde_json::from_str::<OpenRequest>(text).expect(text);
            open.arguments().map(Cow::into_owned)
        };
        assert_eq!(args("{}").expect("none"), serde_json::json!({}));
        for good in [r#"{"key":1}"#, r#""needle""#, r#""""#] {
            let open = format!(r#"{{"args":{good}}}"#);
            assert_eq!(args(&open).expect(good).to_string(), good);
        }
        for bad in ["1", "[]", "true"] {
            args(&format!(r#"{{"args":{bad}}}"#)).expect_err(bad);
        }
    }

    #[test]
    fn limits_of_guests_leave_something() {
        let limits =
            |text: &str| serde_json::from_str::<OpenRequest>(text).expect(text).guest_limits();
        assert_eq!(limits("{}").expect("none"), GuestLimits::default());
        let some = limits(r#"{"fuel_per_byte":7,"time_limit":0.5,"guest_memory":65536}"#);
        let expected = GuestLimits {
            fuel_per_byte: Some(7),
            call_time: Some(Duration::from_millis(500)),
            memory_bytes: Some(65_536),
        };
        assert_eq!(some.expect("some"), expected);
        for bad in ["fuel_per_byte\":0", "guest_memory\":0", "time_limit\":0", "time_limit\":-1"] {
            limits(&format!("{{\"{bad}}}")).expect_err(bad);
        }
        limits(r#"{"time_limit":1e300}"#).expect_err("no time");
    }
}
