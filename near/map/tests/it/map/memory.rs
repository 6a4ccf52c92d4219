//! The least memory: it is named before anything is read, and it works.

use std::sync::Arc;

use merganser_map::ssdlet::{Combine, Emitter, Ssdlet, SsdletError, Type, builtin};
use merganser_map::{
    MapInput, MapOptions, MapOutput, MapReport, PartitionSize, least_memory_bytes, map,
};
use merganser_sort::reduced::ResultView;
use merganser_sort::{Budget, Error, Silent};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use serde_json::json;

use super::support::{
    EVERY_COMBINE, How, LINES, Plain, Rows, collected, model, storage, text, words,
};

/// Where a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Rows,
    View,
}

fn inputs(how: How, bytes: &[u8]) -> Vec<MapInput> {
    how.inputs(&[bytes.to_vec()])
}

/// Maps `bytes`; the rows of a view are read within the same memory.
fn attempt(
    how: How,
    to: To,
    ssdlet: &dyn Ssdlet,
    bytes: &[u8],
) -> Result<(Rows, MapReport), SsdletError> {
    if to == To::Rows {
        return how.map(ssdlet, inputs(how, bytes));
    }
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let options = how.options();
    let output = MapOutput::View { folder: Arc::clone(&folder), name: "result".to_owned() };
    let report = map(ssdlet, inputs(how, bytes), output, &options, &Silent)?;
    assert!(report.memory_peak_bytes <= how.memory);
    // Whoever reads it has enough.
    let view = ResultView::open(&folder, &Budget::new(64 << 20), 1)?;
    let (mut rows, mut found) = (view.rows(None)?, Rows::default());
    while let Some((key, value)) = rows.next()? {
        found.keyed.push((key.to_vec(), value.to_vec()));
    }
    Ok((found, report))
}

/// The least memory that an attempt with nothing names.
fn least(how: How, to: To, ssdlet: &dyn Ssdlet) -> u64 {
    let nothing = How { memory: 0, ..how };
    let error = attempt(nothing, to, ssdlet, b"a\n").expect_err("too little");
    let SsdletError::Engine(Error::Memory { least_bytes, limit_bytes: 0, .. }) = error else {
        panic!("{error}")
    };
    let named = least_memory_bytes(
        ssdlet.description(),
        &inputs(nothing, b"a\n"),
        &nothing.options(),
        to == To::View,
    );
    assert_eq!(named, least_bytes, "a question beforehand gets the same answer");
    least_bytes
}

/// At the least that is named, data that spills again and again is mapped; with a byte less, nothing is.
#[test]
fn the_least_memory_works_and_a_byte_less_is_refused_at_once() {
    let bytes = text(1_200_000, 100_000, 3);
    for combine in EVERY_COMBINE {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected =
            model(&collected(&ssdlet, std::slice::from_ref(&bytes)).keyed, combine, Type::I64);
        for threads in [1, 5] {
            for to in [To::Rows, To::View] {
                for streams in [false, true] {
                    let how = How { threads, streams, ..How::default() };
                    let least = least(how, to, &ssdlet);
                    let enough = How { memory: least, ..how };
                    let (rows, report) = attempt(enough, to, &ssdlet, &bytes).expect("works");
                    assert!(rows.keyed == expected, "{combine:?} {enough:?} {to:?}");
                    assert!(report.spills > 5, "{} spills in {least} bytes", report.spills);
                    let less = How { memory: least - 1, ..how };
                    let refused = attempt(less, to, &ssdlet, &bytes).expect_err("a byte less");
                    let told = matches!(refused, SsdletError::Engine(Error::Memory { least_bytes, .. })
                        if least_bytes == least);
                    assert!(told, "{refused}");
                }
            }
        }
    }
}

