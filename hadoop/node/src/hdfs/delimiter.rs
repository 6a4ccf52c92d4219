//! What ends a record.

use memchr::memmem::Finder;
use memchr::{memchr2, memrchr2};

/// The longest delimiter, in bytes.
pub(super) const DELIMITER_BYTES_MAX: usize = 64;
/// The value of `record_bytes_max` that limits nothing, as Hadoop's default is.
pub(super) const NO_LIMIT: u32 = i32::MAX as u32;

/// What ends a record.
#[derive(Debug)]
pub(super) enum Delimiter {
    /// LF, CR, or CR and LF.
    Line,
    /// These bytes, at least one (`textinputformat.record.delimiter`).
    Bytes(Box<Finder<'static>>),
}

/// In two cases the records of Hadoop's own reader depend on the size of its buffer. If a buffer ends within a possible
/// delimiter, the reader does not go back into that buffer; it misses a delimiter whose beginning occurs again inside
/// it, such as `a` in `aab`. And if it cuts records that are too long, the bytes of a possible delimiter are not
/// counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnclearDelimiter;

/// Where a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordEnd {
    /// Bytes of the record without what ends it.
    pub(super) content: usize,
    /// Bytes of the record with it.
    pub(super) size: usize,
    /// It ends with a CR that is the last byte that was looked at: an LF may follow.
    pub(super) open: bool,
}

impl Delimiter {
    /// The delimiter `bytes`; without bytes, the end of a line. `has_limit` says whether records that are too
    /// long are cut or dropped.
    ///
    /// # Errors
    /// When records would not be clear.
    pub(super) fn new(bytes: &[u8], has_limit: bool) -> Result<Self, UnclearDelimiter> {
        if bytes.is_empty() {
            return Ok(Delimiter::Line);
        }
        let starts_again =
            |len: usize| (1..len).any(|at| bytes[..len].starts_with(&bytes[at..len]));
        if (1..bytes.len()).any(starts_again) || has_limit && bytes.len() > 1 {
            return Err(UnclearDelimiter);
        }
        Ok(Delimiter::Bytes(Box::new(Finder::new(bytes).into_owned())))
    }

    /// Its bytes as in a request.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Delimiter::Line => &[],
            Delimiter::Bytes(finder) => finder.needle(),
        }
    }

    /// Where the record that begins `bytes` ends; `None` when not within them.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8]) -> Option<RecordEnd> {
        match self {
            Delimiter::Line => {
                let content = memchr2(b'\n', b'\r', bytes)?;
                let is_cr = bytes[content] == b'\r';
                let both = is_cr && bytes.get(content + 1) == Some(&b'\n');
                let open = is_cr && content + 1 == bytes.len();
                Some(RecordEnd { content, size: content + 1 + usize::from(both), open })
            }
            Delimiter::Bytes(finder) => {
                let content = finder.find(bytes)?;
                Some(RecordEnd { content, size: content + finder.needle().len(), open: false })
            }
        }
    }

    /// Bytes of the whole records that `bytes` begins with, as many as there are. A CR at the end may be
    /// followed by its LF, so its record is not whole.
    pub(super) fn whole(&self, bytes: &[u8]) -> usize {
        match self {
            Delimiter::Line => {
                let closed = bytes.strip_suffix(b"\r").unwrap_or(bytes);
                memrchr2(b'\n', b'\r', closed).map_or(0, |at| at + 1)
            }
            Delimiter::Bytes(finder) => {
                // From the front: delimiters such as `||` may overlap, and the first one counts.
                let last = finder.find_iter(bytes).last();
                last.map_or(0, |at| at + finder.needle().len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_bytes(bytes: &[u8]) -> Delimiter {
        Delimiter::new(bytes, false).expect("clear")
    }

    #[test]
    fn ends_of_lines() {
        let line = of_bytes(b"");
        let end = |content, size, open| Some(RecordEnd { content, size, open });
        assert_eq!(line.find(b"ab\ncd"), end(2, 3, false));
        assert_eq!(line.find(b"ab\rcd"), end(2, 3, false));
        assert_eq!(line.find(b"ab\r\ncd"), end(2, 4, false));
        assert_eq!(line.find(b"\n\n"), end(0, 1, false));
        assert_eq!(line.find(b"ab\r"), end(2, 3, true));
        assert_eq!(line.find(b"ab"), None);
        for (bytes, whole) in [
            (&b"a\nb"[..], 2),
            (b"a\r\nb\r", 3),
            (b"a\rb", 2),
            (b"a\r", 0),
            (b"a\r\n", 3),
            (b"a", 0),
        ] {
            assert_eq!(line.whole(bytes), whole, "{bytes:?}");
        }
        assert_eq!(line.whole(b"\r\r"), 1, "the second may be half of a CRLF");
    }

    #[test]
    fn delimiters_whose_beginnings_occur_again_are_not_clear() {
        for unclear in [&b"aab"[..], b"abac", b"\r\n\r\r", b"aaa", b"ababc"] {
            assert!(Delimiter::new(unclear, false).is_err(), "{unclear:?}");
        }
        for clear in [&b"a"[..], b"ab", b"||", b"\r\n", b"\n\n", b"abca", b"<end>"] {
            assert_eq!(of_bytes(clear).bytes(), clear);
        }
        Delimiter::new(b"|", true).expect("clear");
        Delimiter::new(b"||", true).expect_err("not with a limit");
        let bars = of_bytes(b"||");
        assert_eq!(bars.whole(b"a|||b||c"), 7);
        assert_eq!(bars.find(b"a|||").map(|end| end.size), Some(3));
    }
}
