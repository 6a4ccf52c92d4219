//! Any keys and rows in a view whose manifest says that they are those of a table: its readers give batches or an error, and
//! never panic. The checksums of the view are right, as those of a view by another program may be.

use std::sync::Arc;

use arbitrary::{Arbitrary, Unstructured};
use merganser_sort::rows::{RowStream, write_rows};
use merganser_sort::view::Manifest;
use merganser_sort::{Budget, Error};
use merganser_storage::Directory;
use merganser_storage::memory::MemoryDirectory;
use merganser_tables::{RowsWanted, TableView};

/// A schema of columns of most kinds, all nullable but `id`, as a view has it: `id` Int64, `name` Utf8, `price` Float64, `tags`
/// List(Utf8), `pair` Struct(x Int32, y Binary), `fixed` FixedSizeBinary(3), `pairs` Map(Utf8, Int64), `flag` Boolean.
const SCHEMA: &str = include_str!("table_view.schema");

#[derive(Debug, Arbitrary)]
struct Input {
    /// Bits: which columns are keys, how they are ordered.
    keys: u16,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
}

struct Rows {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

impl RowStream for Rows {
    type Error = Error;

    fn advance(&mut self) -> Result<bool, Error> {
        let next = self.at.map_or(0, |at| at + 1);
        self.at = Some(next);
        Ok(next < self.rows.len())
    }

    fn key(&self) -> &[u8] {
        &self.rows[self.at.unwrap_or(0)].0
    }

    fn value(&self) -> &[u8] {
        &self.rows[self.at.unwrap_or(0)].1
    }
}

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(mut input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) else { return };
    input.rows.sort();
    let folder: Arc<dyn Directory> = MemoryDirectory::new();
    let budget = Budget::new(64 << 20);
    let columns = ["id", "name", "price", "flag"];
    let key = |(number, column): (usize, &&str)| {
        let bits = input.keys >> (3 * number);
        (bits & 1 != 0).then(|| {
            serde_json::json!({
                "column": column,
                "descending": bits & 2 != 0,
                "nulls": if bits & 4 != 0 { "last" } else { "first" },
                "nullable": *column != "id",
            })
        })
    };
    let keys: Vec<_> = columns.iter().enumerate().filter_map(key).collect();
    let table = serde_json::json!({ "encoding": 1, "keys": keys, "schema": SCHEMA.trim() });
    let meant = |manifest: Manifest| manifest.of_table(table);
    let mut rows = Rows { rows: input.rows, at: None };
    write_rows(&mut rows, (&folder, "t".to_owned()), meant, &budget, |_| Ok::<_, Error>(()))
        .expect("memory takes rows in order");
    let Ok(view) = TableView::open(&folder, &budget, 1) else { return };
    let _ = view.batches(&RowsWanted::default(), None, |_| Ok(()));
    let _ = (view.row_of_key("1"), view.row_behind_key("a"));
}

/// Rows of small numbers: most bytes of rows are lengths, marks or bits.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    vec![(0..200).map(|byte| byte % 7).collect(), vec![0; 64], vec![1; 300]]
}
