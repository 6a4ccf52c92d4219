//! Results as views, and who may read them.

use std::sync::Arc;

use merganser_map::ssdlet::{Combine, SsdletError, Type};
use merganser_map::{MapOutput, PartitionSize, map, merge};
use merganser_sort::key::OrderSpec;
use merganser_sort::reduced::ResultView;
use merganser_sort::rows::{CombinedRows, RowStream, RowsError};
use merganser_sort::view::{Manifest, View};
use merganser_sort::{Budget, Error, Silent};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;

use super::support::{EVERY_COMBINE, How, LINES, Plain, Rows, collected, model, text, words};

/// The result of a map as a view.
fn view_of(combine: Combine, inputs: &[Vec<u8>], how: How) -> Arc<dyn Directory> {
    let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let output = MapOutput::View { folder: Arc::clone(&folder), name: "result".to_owned() };
    let options = how.options();
    let report = map(&ssdlet, how.inputs(inputs), output, &options, &Silent).expect("maps");
    assert_eq!(options.budget.free_bytes(), how.memory);
    assert_eq!(Manifest::read(&folder).expect("a view").records, report.rows);
    assert_eq!(Manifest::read(&folder).expect("a view").is_unreduced(), report.spills > 0);
    folder
}

fn all_rows(view: &ResultView, from: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rows = view.rows(from).expect("opens");
    let mut all = Vec::new();
    while let Some((key, value)) = rows.next().expect("reads") {
        all.push((key.to_vec(), value.to_vec()));
    }
    assert!(rows.next().expect("still at its end").is_none());
    all
}

#[test]
fn a_result_that_was_not_spilled_is_a_view_for_every_reader() {
    let inputs = [text(5000, 50, 1)];
    for combine in EVERY_COMBINE {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        let folder = view_of(combine, &inputs, How::default());
        let result = ResultView::open(&folder, &Budget::new(64 << 20), 1).expect("opens");
        assert_eq!((result.is_reduced(), result.rows_count()), (true, Some(expected.len() as u64)));
        assert_eq!(all_rows(&result, None), expected);
        let view = View::open(&folder, &Budget::new(64 << 20), 1).expect("every reader may");
        let mut bytes = Vec::new();
        let mut stream = view.stream(0..u64::MAX).expect("streams");
        while let Some(more) = stream.next_bytes().expect("reads") {
            bytes.extend_from_slice(more);
        }
        let mut plain = Vec::new();
        for (key, value) in &expected {
            plain.extend_from_slice(&(key.len() as u32).to_le_bytes());
            plain.extend_from_slice(&(value.len() as u32).to_le_bytes());
            plain.extend_from_slice(key);
            plain.extend_from_slice(value);
        }
        assert_eq!(bytes, plain);
    }
}

#[test]
fn a_spilled_result_is_reduced_when_it_is_read_and_by_no_other_reader() {
    let inputs = [text(5000, 50, 1), text(900, 10, 2)];
    for combine in EVERY_COMBINE {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        let how = How { partition: PartitionSize::Bytes(500), ..How::default() };
        let folder = view_of(combine, &inputs, how);
        let error =
            View::open(&folder, &Budget::new(64 << 20), 1).map(|_| ()).expect_err("refused");
        assert!(matches!(error, Error::Unreduced { .. }), "{error}");
        let result = ResultView::open(&folder, &Budget::new(64 << 20), 1).expect("opens");
        assert_eq!((result.is_reduced(), result.rows_count()), (false, None));
        let description = result.description();
        assert_eq!((description.combine, description.value), (combine, Type::I64));
        assert_eq!((&description.ssdlet[..], description.key), ("plain", Type::Bytes));
        assert_eq!(all_rows(&result, None), expected, "{combine:?}");
        for from in [&b""[..], b"\0", b"1", b"1a", b"2\0", b"zz", expected[7].0.as_slice()] {
            let rest = expected.iter().filter(|(key, _)| &key[..] >= from).cloned();
            assert_eq!(all_rows(&result, Some(from)), rest.collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_empty_result_is_a_view_of_nothing() {
    let folder = view_of(Combine::Sum, &[Vec::new()], How::default());
    let result = ResultView::open(&folder, &Budget::new(8 << 20), 1).expect("opens");
    assert_eq!((result.rows_count(), all_rows(&result, None)), (Some(0), Vec::new()));
}

#[test]
fn another_view_is_no_result() {
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let order = OrderSpec::new(LINES);
    let manifest = Manifest::new("x".to_owned(), order, Vec::new(), 0, Vec::new());
    manifest.write(&folder).expect("writes");
    let opened = ResultView::open(&folder, &Budget::new(8 << 20), 1);
    assert!(matches!(opened.map(|_| ()), Err(Error::Rows(RowsError::NotAResult { .. }))));
}

/// Rows in memory.
struct InMemory(Vec<(Vec<u8>, Vec<u8>)>, usize);

impl RowStream for InMemory {
    type Error = SsdletError;

    fn advance(&mut self) -> Result<bool, SsdletError> {
        self.1 += 1;
        Ok(self.1 <= self.0.len())
    }

    fn key(&self) -> &[u8] {
        &self.0[self.1 - 1].0
    }

    fn value(&self) -> &[u8] {
        &self.0[self.1 - 1].1
    }
}

/// The merged rows of several nodes are those that one node would have found in all of it.
#[test]
fn results_of_several_nodes_become_one() {
    let inputs = [text(900, 20, 1), text(400, 30, 2), Vec::new(), text(300, 5, 3)];
    for combine in EVERY_COMBINE {
        let ssdlet = Plain::keyed(LINES, combine, Type::I64, words);
        let expected = model(&collected(&ssdlet, &inputs).keyed, combine, Type::I64);
        let of_each = || {
            let results = inputs.iter().map(|input| {
                let how = How::default();
                let (rows, _) =
                    how.map(&ssdlet, how.inputs(std::slice::from_ref(input))).expect("maps");
                InMemory(rows.keyed, 0)
            });
            results.collect::<Vec<_>>()
        };
        let mut rows = Rows::default();
        let of = combine.result_type(Type::I64);
        assert_eq!(
            merge(of_each(), combine, of, &mut rows).expect("merges"),
            expected.len() as u64
        );
        assert_eq!(rows.keyed, expected, "{combine:?}");
        let boxed = of_each()
            .into_iter()
            .map(|rows| Box::new(rows) as Box<dyn RowStream<Error = SsdletError>>);
        let mut merged = CombinedRows::merged(boxed.collect(), combine, of);
        assert!(merged.advance().expect("merges"));
        assert_eq!((merged.key(), merged.value()), (&expected[0].0[..], &expected[0].1[..]));
    }
}
