//! Numbers and names as a page shows them.

use std::fmt;

/// Untrusted text, such as the name of a file, that is made harmless between tags and in quoted
/// attributes. Characters that a document must not contain become a replacement character.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_str("\u{fffd}")?,
                c if c.is_control() => f.write_str("\u{fffd}")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// Bytes of data, in powers of 1000: `2.00 GB`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    scaled(bytes as f64, 1000.0, &["bytes", "kB", "MB", "GB", "TB", "PB"])
}

/// Bytes of memory, in powers of 1024: `256 MiB`.
pub fn memory(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["bytes", "KiB", "MiB", "GiB", "TiB"])
}

/// Bytes a second, in MB/s as sort benchmarks do.
pub fn rate(bytes_per_second: f64) -> String {
    format!("{} MB/s", significant(bytes_per_second / 1e6))
}

/// Seconds.
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.1 {
        return format!("{} ms", significant(seconds * 1e3));
    }
    if seconds < 60.0 {
        return format!("{} s", significant(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours} h {minutes} min")
    } else {
        format!("{minutes} min {seconds} s")
    }
}

/// A share between 0 and 1.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 1.0 => "under 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// A count: `20,000,000`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Three digits, or all before the point.
pub fn significant(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => count(number.round() as u64),
        n if n >= 99.95 => format!("{number:.0}"),
        n if n >= 9.995 => format!("{number:.1}"),
        n if n >= 0.01 || n == 0.0 => format!("{number:.2}"),
        // Two digits after the zeros.
        n => format!("{number:.*}", (1.0 - n.log10().floor()) as usize),
    }
}

fn scaled(number: f64, base: f64, units: &[&str]) -> String {
    let (mut number, mut unit) = (number, 0);
    while number >= base && unit + 1 < units.len() {
        number /= base;
        unit += 1;
    }
    format!("{} {}", short(number), units[unit])
}

/// As [`significant`], but a whole number without a point.
pub fn short(number: f64) -> String {
    let text = significant(number);
    text.strip_suffix(".00").or(text.strip_suffix(".0")).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        assert_eq!([bytes(0), bytes(999), bytes(1000)], ["0 bytes", "999 bytes", "1 kB"]);
        assert_eq!([bytes(1_234_567), bytes(99_999_999_999)], ["1.23 MB", "100 GB"]);
        assert_eq!([memory(1 << 28), memory(3 << 29)], ["256 MiB", "1.50 GiB"]);
        assert_eq!(
            [seconds(0.0042), seconds(9.996), seconds(83.2)],
            ["4.20 ms", "10.0 s", "1 min 23 s"]
        );
        assert_eq!([seconds(7260.0), rate(1.5e9)], ["2 h 1 min", "1,500 MB/s"]);
        assert_eq!([percent(0.0), percent(0.004), percent(0.996)], ["0 %", "under 1 %", "100 %"]);
        assert_eq!(
            [significant(0.000_014_2), significant(0.0), short(50.0)],
            ["0.000014", "0.00", "50"]
        );
        assert_eq!([count(999), count(1000), count(12_345_678)], ["999", "1,000", "12,345,678"]);
    }

    #[test]
    fn names_can_do_nothing() {
        let name = "<script>alert('a\"b')</script>&\u{1}\n";
        let shown = Escaped(name).to_string();
        let harmless =
            "&lt;script&gt;alert(&#39;a&quot;b&#39;)&lt;/script&gt;&amp;\u{fffd}\u{fffd}";
        assert_eq!(shown, harmless);
    }
}
