//! The parts of a line that the keys compare, for people who look for the mistake in a key: GNU
//! `sort --debug` underlines them.
//!
//! The part is narrower than the key where only the front of it counts: a number, with `n`, `g` or
//! `h`, or a month's name.

use std::ops::Range;

use super::error::KeyError;
use super::line::{CompiledKey, LineKeys};
use super::numeric::{digits, skip_blanks};
use super::orderings::ElementKind;
use super::{OrderSpec, general, human, month};

/// The keys of lines, ready to say what they compare.
#[derive(Debug, Clone)]
pub struct KeyMarks {
    keys: LineKeys,
    /// Whether the whole line is compared last.
    whole: bool,
}

impl OrderSpec {
    /// The keys of this order, ready to say which parts of a line they compare.
    ///
    /// # Errors
    /// When there is no such order, or when the records are not lines.
    pub fn marks(&self) -> Result<KeyMarks, KeyError> {
        let keys = self.line_keys()?;
        let whole = keys.keys.is_empty() || !self.stable && !self.unique;
        Ok(KeyMarks { keys, whole })
    }
}

impl KeyMarks {
    /// The parts of `line`, which has no terminator: one for each key, and the whole line where it
    /// is compared last. A key that finds nothing has an empty part.
    #[must_use]
    pub fn of_line(&self, line: &[u8]) -> Vec<Range<usize>> {
        let ends = self.keys.ends(line).into_iter().zip(&self.keys.keys);
        let mut parts: Vec<_> =
            ends.map(|((start, end), key)| part(line, start, end, key)).collect();
        parts.extend(self.whole.then_some(0..line.len()));
        parts
    }
}

/// The bytes of the key from `start` to `end` that decide.
fn part(line: &[u8], start: usize, end: usize, key: &CompiledKey) -> Range<usize> {
    let skipped = |end: usize| end - skip_blanks(&line[start..end]).len();
    // GNU sort looks behind the end of a key that ends before it begins.
    let first = if end < start { skipped(line.len()) } else { skipped(end) };
    let text = &line[first..end.max(first)];
    let len = match key.element.kind {
        ElementKind::Numeric => decimal_len(text, false),
        ElementKind::Human => decimal_len(text, true),
        ElementKind::General => general::len(text),
        ElementKind::Month => month::len(text),
        // All of it counts.
        _ => {
            return start..end.max(start);
        }
    };
    first..first + len
}

/// Bytes of the number at the front of `text`, of its point and, for `h`, of its suffix.
fn decimal_len(text: &[u8], suffix: bool) -> usize {
    let sign = usize::from(text.first() == Some(&b'-'));
    let whole = digits(&text[sign..]);
    let mut len = sign + whole;
    let mut fraction = 0;
    if text.get(len) == Some(&b'.') {
        fraction = digits(&text[len + 1..]);
        len += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0;
    }
    let is_suffix = suffix && text.get(len).is_some_and(|&byte| human::is_suffix(byte));
    len + usize::from(is_suffix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Format;

    fn parts(keys: &[&str], options: &str, line: &str) -> Vec<String> {
        let spec = OrderSpec {
            keys: keys.iter().map(ToString::to_string).collect(),
            options: options.to_owned(),
            stable: true,
            ..OrderSpec::new(Format::Lines { delimiter: b'\n' })
        };
        let marks = spec.marks().expect("an order").of_line(line.as_bytes());
        marks.into_iter().map(|part| line[part].to_owned()).collect()
    }

    #[test]
    fn a_key_that_reads_a_number_marks_the_number() {
        for (letter, line, part) in [
            ("n", " -12.50x", "-12.50"),
            ("n", "5.", "5."),
            ("n", "-.", ""),
            ("n", "1e5", "1"),
            ("h", "2.5Mi", "2.5M"),
            ("g", " +1e5x", "+1e5"),
            ("g", "1e", "1"),
            ("g", "0x1fz", "0x1f"),
            ("g", "infinitys", "infinity"),
            ("g", "nanx", "nan"),
            ("g", "x", ""),
            ("M", " february", "feb"),
            ("M", "x", ""),
            ("V", " a-1", " a-1"),
        ] {
            assert_eq!(parts(&[], letter, line), [part], "{letter} {line}");
        }
    }

    #[test]
    fn every_key_has_a_part() {
        assert_eq!(parts(&["2", "1,1"], "", "ab cd ef"), [" cd ef", "ab"]);
        assert_eq!(parts(&["1", "2,2b"], "", "ab  cd"), ["ab  cd", "  cd"]);
        assert_eq!(parts(&["2b,2"], "", "ab  cd"), ["cd"]);
        assert_eq!(parts(&["5"], "", "ab"), [""]);
        assert_eq!(parts(&[], "", "ab"), ["ab"], "the whole line, when there is no key");
        assert_eq!(parts(&[], "r", "ab"), ["ab"]);
        let fixed = OrderSpec::new(Format::Fixed { bytes: 8 });
        assert!(fixed.marks().is_err());
    }
}
