//! Whether records are sorted, how many there are, and a checksum that does not depend on order.
//!
//! ```text
//!   bytes ──► Verifier::feed ──► Verifier::finish ──► Summary
//!             frame │ CRC32 │ compare with the record before
//! ```
//!
//! A [`Verifier`] takes bytes in pieces of any size and keeps one record of them. [`stream()`] feeds
//! one from a reader on a thread of its own, so that reading and checking overlap.
//!
//! The checksum is that of the Sort Benchmark: the sum of the CRC32 (IEEE) of every record. Records
//! may change places without changing it, but no record can be lost, doubled or altered. It covers
//! whole records with their terminators, including the one that a last line may lack, so input and
//! sorted output agree. A CSV header is not a record.

mod stream;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::access::{KeyAccess, with_access};
use crate::error::stray_quote;
use crate::key::Order;
use crate::record::{Framing, InputRecords, Tail};
use crate::{Error, Result};

pub use stream::stream;

/// The findings of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many records there are.
    pub records: u64,
    /// How many bytes they have, terminators and a header included.
    pub bytes: u64,
    /// How many lines the header has, where lines have one by its prefix. They are no records.
    pub header_lines: u64,
    /// How many records have the key of the record before them.
    pub duplicates: u64,
    /// The sum of the CRC32 of all records.
    pub checksum: u128,
    /// How many records should stand before the record before them, or, where keys are to be
    /// unique, have its key.
    pub disorders: u64,
    /// The first of them.
    pub first_disorder: Option<Disorder>,
}

/// A record that is smaller than the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disorder {
    /// Its number, from 0; a CSV header is not counted.
    pub record: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its first bytes, at most [`Disorder::TEXT_BYTES_MAX`], without the terminator of a line; of a
    /// sequence its header line.
    pub text: Vec<u8>,
}

impl Disorder {
    /// How much of a record is kept to show.
    pub const TEXT_BYTES_MAX: usize = 4096;
}

/// The limits of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest record that is kept in memory, in bytes.
    pub record_bytes_max: usize,
    /// Whether nothing matters after the first disorder.
    pub stop_at_disorder: bool,
}

/// Checks a stream of records that comes in pieces.
///
/// ```
/// use merganser_sort::key::{DirectKey, Order, Place};
/// use merganser_sort::record::Format;
/// use merganser_sort::verify::{Limits, Verifier};
///
/// let format = Format::Lines { delimiter: b'\n' };
/// let order = Order::by_bytes(format, DirectKey { place: Place::Line, descending: false });
/// let limits = Limits { record_bytes_max: 1 << 20, stop_at_disorder: false };
/// let mut verifier = Verifier::new("fruit", &order, limits);
/// verifier.feed(b"apple\nche")?;
/// verifier.feed(b"rry\nbanana")?;
/// let found = verifier.finish()?;
/// assert_eq!((found.records, found.disorders), (3, 1));
/// assert_eq!(found.first_disorder.expect("one").offset, 13);
/// # Ok::<(), merganser_sort::Error>(())
/// ```
pub struct Verifier<'a> {
    name: &'a str,
    order: &'a Order,
    limits: Limits,
    records: InputRecords,
    found: Summary,
    /// The last whole record.
    last: Vec<u8>,
    /// The bytes behind it: the beginning of the next record.
    carry: Vec<u8>,
}

impl<'a> Verifier<'a> {
    /// A verifier of `name`, for error messages.
    #[must_use]
    pub fn new(name: &'a str, order: &'a Order, limits: Limits) -> Self {
        Verifier {
            name,
            order,
            limits,
            records: InputRecords::of_input(order.format()),
            found: Summary {
                records: 0,
                bytes: 0,
                header_lines: 0,
                duplicates: 0,
                checksum: 0,
                disorders: 0,
                first_disorder: None,
            },
            last: Vec::new(),
            carry: Vec::new(),
        }
    }

    /// Continues behind a header with these counts of bytes and lines, which is not fed. Called before the first feed.
    pub fn pass_header(&mut self, bytes: u64, lines: u64) {
        self.found.bytes += bytes;
        self.found.header_lines += lines;
    }

    /// The findings so far, without records that have not ended.
    #[must_use]
    pub fn found(&self) -> &Summary {
        &self.found
    }

