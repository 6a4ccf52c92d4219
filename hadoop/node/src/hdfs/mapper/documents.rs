//! Words of documents (PUMA's indexes and counts). A line is `DOCUMENT tab WORDS`; a line without a tab is skipped.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::ops::Range;

use memchr::memrchr;

use super::{RecordMapper, split_at_first};
use crate::hdfs::output::MappedRows;
use merganser_map::ssdlet::builtin::each_word;

/// `sequence-count`: 1 for each three words that follow each other, as `WORD|WORD|WORD|DOCUMENT`.
#[derive(Default)]
pub(super) struct SequenceCountMapper {
    last: VecDeque<Range<usize>>,
    key: Vec<u8>,
}

/// `inverted-index`: the document of each word, once for a line.
pub(super) struct InvertedIndexMapper;

/// `term-vector`: for each document, its words and how often each occurs, `WORD:COUNT WORD:COUNT`.
#[derive(Default)]
pub(super) struct TermVectorMapper {
    vector: Vec<u8>,
}

/// `ranked-inverted-index`: of a line `WORDS|DOCUMENT tab COUNT`, which is a row of `sequence-count`, the words
/// with `COUNT|DOCUMENT`.
#[derive(Default)]
pub(super) struct Ranked {
    value: Vec<u8>,
}

/// Words of a sequence.
const SEQUENCE: usize = 3;

fn words(text: &[u8], mut take: impl FnMut(Range<usize>)) {
    let Ok(()) = each_word(text, |start, end| {
        take(start..end);
        Ok::<(), Infallible>(())
    });
}

/// The words of a text in byte order.
fn sorted_words(text: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    words(text, |word| all.push(&text[word]));
    all.sort_unstable();
    all
}

impl RecordMapper for SequenceCountMapper {
    fn record(&mut self, line: &[u8], out: &mut MappedRows<'_>) {
        let Some((document, text)) = split_at_first(b'\t', line) else { return };
        let SequenceCountMapper { last, key } = self;
        last.clear();
        words(text, |word| {
            if last.len() == SEQUENCE {
                last.pop_front();
            }
            last.push_back(word);
            if last.len() == SEQUENCE {
                key.clear();
                for word in last.iter() {
                    key.extend_from_slice(&text[word.clone()]);
                    key.push(b'|');
                }
                key.extend_from_slice(document);
                out.count(key);
            }
        });
    }
}

impl RecordMapper for InvertedIndexMapper {
    fn record(&mut self, line: &[u8], out: &mut MappedRows<'_>) {
        let Some((document, text)) = split_at_first(b'\t', line) else { return };
        let mut distinct = sorted_words(text);
        distinct.dedup();
        distinct.into_iter().for_each(|word| out.put(word, document));
    }
}

impl RecordMapper for TermVectorMapper {
    fn record(&mut self, line: &[u8], out: &mut MappedRows<'_>) {
        let Some((document, text)) = split_at_first(b'\t', line) else { return };
        self.vector.clear();
        for equal in sorted_words(text).chunk_by(|a, b| a == b) {
            if !self.vector.is_empty() {
                self.vector.push(b' ');
            }
            self.vector.extend_from_slice(equal[0]);
            write!(self.vector, ":{}", equal.len()).expect("memory takes it");
        }
        if !self.vector.is_empty() {
            out.put(document, &self.vector);
        }
    }
}

impl RecordMapper for Ranked {
    fn record(&mut self, line: &[u8], out: &mut MappedRows<'_>) {
        let Some((name, count)) = split_at_first(b'\t', line) else { return };
        let Some(bar) = memrchr(b'|', name) else { return };
        self.value.clear();
        self.value.extend_from_slice(count);
        self.value.push(b'|');
        self.value.extend_from_slice(&name[bar + 1..]);
        out.put(&name[..bar], &self.value);
    }
}
