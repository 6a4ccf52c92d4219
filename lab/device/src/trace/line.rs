//! Lines, and the fields in them, each with its column.

use std::io::{self, BufRead, Read};

use super::error::{LineFault, TraceError};

/// The longest line that is read. Our own format has the longest ones: the hashes of 64 MiB take 528 KiB.
/// Lines of the others are shorter than 6 KiB.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The lines of a trace.
pub(super) struct TraceLines<R> {
    input: R,
    bytes: Vec<u8>,
    number: u64,
    /// The line in `bytes` was peeked at, and `next` returns it again.
    peeked: bool,
}

impl<R: BufRead> TraceLines<R> {
    pub(super) fn new(input: R) -> Self {
        TraceLines { input, bytes: Vec::new(), number: 0, peeked: false }
    }

    /// The next line, without its end.
    pub(super) fn next(&mut self) -> Result<Option<TraceLine<'_>>, TraceError> {
        if !std::mem::take(&mut self.peeked) && !self.fetch()? {
            return Ok(None);
        }
        self.line().map(Some)
    }

    /// The next line, without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<TraceLine<'_>>, TraceError> {
        if !self.peeked && !self.fetch()? {
            return Ok(None);
        }
        self.peeked = true;
        self.line().map(Some)
    }

    fn fetch(&mut self) -> Result<bool, TraceError> {
        self.bytes.clear();
        let mut bounded = self.input.by_ref().take(LINE_BYTES_MAX + 1);
        loop {
            match bounded.read_until(b'\n', &mut self.bytes) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.bytes.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        if self.bytes.len() as u64 > LINE_BYTES_MAX {
            let shown = String::from_utf8_lossy(&self.bytes[..64]).into_owned();
            let expected = format!("a line of at most {LINE_BYTES_MAX} bytes");
            return Err(LineFault::new(1, &shown, expected).on(self.number));
        }
        for end in [b'\n', b'\r'] {
            if self.bytes.last() == Some(&end) {
                self.bytes.pop();
            }
        }
        Ok(true)
    }

    fn line(&self) -> Result<TraceLine<'_>, TraceError> {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Ok(TraceLine { number: self.number, text }),
            Err(error) => {
                let at = error.valid_up_to();
                let byte = format!("byte {:#04x}", self.bytes[at]);
                Err(LineFault { column: at + 1, found: byte, expected: "text".into() }
                    .on(self.number))
            }
        }
    }
}

/// A line of a trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceLine<'a> {
    number: u64,
    text: &'a str,
}

impl<'a> TraceLine<'a> {
    #[cfg(test)]
    pub(super) fn new(text: &'a str) -> Self {
        TraceLine { number: 1, text }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim_ascii().is_empty()
    }

    /// The fields between white space.
    pub(super) fn words(&self) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        let mut from = None;
        for (at, byte) in self.text.bytes().chain([b' ']).enumerate() {
            match (byte.is_ascii_whitespace(), from) {
                (false, None) => from = Some(at),
                (true, Some(start)) => {
                    fields.push(Field { column: start + 1, text: &self.text[start..at] });
                    from = None;
                }
                _ => {}
            }
        }
        fields
    }

    /// The fields between commas, without the blanks around them.
    pub(super) fn values(&self) -> Vec<Field<'a>> {
        let mut start = 0;
        let mut fields = Vec::new();
        for text in self.text.split(',') {
            let blanks = text.len() - text.trim_ascii_start().len();
            fields.push(Field { column: start + blanks + 1, text: text.trim_ascii() });
            start += text.len() + 1;
        }
        fields
    }

    /// An error for a missing or an additional field.
    pub(super) fn wrong_count(
        &self,
        fields: &[Field<'_>],
        most: usize,
        expected: &str,
    ) -> LineFault {
        match fields.get(most) {
            Some(extra) => {
                LineFault::new(extra.column, extra.text, format!("the line's end: {expected}"))
            }
            None => LineFault {
                column: self.text.len() + 1,
                found: "the line's end".to_owned(),
                expected: expected.to_owned(),
            },
        }
    }
}

/// A field of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field<'a> {
    /// The column of its first byte, counted from 1.
    pub column: usize,
    pub text: &'a str,
}