    /// Whether nothing that follows matters: see [`Limits::stop_at_disorder`].
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.limits.stop_at_disorder && self.found.disorders > 0
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// [`Error::RecordTooLong`] when a record is longer than [`Limits::record_bytes_max`],
    /// [`Error::Input`] at bytes that no record has.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<()> {
        if self.stopped() {
            return Ok(());
        }
        if self.records.is_preamble_due() {
            return self.pass_preamble(bytes);
        }
        if self.found.records == 0 && self.carry.is_empty() {
            let blanks = self.order.format().leading_blanks(bytes);
            self.found.bytes += blanks as u64;
            bytes = &bytes[blanks..];
        }
        if !self.carry.is_empty() {
            bytes = self.complete_carry(bytes)?;
        }
        if self.carry.is_empty() {
            let done = self.check(bytes, false)?;
            bytes = &bytes[done..];
        }
        self.keep(bytes)
    }

    /// Checks the rest, which ends here.
    ///
    /// # Errors
    /// [`Error::Input`] when the last record is damaged.
    pub fn finish(mut self) -> Result<Summary> {
        if !self.carry.is_empty() && !self.stopped() {
            match self.records.tail(&self.carry) {
                Tail::Complete(terminator) => {
                    self.carry.extend_from_slice(terminator);
                    if self.records.is_preamble_due() {
                        self.pass_preamble(&[])?;
                    } else {
                        self.check_last()?;
                    }
                }
                Tail::Whole => self.check_last()?,
                Tail::Damaged(how) => return Err(self.input_error(how.to_owned())),
            }
        }
        if let Some(error) = self.order.unseen_column().filter(|_| self.found.records > 0) {
            return Err(error.into());
        }
        Ok(self.found)
    }

    /// Takes the bytes before the first record off, once they have ended, and checks the rest.
    fn pass_preamble(&mut self, bytes: &[u8]) -> Result<()> {
        self.keep(bytes)?;
        let len = self.records.preamble_len(&self.carry);
        let Some(len) = len.map_err(|quote| stray_quote(self.name, 0, quote))? else {
            return Ok(());
        };
        self.found.bytes = len as u64;
        let beginning = std::mem::take(&mut self.carry);
        self.feed(&beginning[len..])
    }

    /// Adds bytes to the carry until its record ends, and checks that record. Returns the bytes
    /// behind it.
    ///
    /// The carry grows by doubling steps, so framing it again each time costs no more than twice
    /// its length in all.
    fn complete_carry<'b>(&mut self, mut bytes: &'b [u8]) -> Result<&'b [u8]> {
        while !bytes.is_empty() {
            let had = self.carry.len();
            let step = had.max(4096).min(bytes.len());
            self.keep(&bytes[..step])?;
            if let Some(len) = self.order.format().record_len(&self.carry) {
                let mut record = std::mem::take(&mut self.carry);
                self.check(&record[..len], true)?;
                record.clear();
                self.carry = record;
                return Ok(&bytes[len - had..]);
            }
            bytes = &bytes[step..];
        }
        Ok(bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        self.carry.extend_from_slice(bytes);
        if let Some(fault) = self.order.format().fault(&self.carry) {
            return Err(Error::Input {
                file: self.name.to_owned(),
                offset: self.found.bytes + fault.at,
                detail: fault.detail.to_owned(),
            });
        }
        if self.carry.len() > self.limits.record_bytes_max {
            let most = self.limits.record_bytes_max;
            return Err(Error::RecordTooLong {
                file: self.name.to_owned(),
                offset: self.found.bytes,
                most_bytes: most as u64,
                factor: None,
            });
        }
        Ok(())
    }

    /// Checks the carry, which is the last record.
    fn check_last(&mut self) -> Result<()> {
        let record = std::mem::take(&mut self.carry);
        let done = self.check(&record, true)?;
        assert!(done == record.len(), "the input ends with this record");
        Ok(())
    }

    /// Checks all records that end within `bytes`, where `whole` means that the last one ends with them.
    /// Returns how many bytes they have.
    fn check(&mut self, bytes: &[u8], whole: bool) -> Result<usize> {
        let (order, place) = (self.order, self.found.bytes);
        let done =
            with_access!(order, framing, access => self.check_with(framing, access, bytes, whole));
        let told = self.records.records(&bytes[..done]);
        told.map_err(|quote| stray_quote(self.name, place, quote))?;
        Ok(done)
    }

    fn check_with<A: KeyAccess>(
        &mut self,
        framing: impl Framing,
        access: A,
        bytes: &[u8],
        whole: bool,
    ) -> usize {
        let mut at = 0;
        let base = self.found.bytes;
        let last = std::mem::take(&mut self.last);
        let mut previous = (self.found.records > 0).then_some(&last[..]);
        let (mut previous_key, mut key) = (A::Kept::default(), A::Kept::default());
        if let Some(previous) = previous {
            access.load(previous, &mut previous_key);
        }
        let mut checksum = 0;
        while !self.stopped()
            && let Some(len) = framing.len_in(&bytes[at..], whole)
        {
            let record = &bytes[at..at + len];
            checksum += u128::from(crc32fast::hash(record));
            access.load(record, &mut key);
            if let Some(previous) = previous {
                let (before, now) = ((previous, &previous_key), (record, &key));
                match access.compare(before, now) {
                    Ordering::Less => {
                        // The last resort may tell records apart whose keys are equal.
                        let resorts = self.order.last_resort().is_some();
                        if resorts && access.compare_keys(before, now).is_eq() {
                            self.found.duplicates += 1;
                        }
                    }
                    Ordering::Equal => {
                        self.found.duplicates += 1;
                        if self.order.unique() {
                            self.disorder(record, base + at as u64);
                        }
                    }
                    Ordering::Greater => {
                        if access.compare_keys(before, now).is_eq() {
                            self.found.duplicates += 1;
                        }
                        self.disorder(record, base + at as u64);
                    }
                }
            }
            previous = Some(record);
            std::mem::swap(&mut previous_key, &mut key);
            self.found.records += 1;
            at += len;
        }
        self.found.checksum += checksum;
        self.found.bytes = base + at as u64;
        self.last = match previous {
            // The same record still.
            None => last,
            Some(record) if std::ptr::eq(record, &*last) => last,
            Some(record) => record.to_vec(),
        };
        at
    }

    #[cold]
    fn disorder(&mut self, record: &[u8], offset: u64) {
        self.found.disorders += 1;
        if self.found.first_disorder.is_none() {
            let text = self.order.format().shown(record);
            let text = text[..text.len().min(Disorder::TEXT_BYTES_MAX)].to_vec();
            let record = self.found.records;
            self.found.first_disorder = Some(Disorder { record, offset, text });
        }
    }

    fn input_error(&self, detail: String) -> Error {
        Error::Input { file: self.name.to_owned(), offset: self.found.bytes, detail }
    }
}
