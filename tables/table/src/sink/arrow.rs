//! Files and streams of Arrow.

use std::io::Write;

use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use merganser_sort::Progress;

use super::batches::{BatchSize, WantedColumns, each_batch};
use super::dictionaries::FileDictionaries;
use crate::TableError;
use crate::codec::TableLayout;
use crate::table_rows::TableRows;

/// The error of a file that is written: that of its output, if that failed.
pub(super) fn of_output(error: ArrowError) -> TableError {
    match error {
        ArrowError::IoError(_, error) => merganser_sort::Error::from(error).into(),
        ArrowError::ExternalError(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => merganser_sort::Error::from(*error).into(),
            Err(inner) => TableError::Arrow(ArrowError::ExternalError(inner)),
        },
        other => TableError::Arrow(other),
    }
}

/// Writes all rows as a file of batches.
///
/// # Errors
/// Those of the rows and of `output`; [`merganser_sort::Error::Cancelled`].
pub(crate) fn write_arrow_file(
    rows: &mut dyn TableRows,
    (layout, wanted): (&TableLayout, &WantedColumns),
    output: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let mut dictionaries = FileDictionaries::new(&wanted.schema)?;
    let mut writer = FileWriter::try_new(output, &wanted.schema).map_err(of_output)?;
    let write = |batch| {
        let batch = match &mut dictionaries {
            Some(dictionaries) => dictionaries.replace(&batch)?,
            None => batch,
        };
        writer.write(&batch).map_err(of_output)
    };
    let count = each_batch(rows, layout, (wanted, BatchSize::default()), progress, write)?;
    if let Some(dictionaries) = &dictionaries {
        writer.write(&dictionaries.last_batch()?).map_err(of_output)?;
    }
    writer.finish().map_err(of_output)?;
    Ok(count)
}

/// Writes all rows as a stream of batches.
///
/// # Errors
/// As [`write_arrow_file`].
pub(crate) fn write_arrow_stream(
    rows: &mut dyn TableRows,
    (layout, wanted): (&TableLayout, &WantedColumns),
    output: &mut dyn Write,
    progress: &dyn Progress,
) -> Result<u64, TableError> {
    let mut writer = StreamWriter::try_new(output, &wanted.schema).map_err(of_output)?;
    let write = |batch| writer.write(&batch).map_err(of_output);
    let count = each_batch(rows, layout, (wanted, BatchSize::default()), progress, write)?;
    writer.finish().map_err(of_output)?;
    Ok(count)
}
