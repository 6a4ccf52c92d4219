//! What ends a record.

use memchr::{memchr2, memmem, memrchr2};

/// The longest delimiter, in bytes.
pub const DELIMITER_BYTES_MAX: usize = 64;

/// What ends a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delimiter {
    /// LF, CR, or CR and LF.
    Line,
    /// These bytes, at least one (`textinputformat.record.delimiter`).
    Bytes(Vec<u8>),
}

/// Hadoop's own reader gives other records when its buffer has another size, in two cases. Where a buffer ends within
/// what may be a delimiter, it does not go back into the buffer before, so a delimiter is missed if a beginning of it
/// occurs again inside that beginning, such as `a` in `aab`. And bytes that may be a delimiter don't count where it
/// cuts records that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnclearDelimiter;

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
    pub fn new(bytes: &[u8], has_limit: bool) -> Result<Self, UnclearDelimiter> {
        if bytes.is_empty() {
            return Ok(Delimiter::Line);
        }
        let starts_again =
            |len: usize| (1..len).any(|at| bytes[..len].starts_with(&bytes[at..len]));
        if (1..bytes.len()).any(starts_again) || has_limit && bytes.len() > 1 {
            return Err(UnclearDelimiter);
        }
        Ok(Delimiter::Bytes(bytes.to_vec()))
    }

    /// Its bytes as in a request.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Delimiter::Line => &[],
            Delimiter::Bytes(bytes) => bytes,
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
            Delimiter::Bytes(delimiter) => {
                let content = memmem::find(bytes, delimiter)?;
                Some(RecordEnd { content, size: content + delimiter.len(), open: false })
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
            Delimiter::Bytes(delimiter) => {
                // From the front: delimiters such as `||` may overlap, and the first one counts.
                let ends = memmem::find_iter(bytes, delimiter).map(|at| at + delimiter.len());
                ends.last().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Delimiter {
        Delimiter::new(bytes, false).expect("clear")
    }

    #[test]
    fn ends_of_lines() {
        let line = of(b"");
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
            assert_eq!(Delimiter::new(unclear, false), Err(UnclearDelimiter), "{unclear:?}");
        }
        for clear in [&b"a"[..], b"ab", b"||", b"\r\n", b"\n\n", b"abca", b"<end>"] {
            assert_eq!(of(clear), Delimiter::Bytes(clear.to_vec()));
        }
        Delimiter::new(b"|", true).expect("clear");
        Delimiter::new(b"||", true).expect_err("not with a limit");
        let bars = of(b"||");
        assert_eq!(bars.whole(b"a|||b||c"), 7);
        assert_eq!(bars.find(b"a|||").map(|end| end.size), Some(3));
    }
}
