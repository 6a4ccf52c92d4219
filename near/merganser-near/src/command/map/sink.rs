//! Where the engine's rows and records go.

use std::io::{self, Write};

use merganser_map::RowSink;
use merganser_map::ssdlet::SsdletError;
use merganser_results::output::ResultOutput;
use merganser_shell::failure::Failure;
use merganser_shell::rows::RowWriter;
use merganser_sort::record::Format;

use super::top::TopRows;

/// Records are handed on in pieces of at least this size.
const PIECE_BYTES: usize = 64 << 10;

/// An output's error, on its way through the engine.
pub(super) fn refused(error: io::Error) -> SsdletError {
    merganser_sort::Error::from(error).into()
}

/// All rows.
pub(super) struct ToRows<'a, W>(pub &'a mut RowWriter<W>);

impl<W: Write + Send> RowSink for ToRows<'_, W> {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.0.row(key, value).map_err(refused)?;
        Ok(true)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        debug_assert!(records.is_empty(), "an SSDlet has one kind of output");
        Ok(true)
    }
}

/// The rows with the largest values.
pub(super) struct ToTop(pub TopRows);

impl RowSink for ToTop {
    fn keyed(&mut self, key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.0.take(key, value)?;
        Ok(true)
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        debug_assert!(records.is_empty(), "an SSDlet has one kind of output");
        Ok(true)
    }
}

/// Records as they are.
pub(super) struct ToRecords<'a> {
    output: &'a mut ResultOutput,
    piece: Vec<u8>,
    /// Ends a record that is the value of a row.
    terminator: &'static [u8],
}

impl<'a> ToRecords<'a> {
    /// Writes records of this format to `output`.
    pub(super) fn new(output: &'a mut ResultOutput, format: Format) -> Self {
        let terminator: &[u8] = match format.terminator() {
            Some(0) => b"\0",
            Some(_) => b"\n",
            None => b"",
        };
        ToRecords { output, piece: Vec::with_capacity(PIECE_BYTES), terminator }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The output's own.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.flush().map_err(|error| Failure::named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

impl RowSink for ToRecords<'_> {
    /// Values that are records, without what ends them.
    fn keyed(&mut self, _key: &[u8], value: &[u8]) -> Result<bool, SsdletError> {
        self.records(value)?;
        self.records(self.terminator)
    }

    fn header(&mut self, row: &[u8]) -> Result<(), SsdletError> {
        self.records(row).map(|_| ())
    }

    fn records(&mut self, records: &[u8]) -> Result<bool, SsdletError> {
        if self.piece.len() + records.len() > PIECE_BYTES {
            self.flush().map_err(refused)?;
        }
        if records.len() >= PIECE_BYTES {
            self.output.write_all(records).map_err(refused)?;
        } else {
            self.piece.extend_from_slice(records);
        }
        Ok(true)
    }
}
