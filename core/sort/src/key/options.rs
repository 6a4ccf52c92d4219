//! The ordering letters of GNU sort, for all keys or for one: `bdfghiMnRrV`.

use super::element::{Element, ElementKind, KeptChars};

/// Which letters were given. As in GNU sort, a key without any letter takes the global ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `b` at the start of a key.
    pub(super) skip_blanks_start: bool,
    /// `b` at the end of a key.
    pub(super) skip_blanks_end: bool,
    pub(super) dictionary: bool,
    pub(super) fold: bool,
    pub(super) general: bool,
    pub(super) human: bool,
    pub(super) printable: bool,
    pub(super) month: bool,
    pub(super) numeric: bool,
    pub(super) random: bool,
    pub(super) reverse: bool,
    pub(super) version: bool,
}

/// Which end of a key a `b` belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blanks {
    Start,
    End,
    Both,
}

impl Options {
    /// Takes the letter; `false` when it is not an option.
    pub(super) fn set(&mut self, letter: u8, blanks: Blanks) -> bool {
        match letter {
            b'b' => {
                self.skip_blanks_start |= blanks != Blanks::End;
                self.skip_blanks_end |= blanks != Blanks::Start;
            }
            b'd' => self.dictionary = true,
            b'f' => self.fold = true,
            b'g' => self.general = true,
            b'h' => self.human = true,
            b'i' => self.printable = true,
            b'M' => self.month = true,
            b'n' => self.numeric = true,
            b'R' => self.random = true,
            b'r' => self.reverse = true,
            b'V' => self.version = true,
            _ => return false,
        }
        true
    }

    /// Whether no letter was given but perhaps `r`.
    pub(super) fn is_plain(self) -> bool {
        Options { reverse: false, ..self } == Options::default()
    }

    /// The key's own letters, or else the global ones.
    pub(super) fn or_global(self, global: Options) -> Options {
        if self == Options::default() { global } else { self }
    }

    /// The letters given, in GNU sort's order, when they contradict one another.
    pub(super) fn contradiction(self) -> Option<String> {
        let filters = self.dictionary || self.printable;
        let kinds = u8::from(self.numeric)
            + u8::from(self.general)
            + u8::from(self.human)
            + u8::from(self.month)
            + u8::from(self.version || self.random || filters);
        (kinds > 1).then(|| {
            Options { skip_blanks_start: false, skip_blanks_end: false, reverse: false, ..self }
                .letters()
        })
    }

    /// The letters, in GNU sort's order; `d` includes `i`.
    fn letters(self) -> String {
        [
            (self.skip_blanks_start || self.skip_blanks_end, 'b'),
            (self.dictionary, 'd'),
            (self.fold, 'f'),
            (self.general, 'g'),
            (self.human, 'h'),
            (self.printable && !self.dictionary, 'i'),
            (self.month, 'M'),
            (self.numeric, 'n'),
            (self.random, 'R'),
            (self.reverse, 'r'),
            (self.version, 'V'),
        ]
        .into_iter()
        .filter_map(|(given, letter)| given.then_some(letter))
        .collect()
    }

    /// How a text is encoded under these options.
    pub(super) fn element(self, salt: u64) -> Element {
        let kind = if self.numeric {
            ElementKind::Numeric
        } else if self.general {
            ElementKind::General
        } else if self.human {
            ElementKind::Human
        } else if self.month {
            ElementKind::Month
        } else if self.random {
            ElementKind::Random { salt }
        } else if self.version {
            ElementKind::Version
        } else {
            ElementKind::Text
        };
        let kept = if self.dictionary {
            KeptChars::Dictionary
        } else if self.printable {
            KeptChars::Printable
        } else {
            KeptChars::All
        };
        Element { kind, kept, fold: self.fold, descending: self.reverse }
    }
}
