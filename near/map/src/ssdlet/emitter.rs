//! The output of a worker, and where it goes.
//!
//! ```text
//!              ┌─ Collect   in memory, for tests
//!   Emitter ───┼─ Keyed     combined in a table of the worker's own, which is spilled when it is full
//!              ├─ Rows      whatever takes keys and values: the output of a map task
//!              └─ Ordered   the bytes of the chunk, which leave when it is the chunk's turn
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use super::keyed::Keyed;

/// Takes what a worker hands out for a chunk.
pub struct Emitter<'a> {
    to: EmitTarget<'a>,
}

enum EmitTarget<'a> {
    Collect(&'a mut CollectedOutput),
    Keyed(&'a mut Keyed),
    Rows(&'a mut dyn RowTaker),
    Ordered(&'a mut Ordered, &'a mut dyn Overflow),
}

/// Everything that was handed out, in memory: for tests of SSDlets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CollectedOutput {
    /// Keys, and the values of each in the order in which they came.
    pub keyed: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Records in order, end to end.
    pub ordered: Vec<u8>,
}

/// The ordered output of one chunk, as much as its buffer holds.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// It is never grown.
    pub(crate) buffer: Vec<u8>,
    /// Keyed records came, which is wrong.
    pub(crate) misused: bool,
}

/// Takes keyed output that is not combined here.
pub trait RowTaker {
    /// A key and its value.
    fn row(&mut self, key: &[u8], value: &[u8]);

    /// The key `bytes[span]` and a number.
    fn number(&mut self, bytes: &[u8], span: Range<usize>, number: i64);

    /// Ordered records came, which is wrong.
    fn misused(&mut self);
}

/// Takes ordered output that its buffer has no room for.
pub(crate) trait Overflow {
    /// Takes `buffer`, which is empty then, and `records` after it.
    fn overflow(&mut self, buffer: &mut Vec<u8>, records: &[u8]);
}

impl<'a> Emitter<'a> {
    /// Collects in memory.
    pub fn collecting(collect: &'a mut CollectedOutput) -> Self {
        Emitter { to: EmitTarget::Collect(collect) }
    }

    /// Combines in memory.
    pub(crate) fn keyed(keyed: &'a mut Keyed) -> Self {
        Emitter { to: EmitTarget::Keyed(keyed) }
    }

    /// Hands keys and values on.
    pub fn rows(rows: &'a mut dyn RowTaker) -> Self {
        Emitter { to: EmitTarget::Rows(rows) }
    }

    /// Keeps records in order.
    pub(crate) fn ordered(ordered: &'a mut Ordered, overflow: &'a mut dyn Overflow) -> Self {
        Emitter { to: EmitTarget::Ordered(ordered, overflow) }
    }

    /// A key and its value: [`super::SsdletOutput::Keyed`] only.
    #[inline]
    pub fn emit(&mut self, key: &[u8], value: &[u8]) {
        match &mut self.to {
            EmitTarget::Keyed(keyed) => keyed.emit(key, value),
            EmitTarget::Rows(rows) => rows.row(key, value),
            EmitTarget::Collect(collect) => {
                collect.keyed.entry(key.to_vec()).or_default().push(value.to_vec());
            }
            EmitTarget::Ordered(ordered, _) => ordered.misused = true,
        }
    }

    /// A key and a number: [`super::SsdletOutput::Keyed`] whose values are [`super::Type::I64`].
    #[inline]
    pub fn add(&mut self, key: &[u8], number: i64) {
        match &mut self.to {
            EmitTarget::Keyed(keyed) => keyed.add(key, number),
            EmitTarget::Rows(rows) => rows.number(key, 0..key.len(), number),
            _ => self.emit(key, &number.to_le_bytes()),
        }
    }

    /// As [`Emitter::add`] for the key `bytes[span]`. It is faster where `bytes` is the chunk and does
    /// not end with the key: a short key is then read at once with the bytes that follow it.
    ///
    /// # Panics
    /// When the span is outside.
    #[inline]
    pub fn add_span(&mut self, bytes: &[u8], span: Range<usize>, number: i64) {
        match &mut self.to {
            EmitTarget::Keyed(keyed) => keyed.add_span(bytes, span, number),
            EmitTarget::Rows(rows) => rows.number(bytes, span, number),
            _ => self.emit(&bytes[span], &number.to_le_bytes()),
        }
    }

    /// Whole records, each with its terminator: [`super::SsdletOutput::Ordered`] only.
    #[inline]
    pub fn records(&mut self, records: &[u8]) {
        match &mut self.to {
            EmitTarget::Ordered(ordered, overflow) => {
                let buffer = &mut ordered.buffer;
                if buffer.capacity() - buffer.len() >= records.len() {
                    buffer.extend_from_slice(records);
                } else {
                    overflow.overflow(buffer, records);
                }
            }
            EmitTarget::Collect(collect) => collect.ordered.extend_from_slice(records),
            EmitTarget::Keyed(keyed) => keyed.misused(),
            EmitTarget::Rows(rows) => rows.misused(),
        }
    }
}