impl Field<'_> {
    /// The error that this field is not `expected`.
    pub(super) fn fault(&self, expected: impl Into<String>) -> LineFault {
        LineFault::new(self.column, self.text, expected)
    }

    /// A whole number in decimal digits.
    pub(super) fn number(&self, expected: &str) -> Result<u64, LineFault> {
        digits(self.text).ok_or_else(|| self.fault(expected))
    }

    /// As [`Field::number`], for a small number.
    pub(super) fn small(&self, expected: &str) -> Result<u32, LineFault> {
        self.number(expected)?.try_into().map_err(|_| self.fault(expected))
    }

    /// A count of units of `unit_bytes`, in bytes.
    pub(super) fn bytes(&self, unit_bytes: u64, expected: &str) -> Result<u64, LineFault> {
        let count = self.number(expected)?;
        count.checked_mul(unit_bytes).ok_or_else(|| self.fault("an address below 2^64 bytes"))
    }

    /// A decimal fraction of `unit_ns`, in whole nanoseconds; fractions of a nanosecond are cut
    /// off.
    pub(super) fn time_ns(&self, unit_ns: u64, expected: &str) -> Result<u64, LineFault> {
        decimal(self.text, unit_ns).ok_or_else(|| self.fault(expected))
    }
}

fn digits(text: &str) -> Option<u64> {
    // `parse` alone would accept a sign.
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// `text` times `unit`, exactly; digits of less than 1 are cut off. Only numbers with an exponent
/// are converted through a float.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    if text.contains(['e', 'E']) {
        let float = text.bytes().all(|byte| b"0123456789.eE+-".contains(&byte));
        let value = text.parse::<f64>().ok().filter(|value| float && *value >= 0.0)?;
        let scaled = value * unit as f64;
        return (scaled < u64::MAX as f64).then_some(scaled.round() as u64);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    let mut place = unit;
    let mut part = 0;
    for byte in fraction.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        // Units are powers of ten, so each digit is exact until places are below 1.
        place /= 10;
        part += u64::from(byte - b'0') * place;
    }
    whole.checked_mul(unit)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_their_columns() {
        let words = TraceLine::new("  a  bc\td ").words();
        let words: Vec<_> = words.iter().map(|f| (f.column, f.text)).collect();
        assert_eq!(words, [(3, "a"), (6, "bc"), (9, "d")]);
        let values = TraceLine::new("1, two ,,4").values();
        let values: Vec<_> = values.iter().map(|f| (f.column, f.text)).collect();
        assert_eq!(values, [(1, "1"), (4, "two"), (9, ""), (10, "4")]);
    }

    #[test]
    fn times_are_exact() {
        let ms = |text| decimal(text, 1_000_000);
        assert_eq!(ms("0"), Some(0));
        assert_eq!(ms("1.5"), Some(1_500_000));
        assert_eq!(ms(".25"), Some(250_000));
        assert_eq!(ms("7."), Some(7_000_000));
        assert_eq!(ms("0.1234567"), Some(123_456), "less than a nanosecond is cut off");
        assert_eq!(ms("1e-05"), Some(10));
        // A float can't represent this nanosecond.
        assert_eq!(decimal("128166372003.061629", 100_000_000), Some(12_816_637_200_306_162_900));
        for bad in
            ["", ".", "-1", "+1", "1.x", "1.5.2", "inf", "e", "-1e3", "1e400", "99999999999999"]
        {
            assert_eq!(ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn lines_end_in_any_way_and_are_bounded() {
        let mut lines = TraceLines::new(&b"one\r\n\ntwo"[..]);
        assert_eq!(lines.peek().expect("read").expect("a line").text(), "one");
        let mut all = Vec::new();
        while let Some(line) = lines.next().expect("read") {
            all.push((line.number(), line.text().to_owned()));
        }
        let expected = [(1, "one"), (2, ""), (3, "two")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(all, expected);
        let long = vec![b'x'; (1 << 20) + 1];
        let error =
            TraceLines::new(&long[..]).next().map(|_| ()).expect_err("too long").to_string();
        assert!(error.starts_with("line 1, column 1: found 'xxx"), "{error}");
        let error = TraceLines::new(&b"ab\xffc"[..]).next().map(|_| ()).expect_err("no text");
        assert_eq!(error.to_string(), "line 1, column 3: found byte 0xff, expected text");
    }
}
