//! Two texts as numbers and as versions: their keys compare as a step by step comparison does.

use std::cmp::Ordering;
use std::sync::LazyLock;

use merganser_sort::key::{Order, OrderSpec};
use merganser_sort::record::Format;

fn order(letter: &str) -> Order {
    let spec = OrderSpec {
        options: letter.to_owned(),
        stable: true,
        ..OrderSpec::new(Format::Lines { delimiter: b'\n' })
    };
    spec.compile(None).expect("one letter is an order")
}

static NUMERIC: LazyLock<Order> = LazyLock::new(|| order("n"));
static VERSION: LazyLock<Order> = LazyLock::new(|| order("V"));

/// Splits `text` behind its leading bytes of one kind.
fn split(text: &[u8], kind: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&byte| !kind(byte)).unwrap_or(text.len()))
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// Compares numbers without a point, of any length.
fn whole_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (split(a, |byte| byte == b'0').1, split(b, |byte| byte == b'0').1);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn fractions(a: &[u8], b: &[u8]) -> Ordering {
    let digit = |digits: &[u8], at: usize| digits.get(at).copied().unwrap_or(b'0');
    (0..a.len().max(b.len()))
        .map(|at| digit(a, at).cmp(&digit(b, at)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn numeric(a: &[u8], b: &[u8]) -> Ordering {
    let parse = |text: &[u8]| {
        let text = split(text, |byte| matches!(byte, b' ' | b'\t')).1.to_vec();
        let unsigned = text.strip_prefix(b"-").unwrap_or(&text);
        let (whole, rest) = split(unsigned, is_digit);
        let fraction = rest.strip_prefix(b".").map_or(&[][..], |rest| split(rest, is_digit).0);
        let is_zero = [whole, fraction].concat().iter().all(|&digit| digit == b'0');
        (unsigned.len() < text.len() && !is_zero, whole.to_vec(), fraction.to_vec())
    };
    let (a, b) = (parse(a), parse(b));
    let sizes = whole_numbers(&a.1, &b.1).then_with(|| fractions(&a.2, &b.2));
    match (a.0, b.0) {
        (false, false) => sizes,
        (true, true) => sizes.reverse(),
        (a, b) => b.cmp(&a),
    }
}

fn versions(mut a: &[u8], mut b: &[u8]) -> Ordering {
    let rank = |text: &[u8]| match text.first() {
        Some(b'~') => -2,
        None => -1,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => 256 + i32::from(*byte),
    };
    while !a.is_empty() || !b.is_empty() {
        while !matches!((rank(a), rank(b)), (-1 | 0, -1 | 0)) {
            if rank(a) != rank(b) {
                return rank(a).cmp(&rank(b));
            }
            (a, b) = (&a[1..], &b[1..]);
        }
        let (x, y) = (split(a, is_digit), split(b, is_digit));
        (a, b) = (x.1, y.1);
        let order = whole_numbers(x.0, y.0);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// `text` without extensions like `.tar.gz`.
fn stem(text: &[u8]) -> &[u8] {
    let is_extension = |part: &[u8]| {
        part.first().is_some_and(|&byte| byte == b'~' || byte.is_ascii_alphabetic())
            && part.iter().all(|&byte| byte == b'~' || byte.is_ascii_alphanumeric())
    };
    let mut stem = text;
    while let Some(dot) = stem.iter().rposition(|&byte| byte == b'.') {
        if !is_extension(&stem[dot + 1..]) {
            break;
        }
        stem = &stem[..dot];
    }
    stem
}

fn version(a: &[u8], b: &[u8]) -> Ordering {
    let class = |text: &[u8]| match text {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    class(a).cmp(&class(b)).then_with(|| versions(stem(a), stem(b))).then_with(|| versions(a, b))
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let mut lines = bytes.splitn(2, |&byte| byte == b'\n');
    let (Some(a), Some(b)) = (lines.next(), lines.next()) else { return };
    let b = split(b, |byte| byte != b'\n').0;
    let [x, y] = [a, b].map(|text| [text, b"\n"].concat());
    assert_eq!(NUMERIC.compare(&x, &y), numeric(a, b));
    assert_eq!(VERSION.compare(&x, &y), version(a, b));
}
