//! Length-prefixed records in bytes that come in pieces.
//!
//! ```text
//!   piece        ├─ record ─┼─ record ─┼─ rec│          lent where they are
//!   next piece                         │─ord ─┼─ ...    only a record that is cut is copied
//! ```

use super::carry::Carry;
use crate::record::Format;
use crate::{Budget, Result};

/// Cuts pieces into records. Its memory is that of the longest record that two pieces share.
pub struct RecordCutter {
    /// A record that is cut, as much of it as came.
    carry: Carry,
    /// It is whole and was lent.
    lent: bool,
}

impl RecordCutter {
    /// A cutter before the first piece, with memory of `budget`.
    ///
    /// # Errors
    /// Too little memory: it holds 64 KiB at least.
    pub fn new(budget: &Budget) -> Result<Self> {
        Ok(RecordCutter { carry: Carry::new(budget)?, lent: false })
    }

    /// The next whole record, which `bytes`, the rest of the piece, loses. `None` at the end of the piece:
    /// the beginning of a record is kept for the next one.
    ///
    /// # Errors
    /// Too little memory for a record that is cut.
    #[inline]
    pub fn next<'a, 'b: 'a>(&'a mut self, bytes: &mut &'b [u8]) -> Result<Option<&'a [u8]>> {
        if std::mem::take(&mut self.lent) {
            self.carry.clear();
        }
        if !self.carry.bytes().is_empty() {
            return self.complete(bytes);
        }
        if let Some(len) = Format::Keyed.record_len(bytes) {
            let (record, rest) = bytes.split_at(len);
            *bytes = rest;
            return Ok(Some(record));
        }
        if !bytes.is_empty() {
            self.carry.make_room(wanted_bytes(bytes))?;
            self.carry.push(std::mem::take(bytes))?;
        }
        Ok(None)
    }

    /// The record that was cut: first its lengths, then as much as they say.
    fn complete(&mut self, bytes: &mut &[u8]) -> Result<Option<&[u8]>> {
        loop {
            let wanted = wanted_bytes(self.carry.bytes());
            self.carry.make_room(wanted)?;
            let n = bytes.len().min(wanted - self.carry.bytes().len());
            let (more, rest) = bytes.split_at(n);
            self.carry.push(more)?;
            *bytes = rest;
            if Format::Keyed.record_len(self.carry.bytes()).is_some() {
                self.lent = true;
                return Ok(Some(self.carry.bytes()));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Whether the pieces so far end inside a record.
    #[must_use]
    pub fn is_inside_a_record(&self) -> bool {
        !self.lent && !self.carry.bytes().is_empty()
    }
}

/// How long the beginning of a record has to be until more is known of it, or it is whole.
fn wanted_bytes(record: &[u8]) -> usize {
    let number = |at: usize| {
        let bytes = record.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    match (number(0), number(4)) {
        (Some(key), Some(value)) => 8 + key + value,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
        let lens = [(key.len() as u32).to_le_bytes(), (value.len() as u32).to_le_bytes()];
        [lens.as_flattened(), key, value].concat()
    }

    /// Pieces of every length, records that are empty, and some longer than several pieces.
    #[test]
    fn every_record_is_lent_once_wherever_pieces_end() {
        let records: Vec<_> = [(0, 0), (1, 0), (0, 8), (30, 3), (0, 0), (5, 70), (1, 1)]
            .map(|(key, value)| record(&vec![b'k'; key], &vec![b'v'; value]))
            .into();
        let all = records.concat();
        for len in 1..=all.len() {
            let budget = Budget::new(1 << 20);
            let mut cutter = RecordCutter::new(&budget).expect("fits");
            let mut found = Vec::new();
            for mut piece in all.chunks(len) {
                while let Some(record) = cutter.next(&mut piece).expect("fits") {
                    found.push(record.to_vec());
                }
                assert!(piece.is_empty());
            }
            assert_eq!(found, records, "pieces of {len}");
            assert!(!cutter.is_inside_a_record());
        }
        let mut cutter = RecordCutter::new(&Budget::new(1 << 20)).expect("fits");
        let mut cut = &all[..all.len() - 1];
        while cutter.next(&mut cut).expect("fits").is_some() {}
        assert!(cutter.is_inside_a_record());
    }

    /// A piece of whole records is not copied, and a long record takes its length and no more.
    #[test]
    fn only_a_record_that_is_cut_takes_memory() {
        let budget = Budget::new(3 << 20);
        let mut cutter = RecordCutter::new(&budget).expect("fits");
        let many = record(b"key", b"value").repeat(1 << 20);
        let mut piece = &many[..];
        while cutter.next(&mut piece).expect("fits").is_some() {}
        assert_eq!(budget.peak_bytes(), 64 << 10);
        let long = record(b"key", &vec![b'v'; 2 << 20]);
        for mut piece in long.chunks(100_000) {
            while cutter.next(&mut piece).expect("fits").is_some() {}
        }
        assert_eq!(budget.peak_bytes(), (64 << 10) + long.len() as u64);
        let longer = record(b"key", &vec![b'v'; 3 << 20]);
        let (mut head, mut more) = longer[..200].split_at(100);
        let refused = match cutter.next(&mut head) {
            Ok(_) => cutter.next(&mut more).map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(refused, Err(crate::Error::Memory { .. })));
    }
}
