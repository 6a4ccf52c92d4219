//! Words, a few of them frequent and most of them rare.

use merganser_random::Random;

/// Words of a made-up language. Word `r` (from 0) is drawn with a probability proportional to `1 /
/// (r + 1)`: Zipf's law.
///
/// Drawing takes one random number and one table look-up (Walker's alias method, in integers): slot
/// `i` gives word `i` when the low 32 bits are below its threshold, its alias otherwise.
pub(crate) struct ZipfWords {
    slots: Vec<AliasSlot>,
    texts: Vec<[u8; ZipfWords::BYTES_MAX]>,
    lengths: Vec<u8>,
}

struct AliasSlot {
    threshold: u32,
    alias: u32,
}

impl ZipfWords {
    /// Bytes of the longest word, with room for a separator after it.
    pub(crate) const BYTES_MAX: usize = 8;
    /// How many words there are; a power of two.
    const COUNT: usize = 1 << 13;

    /// The one vocabulary.
    pub(crate) fn new() -> Self {
        let (texts, lengths) = (0..Self::COUNT).map(spell).unzip();
        let own = |rank| AliasSlot { threshold: u32::MAX, alias: rank as u32 };
        let mut slots: Vec<AliasSlot> = (0..Self::COUNT).map(own).collect();
        // Weights scaled so that their mean is COUNT: a slot's fair share.
        let weight = |rank: usize| (1u64 << 40) / (rank as u64 + 1);
        let total: u64 = (0..Self::COUNT).map(weight).sum();
        let mut left: Vec<u64> = (0..Self::COUNT)
            .map(|rank| {
                (u128::from(weight(rank)) * (Self::COUNT as u128) * (1 << 32) / u128::from(total))
                    as u64
            })
            .collect();
        // Frequent words, from the front, fill up the slots of rare ones, from the back. A frequent
        // word that gave too much away is filled up by the next.
        let mut rich = 0;
        for poor in (0..Self::COUNT).rev() {
            let mut needy = poor;
            while rich < poor && left[needy] < 1 << 32 {
                slots[needy].threshold = left[needy] as u32;
                slots[needy].alias = rich as u32;
                left[rich] = left[rich].saturating_sub((1 << 32) - left[needy]);
                left[needy] = 1 << 32;
                needy = rich;
                if left[needy] < 1 << 32 {
                    rich += 1;
                }
            }
        }
        ZipfWords { slots, texts, lengths }
    }

    /// Draws a word: its bytes (the rest of the array is blank) and its length.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> (&[u8; Self::BYTES_MAX], usize) {
        let number = random.bits();
        let index = (number >> 32) as usize % Self::COUNT;
        let slot = &self.slots[index];
        // Choosing an index, not a word, compiles to a conditional move: which one it is can't be
        // predicted.
        let index = if number as u32 <= slot.threshold { index } else { slot.alias as usize };
        (&self.texts[index], usize::from(self.lengths[index]))
    }

    /// Word `index`, for columns with few values.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        &self.texts[index][..usize::from(self.lengths[index])]
    }
}

/// Spells a rank in syllables, two letters a digit: frequent words are short, and no two words are
/// alike.
fn spell(rank: usize) -> ([u8; ZipfWords::BYTES_MAX], u8) {
    const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
    const VOWELS: &[u8; 5] = b"aeiou";
    const SYLLABLES: usize = CONSONANTS.len() * VOWELS.len();
    let mut text = [b' '; ZipfWords::BYTES_MAX];
    let mut len = 0;
    let mut left = rank + 1;
    while left > 0 {
        left -= 1;
        // 37 has no factor in common with 80: neighbours in rank are no neighbours in the
        // dictionary.
        let syllable = (left % SYLLABLES * 37 + 11 + len) % SYLLABLES;
        text[len] = CONSONANTS[syllable / VOWELS.len()];
        text[len + 1] = VOWELS[syllable % VOWELS.len()];
        len += 2;
        left /= SYLLABLES;
    }
    if rank % 3 == 1 {
        text[len] = CONSONANTS[rank / 3 % CONSONANTS.len()];
        len += 1;
    }
    (text, len as u8)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn words_differ_and_leave_room_for_a_separator() {
        let words = ZipfWords::new();
        let all: HashSet<&[u8]> = (0..ZipfWords::COUNT).map(|index| words.get(index)).collect();
        assert_eq!(all.len(), ZipfWords::COUNT);
        assert!(all.iter().all(|word| word.len() < ZipfWords::BYTES_MAX));
    }

    #[test]
    fn frequencies_follow_zipf() {
        let words = ZipfWords::new();
        let mut random = Random::new(1);
        let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
        for _ in 0..200_000 {
            let (text, len) = words.draw(&mut random);
            *counts.entry(text[..len].to_vec()).or_default() += 1;
        }
        // The sum of 1/r over 8192 words is 9.59.
        for rank in [1u64, 2, 3, 10, 50] {
            let expected = 200_000.0 / 9.59 / rank as f64;
            let found = counts[words.get(rank as usize - 1)] as f64;
            assert!(
                (found / expected - 1.0).abs() < 0.15,
                "word {rank}: {found}, expected {expected}"
            );
        }
        assert!(counts.len() > 6_000, "rare words come too: {}", counts.len());
    }
}
