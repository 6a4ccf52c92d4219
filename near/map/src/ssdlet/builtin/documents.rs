//! `inverted-index`, `term-vector` and `ranked-inverted-index`: words of named texts (PUMA's indexes).
//!
//! A record is `DOCUMENT tab WORDS`; one without a tab gives nothing. Words are separated by white space.

use std::convert::Infallible;
use std::io::Write;
use std::ops::Range;

use memchr::memrchr;

use super::arguments::Arguments;
use super::by_record::{ByRecord, RecordProgram, split_at_first};
use super::words::each_word;
use super::{Argument, COPY_BYTES_MOST, DELIMITER};
use crate::ssdlet::{Combine, Emitter, Ssdlet, SsdletError, Type};

pub(super) const ARGUMENTS: &[Argument] = &[DELIMITER];

/// Memory for each byte of a record, in bytes: a word has 2 or more with the byte behind it, and 8 in a vector of words,
/// which has room for twice as many and is copied as it grows. The row that is made of the record takes less.
const BYTES_PER_RECORD_BYTE: u64 = 12;

/// Records up to this many bytes are taken apart, however little memory there is.
const RECORD_BYTES_LEAST: u64 = 64 << 10;

/// The document of each word, once for a record.
#[derive(Clone)]
struct InvertedIndex {
    words: RecordWords,
}

/// For each document, its words and how often each occurs, `WORD:COUNT WORD:COUNT`.
#[derive(Clone)]
struct TermVector {
    words: RecordWords,
    vector: Vec<u8>,
}

/// Of a record `WORDS|DOCUMENT tab COUNT`, which is a row of `sequence-count`, the words with `COUNT|DOCUMENT`.
#[derive(Clone)]
struct RankedIndex {
    record_bytes_max: usize,
    value: Vec<u8>,
}

pub(super) fn open_inverted(args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    open("inverted-index", args, |most| InvertedIndex { words: RecordWords::up_to(most) })
}

pub(super) fn open_vector(args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let program = |most| TermVector { words: RecordWords::up_to(most), vector: Vec::new() };
    open("term-vector", args, program)
}

pub(super) fn open_ranked(args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let program = |record_bytes_max| RankedIndex { record_bytes_max, value: Vec::new() };
    open("ranked-inverted-index", args, program)
}

/// Opens a program that takes apart records of as many bytes as the memory allows.
fn open<P: RecordProgram>(
    name: &str,
    mut args: Arguments,
    program: impl FnOnce(usize) -> P,
) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let delimiter = args.delimiter()?;
    let allowed = args.memory_most() / BYTES_PER_RECORD_BYTE;
    let most = allowed.clamp(RECORD_BYTES_LEAST, COPY_BYTES_MOST as u64);
    let rows = (Type::Text, Combine::None);
    let worker_bytes = BYTES_PER_RECORD_BYTE * most;
    Ok(ByRecord::boxed(name, delimiter, rows, worker_bytes, program(most as usize)))
}

/// The words of one record.
#[derive(Clone)]
struct RecordWords {
    record_bytes_max: usize,
    /// Where each word is.
    spans: Vec<(u32, u32)>,
}

fn check_len(record: &[u8], most: usize) -> Result<(), String> {
    match record.len() {
        len if len <= most => Ok(()),
        len => Err(format!(
            "a record of {len} bytes, and {most} are taken apart; give more memory, or divide it"
        )),
    }
}

impl RecordWords {
    fn up_to(record_bytes_max: usize) -> Self {
        RecordWords { record_bytes_max, spans: Vec::new() }
    }

    /// Finds the words of `text`, in byte order.
    fn find(&mut self, text: &[u8]) -> Result<(), String> {
        check_len(text, self.record_bytes_max)?;
        self.spans.clear();
        let Ok(()) = each_word(text, |start, end| {
            self.spans.push((start as u32, end as u32));
            Ok::<(), Infallible>(())
        });
        self.spans.sort_unstable_by_key(|span| &text[range(*span)]);
        Ok(())
    }

    /// Each word that was found, once, and how often it occurs.
    fn distinct<'a>(&self, text: &'a [u8]) -> impl Iterator<Item = (&'a [u8], usize)> {
        let word = move |span: &(u32, u32)| &text[range(*span)];
        let equal = self.spans.chunk_by(move |a, b| word(a) == word(b));
        equal.map(move |equal| (word(&equal[0]), equal.len()))
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

impl RecordProgram for InvertedIndex {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let Some((document, text)) = split_at_first(b'\t', record) else { return Ok(()) };
        self.words.find(text)?;
        self.words.distinct(text).for_each(|(word, _)| out.emit(word, document));
        Ok(())
    }
}

impl RecordProgram for TermVector {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let Some((document, text)) = split_at_first(b'\t', record) else { return Ok(()) };
        self.words.find(text)?;
        self.vector.clear();
        for (word, count) in self.words.distinct(text) {
            if !self.vector.is_empty() {
                self.vector.push(b' ');
            }
            self.vector.extend_from_slice(word);
            write!(self.vector, ":{count}").expect("memory takes it");
        }
        if !self.vector.is_empty() {
            out.emit(document, &self.vector);
        }
        Ok(())
    }
}

impl RecordProgram for RankedIndex {
    fn record(&mut self, record: &[u8], out: &mut Emitter<'_>) -> Result<(), String> {
        let Some((name, count)) = split_at_first(b'\t', record) else { return Ok(()) };
        let Some(bar) = memrchr(b'|', name) else { return Ok(()) };
        check_len(record, self.record_bytes_max)?;
        self.value.clear();
        self.value.extend_from_slice(count);
        self.value.push(b'|');
        self.value.extend_from_slice(&name[bar + 1..]);
        out.emit(&name[..bar], &self.value);
        Ok(())
    }
}
