//! Records leave in the order of the input.

use merganser_map::ssdlet::{
    Chunk, Combine, Emitter, Ssdlet, SsdletDescription, SsdletError, SsdletOutput, Type, Worker,
};
use merganser_map::{MapOutput, map};
use merganser_sort::Silent;
use merganser_storage::memory::MemoryDirectory;
use proptest::prelude::*;

use super::support::{How, LINES, Plain, Rows, collected, text, words};

/// Keeps lines with an `e`, and some twice.
fn keep(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    if record.contains(&b'e') {
        out.records(record);
    }
    if record.len().is_multiple_of(5) {
        out.records(record);
    }
    Ok(())
}

#[test]
fn records_leave_in_the_order_of_the_input() {
    let inputs = [text(3000, 100, 1), b"".to_vec(), text(500, 10, 2)];
    let ssdlet = Plain::ordered(LINES, keep);
    let expected = collected(&ssdlet, &inputs).ordered;
    assert!(expected.len() > 1000);
    for threads in 1..=4 {
        for chunk in [1, 2, 11, 100, 1 << 20] {
            for streams in [false, true] {
                let how = How { streams, ..How::chunks(chunk, threads) };
                let (rows, report) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
                assert_eq!(rows.ordered, expected, "{how:?}");
                assert_eq!(report.output_bytes, expected.len() as u64);
            }
        }
    }
}

/// Hands out a hundred times as much as it gets.
fn hundredfold(record: &[u8], _: u64, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
    for _ in 0..100 {
        out.records(record);
    }
    Ok(())
}

#[test]
fn output_that_is_larger_than_memory_goes_straight_to_the_sink() {
    let inputs = [text(300_000, 100, 1)];
    let ssdlet = Plain::ordered(LINES, hundredfold);
    let how = How { memory: 1 << 20, threads: 3, ..How::default() };
    let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
    let lines = inputs[0].split_inclusive(|byte| *byte == b'\n');
    let mut rest = &rows.ordered[..];
    for line in lines {
        let mut line = line.to_vec();
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let expected = line.repeat(100);
        assert!(rest.starts_with(&expected));
        rest = &rest[expected.len()..];
    }
    assert!(rest.is_empty());
}

#[test]
fn a_sink_that_wants_no_more_ends_all_without_an_error() {
    let inputs = [text(2_000_000, 100, 1)];
    let ssdlet = Plain::ordered(LINES, keep);
    let expected = collected(&ssdlet, &inputs).ordered;
    for threads in [1, 3] {
        let how = How::chunks(1000, threads);
        let mut rows = Rows { most: Some(3), ..Rows::default() };
        let report = how.map_to(&ssdlet, how.inputs(&inputs), &mut rows).expect("no error");
        assert_eq!(rows.calls, 3);
        assert!(expected.starts_with(&rows.ordered));
        assert!(report.input_bytes < 100_000, "{}", report.input_bytes);
    }
    let ssdlet = Plain::keyed(LINES, Combine::Count, Type::I64, words);
    for temp in [true, false] {
        let how = How { temp, ..How::chunks(100_000, 2) };
        let mut rows = Rows { most: Some(5), ..Rows::default() };
        how.map_to(&ssdlet, how.inputs(&inputs), &mut rows).expect("no error");
        assert_eq!(rows.keyed.len(), 5);
    }
}

/// An SSDlet that breaks the rules of its kind of output.
struct Rude {
    description: SsdletDescription,
    at_close: bool,
}

struct RudeWorker {
    keyed: bool,
    at_close: bool,
}

impl Ssdlet for Rude {
    fn description(&self) -> &SsdletDescription {
        &self.description
    }

    fn worker(&self) -> Result<Box<dyn Worker>, SsdletError> {
        let keyed = matches!(self.description.output, SsdletOutput::Keyed { .. });
        Ok(Box::new(RudeWorker { keyed, at_close: self.at_close }))
    }
}

impl RudeWorker {
    fn misbehave(&self, out: &mut Emitter<'_>) {
        if self.keyed { out.records(b"x\n") } else { out.emit(b"x", b"12345678") }
    }
}

impl Worker for RudeWorker {
    fn chunk(&mut self, _: Chunk<'_>, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        if !self.at_close {
            self.misbehave(out);
        }
        Ok(())
    }

    fn close(&mut self, out: &mut Emitter<'_>) -> Result<(), SsdletError> {
        if self.at_close {
            self.misbehave(out);
            if !self.keyed {
                out.records(b"x\n");
            }
        }
        Ok(())
    }
}

#[test]
fn the_wrong_kind_of_output_is_an_error() {
    let keyed = SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum };
    for output in [keyed, SsdletOutput::Ordered { format: LINES }] {
        for at_close in [false, true] {
            let name = "rude".to_owned();
            let output = output.clone();
            let description = SsdletDescription { name, input: LINES, output, worker_bytes: 0 };
            let ssdlet = Rude { description, at_close };
            let how = How::default();
            let error = how.map(&ssdlet, how.inputs(&[b"a\n".to_vec()])).expect_err("wrong");
            assert!(error.to_string().contains("handed out"), "{error}");
        }
    }
}

#[test]
fn ordered_output_is_no_view() {
    let how = How::default();
    let folder = MemoryDirectory::new();
    let output = MapOutput::View { folder: folder.clone(), name: "x".to_owned() };
    let inputs = how.inputs(&[b"a\n".to_vec()]);
    let ssdlet = Plain::ordered(LINES, keep);
    let error = map(&ssdlet, inputs, output, &how.options(), &Silent).expect_err("no view");
    assert!(matches!(error, SsdletError::OrderedView { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_lines_leave_in_order(
        inputs in prop::collection::vec(prop::collection::vec(prop::sample::select(
            &b"ae\n\0"[..]), 0..200), 1..4),
        chunk in 1u64..300,
        threads in 1usize..4,
    ) {
        let ssdlet = Plain::ordered(LINES, keep);
        let expected = collected(&ssdlet, &inputs).ordered;
        let how = How::chunks(chunk, threads);
        let (rows, _) = how.map(&ssdlet, how.inputs(&inputs)).expect("maps");
        prop_assert_eq!(rows.ordered, expected);
    }
}
