//! What a worker hands out.

use std::collections::BTreeMap;

/// Takes what a worker hands out for a chunk.
pub struct Emitter<'a> {
    to: To<'a>,
}

enum To<'a> {
    Collect(&'a mut Collect),
}

/// Everything that was handed out, in memory: for tests of SSDlets.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Collect {
    /// Keys, and the values of each in the order in which they came.
    pub keyed: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Records in order, end to end.
    pub ordered: Vec<u8>,
}

impl<'a> Emitter<'a> {
    /// Collects in memory.
    pub fn collecting(collect: &'a mut Collect) -> Self {
        Emitter { to: To::Collect(collect) }
    }

    /// A key and its value: [`super::Output::Keyed`] only.
    #[inline]
    pub fn emit(&mut self, key: &[u8], value: &[u8]) {
        match &mut self.to {
            To::Collect(collect) => {
                collect.keyed.entry(key.to_vec()).or_default().push(value.to_vec());
            }
        }
    }

    /// A key and a number: [`super::Output::Keyed`] whose values are [`super::Type::I64`].
    #[inline]
    pub fn add(&mut self, key: &[u8], number: i64) {
        self.emit(key, &number.to_le_bytes());
    }

    /// Whole records, each with its terminator: [`super::Output::Ordered`] only.
    #[inline]
    pub fn records(&mut self, records: &[u8]) {
        match &mut self.to {
            To::Collect(collect) => collect.ordered.extend_from_slice(records),
        }
    }
}
