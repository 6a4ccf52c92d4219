//! The header lines at the front of an input: those that begin with one of some prefixes, up to the first line that
//! does not.
//!
//! ```text
//!   #a⏎ #b⏎ record⏎ #c⏎ record⏎        prefix #
//!   └header┘└──── records ─────┘        a later line is a record, whatever it begins with
//! ```
//!
//! They are read before any record, into memory of their own: a header may be longer than the buffer of an input in
//! a merge. The result has the header of the first input that has one. Each other input has the same, or none.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use merganser_storage::{Storage, StorageExt};

use super::input::SortInput;
use crate::key::OrderSpec;
use crate::record::Format;
use crate::text::JournalText;
use crate::{Error, Result};

/// Bytes of one read.
const PIECE_BYTES: usize = 64 << 10;
/// A header is shorter, or its prefix is that of all lines. It is in memory that no budget knows, and, as
/// hexadecimal digits, in the manifest of a view, which has at most 64 MiB.
pub(crate) const HEADER_BYTES_MAX: usize = 16 << 20;

/// Which lines are a header.
#[derive(Debug, Clone)]
pub(crate) struct HeaderRule {
    prefixes: Arc<[JournalText]>,
    delimiter: u8,
}

/// The header lines of one input.
#[derive(Debug, Default)]
pub(crate) struct HeaderLines {
    /// The lines, with a terminator each.
    pub(crate) bytes: Vec<u8>,
    /// How many bytes of the input they are: a last line may lack its terminator.
    pub(crate) input_bytes: u64,
    /// How many lines they are.
    pub(crate) lines: u64,
}

impl HeaderRule {
    /// The rule of this order; `None` if its inputs have no such header.
    pub(crate) fn of_order(order: &OrderSpec) -> Option<Self> {
        match order.format {
            Format::Lines { delimiter } if !order.header_prefixes.is_empty() => {
                Some(HeaderRule { prefixes: order.header_prefixes[..].into(), delimiter })
            }
            _ => None,
        }
    }

    /// Takes the header off the front of `input`. A storage keeps it, and the caller begins to read behind
    /// [`HeaderLines::input_bytes`].
    pub(crate) fn take(&self, input: &mut SortInput) -> Result<HeaderLines> {
        let (header, rest) = match input {
            SortInput::Storage(storage) => return self.of_storage(storage),
            SortInput::Stream { name, reader } => self.of_reader(name, reader)?,
            SortInput::Packed(unpacked) => {
                let name = unpacked.name().to_owned();
                self.of_reader(&name, unpacked)?
            }
        };
        let name = input.name().to_owned();
        let empty = SortInput::Stream { name: name.clone(), reader: Box::new(io::empty()) };
        let reader: Box<dyn Read + Send> = match std::mem::replace(input, empty) {
            SortInput::Stream { reader, .. } => Box::new(Cursor::new(rest).chain(reader)),
            SortInput::Packed(unpacked) => Box::new(Cursor::new(rest).chain(unpacked)),
            SortInput::Storage(_) => unreachable!("returned above"),
        };
        *input = SortInput::Stream { name, reader };
        Ok(header)
    }

    /// The header of a storage.
    fn of_storage(&self, storage: &Arc<dyn Storage>) -> Result<HeaderLines> {
        let mut at = 0;
        let read = |bytes: &mut [u8]| {
            let n = storage.read_at(at, bytes)?;
            at += n as u64;
            Ok(n)
        };
        Ok(self.read(storage.name(), read)?.0)
    }

