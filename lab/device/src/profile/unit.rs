//! The unit of a parameter: how its value is written, and how it is parsed.

use std::fmt;

/// The unit of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterUnit {
    /// Bytes; written with K, M, G, T for powers of 1,024.
    Bytes,
    /// Bytes per second; written with K, M, G, T for powers of 1,000, as rates are.
    BytesPerSecond,
    /// A time; written with ns, us, ms or s.
    Nanoseconds,
    /// Cycles per second; written with K, M, G for powers of 1,000.
    Hertz,
    /// Cycles of the processor.
    Cycles,
    /// A number.
    Count,
    /// Thousandths.
    Permille,
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for ParameterUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParameterUnit::Bytes => "bytes",
            ParameterUnit::BytesPerSecond => "bytes/s",
            ParameterUnit::Nanoseconds => "ns",
            ParameterUnit::Hertz => "Hz",
            ParameterUnit::Cycles => "cycles",
            ParameterUnit::Count => "count",
            ParameterUnit::Permille => "permille",
            ParameterUnit::Switch => "on, off",
            ParameterUnit::Choice(words) => return f.write_str(&words.join(", ")),
        })
    }
}

impl ParameterUnit {
    /// `value` as a user writes it.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        match self {
            ParameterUnit::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
            ParameterUnit::Choice(words) => {
                usize::try_from(value).ok().and_then(|i| words.get(i)).unwrap_or(&"?").to_string()
            }
            _ => value.to_string(),
        }
    }

    /// The suffixes of a value, in words.
    pub(crate) fn suffixes(self) -> &'static str {
        match self {
            ParameterUnit::Bytes => " (or whole K, M, G, T of 1024)",
            ParameterUnit::BytesPerSecond => " (or whole K, M, G, T of 1000)",
            ParameterUnit::Nanoseconds => " (or whole us, ms, s)",
            ParameterUnit::Hertz => " (or whole K, M, G of 1000)",
            _ => "",
        }
    }

    /// The value of `text`, as a user writes it; `None` if it is no value.
    #[must_use]
    pub fn parse(self, text: &str) -> Option<u64> {
        let scaled = |suffixes: &[(&str, u64)]| {
            let (digits, factor) = suffixes
                .iter()
                .find_map(|&(suffix, factor)| text.strip_suffix(suffix).map(|d| (d, factor)))
                .unwrap_or((text, 1));
            digits.trim_end().parse::<u64>().ok()?.checked_mul(factor)
        };
        match self {
            ParameterUnit::Bytes => {
                scaled(&[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)])
            }
            ParameterUnit::BytesPerSecond => scaled(&[
                ("K", 1_000),
                ("M", 1_000_000),
                ("G", 1_000_000_000),
                ("T", 1_000_000_000_000),
            ]),
            ParameterUnit::Nanoseconds => {
                scaled(&[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
            }
            ParameterUnit::Hertz => scaled(&[("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)]),
            ParameterUnit::Cycles | ParameterUnit::Count | ParameterUnit::Permille => scaled(&[]),
            ParameterUnit::Switch => {
                ["off", "on"].iter().position(|&w| w == text).map(|i| i as u64)
            }
            ParameterUnit::Choice(words) => words.iter().position(|&w| w == text).map(|i| i as u64),
        }
    }
}
