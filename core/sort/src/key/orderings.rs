//! The ordering letters of GNU sort, for all keys or for one: one table for the parsers of keys and for programs with flags.
//!
//! A new type of key is a file with its encoding, a line in `mod.rs`, and here a line in [`ORDERINGS`] and one in
//! [`ElementKind`].

use super::numeric::is_blank;
use super::{general, human, month, numeric, random, text, version};

/// A letter, and what it means.
#[derive(Debug, Clone, Copy)]
pub struct KeyOrdering {
    /// The letter.
    pub letter: char,
    /// The long name of its flag.
    pub flag: &'static str,
    /// The word after `--sort` that means the same.
    pub word: Option<&'static str>,
    /// What it asks for.
    pub about: &'static str,
    /// How keys are encoded under it.
    pub(super) meaning: Meaning,
}

/// The effect of an ordering letter on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Blanks at its ends are left out.
    SkipBlanks,
    /// Other characters are left out.
    Keep(KeptChars),
    /// Lower case counts as upper case.
    Fold,
    /// The order is reversed.
    Reverse,
    /// It is read as something other than a text.
    Kind(ElementKind),
}

/// All letters, in GNU sort's order.
pub const ORDERINGS: &[KeyOrdering] = &[
    plain('b', "ignore-leading-blanks", "Ignore leading blanks", Meaning::SkipBlanks),
    plain(
        'd',
        "dictionary-order",
        "Compare only blanks, letters and digits",
        Meaning::Keep(KeptChars::Dictionary),
    ),
    plain('f', "ignore-case", "Compare lower case as upper case", Meaning::Fold),
    kind(
        'g',
        ("general-numeric-sort", "general-numeric"),
        "Compare as general numbers, such as 1.5e-3, inf, nan",
        ElementKind::General,
    ),
    kind(
        'h',
        ("human-numeric-sort", "human-numeric"),
        "Compare human-readable numbers, such as 2K, 1G",
        ElementKind::Human,
    ),
    plain(
        'i',
        "ignore-nonprinting",
        "Compare only printable characters",
        Meaning::Keep(KeptChars::Printable),
    ),
    kind(
        'M',
        ("month-sort", "month"),
        "Compare as months, unknown < JAN < ... < DEC",
        ElementKind::Month,
    ),
    kind(
        'n',
        ("numeric-sort", "numeric"),
        "Compare as numbers of any length",
        ElementKind::Numeric,
    ),
    kind(
        'R',
        ("random-sort", "random"),
        "Shuffle, with equal keys together",
        ElementKind::Random { salt: 0 },
    ),
    plain('r', "reverse", "Reverse the order", Meaning::Reverse),
    kind(
        'V',
        ("version-sort", "version"),
        "Compare as version numbers, such as 1.9 < 1.10",
        ElementKind::Version,
    ),
];

const fn plain(
    letter: char,
    flag: &'static str,
    about: &'static str,
    meaning: Meaning,
) -> KeyOrdering {
    KeyOrdering { letter, flag, word: None, about, meaning }
}

const fn kind(
    letter: char,
    (flag, word): (&'static str, &'static str),
    about: &'static str,
    kind: ElementKind,
) -> KeyOrdering {
    KeyOrdering { letter, flag, word: Some(word), about, meaning: Meaning::Kind(kind) }
}

const LETTER_BYTES: [u8; ORDERINGS.len()] = {
    let mut bytes = [0; ORDERINGS.len()];
    let mut at = 0;
    while at < bytes.len() {
        assert!(ORDERINGS[at].letter.is_ascii_alphabetic());
        bytes[at] = ORDERINGS[at].letter as u8;
        at += 1;
    }
    bytes
};

/// All letters.
pub const LETTERS: &str = match std::str::from_utf8(&LETTER_BYTES) {
    Ok(letters) => letters,
    Err(_) => panic!("they are ASCII"),
};

/// The letters for keys that have no blanks around them: all but `b`, which is the first.
pub(super) const LETTERS_OF_TEXTS: &str = LETTERS.split_at(1).1;

/// Which bytes of a text count, in the C locale. Only texts, versions and random keys leave bytes
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptChars {
    All,
    /// Letters, digits and blanks: `-d`.
    Dictionary,
    /// Space to `~`: `-i`.
    Printable,
}

impl KeptChars {
    #[inline]
    pub(super) fn keeps(self, byte: u8) -> bool {
        match self {
            KeptChars::All => true,
            KeptChars::Dictionary => byte.is_ascii_alphanumeric() || is_blank(byte),
            KeptChars::Printable => matches!(byte, b' '..=b'~'),
        }
    }
}

/// The type of the text of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Text,
    Numeric,
    General,
    Human,
    Month,
    Random { salt: u64 },
    Version,
}

impl ElementKind {
    /// Whether a text is read with the characters that count alone; the others read all of it.
    #[inline]
    pub(super) fn takes_kept_chars(self) -> bool {
        matches!(self, ElementKind::Text | ElementKind::Random { .. } | ElementKind::Version)
    }

    /// Appends the encoding of `text`, which is no plain text. With `fold`, lower case counts as upper case.
    #[inline]
    pub(super) fn encode(self, text: &[u8], fold: bool, out: &mut Vec<u8>) {
        match self {
            ElementKind::Text => text::encode(text, out),
            ElementKind::Numeric => numeric::encode(text, out),
            ElementKind::General => general::encode(text, out),
            ElementKind::Human => human::encode(text, fold, out),
            ElementKind::Month => month::encode(text, out),
            ElementKind::Random { salt } => random::encode(text, salt, out),
            ElementKind::Version => version::encode(text, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letters_are_those_of_gnu_sort_and_differ() {
        assert_eq!((LETTERS, LETTERS_OF_TEXTS), ("bdfghiMnRrV", "dfghiMnRrV"));
        for (at, one) in ORDERINGS.iter().enumerate() {
            let others = || ORDERINGS[at + 1..].iter();
            assert!(others().all(|other| other.letter != one.letter && other.flag != one.flag));
            assert!(one.word.is_none_or(|word| one.flag.starts_with(word)), "{one:?}");
        }
    }
}