    /// The header of what `reader` gives, and the bytes behind it that were read.
    pub(crate) fn of_reader(
        &self,
        name: &str,
        reader: &mut dyn Read,
    ) -> Result<(HeaderLines, Vec<u8>)> {
        self.read(name, |bytes| {
            loop {
                match reader.read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => return read.map_err(|error| Error::reading(name, error)),
                }
            }
        })
    }

    fn read(
        &self,
        name: &str,
        mut read: impl FnMut(&mut [u8]) -> Result<usize>,
    ) -> Result<(HeaderLines, Vec<u8>)> {
        let mut bytes = Vec::new();
        let (mut len, mut lines, mut ended) = (0, 0, false);
        loop {
            while let Some(line) = self.line_len(&bytes[len..]) {
                (len, lines) = (len + line, lines + 1);
            }
            if ended || !self.may_be_line(&bytes[len..]) {
                break;
            }
            if bytes.len() > HEADER_BYTES_MAX {
                let detail = format!(
                    "its header, the lines at its beginning with a prefix of headers, is longer than {} MiB, the most; give a prefix that records do not have",
                    HEADER_BYTES_MAX >> 20
                );
                return Err(Error::Input { file: name.to_owned(), offset: 0, detail });
            }
            let had = bytes.len();
            bytes.resize(had + PIECE_BYTES, 0);
            let n = read(&mut bytes[had..])?;
            bytes.truncate(had + n);
            ended = n == 0;
        }
        let mut rest = bytes.split_off(len);
        let mut input_bytes = len as u64;
        if ended && self.is_line(&rest) {
            input_bytes += rest.len() as u64;
            bytes.append(&mut rest);
            bytes.push(self.delimiter);
            lines += 1;
        }
        Ok((HeaderLines { bytes, input_bytes, lines }, rest))
    }

    /// Length of the header line at the front of `bytes`, if one ends there.
    fn line_len(&self, bytes: &[u8]) -> Option<usize> {
        let end = self.is_line(bytes).then(|| memchr::memchr(self.delimiter, bytes))?;
        end.map(|end| end + 1)
    }

    /// Whether `bytes` begin as a header line.
    fn is_line(&self, bytes: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| bytes.starts_with(&prefix.0))
    }

    /// Whether `bytes`, which no header line ends in, may begin one: the line or its prefix is cut.
    fn may_be_line(&self, bytes: &[u8]) -> bool {
        self.is_line(bytes) || self.prefixes.iter().any(|prefix| prefix.0.starts_with(bytes))
    }

    /// Adds the header of the input `name` to that of the inputs before it.
    ///
    /// # Errors
    /// When it has another one than they have.
    pub(crate) fn join(
        &self,
        first: &mut Option<Vec<u8>>,
        header: Vec<u8>,
        name: &str,
    ) -> Result<()> {
        match first {
            _ if header.is_empty() => Ok(()),
            Some(first) if !first.is_empty() => {
                if *first == header {
                    return Ok(());
                }
                let same = first.iter().zip(&header).take_while(|(a, b)| a == b);
                let ends = same.filter(|(byte, _)| **byte == self.delimiter).count();
                Err(Error::HeaderLines { file: name.to_owned(), line: ends as u64 + 1 })
            }
            none => {
                *none = Some(header);
                Ok(())
            }
        }
    }

    /// Compares the headers of all storages among `inputs`, before anything else is read of them.
    ///
    /// # Errors
    /// When two have different ones.
    pub(crate) fn compare(&self, inputs: &[SortInput]) -> Result<()> {
        let mut first = None;
        for input in inputs {
            if let SortInput::Storage(storage) = input {
                self.join(&mut first, self.of_storage(storage)?.bytes, storage.name())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rule says, line by line.
    fn naive(bytes: &[u8], prefixes: &[&[u8]]) -> (Vec<u8>, u64) {
        let mut header = Vec::new();
        let mut read = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !prefixes.iter().any(|prefix| line.starts_with(prefix)) {
                break;
            }
            read += line.len() as u64;
            header.extend_from_slice(line);
        }
        if !header.is_empty() && !header.ends_with(b"\n") {
            header.push(b'\n');
        }
        (header, read)
    }

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn every_tiny_input_is_split_as_line_by_line() {
        let letters = b"#x\n";
        for prefixes in [&[&b"#"[..]][..], &[b"##"], &[b"#x", b"xx#"]] {
            let owned: Vec<_> = prefixes.iter().map(|p| JournalText(p.to_vec())).collect();
            let rule = HeaderRule { prefixes: owned.into(), delimiter: b'\n' };
            for len in 0..=7 {
                for number in 0..3_usize.pow(len) {
                    let digit = |place| letters[number / 3_usize.pow(place) % 3];
                    let bytes: Vec<u8> = (0..len).map(digit).collect();
                    let (header, mut rest) =
                        rule.of_reader("x", &mut Slow(&bytes)).expect("no fault");
                    let expected = naive(&bytes, prefixes);
                    assert_eq!((header.bytes, header.input_bytes), expected, "{bytes:?}");
                    let at = (expected.1 as usize + rest.len()).min(bytes.len());
                    rest.extend_from_slice(&bytes[at..]);
                    assert_eq!(rest, bytes[expected.1 as usize..], "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn a_header_without_end_is_refused() {
        let prefixes = [JournalText(b"a".to_vec())];
        let rule = HeaderRule { prefixes: prefixes.into(), delimiter: b'\n' };
        let error = rule.of_reader("x", &mut io::repeat(b'a')).expect_err("no end");
        assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
    }

    #[test]
    fn other_headers_are_told_with_their_first_line() {
        let rule = HeaderRule { prefixes: [].into(), delimiter: b'\n' };
        let mut first = None;
        for header in ["", "#a\n#b\n", "", "#a\n#b\n"] {
            rule.join(&mut first, header.into(), "x").expect("the same or none");
        }
        for (header, line) in [("#c\n", 1), ("#a\n", 2), ("#a\n#c\n", 2), ("#a\n#b\n#c\n", 3)] {
            let error = rule.join(&mut first, header.into(), "f").expect_err("another");
            let is_it = matches!(&error, Error::HeaderLines { line: found, .. } if *found == line);
            assert!(is_it, "{header:?} {error}");
        }
    }
}
