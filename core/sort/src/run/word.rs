//! Key words: what of a key goes into the 64 bits of a tag.
//!
//! Eight bytes of text are few: where keys are made of some thirty different bytes, twelve of them
//! fit, and far fewer tags are tied. A [`KeyAlphabet`] is learned from some of a chunk's keys. It is
//! exact for all others too:
//!
//! ```text
//!   code    0     1         2     3        4   5  …  29     30
//!   means   end   00..1F    20    21..60   a   b  …  z      7B..FF        base 31, 12 bytes a word
//!                 coarse          coarse                    coarse
//! ```
//!
//! Codes ascend with the bytes that they stand for, and the end is below all codes. So if two words
//! differ, the keys differ in the same direction. A *coarse* code stands for several bytes. The
//! order behind it is unknown, so a word ends with it. [`KeyAlphabet::equal`] says what equal words
//! prove.

/// Bytes of the longest word: 2^64 is greater than 5^20 and its codes are two bytes and three gaps.
const LEN_MAX: usize = 20;
/// Mark of a coarse code.
const COARSE: u16 = 1 << 15;
/// How many bytes of each key are learned from.
pub(crate) const LEARN_BYTES: usize = 24;

/// Codes for bytes, and how many of them a word holds.
#[derive(Debug, Clone)]
pub(crate) struct KeyAlphabet {
    codes: [u16; 256],
    base: u64,
    len: usize,
}

/// What two equal words prove about the key bytes that they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Equal {
    /// Both keys ended: they are equal.
    Ended,
    /// This many bytes are equal, and they use up the word.
    Agree(usize),
    /// This many bytes are equal, and at least one more follows, which may differ.
    Unsure(usize),
}

impl KeyAlphabet {
    /// The alphabet whose words hold the most bytes of `keys`. `None` when these are hardly more
    /// than the eight that need no codes.
    pub(crate) fn learn(keys: &[&[u8]]) -> Option<Self> {
        let mut counts = [0u32; 256];
        for key in keys {
            key.iter().take(LEARN_BYTES).for_each(|byte| counts[usize::from(*byte)] += 1);
        }
        let mut rarest: Vec<usize> = (0..256).filter(|byte| counts[*byte] > 0).collect();
        rarest.sort_by_key(|byte| counts[*byte]);
        let mut dropped = rarest.into_iter();
        let held = |len: usize| keys.iter().map(|key| key.len().min(len)).sum::<usize>();
        let (mut best, mut best_score) = (None, held(8) + held(8) / 8);
        // The longer the word, the fewer codes there are for it; the rarest bytes go first.
        for len in 9..=LEN_MAX {
            let mut alphabet = Self::of_counts(&counts, len);
            while !alphabet.fits() {
                counts[dropped.next()?] = 0;
                alphabet = Self::of_counts(&counts, len);
            }
            let score = keys.iter().map(|key| alphabet.exact(key, len)).sum();
            if score > best_score {
                (best, best_score) = (Some(alphabet), score);
            }
            if held(len) < best_score {
                break;
            }
        }
        best
    }

    /// An own code for each byte that is counted, and for all between two of them one.
    fn of_counts(counts: &[u32; 256], len: usize) -> Self {
        let mut codes = [0; 256];
        let mut code = 0;
        for gap in (0..256).collect::<Vec<_>>().chunk_by(|a, b| counts[*a] + counts[*b] == 0) {
            code += 1;
            let mark = if gap.len() > 1 { COARSE } else { 0 };
            gap.iter().for_each(|byte| codes[*byte] = code | mark);
        }
        KeyAlphabet { codes, base: u64::from(code) + 1, len }
    }

    /// Whether the greatest word is below 2^64.
    fn fits(&self) -> bool {
        let words = u128::from(self.base).checked_pow(self.len as u32);
        words.is_some_and(|words| words <= 1 << 64)
    }

    /// How many of the first `len` bytes of `key` have codes of their own, up to the first that
    /// has not.
    fn exact(&self, key: &[u8], len: usize) -> usize {
        let bytes = key.iter().take(len);
        bytes.take_while(|byte| self.codes[usize::from(**byte)] & COARSE == 0).count()
    }