/// The same for SSDlets as they are, whose workers have memory of their own, and for every partition size.
#[test]
fn the_least_memory_works_for_built_in_ssdlets() {
    let bytes = text(1_500_000, 100_000, 4);
    let numbers: String = (0..200_000).map(|n| format!("{}\n", n * 7919 % 1_000_003)).collect();
    let cases: [(&str, serde_json::Value, &[u8]); 6] = [
        ("wordcount", json!({}), &bytes),
        ("terms", json!({}), &bytes),
        ("sequence-count", json!({"n": 2}), &bytes),
        ("histogram", json!({}), numbers.as_bytes()),
        ("match", json!({"keys": ["1a", "zz"]}), &bytes),
        ("sample", json!({"count": 5000, "seed": 1}), &bytes),
    ];
    for (name, args, bytes) in cases {
        let ssdlet = builtin::open(name, &args).expect("arguments that make sense");
        let roomy = How { memory: 256 << 20, ..How::default() };
        let (expected, _) = attempt(roomy, To::Rows, &*ssdlet, bytes).expect("maps");
        for threads in [1, 3] {
            for partition in [PartitionSize::Auto, PartitionSize::Bytes(100_000)] {
                let how = How { threads, partition, ..How::default() };
                let least = least(how, To::Rows, &*ssdlet);
                let enough = How { memory: least, ..how };
                let (rows, _) = attempt(enough, To::Rows, &*ssdlet, bytes).expect("works");
                assert!(rows.keyed == expected.keyed && rows.ordered == expected.ordered, "{name}");
                let less = How { memory: least - 1, ..how };
                assert!(attempt(less, To::Rows, &*ssdlet, b"a\n").is_err(), "{name}");
            }
        }
    }
}

/// More memory than the least is never too little.
#[test]
fn every_memory_above_the_least_works() {
    let bytes = text(40_000, 10_000, 5);
    for threads in [1, 2, 5, 16] {
        for (combine, to) in [(Combine::Sum, To::Rows), (Combine::None, To::View)] {
            let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
            let how = How { threads, ..How::default() };
            let least = least(how, to, &ssdlet);
            for more in [1, 4095, 4096, 100_000, 1 << 20, 3_333_333, 20 << 20] {
                let how = How { memory: least + more, ..how };
                attempt(how, to, &ssdlet, &bytes).expect("works");
            }
        }
        let ssdlet = Plain::ordered(LINES, |record, _, out| {
            out.records(record);
            Ok(())
        });
        let how = How { threads, ..How::default() };
        let least = least(how, To::Rows, &ssdlet);
        for more in [0, 1, 4097, 333_333, 2 << 20] {
            let how = How { memory: least + more, ..how };
            attempt(how, To::Rows, &ssdlet, &bytes).expect("works");
        }
    }
}

