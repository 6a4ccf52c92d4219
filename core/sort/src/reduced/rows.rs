//! Rows in the order of their keys: merged from several streams, and combined.
//!
//! ```text
//!   stream 0   a 1 · c 4 · d 2 ──┐
//!   stream 1   a 3 · b 1       ──┼─► Merge ──► a 4 · b 1 · c 4 · d 3        (sum)
//!   stream 2   d 1             ──┘
//! ```

use super::{Combine, Combined, ResultError, Type};

/// Rows in the order of their keys; with [`Combine::None`], of their values then.
pub trait RowStream {
    /// The errors of what the rows are read from, and of rows that can't be combined.
    type Error: From<crate::Error>;

    /// Goes to the next row, the first one at first; false after the last.
    ///
    /// # Errors
    /// Those of what the rows are read from.
    fn advance(&mut self) -> Result<bool, Self::Error>;

    /// The key of the row.
    fn key(&self) -> &[u8];

    /// The value of the row.
    fn value(&self) -> &[u8];
}

impl<S: RowStream + ?Sized> RowStream for Box<S> {
    type Error = S::Error;

    fn advance(&mut self) -> Result<bool, Self::Error> {
        (**self).advance()
    }

    fn key(&self) -> &[u8] {
        (**self).key()
    }

    fn value(&self) -> &[u8] {
        (**self).value()
    }
}

/// Streams of rows as one: the results of several workers or nodes.
pub struct RowMerge<S> {
    streams: Vec<StreamHead<S>>,
    combine: Combine,
    key: Vec<u8>,
    combined: Combined,
}

struct StreamHead<S> {
    stream: S,
    /// Whether it is at a row.
    at_row: bool,
    /// Its row was used.
    used: bool,
    /// The first bytes of its key, which nearly always tell the least row.
    prefix: u64,
}

impl<S: RowStream> StreamHead<S> {
    fn advance(&mut self) -> Result<(), S::Error> {
        self.at_row = self.stream.advance()?;
        if self.at_row {
            self.prefix = prefix(self.stream.key());
        }
        Ok(())
    }
}

/// The first eight bytes of `key` as a number, with zeros behind a shorter one: where those of two keys differ, their
/// order is that of the keys.
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(first)
        }
    }
}

impl<S: RowStream> RowMerge<S> {
    /// Merges few streams: each row costs a comparison with each of them. Values are of the type `of`, which
    /// is that of results ([`Combine::result_type`]). With [`Combine::First`], an earlier stream wins.
    pub fn new(streams: Vec<S>, combine: Combine, of: Type) -> Self {
        let head = |stream| StreamHead { stream, at_row: true, used: true, prefix: 0 };
        let streams = streams.into_iter().map(head).collect();
        RowMerge { streams, combine, key: Vec::new(), combined: Combined::new(combine, of) }
    }

    /// The stream with the least row.
    fn least(&self) -> Option<usize> {
        let mut least: Option<usize> = None;
        for (at, head) in self.streams.iter().enumerate().filter(|(_, head)| head.at_row) {
            let is_less = least.is_none_or(|least| {
                let other = &self.streams[least];
                let order = head.prefix.cmp(&other.prefix);
                let order = order.then_with(|| head.stream.key().cmp(other.stream.key()));
                let order = if self.combine == Combine::None {
                    order.then_with(|| head.stream.value().cmp(other.stream.value()))
                } else {
                    order
                };
                order.is_lt()
            });
            if is_less {
                least = Some(at);
            }
        }
        least
    }
}

impl<S: RowStream> RowStream for RowMerge<S> {
    type Error = S::Error;

    fn advance(&mut self) -> Result<bool, Self::Error> {
        for head in &mut self.streams {
            if std::mem::take(&mut head.used) {
                head.advance()?;
            }
        }
        let Some(least) = self.least() else { return Ok(false) };
        let head = &mut self.streams[least];
        self.key.clear();
        self.key.extend_from_slice(head.stream.key());
        self.combined.begin(head.stream.value());
        head.used = true;
        let prefix = head.prefix;
        if self.combine == Combine::None {
            return Ok(true);
        }
        // A stream may have several rows of one key, too.
        for head in &mut self.streams[least..] {
            if std::mem::take(&mut head.used) {
                head.advance()?;
            }
            while head.at_row && head.prefix == prefix && head.stream.key() == self.key {
                self.combined.fold(head.stream.value());
                head.advance()?;
            }
        }
        let finished = self.combined.finish();
        finished.map_err(|_| crate::Error::from(ResultError::overflow(&self.key)))?;
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> &[u8] {
        self.combined.value()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Rows(std::vec::IntoIter<(Vec<u8>, i64)>, (Vec<u8>, [u8; 8]));

    impl RowStream for Rows {
        type Error = crate::Error;

        fn advance(&mut self) -> crate::Result<bool> {
            let next = self.0.next();
            let any = next.is_some();
            if let Some((key, value)) = next {
                self.1 = (key, value.to_le_bytes());
            }
            Ok(any)
        }

        fn key(&self) -> &[u8] {
            &self.1.0
        }

        fn value(&self) -> &[u8] {
            &self.1.1
        }
    }

    proptest! {
        /// Keys that differ behind their first eight bytes, or only in zeros at their end.
        #[test]
        fn streams_are_merged_by_whole_keys(
            streams in prop::collection::vec(
                prop::collection::vec(
                    (prop::collection::vec(prop::sample::select(&[0u8, 1, 0xff][..]), 0..11), -9i64..9),
                    0..20,
                ),
                0..6,
            ),
        ) {
            let mut expected = std::collections::BTreeMap::new();
            for (key, value) in streams.iter().flatten() {
                *expected.entry(key.clone()).or_insert(0) += value;
            }
            let sorted = |mut rows: Vec<(Vec<u8>, i64)>| {
                rows.sort();
                Rows(rows.into_iter(), Default::default())
            };
            let streams = streams.into_iter().map(sorted).collect();
            let mut merged = RowMerge::new(streams, Combine::Sum, Type::I64);
            let mut found = Vec::new();
            while merged.advance().expect("small") {
                let value = i64::from_le_bytes(merged.value().try_into().expect("a number"));
                found.push((merged.key().to_vec(), value));
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
