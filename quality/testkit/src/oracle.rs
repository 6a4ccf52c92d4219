//! The judge of every sorted output.
//!
//! The reference is the standard library's stable sort. An output that equals it is ordered, a
//! permutation of the input, and stable. When an output differs, the message says which of the
//! three is broken first, and how the input was made.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Display;

use crate::patterns::{Pattern, RecordLayout, SampleInput};

/// Checks that `output` is `input` in the order of `compare`, with equal records in input order.
/// `what` goes into the message: name the operation and the seed.
///
/// # Panics
/// When it is not.
pub fn check_sorted<I: AsRef<[u8]>, O: AsRef<[u8]>>(
    what: &dyn Display,
    input: &[I],
    output: &[O],
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
) {
    let mut expected: Vec<&[u8]> = input.iter().map(AsRef::as_ref).collect();
    expected.sort_by(|a, b| compare(a, b));
    check_equal(what, &expected, output, &compare);
}

/// As [`check_sorted`] where only the first of equal records, in input order, is kept.
///
/// # Panics
/// When it is not so.
pub fn check_unique<I: AsRef<[u8]>, O: AsRef<[u8]>>(
    what: &dyn Display,
    input: &[I],
    output: &[O],
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
) {
    let mut expected: Vec<&[u8]> = input.iter().map(AsRef::as_ref).collect();
    expected.sort_by(|a, b| compare(a, b));
    expected.dedup_by(|later, first| compare(later, first) == Ordering::Equal);
    check_equal(what, &expected, output, &compare);
}

/// Checks that `output` holds the records of `sample` in the byte order of their keys, stably.
///
/// # Panics
/// When it does not.
pub fn check_sample(sample: &SampleInput, output: &[u8]) {
    let layout = sample.layout;
    let output = layout.split(output);
    check_sorted(sample, &sample.records, &output, |a, b| layout.key(a).cmp(&layout.key(b)));
}

/// Gives `sort` samples of every [`Pattern`] in `layout`, of every count, and checks its results.
///
/// # Panics
/// When a result is wrong.
pub fn check_sorter(
    layout: RecordLayout,
    counts: &[usize],
    seed: u64,
    mut sort: impl FnMut(&SampleInput) -> Vec<u8>,
) {
    for pattern in Pattern::ALL {
        for &count in counts {
            let sample = SampleInput::new(pattern, layout, count, seed);
            check_sample(&sample, &sort(&sample));
        }
    }
}

fn check_equal<O: AsRef<[u8]>>(
    what: &dyn Display,
    expected: &[&[u8]],
    output: &[O],
    compare: &impl Fn(&[u8], &[u8]) -> Ordering,
) {
    let same = |(a, b): (&&[u8], &O)| **a == *b.as_ref();
    if expected.len() == output.len() && expected.iter().zip(output).all(same) {
        return;
    }
    let output: Vec<&[u8]> = output.iter().map(AsRef::as_ref).collect();
    panic!("{what}: {}", complaint(expected, &output, compare));
}

/// Describes how `output` differs from `expected`.
fn complaint(
    expected: &[&[u8]],
    output: &[&[u8]],
    compare: &impl Fn(&[u8], &[u8]) -> Ordering,
) -> String {
    for (at, pair) in output.windows(2).enumerate() {
        if compare(pair[0], pair[1]) == Ordering::Greater {
            let (a, b) = (show(pair[0]), show(pair[1]));
            return format!("out of order: record {at} is {a}, the next one {b}");
        }
    }
    let mut balance: HashMap<&[u8], i64> = HashMap::new();
    for record in expected {
        *balance.entry(record).or_default() += 1;
    }
    for (at, record) in output.iter().enumerate() {
        let left = balance.entry(record).or_default();
        *left -= 1;
        if *left < 0 {
            return format!("record {at} is too much, changed or a duplicate: {}", show(record));
        }
    }
    if let Some(missing) = expected.iter().find(|record| balance[**record] > 0) {
        let (found, wanted) = (output.len(), expected.len());
        return format!("{found} records instead of {wanted}; missing: {}", show(missing));
    }
    let at = expected.iter().zip(output).position(|(a, b)| a != b).expect("a difference");
    let (found, wanted) = (show(output[at]), show(expected[at]));
    format!("not stable: record {at} is {found}, though {wanted} came first in the input")
}

fn show(record: &[u8]) -> String {
    const SHOWN: usize = 60;
    match record.get(..SHOWN) {
        Some(start) => format!("\"{}\"... ({} bytes)", start.escape_ascii(), record.len()),
        None => format!("\"{}\"", record.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn by_first_byte(a: &[u8], b: &[u8]) -> Ordering {
        a[0].cmp(&b[0])
    }

    fn verdict(input: &[&str], output: &[&str]) -> Option<String> {
        let check = || check_sorted(&"seed 5", input, output, by_first_byte);
        let panic = catch_unwind(AssertUnwindSafe(check)).err()?;
        Some(panic.downcast_ref::<String>().expect("a text").clone())
    }

    #[test]
    fn each_defect_has_its_message() {
        let input = ["b1", "a1", "b2", "a2"];
        assert_eq!(verdict(&input, &["a1", "a2", "b1", "b2"]), None);
        let complaints = [
            (
                &["a1", "b1", "a2", "b2"][..],
                "out of order: record 1 is \"b1\", the next one \"a2\"",
            ),
            (&["a2", "a1", "b1", "b2"], "not stable: record 0 is \"a2\", though \"a1\" came first"),
            (&["a1", "a2", "b1"], "3 records instead of 4; missing: \"b2\""),
            (&["a1", "a1", "b1", "b2"], "record 1 is too much, changed or a duplicate: \"a1\""),
            (&["a1", "a2", "b1", "b2", "b2"], "record 4 is too much"),
        ];
        for (output, wanted) in complaints {
            let found = verdict(&input, output).expect("rejected");
            assert!(found.starts_with(&format!("seed 5: {wanted}")), "{found}");
        }
    }

    #[test]
    fn the_first_of_equals_is_the_one_that_stays() {
        check_unique(&"", &["b1", "a1", "b2"], &["a1", "b1"], by_first_byte);
        let wrong = || check_unique(&"", &["b1", "a1", "b2"], &["a1", "b2"], by_first_byte);
        assert!(catch_unwind(wrong).is_err());
    }

    #[test]
    fn a_good_sorter_passes_and_an_unstable_one_does_not() {
        let layout = RecordLayout::Numbered { delimiter: b'\n' };
        let sorted = |sample: &SampleInput, reverse: bool| {
            let mut records = sample.records.clone();
            if reverse {
                records.reverse();
            }
            records.sort_by(|a, b| layout.key(a).cmp(&layout.key(b)));
            records.concat()
        };
        check_sorter(layout, &[0, 1, 2, 50], 1, |sample| sorted(sample, false));
        let unstable = || check_sorter(layout, &[50], 1, |sample| sorted(sample, true));
        assert!(catch_unwind(unstable).is_err());
    }
}
