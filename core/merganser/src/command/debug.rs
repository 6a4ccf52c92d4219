//! The output of `sort --debug`: each line, and below it a line for each key that underlines the text
//! that the key compares, as GNU sort does.
//!
//! ```text
//!  12>ab        tabs are shown as >
//!  __           -k1,1n
//!    ___        -k2
//! ______        last, the whole line
//! ```

use std::io::{self, Write};
use std::ops::Range;

use merganser_shell::failure;
use merganser_shell::failure::Failure;
use merganser_sort::key::{KeyDoubt, KeyMarks, OrderSpec};

/// Prints on stderr how text is compared, and doubts about the keys.
pub(super) fn tell_doubts(order: &OrderSpec) -> Result<(), Failure> {
    failure::notice("text ordering performed using simple byte comparison");
    for doubt in order.doubts()? {
        failure::notice(&sentence(&doubt));
    }
    Ok(())
}

/// GNU sort's words.
fn sentence(doubt: &KeyDoubt) -> String {
    match doubt {
        KeyDoubt::Empty { key } => format!("key {key} has zero width and will be ignored"),
        KeyDoubt::Blanks { key } => {
            format!("leading blanks are significant in key {key}; consider also specifying 'b'")
        }
        KeyDoubt::Fields { key } => format!("key {key} is numeric and spans multiple fields"),
        KeyDoubt::Point => "note numbers use '.' as a decimal point in this locale".to_owned(),
        KeyDoubt::Unused { letters } if letters.len() == 1 => {
            format!("option '-{letters}' is ignored")
        }
        KeyDoubt::Unused { letters } => format!("options '-{letters}' are ignored"),
        KeyDoubt::LastResort => "option '-r' only applies to last-resort comparison".to_owned(),
    }
}

/// Marks the lines that are written to it.
pub(super) struct Marked<'a, W> {
    inner: &'a mut W,
    marks: KeyMarks,
    delimiter: u8,
    /// The front of a line whose end is not written yet.
    front: Vec<u8>,
}

impl<'a, W: Write> Marked<'a, W> {
    /// Writes to `inner` the lines that end with `delimiter`.
    pub(super) fn new(inner: &'a mut W, marks: KeyMarks, delimiter: u8) -> Self {
        Marked { inner, marks, delimiter, front: Vec::new() }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let text = marked(&self.front, &self.marks.of_line(&self.front));
        self.front.clear();
        self.inner.write_all(&text)
    }
}

impl<W: Write> Write for Marked<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == self.delimiter) {
            self.front.extend_from_slice(&rest[..end]);
            self.write_line()?;
            rest = &rest[end + 1..];
        }
        self.front.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The line, and a line of marks for each of the `parts`.
fn marked(line: &[u8], parts: &[Range<usize>]) -> Vec<u8> {
    let mut text: Vec<u8> =
        line.iter().map(|&byte| if byte == b'\t' { b'>' } else { byte }).collect();
    text.push(b'\n');
    for part in parts {
        text.resize(text.len() + columns(&line[..part.start]), b' ');
        match columns(&line[part.clone()]) {
            0 => text.extend_from_slice(b"^ no match for key"),
            width => text.resize(text.len() + width, b'_'),
        }
        text.push(b'\n');
    }
    text
}

/// How wide a terminal shows a text: control characters, but tabs, take no place.
fn columns(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\t' || !byte.is_ascii_control()).count()
}

#[cfg(test)]
mod tests {
    use merganser_sort::key::OrderSpec;
    use merganser_sort::record::Format;

    use super::*;

    #[test]
    fn lines_are_marked_however_they_are_cut() {
        let spec = OrderSpec {
            keys: vec!["2n".to_owned(), "3".to_owned()],
            ..OrderSpec::new(Format::Lines { delimiter: 0 })
        };
        let lines = b"a\t-12x\0\x01\n\0";
        for cut in 0..=lines.len() {
            let mut found = Vec::new();
            let marks = spec.marks().expect("an order");
            let mut output = Marked::new(&mut found, marks, 0);
            output.write_all(&lines[..cut]).expect("written");
            output.write_all(&lines[cut..]).expect("written");
            let expected = "a>-12x\n  ___\n      ^ no match for key\n______\n\
                            \x01\n\n^ no match for key\n^ no match for key\n^ no match for key\n";
            assert_eq!(String::from_utf8(found).as_deref(), Ok(expected), "{cut}");
        }
    }
}
