//! Every combine against a naive model.

use merganser_map::PartitionSize;
use merganser_map::ssdlet::{Combine, Emitter, SsdletError, Type};
use proptest::prelude::*;

use super::support::{EVERY_COMBINE, How, LINES, Plain, collected, model, spans, text, words};

#[test]
fn words_are_counted() {
    let ssdlet = Plain::keyed(LINES, Combine::Count, Type::I64, words);
    let inputs = [b"a bb a\nbb a".to_vec(), b"".to_vec(), b"c\n".to_vec()];
    let (rows, report) = How::default().map(&ssdlet, How::default().inputs(&inputs)).expect("maps");
    let row = |key: &str, n: i64| (key.as_bytes().to_vec(), n.to_le_bytes().to_vec());
    assert_eq!(rows.keyed, [row("a", 3), row("bb", 2), row("c", 1)]);
    assert_eq!((report.rows, report.input_bytes, report.spills), (3, 13, 0));
    assert_eq!(report.metered, 14, "the terminator that was missing counts");
}

/// Whatever cuts the input: chunks of every size, with and without spills.
#[test]
fn every_combine_is_that_of_a_naive_program() {
    let inputs = [text(600, 20, 1), text(300, 30, 2), b"\n\n  \n".to_vec(), b"end".to_vec()];
    for combine in EVERY_COMBINE {
        for each in [words, spans] {
            let ssdlet = Plain::keyed(LINES, combine, Type::I64, each);
            let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
            for threads in 1..=4 {
                for chunk in [1, 2, 3, 7, 50, 1000] {
                    let how = How::chunks(chunk, threads);
                    let (rows, report) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
                    assert_eq!(rows.keyed, expected, "{combine:?} {how:?}");
                    assert_eq!((report.rows, report.spills), (expected.len() as u64, 0));
                }
            }
            for chunk in [20, 333] {
                let how = How { temp: true, ..How::chunks(chunk, 2) };
                let (rows, report) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
                assert_eq!(rows.keyed, expected, "{combine:?} {how:?}");
                assert!(report.spills > 1 && report.rows == expected.len() as u64);
            }
        }
    }
}

/// Hands out each line as a value of its first byte.
fn lines(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let line = &record[..record.len() - 1];
    out.emit(&line[..line.len().min(1)], line);
    Ok(())
}

#[test]
fn values_of_bytes_are_combined_in_byte_order() {
    let inputs = [b"pear\nplum\napple\np\nap\npq\nap\n\n".to_vec()];
    for combine in [Combine::Min, Combine::Max, Combine::First, Combine::None, Combine::Count] {
        let ssdlet = Plain::keyed(LINES, combine, Type::Text, lines);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::Text);
        for (temp, chunk) in [(true, 4), (false, 4), (false, 1 << 20)] {
            let how = How { temp, ..How::chunks(chunk, 2) };
            let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
            assert_eq!(rows.keyed, expected, "{combine:?} {how:?}");
        }
    }
}

/// The line is `key value`, the value a floating-point number.
fn floats(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let line = std::str::from_utf8(record).expect("text").trim_end();
    let (key, value) = line.split_once(' ').expect("two words");
    out.emit(key.as_bytes(), &value.parse::<f64>().expect("a number").to_le_bytes());
    Ok(())
}

#[test]
fn floating_point_numbers_are_in_their_total_order() {
    let inputs = [b"a -1\na 1e300\na -inf\nb 0\nb -0\nb nan\nc 5\n".to_vec()];
    let row = |key: &str, n: f64| (key.as_bytes().to_vec(), n.to_le_bytes().to_vec());
    let least = [row("a", f64::NEG_INFINITY), row("b", -0.0), row("c", 5.0)];
    let greatest = [row("a", 1e300), row("b", f64::NAN), row("c", 5.0)];
    for (combine, expected) in [(Combine::Min, least), (Combine::Max, greatest)] {
        let ssdlet = Plain::keyed(LINES, combine, Type::F64, floats);
        for temp in [true, false] {
            let how = How { temp, ..How::chunks(5, 2) };
            let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
            assert_eq!(rows.keyed, expected);
        }
    }
}

