//! Where words begin and end.
//!
//! A block of 64 bytes gives one bit a byte: whether it belongs to a word. Words begin and end where that
//! bit changes, so the loop runs once for each word and not for each byte. A word that spans blocks is
//! remembered by its first byte.
//!
//! ```text
//! bytes   t h e   q u i c k
//! word    1 1 1 0 1 1 1 1 1
//! edges   1 0 0 1 1 0 0 0 0     word xor (word moved on by one)
//! ```

use std::ops::Range;

use serde::Deserialize;

use super::COPY_BYTES_MOST;
use super::block::{self, each_block};
use crate::ssdlet::SsdletError;

/// The rule for words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Rule {
    /// Bytes between space, tab, newline, form feed and carriage return: what Java's `StringTokenizer`
    /// gives, and so Hadoop's word count. `wc -w` also separates at vertical tabs.
    #[default]
    Whitespace,
    /// ASCII letters and apostrophes, from a letter on, in upper case: Phoenix's word count.
    Letters,
}

/// Upper-case letters are made in pieces of this size, unless one word is longer.
const PIECE_BYTES: usize = 16 << 10;

/// Finds the words of chunks.
pub(super) struct WordFinder {
    rule: Rule,
    /// A word ends here, whatever the rule says.
    delimiter: u8,
    /// A piece in upper case.
    upper: Vec<u8>,
}

/// A word, and where it is in its chunk.
pub(super) struct ChunkWord<'a> {
    /// The chunk, or a piece of it in upper case.
    pub around: &'a [u8],
    /// The word in it.
    pub span: Range<usize>,
    /// Place of its first byte in the chunk.
    pub at: usize,
}

impl<'a> ChunkWord<'a> {
    pub(super) fn text(&self) -> &'a [u8] {
        &self.around[self.span.clone()]
    }
}

impl Rule {
    /// Memory of a [`WordFinder`] with this rule, at most, in bytes.
    pub(super) fn finder_bytes(self) -> u64 {
        match self {
            Rule::Whitespace => 0,
            Rule::Letters => COPY_BYTES_MOST as u64,
        }
    }
}

impl WordFinder {
    pub(super) fn new(rule: Rule, delimiter: u8) -> Self {
        WordFinder { rule, delimiter, upper: Vec::new() }
    }

