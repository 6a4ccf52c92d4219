//! `sequence-count`: how often each sequence of words occurs (PUMA's sequence count, without the document).
//!
//! A sequence is *n* words of one record that follow each other; its key is the words with one space
//! between them.

use std::collections::VecDeque;

use memchr::memchr;
use merganser_sort::record::Format;

use super::arguments::Arguments;
use super::wordcount::word_arguments;
use super::words::{Rule, WORDS_BYTES, WordFinder};
use super::{Argument, COPY_BYTES_MOST, DELIMITER, WORDS, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

pub(super) const ARGUMENTS: &[Argument] =
    &[argument("n", "words of a sequence, 1 to 16", "3"), WORDS, DELIMITER];

struct SequenceCount {
    description: SsdletDescription,
    rule: Rule,
    delimiter: u8,
    n: usize,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let n = args.take("n")?.unwrap_or(3);
    if !(1..=16).contains(&n) {
        return Err(args.fault("n", format!("{n} is not from 1 to 16")));
    }
    let (rule, delimiter) = word_arguments(&mut args)?;
    let description = SsdletDescription {
        name: "sequence-count".to_owned(),
        input: Format::Lines { delimiter },
        output: SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum },
        // The joined words double before they are moved to the front.
        worker_bytes: WORDS_BYTES + 2 * COPY_BYTES_MOST as u64,
    };
    Ok(Box::new(SequenceCount { description, rule, delimiter, n }))
}

impl Ssdlet for SequenceCount {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let last = LastWords { n: self.n, text: Vec::new(), begins: VecDeque::new() };
        let words = WordFinder::new(self.rule, self.delimiter);
        Ok(Box::new(SequenceWorker { words, last, delimiter: self.delimiter, metered: 0 }))
    }
}

struct SequenceWorker {
    words: WordFinder,
    last: LastWords,
    delimiter: u8,
    metered: u64,
}

/// The last words of a record, at most *n*.
struct LastWords {
    n: usize,
    /// Words with spaces between them; those before `begins` are gone.
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
            self.text.push(b' ');
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

impl Worker for SequenceWorker {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        let (last, mut end) = (&mut self.last, 0);
        last.clear();
        self.words.each(chunk.bytes, chunk.offset, |word| {
            if memchr(self.delimiter, &chunk.bytes[end..word.at]).is_some() {
                last.clear();
            }
            end = word.at + word.text.len();
            let Some(()) = last.push(word.text) else {
                let detail = format!("a sequence of words of more than {COPY_BYTES_MOST} bytes");
                let offset = chunk.offset + word.at as u64;
                return Err(SsdletError::Record { offset, detail });
            };
            if let Some(sequence) = last.sequence() {
                out.add(sequence, 1);
            }
            Ok(())
        })
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}