/// The line is `key number`.
fn numbers(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let line = std::str::from_utf8(record).expect("text").trim_end();
    let (key, value) = line.split_once(' ').expect("two words");
    out.add(key.as_bytes(), value.parse().expect("a number"));
    Ok(())
}

/// A sum may leave 64 bits on the way: whether it is one in the end does not depend on the order.
#[test]
fn a_sum_that_leaves_64_bits_is_an_error_that_names_the_key() {
    let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::I64, numbers);
    let most = i64::MAX;
    let back = format!("k {most}\nk 5\nk {most}\nk -{most}\nk -10\n").into_bytes();
    let over = format!("a 1\nk {most}\nk 5\nk -4\n").into_bytes();
    for temp in [true, false] {
        for (chunk, threads) in [(1, 1), (1, 3), (30, 2), (1 << 20, 1)] {
            let how = How { temp, ..How::chunks(chunk, threads) };
            let (rows, _) =
                how.map(&ssdlet, how.inputs(std::slice::from_ref(&back))).expect("maps");
            let sum = i64::MAX - 5;
            assert_eq!(rows.keyed, [(b"k".to_vec(), sum.to_le_bytes().to_vec())]);
            let error =
                how.map(&ssdlet, how.inputs(std::slice::from_ref(&over))).expect_err("too large");
            assert!(error.to_string().contains("key \"k\""), "{error}");
        }
    }
}

/// Keys of every length, with NULs, and some that differ only there.
fn odd_keys(record: &[u8], offset: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let n = record[0] as usize;
    for len in 0..40 {
        let mut key = vec![0; len];
        if len > 0 {
            key[n % len] = (n % 3) as u8;
        }
        out.emit(&key, &(offset as i64).to_le_bytes());
    }
    out.emit(&vec![n as u8 % 2; 70_000], &1i64.to_le_bytes());
    Ok(())
}

#[test]
fn keys_may_be_empty_long_and_full_of_nuls() {
    let inputs = [(0..60).flat_map(|n| [n, b'\n']).filter(|b| *b != 10).collect::<Vec<u8>>()];
    let fixed = merganser_sort::record::Format::Fixed { bytes: 1 };
    for combine in EVERY_COMBINE {
        let ssdlet = Plain::keyed(fixed, combine, Type::I64, odd_keys);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        for (temp, chunk) in [(true, 25), (false, 3)] {
            let how = How { temp, memory: 64 << 20, ..How::chunks(chunk, 2) };
            let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
            assert_eq!(rows.keyed, expected, "{combine:?}");
        }
    }
}

/// Spills happen when they must, and otherwise not; both give the same rows.
#[test]
fn memory_decides_on_spills_and_nothing_else() {
    let inputs = [text(3_000_000, 200_000, 3)];
    for combine in [Combine::Sum, Combine::First, Combine::None] {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        for (memory, spills) in
            [(10 << 20, true), (20 << 20, combine != Combine::Sum), (160 << 20, false)]
        {
            for threads in [1, 3] {
                let how = How { memory, threads, ..How::default() };
                let (rows, report) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
                assert!(rows.keyed == expected, "{combine:?} {how:?}");
                if memory != 20 << 20 {
                    assert_eq!(report.spills > 0, spills, "{combine:?} {how:?} {report:?}");
                }
            }
        }
        let whole = How { memory: 10 << 20, partition: PartitionSize::Whole, ..How::default() };
        let error = whole.map(&ssdlet, whole.inputs(&inputs)).expect_err("too little memory");
        assert!(
            matches!(error, SsdletError::Engine(merganser_sort::Error::Memory { .. })),
            "{error}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any text, cut in any way.
    #[test]
    fn any_text_gives_the_rows_of_the_model(
        inputs in prop::collection::vec(prop::collection::vec(prop::sample::select(
            &b"ab \n\0"[..]), 0..200), 1..4),
        chunk in 1u64..300,
        threads in 1usize..4,
        (temp, streams) in (any::<bool>(), any::<bool>()),
        combine in prop::sample::select(&EVERY_COMBINE[..]),
    ) {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        let how = How { temp, streams, ..How::chunks(chunk, threads) };
        let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
        prop_assert_eq!(rows.keyed, expected);
    }
}