    /// Calls `take` for each word of `bytes`, which are at `offset` of an input.
    #[inline(always)]
    pub(super) fn each(
        &mut self,
        bytes: &[u8],
        offset: u64,
        mut take: impl FnMut(ChunkWord<'_>) -> Result<(), SsdletError>,
    ) -> Result<(), SsdletError> {
        if self.rule == Rule::Whitespace {
            let delimiter = self.delimiter;
            return each_span(
                bytes,
                |block| !block::whitespace(delimiter, block),
                |start, end| take(ChunkWord { around: bytes, span: start..end, at: start }),
            );
        }
        let mut at = 0;
        while at < bytes.len() {
            let len = piece_len(&bytes[at..]);
            if len > COPY_BYTES_MOST {
                let detail = format!(
                    "a word of more than {COPY_BYTES_MOST} letters; use the words \"whitespace\""
                );
                return Err(SsdletError::Record { offset: offset + at as u64, detail });
            }
            let piece = &bytes[at..at + len];
            self.upper.clear();
            self.upper.extend(piece.iter().map(u8::to_ascii_uppercase));
            let upper = &self.upper;
            each_span(upper, block::letters, |start, end| {
                let apostrophes = upper[start..end].iter().take_while(|b| **b == b'\'').count();
                let start = start + apostrophes;
                let word = ChunkWord { around: upper, span: start..end, at: at + start };
                if start < end { take(word) } else { Ok(()) }
            })?;
            at += len;
        }
        Ok(())
    }
}

/// Calls `take` with begin and end of each stretch of `bytes` without white space (`Rule::Whitespace`).
#[inline(always)]
pub(super) fn each_word<E>(
    bytes: &[u8],
    take: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    each_span(bytes, |block| !block::whitespace(b'\n', block), take)
}

/// How much of `bytes` is made upper-case at once: no word is cut.
fn piece_len(bytes: &[u8]) -> usize {
    let is_in_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'\'';
    if bytes.len() <= PIECE_BYTES {
        return bytes.len();
    }
    let before = bytes[..PIECE_BYTES].iter().rposition(|byte| !is_in_word(byte));
    let behind = || bytes.iter().position(|byte| !is_in_word(byte)).unwrap_or(bytes.len());
    before.map_or_else(behind, |at| at + 1)
}

/// Calls `take` with begin and end of each stretch of bytes that are in words; `is_word` gives their bits
/// in a block.
#[inline(always)]
fn each_span<E>(
    bytes: &[u8],
    is_word: impl Fn(&block::ByteBlock) -> u64,
    mut take: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    // Begin of a word that has not ended yet.
    let mut open: Option<usize> = None;
    each_block(bytes, |at, block, inside| {
        let word = is_word(block) & inside;
        let mut edges = word ^ (word << 1 | u64::from(open.is_some()));
        while edges != 0 {
            let edge = at + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            let start = match open.take() {
                Some(start) => {
                    take(start, edge)?;
                    continue;
                }
                None => edge,
            };
            if edges == 0 {
                open = Some(start);
                break;
            }
            let end = at + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            take(start, end)?;
        }
        Ok(())
    })?;
    match open {
        Some(start) if start < bytes.len() => take(start, bytes.len()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(rule: Rule, delimiter: u8, bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let mut found = Vec::new();
        let take = |word: ChunkWord<'_>| {
            found.push((word.at, word.text().to_vec()));
            Ok(())
        };
        WordFinder::new(rule, delimiter).each(bytes, 0, take).expect("finds words");
        found
    }

    fn naive(rule: Rule, delimiter: u8, bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let (mut words, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let rest = &bytes[at..];
            let len = match rule {
                Rule::Whitespace => {
                    let ends = |b: &u8| b" \t\n\x0c\r".contains(b) || *b == delimiter;
                    rest.iter().position(ends).unwrap_or(rest.len())
                }
                Rule::Letters if !rest[0].is_ascii_alphabetic() => 0,
                Rule::Letters => {
                    let goes_on = |b: &u8| b.is_ascii_alphabetic() || *b == b'\'';
                    rest.iter().position(|b| !goes_on(b)).unwrap_or(rest.len())
                }
            };
            if len > 0 {
                let word = rest[..len].to_vec();
                let upper = word.to_ascii_uppercase();
                words.push((at, if rule == Rule::Letters { upper } else { word }));
            }
            at += len.max(1);
        }
        words
    }

    #[test]
    fn words_of_a_sentence() {
        let text = b"It's 'twas--a dog\x0bcat\n";
        let words: Vec<_> = found(Rule::Letters, b'\n', text).into_iter().map(|w| w.1).collect();
        assert_eq!(words, [&b"IT'S"[..], b"TWAS", b"A", b"DOG", b"CAT"]);
        let words: Vec<_> = found(Rule::Whitespace, b'\n', text).into_iter().map(|w| w.1).collect();
        assert_eq!(words, [&b"It's"[..], b"'twas--a", b"dog\x0bcat"]);
    }

    #[test]
    fn all_texts_of_a_few_bytes_across_the_border_of_blocks() {
        let alphabet = b"a' \n\x00";
        for code in 0..5_usize.pow(6) {
            let tail: Vec<u8> = (0..6).map(|n| alphabet[code / 5_usize.pow(n) % 5]).collect();
            for before in [0, 60, 62] {
                let text = [&b"b".repeat(before)[..], &tail].concat();
                for (rule, delimiter) in
                    [(Rule::Letters, b'\n'), (Rule::Whitespace, b'\n'), (Rule::Whitespace, 0)]
                {
                    assert_eq!(found(rule, delimiter, &text), naive(rule, delimiter, &text));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..400), letters: bool) {
            let rule = if letters { Rule::Letters } else { Rule::Whitespace };
            prop_assert_eq!(found(rule, b'\n', &text), naive(rule, b'\n', &text));
        }
    }

    #[test]
    fn long_words_are_whole_up_to_the_limit() {
        for len in [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, COPY_BYTES_MOST] {
            let text = [b"x ".as_slice(), &b"y".repeat(len), b" z".as_slice()].concat();
            assert_eq!(found(Rule::Letters, b'\n', &text), naive(Rule::Letters, b'\n', &text));
        }
        let text = [b"x ".as_slice(), &b"y".repeat(COPY_BYTES_MOST + 1)].concat();
        let refused = WordFinder::new(Rule::Letters, b'\n').each(&text, 100, |_| Ok(()));
        let Err(SsdletError::Record { offset, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(offset, 102);
        assert_eq!(found(Rule::Whitespace, b'\n', &text).len(), 2);
    }
}
