//! `sequence-count`: how often each sequence of words occurs.
//!
//! A sequence is *n* words of one record that follow each other; its key is the words with one space
//! between them. Where records name their documents, it is `WORD|WORD|WORD|DOCUMENT` (PUMA's sequence count).

use std::collections::VecDeque;

use memchr::memchr;
use merganser_sort::record::Format;
use serde::Deserialize;

use super::arguments::Arguments;
use super::by_record::{each_record, split_at_first};
use super::wordcount::word_arguments;
use super::words::{Rule, WordFinder};
use super::{Argument, COPY_BYTES_MOST, DELIMITER, WORDS, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument("n", "words of a sequence, 1 to 16", "3"),
    argument(
        "document",
        "\"none\", or \"field\" (the text before the first tab of a record names its document, which ends the key, and | is between its parts; a record without a tab gives nothing)",
        "\"none\"",
    ),
    WORDS,
    DELIMITER,
];

/// What names the document of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SequenceDocument {
    #[default]
    None,
    Field,
}

struct SequenceCount {
    description: SsdletDescription,
    rule: Rule,
    delimiter: u8,
    document: SequenceDocument,
    n: usize,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let n = args.take("n")?.unwrap_or(3);
    if !(1..=16).contains(&n) {
        return Err(args.fault("n", format!("{n} is not from 1 to 16")));
    }
    let document = args.take("document")?.unwrap_or_default();
    let (rule, delimiter) = word_arguments(&mut args)?;
    let description = SsdletDescription {
        name: "sequence-count".to_owned(),
        input: Format::Lines { delimiter },
        output: SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum },
        // The joined words double before they are moved to the front; a key with a document is a copy of them.
        worker_bytes: rule.finder_bytes() + 3 * COPY_BYTES_MOST as u64,
    };
    Ok(Box::new(SequenceCount { description, rule, delimiter, document, n }))
}

impl Ssdlet for SequenceCount {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let between = if self.document == SequenceDocument::None { b' ' } else { b'|' };
        let last = LastWords { n: self.n, between, text: Vec::new(), begins: VecDeque::new() };
        let words = WordFinder::new(self.rule, self.delimiter);
        let (delimiter, document, key) = (self.delimiter, self.document, Vec::new());
        Ok(Box::new(SequenceWorker { words, last, delimiter, document, key, metered: 0 }))
    }
}

struct SequenceWorker {
    words: WordFinder,
    last: LastWords,
    delimiter: u8,
    document: SequenceDocument,
    /// A sequence with its document.
    key: Vec<u8>,
    metered: u64,
}

/// The last words of a record, at most *n*.
struct LastWords {
    n: usize,
    /// The byte between two words.
    between: u8,
    /// Words with that byte between them; those before `begins` are gone.
    text: Vec<u8>,
    /// Where each word begins.
    begins: VecDeque<usize>,
}

impl LastWords {
    fn clear(&mut self) {
        self.text.clear();
        self.begins.clear();
    }

    /// Adds a word; `None` if the sequence would be too long to copy.
    fn push(&mut self, word: &[u8]) -> Option<()> {
        if self.begins.len() == self.n {
            self.begins.pop_front();
        }
        let kept = self.begins.front().map_or(0, |begin| self.text.len() - begin);
        if kept + word.len() >= COPY_BYTES_MOST {
            return None;
        }
        if self.text.len() + word.len() >= COPY_BYTES_MOST {
            self.text.drain(..self.text.len() - kept);
            let moved = self.begins.front().copied().unwrap_or_default();
            self.begins.iter_mut().for_each(|begin| *begin -= moved);
        }
        if !self.text.is_empty() {
            self.text.push(self.between);
        }
        self.begins.push_back(self.text.len());
        self.text.extend_from_slice(word);
        Some(())
    }

    /// The sequence, once there are *n* words.
    fn sequence(&self) -> Option<&[u8]> {
        let is_whole = self.begins.len() == self.n;
        self.begins.front().filter(|_| is_whole).map(|begin| &self.text[*begin..])
    }
}

impl SequenceWorker {
    /// Hands out the sequences of `chunk`, whose records have no document.
    fn sequences(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        let (last, mut end) = (&mut self.last, 0);
        last.clear();
        self.words.each(chunk.bytes, chunk.offset, |word| {
            if memchr(self.delimiter, &chunk.bytes[end..word.at]).is_some() {
                last.clear();
            }
            end = word.at + word.span.len();
            last.push(word.text()).ok_or_else(|| too_long(chunk.offset + word.at as u64))?;
            if let Some(sequence) = last.sequence() {
                out.add(sequence, 1);
            }
            Ok(())
        })
    }

    /// Hands out the sequences of a record at `offset`, each with its document.
    fn sequences_of_document(
        &mut self,
        record: &[u8],
        offset: u64,
        out: &mut Emitter<'_>,
    ) -> Result<(), SsdletError> {
        let Some((document, text)) = split_at_first(b'\t', record) else { return Ok(()) };
        let (last, key) = (&mut self.last, &mut self.key);
        last.clear();
        self.words.each(text, offset + document.len() as u64 + 1, |word| {
            let too_long = || too_long(offset);
            last.push(word.text()).ok_or_else(too_long)?;
            let Some(sequence) = last.sequence() else { return Ok(()) };
            if sequence.len() + document.len() >= COPY_BYTES_MOST {
                return Err(too_long());
            }
            key.clear();
            key.extend_from_slice(sequence);
            key.push(b'|');
            key.extend_from_slice(document);
            out.add(key, 1);
            Ok(())
        })
    }
}

fn too_long(offset: u64) -> SsdletError {
    let detail = format!("a sequence of words of more than {COPY_BYTES_MOST} bytes");
    SsdletError::Record { offset, detail }
}

impl Worker for SequenceWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        match self.document {
            SequenceDocument::None => self.sequences(chunk, out),
            SequenceDocument::Field => each_record(self.delimiter, chunk, |offset, record| {
                self.sequences_of_document(record, offset, out)
            }),
        }
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}