/// `count` different words of eight bytes, in an order that looks random, and each eighth of them once more.
fn many_words(count: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for n in 0..count {
        let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        text.extend_from_slice(format!("{word:08x}\n").as_bytes());
        if n % 8 == 0 {
            let again = (n / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            text.extend_from_slice(format!("{again:08x}\n").as_bytes());
        }
    }
    text
}

/// Two sums that are back within 64 bits only when both are known, at both ends of the input.
fn whole_lines(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    let word = &record[..8];
    let number = match word {
        b"greatest" => i64::MAX,
        b"smallest" => i64::MIN + 1,
        _ => 1,
    };
    let key = if number == 1 { word } else { b"sum" };
    out.emit(key, &number.to_le_bytes());
    Ok(())
}

/// The same with long keys. Fewer of them are indexed in as much memory.
fn long_keys(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    out.emit(&record[..8].repeat(24), &record[..8]);
    Ok(())
}

/// Far more spills than the least memory holds: the result is that of no spill.
#[test]
fn any_number_of_spills_fits_into_the_least_memory() {
    let with_sums = |count: u64| {
        let mut bytes = b"greatest\ngreatest\ngreatest\n".to_vec();
        bytes.extend(many_words(count));
        bytes.extend_from_slice(b"smallest\nsmallest\nsmallest\n");
        bytes
    };
    let (short, long) = (with_sums(2_400_000), with_sums(400_000));
    for (combine, to) in
        [(Combine::Sum, To::Rows), (Combine::First, To::View), (Combine::None, To::Rows)]
    {
        let (bytes, ssdlet) = match to {
            To::Rows => (&short, Plain::keyed(LINES, combine, Type::I64, whole_lines)),
            To::View => (&long, Plain::keyed(LINES, combine, Type::Bytes, long_keys)),
        };
        let how = How { threads: 2, ..How::default() };
        let roomy = How { memory: 1 << 30, ..how };
        let (expected, report) = attempt(roomy, To::Rows, &ssdlet, bytes).expect("maps");
        assert_eq!(report.spill_runs, 0, "it fits");
        let enough = How { memory: least(how, to, &ssdlet), ..how };
        let (rows, report) = attempt(enough, to, &ssdlet, bytes).expect("works");
        assert!(report.spill_runs > 10, "{report:?}");
        assert!(rows.keyed == expected.keyed, "{combine:?} {to:?}");
    }
}

/// A line of this many bytes among short ones.
fn long_line(bytes: usize) -> Vec<u8> {
    let mut text = text(300_000, 50_000, 6);
    text.push(b'\n');
    text.extend(std::iter::repeat_n(b'x', bytes));
    text.push(b'\n');
    text.extend(super::support::text(2_000_000, 200_000, 7));
    text
}

/// The first byte of each word, and the word.
fn first_bytes(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    for word in record.split(|byte| byte.is_ascii_whitespace()) {
        out.emit(word, word);
    }
    Ok(())
}

/// A long row among short ones goes through spills.
#[test]
fn a_long_row_is_spilled_and_merged() {
    const LONG: usize = 1 << 20;
    let bytes = long_line(LONG);
    for combine in [Combine::None, Combine::First, Combine::Max] {
        let ssdlet = Plain::keyed(LINES, combine, Type::Bytes, first_bytes);
        let how = How { memory: 96 << 20, threads: 2, ..How::default() };
        let how = How { partition: PartitionSize::Bytes(600_000), ..how };
        let options = how.options();
        let mut rows = Rows::default();
        let output = MapOutput::Rows(&mut rows);
        let report = map(&ssdlet, inputs(how, &bytes), output, &options, &Silent).expect("maps");
        assert!(report.spills > 1);
        let longest = rows.keyed.iter().map(|(key, _)| key.len()).max();
        assert_eq!(longest, Some(LONG));
    }
}

/// A view of spills in little memory: its least is named, and it is enough; a long row names more.
#[test]
fn rows_of_a_view_are_read_in_the_least_memory() {
    let view = |bytes: &[u8]| {
        let ssdlet = Plain::keyed(LINES, Combine::None, Type::Bytes, first_bytes);
        let folder: Arc<dyn Directory> = MemoryDirectory::new();
        let output = MapOutput::View { folder: Arc::clone(&folder), name: "result".to_owned() };
        let how = How { memory: 96 << 20, ..How::default() };
        let options = MapOptions { partition: PartitionSize::Bytes(300_000), ..how.options() };
        map(&ssdlet, inputs(how, bytes), output, &options, &Silent).expect("maps");
        folder
    };
    let read = |folder: &Arc<dyn Directory>, memory: u64| -> Result<usize, SsdletError> {
        let budget = Budget::new(memory);
        let view = ResultView::open(folder, &budget, 2)?;
        let mut count = 0;
        let mut rows = view.rows(Some(b"1"))?;
        while rows.next()?.is_some() {
            count += 1;
        }
        assert!(budget.peak_bytes() <= memory);
        Ok(count)
    };
    let least = |folder: &Arc<dyn Directory>, memory| match read(folder, memory) {
        Err(SsdletError::Engine(Error::Memory { least_bytes, limit_bytes, .. })) => {
            assert_eq!(limit_bytes, memory);
            least_bytes
        }
        other => panic!("{other:?}"),
    };
    let short = view(&text(2_000_000, 100_000, 8));
    let all = read(&short, 64 << 20).expect("reads");
    let enough = least(&short, 1 << 20);
    assert!(enough < 8 << 20, "{enough}");
    assert_eq!(read(&short, enough).expect("the least is enough"), all);
    assert_eq!(read(&short, 3 * enough).expect("and more is"), all);
    assert!(read(&short, enough - 1).is_err());

    let long = view(&long_line(1 << 20));
    let all = read(&long, 256 << 20).expect("reads");
    let enough = least(&long, 16 << 20);
    assert_eq!(read(&long, enough).expect("the least is enough"), all, "{enough}");
}

/// What a map leaves of a budget that others use, too.
#[test]
fn the_least_counts_what_others_have() {
    let ssdlet = Plain::keyed(LINES, Combine::Sum, Type::I64, words);
    let bytes = text(200_000, 50_000, 9);
    let how = How::default();
    let options = how.options();
    let others = options.budget.reserve(how.memory - 1000, "others").expect("fits");
    let attempt = |options: &MapOptions| {
        let input = MapInput::Storage { storage: storage(&bytes), range: None };
        let output = &mut Rows::default();
        map(&ssdlet, vec![input], MapOutput::Rows(output), options, &Silent)
    };
    let error = attempt(&options).expect_err("too little");
    let SsdletError::Engine(Error::Memory { least_bytes, .. }) = error else { panic!("{error}") };
    drop(others);
    let budget = Budget::new(least_bytes);
    let _others = budget.reserve(how.memory - 1000, "others").expect("fits");
    attempt(&MapOptions { budget, ..options }).expect("works");
}
