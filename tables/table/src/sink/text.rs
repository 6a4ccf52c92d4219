//! Tables as text: csv and lines of JSON.

use std::io::Write;

use arrow_csv::WriterBuilder;
use arrow_json::LineDelimitedWriter;
use arrow_schema::{DataType, Field};
use merganser_sort::Progress;

use super::arrow::of_output;
use super::batches::{BatchSize, WantedColumns, each_batch};
use crate::TableError;
use crate::codec::TableLayout;
use crate::table_rows::TableRows;

/// Whether csv can hold a column.
pub(crate) fn fits_csv(field: &Field) -> bool {
    !field.data_type().is_nested() || matches!(field.data_type(), DataType::Dictionary(..))
}

/// Writes all rows as csv, with a header.
///
/// # Errors
/// Those of the rows and of `output`; a column that csv can't hold; [`merganser_sort::Error::Cancelled`].
pub(crate) fn write_csv(
    rows: &mut dyn TableRows,
    (layout, wanted): (&TableLayout, &WantedColumns),
    output: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    for field in wanted.schema.fields() {
        if !fits_csv(field) {
            return Err(TableError::NotInCsv {
                column: field.name().clone(),
                data_type: field.data_type().clone(),
            });
        }
    }
    let mut writer = WriterBuilder::new().with_header(true).build(&mut *output);
    let mut is_empty = true;
    let count = each_batch(rows, layout, (wanted, BatchSize::default()), progress, |batch| {
        is_empty = false;
        writer.write(&batch).map_err(of_output)
    })?;
    if is_empty {
        let none = arrow_array::RecordBatch::new_empty(std::sync::Arc::clone(&wanted.schema));
        writer.write(&none).map_err(of_output)?;
    }
    Ok(count)
}

/// Writes all rows as objects of JSON, a line each. A null has no field.
///
/// # Errors
/// As [`write_csv`].
pub(crate) fn write_json_lines(
    rows: &mut dyn TableRows,
    (layout, wanted): (&TableLayout, &WantedColumns),
    output: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let mut writer = LineDelimitedWriter::new(output);
    let write = |batch| writer.write(&batch).map_err(of_output);
    let count = each_batch(rows, layout, (wanted, BatchSize::default()), progress, write)?;
    writer.finish().map_err(of_output)?;
    Ok(count)
}
