//! Text with a vocabulary of known size.
//!
//! Phoenix 2.0 keeps words in sorted arrays, so its time grows with the number of distinct words. The paper
//! doesn't say how many its text has; a small vocabulary is the case that favours Phoenix, and the report
//! prints it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use merganser_random::Random;

/// Distinct words.
pub(super) const VOCABULARY: usize = 20_000;

/// Words of a line.
const LINE_WORDS: usize = 12;

/// Writes `bytes` of lines, or a little more, to `path`: words by Zipf's law, the same for each call.
pub(super) fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let words: Vec<Vec<u8>> = (0..VOCABULARY).map(word).collect();
    let mut shares = Vec::with_capacity(VOCABULARY);
    let mut sum = 0.0;
    for rank in 1..=VOCABULARY {
        sum += 1.0 / rank as f64;
        shares.push(sum);
    }
    let mut random = Random::new(1);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut written = 0;
    while written < bytes {
        for n in 0..LINE_WORDS {
            let drawn = random.fraction() * sum;
            let word = &words[shares.partition_point(|share| *share <= drawn).min(VOCABULARY - 1)];
            out.write_all(word)?;
            out.write_all(if n + 1 < LINE_WORDS { b" " } else { b"\n" })?;
            written += word.len() as u64 + 1;
        }
    }
    out.flush()
}

/// The word of a rank: frequent ones are short. Different ranks have different words.
fn word(rank: usize) -> Vec<u8> {
    let mut left = rank;
    let mut word = vec![b'a' + (left % 26) as u8];
    left /= 26;
    while left > 0 {
        word.push(b'a' + (left % 26) as u8);
        left /= 26;
    }
    // Words of as many digits have the same ending, so others differ in length.
    let endings: [&[u8]; 4] = [b"e", b"io", b"ura", b"tion"];
    word.extend_from_slice(endings[word.len().min(4) - 1]);
    word
}

/// Cuts the file at `path` behind the last line that ends within `bytes`.
pub(super) fn cut(path: &Path, bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let file = File::options().read(true).write(true).open(path)?;
    let from = bytes.saturating_sub(4096);
    let mut end = vec![0; (bytes - from) as usize];
    let len = file.read_at(&mut end, from)?;
    let line = end[..len].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    file.set_len(from + line as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_are_distinct_and_only_letters() {
        let words: HashSet<_> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len(), VOCABULARY);
        assert!(words.iter().flatten().all(u8::is_ascii_lowercase));
    }

    #[test]
    fn a_text_is_cut_between_lines() {
        let folder = tempfile::tempdir().expect("makes a folder");
        let path = folder.path().join("text");
        write(&path, 100_000).expect("writes");
        let whole = std::fs::read(&path).expect("reads");
        assert!((100_000..100_200).contains(&whole.len()));
        cut(&path, 50_000).expect("cuts");
        let part = std::fs::read(&path).expect("reads");
        assert!((49_800..=50_000).contains(&part.len()) && part.ends_with(b"\n"));
        assert!(whole.starts_with(&part));
        let lines = part.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert!(lines.clone().all(|line| line.split(|byte| *byte == b' ').count() == LINE_WORDS));
    }
}
