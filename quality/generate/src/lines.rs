//! Lines of text.

use std::ops::Range;

use merganser_random::Random;

use super::generator::Generator;
use super::words::ZipfWords;

/// Characters of the shortest line.
const CHARACTERS_MIN: u64 = 20;
/// How many lengths there are: 20 to 119.
const LENGTHS: u64 = 100;

/// Lines of 20 to 119 characters, every length equally often, of words with Zipf's frequencies.
pub struct RandomLines {
    words: ZipfWords,
    seed: u64,
}

impl RandomLines {
    /// The data set of `seed`.
    pub fn new(seed: u64) -> Self {
        RandomLines { words: ZipfWords::new(), seed }
    }
}

impl Generator for RandomLines {
    fn records(&self, numbers: Range<u64>, out: &mut Vec<u8>) {
        // Words are copied whole, blanks after them included; the line is cut where it is long
        // enough.
        let mut line = [0u8; (CHARACTERS_MIN + LENGTHS) as usize + ZipfWords::BYTES_MAX];
        for number in numbers {
            let mut random = Random::of_record(self.seed, number);
            let len = (CHARACTERS_MIN + random.below(LENGTHS)) as usize;
            let mut at = 0;
            while at < len {
                let (text, word_len) = self.words.draw(&mut random);
                line[at..at + ZipfWords::BYTES_MAX].copy_from_slice(text);
                at += word_len + 1;
            }
            if line[len - 1] == b' ' {
                line[len - 1] = b'e';
            }
            line[len] = b'\n';
            out.extend_from_slice(&line[..=len]);
        }
    }

    fn record_bytes_mean(&self) -> u64 {
        CHARACTERS_MIN + (LENGTHS - 1) / 2 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_20_to_119_characters_of_words() {
        let mut text = Vec::new();
        RandomLines::new(0).records(0..5_000, &mut text);
        let text = String::from_utf8(text).expect("ascii");
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths.len(), 5_000);
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&20), Some(&119)));
        for line in text.lines() {
            assert!(
                line.split(' ')
                    .all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
            );
        }
    }

    #[test]
    fn any_stretch_is_a_part_of_the_whole() {
        let generator = RandomLines::new(3);
        let mut whole = Vec::new();
        generator.records(10..40, &mut whole);
        let mut parts = Vec::new();
        generator.records(10..11, &mut parts);
        generator.records(11..40, &mut parts);
        assert_eq!(whole, parts);
    }
}
