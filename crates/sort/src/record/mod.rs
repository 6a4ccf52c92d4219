//! Where one record ends and the next begins.
//!
//! A [`Format`] frames records; it knows nothing of keys. Four formats exist: delimited lines,
//! CSV (RFC 4180 quoting), fixed-length binary, and length-prefixed key and value.

/// How records lie in a stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Records end with `delimiter` (newline, or NUL with `-z`), which belongs to the record.
    Lines {
        /// The byte that ends a record.
        delimiter: u8,
    },
    /// RFC 4180 rows: fields split by `separator`, quoted with `"`, newlines allowed in quotes.
    Csv {
        /// The byte between fields.
        separator: u8,
        /// Whether the first row of every input names the columns.
        header: bool,
    },
    /// Every record is `bytes` long.
    Fixed {
        /// Length of a record, at least 1.
        bytes: usize,
    },
    /// `u32` little-endian key length, `u32` little-endian value length, key, value.
    Keyed,
}

/// What to do with the bytes after the last complete record of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// They are a record once this terminator is added.
    Complete(u8),
    /// They are a damaged record; the text says in which way.
    Damaged(&'static str),
}

/// Finds record ends; one type a format, so that hot loops are compiled for each.
pub trait Framing: Copy + Send + Sync + 'static {
    /// Length, terminator included, of the record that begins at `bytes[0]`; `None` when it does
    /// not end within `bytes`.
    fn next(self, bytes: &[u8]) -> Option<usize>;
}

/// [`Framing`] of [`Format::Lines`].
#[derive(Debug, Clone, Copy)]
pub struct LineFraming {
    /// The byte that ends a record.
    pub delimiter: u8,
}

impl Framing for LineFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        memchr::memchr(self.delimiter, bytes).map(|at| at + 1)
    }
}

/// [`Framing`] of [`Format::Fixed`].
#[derive(Debug, Clone, Copy)]
pub struct FixedFraming {
    /// Length of a record.
    pub bytes: usize,
}

impl Framing for FixedFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        (bytes.len() >= self.bytes).then_some(self.bytes)
    }
}

/// [`Framing`] of [`Format::Csv`].
#[derive(Debug, Clone, Copy)]
pub struct CsvFraming;

impl Framing for CsvFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        let mut quoted = false;
        for at in memchr::memchr2_iter(b'\n', b'"', bytes) {
            if bytes[at] == b'"' {
                quoted = !quoted;
            } else if !quoted {
                return Some(at + 1);
            }
        }
        None
    }
}

/// [`Framing`] of [`Format::Keyed`].
#[derive(Debug, Clone, Copy)]
pub struct KeyedFraming;

impl Framing for KeyedFraming {
    #[inline]
    fn next(self, bytes: &[u8]) -> Option<usize> {
        let lengths = bytes.first_chunk::<8>()?;
        let [k0, k1, k2, k3, v0, v1, v2, v3] = *lengths;
        let key = u32::from_le_bytes([k0, k1, k2, k3]) as usize;
        let value = u32::from_le_bytes([v0, v1, v2, v3]) as usize;
        let len = 8 + key + value;
        (bytes.len() >= len).then_some(len)
    }
}

/// Runs `$body` with `$framing` bound to the framing type of `$format`, compiled once for each.
macro_rules! with_framing {
    ($format:expr, $framing:ident => $body:expr) => {
        match $format {
            $crate::record::Format::Lines { delimiter } => {
                let $framing = $crate::record::LineFraming { delimiter };
                $body
            }
            $crate::record::Format::Csv { .. } => {
                let $framing = $crate::record::CsvFraming;
                $body
            }
            $crate::record::Format::Fixed { bytes } => {
                let $framing = $crate::record::FixedFraming { bytes };
                $body
            }
            $crate::record::Format::Keyed => {
                let $framing = $crate::record::KeyedFraming;
                $body
            }
        }
    };
}
pub(crate) use with_framing;

impl Format {
    /// Length of the record at `bytes[0]`; see [`Framing::next`].
    #[must_use]
    pub fn record_len(&self, bytes: &[u8]) -> Option<usize> {
        with_framing!(*self, framing => framing.next(bytes))
    }

    /// Appends to `cuts` record boundaries of `bytes`, which begins at one: about every `piece`
    /// bytes, and last the end of the last complete record. Nothing is appended when no record
    /// ends within `bytes`.
    pub fn cut(&self, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
        match *self {
            Format::Lines { delimiter } => {
                let Some(last) = memchr::memrchr(delimiter, bytes) else { return };
                let mut at = 0;
                while last + 1 - at > piece {
                    let Some(end) = memchr::memrchr(delimiter, &bytes[at..at + piece])
                        .or_else(|| memchr::memchr(delimiter, &bytes[at + piece..]).map(|n| n + piece))
                    else {
                        break;
                    };
                    at += end + 1;
                    cuts.push(at);
                }
                if at < last + 1 {
                    cuts.push(last + 1);
                }
            }
            Format::Fixed { bytes: size } => {
                let whole = bytes.len() / size * size;
                let step = (piece / size).max(1) * size;
                let mut at = 0;
                while at < whole {
                    at = (at + step).min(whole);
                    cuts.push(at);
                }
            }
            Format::Csv { .. } => cut_forward(CsvFraming, bytes, piece, cuts),
            Format::Keyed => cut_forward(KeyedFraming, bytes, piece, cuts),
        }
    }

    /// What the bytes after the last complete record of an input mean.
    #[must_use]
    pub fn tail(&self, bytes: &[u8]) -> Tail {
        match *self {
            Format::Lines { delimiter } => Tail::Complete(delimiter),
            Format::Csv { .. } => {
                if memchr::memchr_iter(b'"', bytes).count() % 2 == 0 {
                    Tail::Complete(b'\n')
                } else {
                    Tail::Damaged("its last row has a quote that is never closed")
                }
            }
            Format::Fixed { .. } => Tail::Damaged("its last record is cut short"),
            Format::Keyed => Tail::Damaged("its last record is cut short"),
        }
    }
}

fn cut_forward(framing: impl Framing, bytes: &[u8], piece: usize, cuts: &mut Vec<usize>) {
    let (mut at, mut cut) = (0, 0);
    while let Some(len) = framing.next(&bytes[at..]) {
        at += len;
        if at - cut >= piece {
            cuts.push(at);
            cut = at;
        }
    }
    if at > cut {
        cuts.push(at);
    }
}
