//! Numbers of bytes and of records.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, as typed: `4096`, `512M`, `1.5GiB`, `10GB`.
///
/// K, M, G, T (and KiB, MiB, ...) are powers of 1024 as in GNU sort; KB, MB, GB, TB are powers of
/// 1000. A bare number, or one with `b`, is bytes. Case does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypedSize(pub u64);

impl FromStr for TypedSize {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let end = typed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(typed.len());
        let (number, unit) = typed.split_at(end);
        let no_size =
            || format!("'{typed}' is no size: give a number of bytes, such as 512M or 1G");
        let letters = unit.trim_start();
        if number.is_empty() || (letters.is_empty() && !unit.is_empty()) {
            return Err(no_size());
        }
        let unit = letters;
        let factor = factor(unit).ok_or_else(|| {
            format!("'{unit}' is no unit of size: use K, M, G, T (1024) or KB, MB, GB, TB (1000)")
        })?;
        let bytes = match number.split_once('.') {
            None => number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)),
            Some((whole, part)) => fractional(whole, part, factor),
        };
        bytes.map(TypedSize).ok_or_else(|| match number.parse::<f64>() {
            Ok(_) => format!("'{typed}' is more bytes than can be counted"),
            Err(_) => no_size(),
        })
    }
}

impl fmt::Display for TypedSize {
    /// The shortest exact form: `1G`, `1536M`, `100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in BINARY {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl TypedSize {
    /// This size or a little more, in few digits, to be typed: `4M`, `1.5G`, `97.7G`.
    pub fn at_least(self) -> String {
        self.in_few_digits(u128::div_ceil)
    }

    /// This size as it was probably typed; in few digits, about, where that is a long number.
    pub fn shown(self) -> String {
        let exact = self.to_string();
        let decimal = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000)];
        match decimal.into_iter().find(|(_, bytes)| self.0.is_multiple_of(*bytes)) {
            _ if exact.len() <= 7 => exact,
            Some((unit, bytes)) => format!("{}{unit}", self.0 / bytes),
            None => self.in_few_digits(std::ops::Div::div),
        }
    }

    fn in_few_digits(self, divide: impl Fn(u128, u128) -> u128) -> String {
        let Some((unit, shift)) = BINARY.into_iter().find(|(_, shift)| self.0 >> shift > 0) else {
            return self.0.to_string();
        };
        let bytes = u128::from(self.0);
        let tenths = divide(bytes * 10, 1 << shift);
        match (tenths / 10, tenths % 10) {
            (whole, 0) => format!("{whole}{unit}"),
            (whole, part) if whole < 100 => format!("{whole}.{part}{unit}"),
            _ => format!("{}{unit}", divide(bytes, 1 << shift)),
        }
    }
}

/// The binary units, and the power of two of each.
const BINARY: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

/// What follows `sort -S`, as GNU sort reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferSize {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the machine's memory.
    Percent(u64),
}

impl FromStr for BufferSize {
    type Err = String;

    /// A bare number is KiB; otherwise it is a [`TypedSize`] or a number of percents. White space and a plus
    /// sign may be in front, as C's `strtoumax` has it.
    fn from_str(typed: &str) -> Result<Self, String> {
        let typed = typed.trim_ascii_start();
        let typed = typed.strip_prefix('+').unwrap_or(typed);
        if let Some(percent) = typed.strip_suffix('%') {
            let percent =
                percent.parse().map_err(|_| format!("'{typed}' is no share of memory"))?;
            return Ok(BufferSize::Percent(percent));
        }
        let is_bare = !typed.is_empty() && typed.bytes().all(|byte| byte.is_ascii_digit());
        let TypedSize(bytes) = if is_bare { format!("{typed}K").parse() } else { typed.parse() }?;
        Ok(BufferSize::Bytes(bytes))
    }
}

/// A number of records, as typed: `1000`, `100M`, `1.5G`. K, M, G, T are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedCount(pub u64);

impl FromStr for TypedCount {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let decimal = match typed.chars().last() {
            Some('k' | 'K' | 'm' | 'M' | 'g' | 'G' | 't' | 'T') => format!("{typed}B").parse(),
            Some('0'..='9') => typed.parse(),
            _ => Err(String::new()),
        };
        match decimal {
            Ok(TypedSize(count)) => Ok(TypedCount(count)),
            Err(_) => {
                Err(format!("'{typed}' is no number of records: give one such as 1000, 5K or 100M"))
            }
        }
    }
}

fn factor(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    if unit.is_empty() || unit == "b" {
        return Some(1);
    }
    let (prefix, base) = match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
        (Some(prefix), _) => (prefix, 1024u64),
        (None, Some(prefix)) => (prefix, 1000),
        (None, None) => (unit.as_str(), 1024),
    };
    let power = match prefix {
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    Some(base.pow(power))
}

