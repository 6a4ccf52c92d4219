//! Doubts about keys that are valid: GNU `sort --debug` warns of the same.

use super::OrderSpec;
use super::error::KeyError;
use super::line::CompiledKey;
use super::orderings::ElementKind;
use crate::record::Format;

/// Something about the keys that is seldom meant. Keys are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDoubt {
    /// The key ends before the field in which it begins.
    Empty {
        /// Which key.
        key: usize,
    },
    /// The key compares the blanks in front of its field.
    Blanks {
        /// Which key.
        key: usize,
    },
    /// The key is a number, but reaches over more than one field.
    Fields {
        /// Which key.
        key: usize,
    },
    /// There are numbers; their point is the byte `.`, whatever the language.
    Point,
    /// Options for all keys that no key uses.
    Unused {
        /// Their letters.
        letters: String,
    },
    /// The option `r` for all keys reverses nothing but the last comparison.
    LastResort,
}

impl OrderSpec {
    /// The doubts about these keys of lines, in GNU sort's order.
    ///
    /// # Errors
    /// When there is no such order, or when the records are not lines.
    pub fn doubts(&self) -> Result<Vec<KeyDoubt>, KeyError> {
        let keys = self.line_keys()?.keys;
        let mut doubts = Vec::new();
        if !self.keys.is_empty() {
            for (at, compiled) in keys.iter().enumerate() {
                let key = at + 1;
                if compiled.range.is_reversed() {
                    doubts.push(KeyDoubt::Empty { key });
                } else if self.separator.is_none() && compares_blanks(compiled) {
                    doubts.push(KeyDoubt::Blanks { key });
                }
                if is_number(compiled) && compiled.range.spans_fields() {
                    doubts.push(KeyDoubt::Fields { key });
                }
            }
        }
        if keys.iter().any(is_number) {
            doubts.push(KeyDoubt::Point);
        }
        let last_resort = !self.stable && !self.unique;
        let is_unused = |letter: &char| !self.uses(*letter);
        let unused: String = self.options.chars().filter(is_unused).collect();
        let letters: String =
            unused.chars().filter(|&letter| letter != 'r' || !last_resort).collect();
        if !letters.is_empty() {
            doubts.push(KeyDoubt::Unused { letters });
        }
        if unused.contains('r') && last_resort {
            doubts.push(KeyDoubt::LastResort);
        }
        Ok(doubts)
    }

    /// Whether a key has this letter, of its own or from the options for all keys.
    fn uses(&self, letter: char) -> bool {
        let has_letters = |key: &String| key.contains(|byte: char| byte.is_ascii_alphabetic());
        debug_assert!(matches!(self.format, Format::Lines { .. }));
        self.keys.is_empty()
            || self.keys.iter().any(|key| !has_letters(key) || key.contains(letter))
    }
}

fn is_number(key: &CompiledKey) -> bool {
    matches!(key.element.kind, ElementKind::Numeric | ElementKind::General | ElementKind::Human)
}

/// Whether blanks between the fields decide in this key.
fn compares_blanks(key: &CompiledKey) -> bool {
    let skips = is_number(key) || key.element.kind == ElementKind::Month;
    let at_start = !key.skip_blanks_start && (!skips || key.range.begins_inside());
    let at_end = !key.skip_blanks_end && key.range.ends_inside();
    !key.range.is_of_line_start() && (at_start || at_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(keys: &[&str], options: &str, stable: bool) -> Vec<KeyDoubt> {
        let spec = OrderSpec {
            keys: keys.iter().map(ToString::to_string).collect(),
            options: options.to_owned(),
            stable,
            ..OrderSpec::new(Format::Lines { delimiter: b'\n' })
        };
        spec.doubts().expect("an order")
    }

    #[test]
    fn doubts_are_those_of_gnu_sort() {
        use KeyDoubt::{Blanks, Empty, Fields, LastResort, Point, Unused};
        let letters = |letters: &str| Unused { letters: letters.to_owned() };
        for (keys, options, stable, expected) in [
            (&[][..], "", false, vec![]),
            (&[], "n", false, vec![Point]),
            (&[], "r", true, vec![]),
            (&["2"], "", false, vec![Blanks { key: 1 }]),
            (&["2b", "1.2,1.3"], "", false, vec![]),
            (&["2,2M", "2.2,2n"], "", false, vec![Blanks { key: 2 }, Point]),
            (&["1b,1", "3b,2"], "", false, vec![Empty { key: 2 }]),
            (&["2n"], "", false, vec![Fields { key: 1 }, Point]),
            (&["1b,1"], "r", false, vec![LastResort]),
            (&["1b,1"], "rf", true, vec![letters("rf")]),
            (&["1,1"], "nr", false, vec![Point]),
        ] {
            assert_eq!(doubts(keys, options, stable), expected, "{keys:?} -{options}");
        }
    }
}
