//! Keyed output of one worker: combined in its table, which goes to a spill when it is full.

use std::ops::Range;

use merganser_sort::Budget;
use merganser_sort::reduced::PLACE_BYTES;

use super::{Combine, SsdletError, Type};
use crate::table::{Full, Table, TableKind};

/// Takes the rows of full tables.
pub(crate) trait SpillSink: Send {
    /// Takes all rows of a table, which is cleared then.
    fn spill(&mut self, table: &Table) -> Result<(), SsdletError>;

    /// After the last table.
    fn finish(self: Box<Self>) -> Result<(), SsdletError>;
}

/// The keyed output of one worker.
pub(crate) struct Keyed {
    table: Table,
    values: ValueType,
    spill: Box<dyn SpillSink>,
    failure: Option<SsdletError>,
    place: EmitPlace,
}

/// The kind of values that are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueType {
    /// Numbers, of 8 bytes.
    Numbers,
    /// How many there are.
    Counts,
    /// Bytes.
    Bytes,
    /// Bytes, after the place that they come from.
    Placed,
}

/// The place of something that was handed out. In the order of these, all is in the order of the input,
/// however that is cut into chunks: a chunk's own place stands for its records, and those are numbered
/// in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmitPlace {
    pub(crate) input: u32,
    pub(crate) offset: u64,
    pub(crate) ordinal: u64,
}

impl EmitPlace {
    /// In byte order.
    fn bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..4].copy_from_slice(&self.input.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.offset.to_be_bytes());
        bytes[12..].copy_from_slice(&self.ordinal.to_be_bytes());
        bytes
    }
}

impl Keyed {
    /// A table of up to `bytes_max` bytes of `budget`, whose rows go to `spill` when it is full.
    ///
    /// # Errors
    /// Too little memory; a combine that its type of values does not have.
    pub(crate) fn new(
        (combine, of): (Combine, Type),
        budget: &Budget,
        bytes_max: u64,
        spill: Box<dyn SpillSink>,
    ) -> Result<Self, SsdletError> {
        let (kind, values) = match (combine, of) {
            (Combine::Sum, Type::I64) => (TableKind::Sum, ValueType::Numbers),
            (Combine::Sum, _) => {
                let detail = "its values are to be summed, but are not of type i64";
                return Err(SsdletError::Failed(detail.to_owned()));
            }
            (Combine::Count, _) => (TableKind::Sum, ValueType::Counts),
            (Combine::Min, Type::I64) => (TableKind::LeastI64, ValueType::Numbers),
            (Combine::Max, Type::I64) => (TableKind::GreatestI64, ValueType::Numbers),
            (Combine::Min, Type::F64) => (TableKind::LeastF64, ValueType::Numbers),
            (Combine::Max, Type::F64) => (TableKind::GreatestF64, ValueType::Numbers),
            (Combine::Min, _) => (TableKind::LeastBytes, ValueType::Bytes),
            (Combine::Max, _) => (TableKind::GreatestBytes, ValueType::Bytes),
            // The smallest place.
            (Combine::First, _) => (TableKind::LeastBytes, ValueType::Placed),
            (Combine::None, _) => (TableKind::All, ValueType::Bytes),
        };
        let table = Table::new(kind, budget, bytes_max)?;
        let place = EmitPlace { input: 0, offset: 0, ordinal: 0 };
        Ok(Keyed { table, values, spill, failure: None, place })
    }

    /// A chunk of `input` begins at `offset`.
    pub(crate) fn begin(&mut self, input: u32, offset: u64) {
        self.place = EmitPlace { input, offset, ordinal: 0 };
    }

    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub(crate) fn check(&mut self) -> Result<(), SsdletError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Hands all rows to the spill.
    ///
    /// # Errors
    /// Those of the spill.
    pub(crate) fn spill(&mut self) -> Result<(), SsdletError> {
        if !self.table.is_empty() {
            self.spill.spill(&self.table)?;
            self.table.clear();
        }
        Ok(())
    }

    /// Hands what is left to the spill, and ends it.
    ///
    /// # Errors
    /// Those of the spill.
    pub(crate) fn finish_spills(mut self) -> Result<(), SsdletError> {
        self.spill()?;
        self.spill.finish()
    }

    /// The table, for the caller that reads its rows.
    pub(crate) fn into_table(self) -> Table {
        self.table
    }

    #[inline]
    pub(super) fn add(&mut self, key: &[u8], number: i64) {
        let number = match self.values {
            ValueType::Numbers => number,
            ValueType::Counts => 1,
            _ => return self.put(key, &number.to_le_bytes()),
        };
        if self.table.add(key, number.cast_unsigned()).is_err() {
            self.again(key.len(), |table| table.add(key, number.cast_unsigned()));
        }
    }

    #[inline]
    pub(super) fn add_span(&mut self, bytes: &[u8], span: Range<usize>, number: i64) {
        let number = match self.values {
            ValueType::Numbers => number,
            ValueType::Counts => 1,
            _ => return self.put(&bytes[span], &number.to_le_bytes()),
        };
        let (start, len) = (span.start, span.len());
        assert!(start <= span.end && span.end <= bytes.len(), "a key within the bytes");
        if self.table.add_within(bytes, start, len, number.cast_unsigned()).is_err() {
            let key = &bytes[span];
            self.again(len, |table| table.add(key, number.cast_unsigned()));
        }
    }

    #[inline]
    pub(super) fn emit(&mut self, key: &[u8], value: &[u8]) {
        match self.values {
            ValueType::Numbers => match value.try_into() {
                Ok(number) => self.add(key, i64::from_le_bytes(number)),
                Err(_) => {
                    let len = value.len();
                    self.fail(format!("it handed out a number of {len} bytes; numbers have 8"));
                }
            },
            ValueType::Counts => self.add(key, 1),
            ValueType::Bytes | ValueType::Placed => self.put(key, value),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let place = self.place.bytes();
        let placed = [&place[..], value];
        let parts = if self.values == ValueType::Placed { &placed[..] } else { &placed[1..] };
        self.place.ordinal += 1;
        if self.table.put(key, parts).is_err() {
            let len = key.len().saturating_add(value.len());
            self.again(len, |table| table.put(key, parts));
        }
    }

    /// The table is full: spills it and tries again.
    #[cold]
    #[inline(never)]
    fn again(&mut self, len: usize, mut put: impl FnMut(&mut Table) -> Result<(), Full>) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.spill() {
            self.failure = Some(error);
        } else if put(&mut self.table).is_err() {
            self.fail(format!("it handed out a row of {len} bytes, for which there is no memory"));
        }
    }

    /// Ordered records came.
    #[cold]
    pub(super) fn misused(&mut self) {
        self.fail("it handed out records in order, but its output is keyed".to_owned());
    }

    #[cold]
    fn fail(&mut self, detail: String) {
        if self.failure.is_none() {
            self.failure = Some(SsdletError::Failed(detail));
        }
    }
}
