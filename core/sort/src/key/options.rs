//! The ordering letters that were given, for all keys or for one.

use super::element::Element;
use super::orderings::{ElementKind, KeptChars, Meaning, ORDERINGS};

/// Which letters were given. As in GNU sort, a key without any letter takes the global ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `b` at the start of a key.
    pub(super) skip_blanks_start: bool,
    /// `b` at the end of a key.
    pub(super) skip_blanks_end: bool,
    pub(super) reverse: bool,
    /// The others: a bit for each line of [`ORDERINGS`].
    given: u32,
}

const _: () = assert!(ORDERINGS.len() <= u32::BITS as usize);

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
        let Some(at) = ORDERINGS.iter().position(|known| known.letter == char::from(letter)) else {
            return false;
        };
        match ORDERINGS[at].meaning {
            Meaning::SkipBlanks => {
                self.skip_blanks_start |= blanks != Blanks::End;
                self.skip_blanks_end |= blanks != Blanks::Start;
            }
            Meaning::Reverse => self.reverse = true,
            Meaning::Keep(_) | Meaning::Fold | Meaning::Kind(_) => self.given |= 1 << at,
        }
        true
    }

    /// The meanings of the letters that were given, but for `b` and `r`, in GNU sort's order.
    fn meanings(self) -> impl Iterator<Item = (char, Meaning)> {
        let all = ORDERINGS.iter().enumerate();
        let given = all.filter(move |(at, _)| self.given & 1 << at != 0);
        given.map(|(_, known)| (known.letter, known.meaning))
    }

    /// Which characters count: `d` includes `i`.
    fn kept(self) -> KeptChars {
        let kept = self.meanings().find_map(|(_, meaning)| match meaning {
            Meaning::Keep(kept) => Some(kept),
            _ => None,
        });
        kept.unwrap_or(KeptChars::All)
    }

    /// Whether no letter was given but perhaps `r`.
    pub(super) fn is_plain(self) -> bool {
        Options { reverse: false, ..self } == Options::default()
    }

    /// The key's own letters, or else the global ones.
    pub(super) fn or_global(self, global: Options) -> Options {
        if self == Options::default() { global } else { self }
    }

    /// Those of the options whose letters are among `letters`.
    pub(super) fn limited_to(self, letters: &str) -> Options {
        let takes_blanks = letters.contains('b');
        let kept = ORDERINGS.iter().enumerate().filter(|(_, known)| letters.contains(known.letter));
        Options {
            skip_blanks_start: self.skip_blanks_start && takes_blanks,
            skip_blanks_end: self.skip_blanks_end && takes_blanks,
            reverse: self.reverse && letters.contains('r'),
            given: self.given & kept.fold(0, |bits, (at, _)| bits | 1 << at),
        }
    }

    /// The letters given, in GNU sort's order, when they contradict one another.
    pub(super) fn contradiction(self) -> Option<String> {
        let kinds = self.meanings().filter_map(|(_, meaning)| match meaning {
            Meaning::Kind(kind) => Some(kind),
            _ => None,
        });
        let (filtered, others): (Vec<_>, Vec<_>) = kinds.partition(|kind| kind.takes_kept_chars());
        let texts = !filtered.is_empty() || self.kept() != KeptChars::All;
        let is_left_out = |meaning| match meaning {
            Meaning::Keep(kept) => kept != self.kept(),
            _ => false,
        };
        (others.len() + usize::from(texts) > 1).then(|| {
            let letters = self.meanings().filter(|(_, meaning)| !is_left_out(*meaning));
            letters.map(|(letter, _)| letter).collect()
        })
    }

    /// How a text is encoded under these options.
    pub(super) fn element(self, salt: u64) -> Element {
        let kind = self.meanings().find_map(|(_, meaning)| match meaning {
            Meaning::Kind(ElementKind::Random { .. }) => Some(ElementKind::Random { salt }),
            Meaning::Kind(kind) => Some(kind),
            _ => None,
        });
        Element {
            kind: kind.unwrap_or(ElementKind::Text),
            kept: self.kept(),
            fold: self.meanings().any(|(_, meaning)| meaning == Meaning::Fold),
            descending: self.reverse,
        }
    }
}
