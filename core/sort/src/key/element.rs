//! One key of a record as bytes: picks the encoding and applies what all encodings share, leaving
//! bytes out, folding case and descending order.

use super::numeric::complement;
use super::orderings::{ElementKind, KeptChars};
use super::text;

/// How the text of a key is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) kind: ElementKind,
    pub(super) kept: KeptChars,
    /// Whether lower case counts as upper case.
    pub(super) fold: bool,
    pub(super) descending: bool,
}

impl Element {
    /// Whether it is a text whose bytes all count.
    #[inline]
    pub(super) fn is_all_text(&self) -> bool {
        self.kind == ElementKind::Text && self.kept == KeptChars::All
    }

    /// Appends the encoding of `text`.
    #[inline]
    pub(super) fn encode(&self, text: &[u8], out: &mut Vec<u8>) {
        let mark = out.len();
        match self.kind {
            ElementKind::Text if self.kept == KeptChars::All => {
                return self.encode_pieces(std::iter::once(text), out);
            }
            ElementKind::Text => {
                for byte in self.mapped(text) {
                    text::push_byte(byte, out);
                }
                text::end(out);
            }
            kind if kind.takes_kept_chars() => {
                self.with_mapped(text, |text| kind.encode(text, self.fold, out));
            }
            kind => kind.encode(text, self.fold, out),
        }
        if self.descending {
            complement(&mut out[mark..]);
        }
    }

    /// Appends the encoding of the text that `pieces` make together; all of its bytes must count.
    #[inline]
    pub(super) fn encode_pieces<'a>(
        &self,
        pieces: impl Iterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
    ) {
        debug_assert!(self.is_all_text());
        let mark = out.len();
        pieces.for_each(|piece| text::push(piece, out));
        text::end(out);
        if self.fold {
            // Escapes and the end are no letters.
            out[mark..].make_ascii_uppercase();
        }
        if self.descending {
            complement(&mut out[mark..]);
        }
    }

    /// The bytes of `text` that count, folded if asked for.
    fn mapped(self, text: &[u8]) -> impl Iterator<Item = u8> {
        text.iter()
            .filter(move |&&byte| self.kept.keeps(byte))
            .map(move |&byte| if self.fold { byte.to_ascii_uppercase() } else { byte })
    }

    /// Copies `text` only when bytes are left out or folded.
    fn with_mapped(&self, text: &[u8], encode: impl FnOnce(&[u8])) {
        if self.kept == KeptChars::All && !self.fold {
            encode(text);
        } else {
            encode(&self.mapped(text).collect::<Vec<_>>());
        }
    }
}