/// `whole.part` times `factor`, rounded down, without a float in between.
fn fractional(whole: &str, part: &str, factor: u64) -> Option<u64> {
    if part.is_empty() || part.len() > 9 {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let scaled = u128::from(part.parse::<u64>().ok()?) * u128::from(factor);
    let digits = u32::try_from(part.len()).expect("at most 9");
    u64::try_from(whole * u128::from(factor) + scaled / 10u128.pow(digits)).ok()
}

#[cfg(test)]
mod tests {
    use super::{BufferSize, TypedCount, TypedSize};

    #[test]
    fn units_are_binary_with_a_letter_and_decimal_with_two() {
        let table: &[(&str, u64)] = &[
            ("0", 0),
            ("100", 100),
            ("100b", 100),
            ("1K", 1024),
            ("1k", 1024),
            ("1KiB", 1024),
            ("1KB", 1000),
            ("3M", 3 << 20),
            ("3MiB", 3 << 20),
            ("3MB", 3_000_000),
            ("1G", 1 << 30),
            ("10 GB", 10_000_000_000),
            ("2T", 2 << 40),
            ("2tib", 2 << 40),
            ("1.5G", 3 << 29),
            ("0.1KB", 100),
        ];
        for (typed, bytes) in table {
            assert_eq!(typed.parse(), Ok(TypedSize(*bytes)), "{typed}");
        }
    }

    #[test]
    fn what_is_no_size_says_so() {
        for typed in ["", "G", "-1", "1X", "1.G", "1..2", ".", "1KBB", "99999999999T", "1e3"] {
            let error = typed.parse::<TypedSize>().expect_err(typed);
            assert!(error.contains("size") || error.contains("more bytes"), "{typed}: {error}");
        }
    }

    #[test]
    fn a_bare_buffer_size_is_kibibytes() {
        for (typed, bytes) in [
            ("1", 1024),
            ("0", 0),
            ("32b", 32),
            ("2M", 2 << 20),
            ("1.5K", 1536),
            (" 5K", 5120),
            ("\t +5", 5120),
        ] {
            assert_eq!(typed.parse(), Ok(BufferSize::Bytes(bytes)), "{typed}");
        }
        assert_eq!("150%".parse(), Ok(BufferSize::Percent(150)));
        for typed in
            ["", " ", "+", "5 ", "++5", "x", "1x", "%", "-1", "-1%", "1Y", "99999999999999999999"]
        {
            assert!(typed.parse::<BufferSize>().is_err(), "{typed}");
        }
    }

    #[test]
    fn counts_are_decimal() {
        for (typed, count) in
            [("0", 0), ("12", 12), ("5K", 5000), ("1.5m", 1_500_000), ("2G", 2_000_000_000)]
        {
            assert_eq!(typed.parse(), Ok(TypedCount(count)), "{typed}");
        }
        for typed in ["", "K", "5KB", "5KiB", "5b", "-1", "x", "99999999999T"] {
            assert!(typed.parse::<TypedCount>().is_err(), "{typed}");
        }
    }

    #[test]
    fn printing_and_parsing_are_inverse() {
        for bytes in [0, 1, 1000, 1023, 1024, 1025, 1 << 20, 3 << 29, 7_000_000, 1 << 40, u64::MAX]
        {
            assert_eq!(TypedSize(bytes).to_string().parse(), Ok(TypedSize(bytes)));
        }
        assert_eq!(TypedSize(3 << 29).to_string(), "1536M");
    }

    #[test]
    fn a_size_in_few_digits_is_enough_and_can_be_typed() {
        for (bytes, shown, at_least) in [
            (0, "0", "0"),
            (1000, "1000", "1000"),
            (50_000_000, "50MB", "47.7M"),
            (4_163_292, "4163292", "4M"),
            (6_134_095_872, "5.7G", "5.8G"),
            (104_859_666_140, "97.6G", "97.7G"),
            (123_456_789_012, "114G", "115G"),
            (1 << 20, "1M", "1M"),
            (u64::MAX, "16777215T", "16777216T"),
        ] {
            assert_eq!(
                (TypedSize(bytes).shown().as_str(), TypedSize(bytes).at_least().as_str()),
                (shown, at_least)
            );
        }
        for bytes in (0..63).flat_map(|shift| [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1]) {
            let TypedSize(enough) = TypedSize(bytes).at_least().parse().expect("a size");
            assert!(enough >= bytes && enough - bytes <= bytes / 9 + 1, "{bytes}: {enough}");
        }
    }
}
