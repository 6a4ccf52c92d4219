//! Keys of sequences: `PART[:TYPE][:r]`, where PART is `id`, `header`, `length` or `sequence`.
//!
//! The header is the first line without its mark, the id is what it has before the first blank. The
//! sequence is its letters: where its lines are broken, and blanks in them, make no difference. Ids and
//! headers take the types of CSV columns. A length is a number. A sequence is a text, folded with `f`.

use super::element::Element;
use super::numeric::complement;
use super::options::{Blanks, Options};
use super::orderings::LETTERS_OF_TEXTS;
use crate::record::SequenceKind;
use crate::record::letters::{header_of, id_of, letters_count, letters_of};

/// The part of a record that a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequencePart {
    Id,
    Header,
    Length,
    Sequence,
}

/// A parsed key of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SequenceKey {
    pub(super) part: SequencePart,
    pub(super) options: Options,
}

impl SequenceKey {
    /// Parses a key; the error is the reason alone.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let part = match words.next() {
            Some("id") => SequencePart::Id,
            Some("header") => SequencePart::Header,
            Some("length") => SequencePart::Length,
            Some("sequence") => SequencePart::Sequence,
            _ => return Err("a key is id, header, length or sequence".to_owned()),
        };
        let taken = part.letters();
        let mut options = Options::default();
        for word in words {
            let fits = |letter: char| taken.contains(letter);
            if word.is_empty() || !word.chars().all(fits) {
                let letters: Vec<String> =
                    taken.chars().map(|letter| format!(":{letter}")).collect();
                return Err(format!(
                    "'{word}' is out of place; this key takes {}",
                    letters.join(" ")
                ));
            }
            word.bytes().for_each(|letter| _ = options.set(letter, Blanks::Both));
        }
        Ok(SequenceKey { part, options })
    }

    /// The options of a key without letters of its own: those of `global` that its part takes.
    pub(super) fn or_global(self, global: Options) -> Options {
        let options = self.options.or_global(global);
        options.limited_to(self.part.letters())
    }
}

impl SequencePart {
    /// The ordering letters that it takes.
    fn letters(self) -> &'static str {
        match self {
            SequencePart::Id | SequencePart::Header => LETTERS_OF_TEXTS,
            SequencePart::Length => "r",
            SequencePart::Sequence => "fr",
        }
    }
}

/// All keys of a record.
#[derive(Debug, Clone)]
pub(super) struct SequenceKeys {
    pub(super) kind: SequenceKind,
    pub(super) keys: Vec<(SequencePart, Element)>,
}

impl SequenceKeys {
    /// Appends the keys of `record`.
    #[inline]
    pub(super) fn encode(&self, record: &[u8], out: &mut Vec<u8>) {
        for (part, element) in &self.keys {
            match part {
                SequencePart::Id => element.encode(id_of(record), out),
                SequencePart::Header => element.encode(header_of(record), out),
                SequencePart::Length => {
                    encode_length(letters_count(self.kind, record), element.descending, out);
                }
                SequencePart::Sequence => {
                    element.encode_pieces(letters_of(self.kind, record), out);
                }
            }
        }
    }

    /// The encoding of a first key that is this length, where that is the first key.
    pub(super) fn encode_first_length(&self, letters: u64) -> Option<Vec<u8>> {
        let (SequencePart::Length, element) = self.keys.first()? else { return None };
        let mut out = Vec::new();
        encode_length(letters, element.descending, &mut out);
        Some(out)
    }
}

fn encode_length(letters: u64, descending: bool, out: &mut Vec<u8>) {
    let mark = out.len();
    out.extend_from_slice(&letters.to_be_bytes());
    if descending {
        complement(&mut out[mark..]);
    }
}
