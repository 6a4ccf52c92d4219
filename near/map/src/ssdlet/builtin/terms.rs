//! `terms`: how often each word occurs in each document.
//!
//! The key is a word, a tab and a document, so the sorted result is an inverted index with frequencies
//! (PUMA's inverted index, and what its ranked one begins with). With the document first it is a term
//! vector for each document. A document is an input, or is named by the first field of each record, as
//! PUMA's term vector has it.

use memchr::memchr;
use merganser_sort::record::Format;
use serde::Deserialize;

use super::arguments::Arguments;
use super::wordcount::word_arguments;
use super::words::{Rule, WordFinder};
use super::{Argument, COPY_BYTES_MOST, DELIMITER, WORDS, argument};
use crate::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};

pub(super) const ARGUMENTS: &[Argument] = &[
    argument(
        "document",
        "\"input\" (each input is a document) or \"field\" (the text before the first tab of a record names its document)",
        "\"input\"",
    ),
    argument("names", "a list of names for the inputs, in their order", "their numbers from 0"),
    argument("first", "\"word\" (an inverted index) or \"document\" (term vectors)", "\"word\""),
    WORDS,
    DELIMITER,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum First {
    #[default]
    Word,
    Document,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DocumentIs {
    #[default]
    Input,
    Field,
}

/// Between word and document, and behind the document in a record.
const TAB: u8 = b'\t';

#[derive(Clone)]
struct TermSettings {
    document_is: DocumentIs,
    names: Option<Vec<String>>,
    first: First,
    rule: Rule,
    delimiter: u8,
}

struct TermsSsdlet {
    description: SsdletDescription,
    settings: TermSettings,
}

pub(super) fn open(mut args: Arguments) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let document_is = args.take("document")?.unwrap_or_default();
    let names: Option<Vec<String>> = args.take("names")?;
    if names.is_some() && document_is == DocumentIs::Field {
        return Err(args.fault("names", "records name their documents; leave it out"));
    }
    let too_long = |name: &&String| name.len() > 65_536 || name.contains('\t');
    if let Some(name) = names.iter().flatten().find(too_long) {
        let detail = format!("{name:?} has a tab, or more than 65536 bytes");
        return Err(args.fault("names", detail));
    }
    let first = args.take("first")?.unwrap_or_default();
    let (rule, delimiter) = word_arguments(&mut args)?;
    if delimiter == TAB {
        return Err(args.fault("delimiter", "a tab is between a word and its document"));
    }
    let description = SsdletDescription {
        name: "terms".to_owned(),
        input: Format::Lines { delimiter },
        output: SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum },
        worker_bytes: rule.finder_bytes() + COPY_BYTES_MOST as u64,
    };
    let settings = TermSettings { document_is, names, first, rule, delimiter };
    Ok(Box::new(TermsSsdlet { description, settings }))
}

impl Ssdlet for TermsSsdlet {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn asks_for_places(&self) -> bool {
        self.settings.document_is == DocumentIs::Input
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let words = WordFinder::new(self.settings.rule, self.settings.delimiter);
        let key = TermKey { first: self.settings.first, text: Vec::new() };
        Ok(Box::new(Indexer { words, key, settings: self.settings.clone(), metered: 0 }))
    }
}

struct Indexer {
    words: WordFinder,
    key: TermKey,
    settings: TermSettings,
    metered: u64,
}

struct TermKey {
    first: First,
    text: Vec<u8>,
}

impl TermKey {
    /// The key of a word in a document; `None` if it is too long to copy.
    fn of_word(&mut self, word: &[u8], document: &[u8]) -> Option<&[u8]> {
        let parts = match self.first {
            First::Word => [word, document],
            First::Document => [document, word],
        };
        if word.len() + document.len() >= COPY_BYTES_MOST {
            return None;
        }
        self.text.clear();
        self.text.extend_from_slice(parts[0]);
        self.text.push(TAB);
        self.text.extend_from_slice(parts[1]);
        Some(&self.text)
    }
}

impl Indexer {
    /// Hands out the words of `bytes`, which are at `offset` of an input.
    fn index(
        &mut self,
        document: &[u8],
        bytes: &[u8],
        offset: u64,
        out: &mut Emitter<'_>,
    ) -> Result<(), SsdletError> {
        let key = &mut self.key;
        self.words.each(bytes, offset, |word| {
            let Some(key) = key.of_word(word.text(), document) else {
                let detail =
                    format!("a word and its document of more than {COPY_BYTES_MOST} bytes");
                return Err(SsdletError::Record { offset: offset + word.at as u64, detail });
            };
            out.add(key, 1);
            Ok(())
        })
    }

    /// Hands out the words of records that name their documents.
    fn index_records(
        &mut self,
        chunk: Chunk<'_>,
        out: &mut Emitter<'_>,
    ) -> Result<(), SsdletError> {
        let mut at = 0;
        while at < chunk.bytes.len() {
            let rest = &chunk.bytes[at..];
            let len = memchr(self.settings.delimiter, rest).map_or(rest.len(), |end| end + 1);
            let (record, offset) = (&rest[..len], chunk.offset + at as u64);
            let Some(tab) = memchr(TAB, record) else {
                let detail = "no tab ends the name of its document; write it in front of the text, or use the document \"input\"";
                return Err(SsdletError::Record { offset, detail: detail.to_owned() });
            };
            self.index(&record[..tab], &record[tab..], offset + tab as u64, out)?;
            at += len;
        }
        Ok(())
    }
}

impl Worker for Indexer {
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        self.metered += chunk.bytes.len() as u64;
        if self.settings.document_is == DocumentIs::Field {
            return self.index_records(chunk, out);
        }
        let document = match &self.settings.names {
            None => chunk.input.to_string(),
            Some(names) => names.get(chunk.input as usize).cloned().ok_or_else(|| {
                let (number, count) = (chunk.input, names.len());
                let detail = format!("argument names: input {number} has none among {count}");
                SsdletError::Args { ssdlet: "terms".to_owned(), detail }
            })?,
        };
        self.index(document.as_bytes(), chunk.bytes, chunk.offset, out)
    }

    fn meter(&mut self) -> u64 {
        std::mem::take(&mut self.metered)
    }
}