    /// The word of `key` from `depth` on.
    #[inline]
    pub(crate) fn word(&self, key: &[u8], depth: usize) -> u64 {
        let rest = key.get(depth..).unwrap_or_default();
        let Some(bytes) = rest.get(..self.len) else { return self.short_word(rest) };
        let (mut word, mut marks) = (0, 0);
        for byte in bytes {
            let code = self.codes[usize::from(*byte)];
            marks |= code;
            // A mark spoils the word, which then is not used.
            word = u64::wrapping_add(self.base.wrapping_mul(word), u64::from(code));
        }
        if marks & COARSE == 0 { word } else { self.short_word(bytes) }
    }

    /// The word of bytes that are few, or have a coarse code.
    fn short_word(&self, bytes: &[u8]) -> u64 {
        let mut word = 0;
        let mut ended = false;
        for at in 0..self.len {
            let code = match bytes.get(at) {
                Some(byte) if !ended => self.codes[usize::from(*byte)],
                _ => 0,
            };
            ended = ended || code & COARSE != 0;
            word = word * self.base + u64::from(code & !COARSE);
        }
        word
    }

    /// How far all keys agree whose word at `depth` is that of `key`.
    pub(crate) fn equal(&self, key: &[u8], depth: usize) -> Equal {
        let rest = key.get(depth..).unwrap_or_default();
        match self.exact(rest, self.len) {
            n if n == self.len => Equal::Agree(n),
            n if n == rest.len() => Equal::Ended,
            n => Equal::Unsure(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_and_blanks_are_twelve_per_word() {
        let alphabet =
            KeyAlphabet::learn(&[b"the quick brown fox jumps", b"over the lazy dog now"]);
        let alphabet = alphabet.expect("few different bytes");
        assert!(alphabet.len >= 12, "{}", alphabet.len);
        let key = b"the quick brown fox";
        assert_eq!(alphabet.equal(key, 0), Equal::Agree(alphabet.len));
        assert_eq!(alphabet.equal(key, 16), Equal::Ended);
        assert_eq!(alphabet.equal(b"the Quick", 0), Equal::Unsure(4));
        assert_eq!(alphabet.word(b"the Quick", 0), alphabet.word(b"the Rest", 0));
        assert!(alphabet.word(b"the Quick", 0) > alphabet.word(b"the", 0));
    }

    #[test]
    fn bytes_of_all_kinds_have_no_alphabet() {
        let keys: Vec<[u8; 32]> = (0..64u8).map(|i| [i.wrapping_mul(37); 32]).collect();
        let all: Vec<u8> = (0..=255).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|k| &k[..]).chain(all.chunks(16)).collect();
        assert!(KeyAlphabet::learn(&keys).is_none());
        assert!(KeyAlphabet::learn(&[]).is_none());
        assert!(KeyAlphabet::learn(&[b"short", b"keys"]).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn words_never_contradict_the_keys(
            learned in prop::collection::vec(prop::collection::vec(95u8..110, 12..40), 1..20),
            pairs in prop::collection::vec((
                prop::collection::vec(95u8..110, 0..24),
                prop::collection::vec(any::<u8>(), 0..3),
                prop::collection::vec(any::<u8>(), 0..3),
                prop::collection::vec(95u8..110, 0..4),
            ), 1..60),
            depth in 0usize..4,
        ) {
            let learned: Vec<&[u8]> = learned.iter().map(|key| &key[..]).collect();
            let alphabet = KeyAlphabet::learn(&learned).expect("few different bytes");
            for (front, a, b, end) in pairs {
                let (a, b) = ([&front[..], &a, &end].concat(), [&front[..], &b].concat());
                let rest = |key: &[u8]| key.get(depth..).unwrap_or_default().to_vec();
                let (x, y) = (alphabet.word(&a, depth), alphabet.word(&b, depth));
                if x != y {
                    prop_assert_eq!(x.cmp(&y), rest(&a).cmp(&rest(&b)));
                    continue;
                }
                let said = alphabet.equal(&a, depth);
                prop_assert_eq!(said, alphabet.equal(&b, depth));
                match said {
                    Equal::Ended => prop_assert_eq!(rest(&a), rest(&b)),
                    Equal::Agree(n) => prop_assert_eq!(&rest(&a)[..n], &rest(&b)[..n]),
                    Equal::Unsure(n) => {
                        prop_assert_eq!(&rest(&a)[..n], &rest(&b)[..n]);
                        prop_assert!(rest(&a).len() > n && rest(&b).len() > n);
                    }
                }
            }
        }
    }
}
