//! The output of an SSDlet in the device's memory: keys with combined values, or records in order.
//!
//! ```text
//!   a chunk's output ──► keys in order, values combined ──► a sorted run: {key length u32, value length u32, key, value}*
//!                    └─► records, end to end
//! ```

use std::collections::BTreeMap;

use merganser_map::ssdlet::{CollectedOutput, Combine, SsdletOutput};

/// Bytes of a key in the table in addition to its key and value.
const ENTRY_BYTES: u64 = 64;
/// The same for another value of a key whose values are all kept.
const VALUE_BYTES: u64 = 24;

/// The state of a key.
#[derive(Debug)]
enum KeyedValues {
    One(Vec<u8>),
    All(Vec<Vec<u8>>),
}

/// The output so far.
#[derive(Debug)]
pub(super) struct OutputTable {
    output: SsdletOutput,
    keyed: BTreeMap<Vec<u8>, KeyedValues>,
    ordered: Vec<u8>,
    bytes: u64,
}

impl OutputTable {
    pub(super) fn new(output: SsdletOutput) -> Self {
        OutputTable { output, keyed: BTreeMap::new(), ordered: Vec::new(), bytes: 0 }
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes + self.ordered.len() as u64
    }

    /// Adds what a worker handed out, and empties it.
    ///
    /// # Errors
    /// Values that can't be combined.
    pub(super) fn add(&mut self, out: &mut CollectedOutput) -> Result<(), String> {
        self.ordered.append(&mut out.ordered);
        let SsdletOutput::Keyed { value: of, combine, .. } = self.output else { return Ok(()) };
        for (key, values) in std::mem::take(&mut out.keyed) {
            let mut values = values.into_iter().map(|value| match combine {
                Combine::Count => 1_i64.to_le_bytes().to_vec(),
                _ => value,
            });
            if combine == Combine::None {
                let new = !self.keyed.contains_key(&key);
                self.bytes += if new { key.len() as u64 + ENTRY_BYTES } else { 0 };
                let kept = self.keyed.entry(key).or_insert_with(|| KeyedValues::All(Vec::new()));
                let KeyedValues::All(all) = kept else { unreachable!("all values are kept") };
                for value in values {
                    self.bytes += value.len() as u64 + VALUE_BYTES;
                    all.push(value);
                }
                continue;
            }
            if !self.keyed.contains_key(&key) {
                let Some(first) = values.next() else { continue };
                self.bytes += (key.len() + first.len()) as u64 + ENTRY_BYTES;
                self.keyed.insert(key.clone(), KeyedValues::One(first));
            }
            let Some(KeyedValues::One(kept)) = self.keyed.get_mut(&key) else {
                unreachable!("one value is kept")
            };
            let before = kept.len() as u64;
            for value in values {
                combine.fold(of, kept, &value).map_err(|e| {
                    format!("the values of the key {}: {e}", String::from_utf8_lossy(&key))
                })?;
            }
            self.bytes = self.bytes + kept.len() as u64 - before;
        }
        Ok(())
    }

    /// Removes everything: a run that is sorted by key, and by value where all values are kept; or
    /// the records.
    pub(super) fn take_run(&mut self) -> Vec<u8> {
        self.bytes = 0;
        let mut run = std::mem::take(&mut self.ordered);
        while let Some((key, kept)) = self.keyed.pop_first() {
            let mut row = |value: &[u8]| {
                run.extend((key.len() as u32).to_le_bytes());
                run.extend((value.len() as u32).to_le_bytes());
                run.extend_from_slice(&key);
                run.extend_from_slice(value);
            };
            match kept {
                KeyedValues::One(value) => row(&value),
                KeyedValues::All(mut values) => {
                    values.sort_unstable();
                    values.iter().for_each(|value| row(value));
                }
            }
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_map::ssdlet::{Emitter, Type};

    fn table(value: Type, combine: Combine) -> OutputTable {
        OutputTable::new(SsdletOutput::Keyed { key: Type::Text, value, combine })
    }

    fn add(table: &mut OutputTable, rows: &[(&str, &[u8])]) -> Result<(), String> {
        let mut out = CollectedOutput::default();
        for (key, value) in rows {
            Emitter::collecting(&mut out).emit(key.as_bytes(), value);
        }
        table.add(&mut out)
    }

    fn rows(mut run: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut rows = Vec::new();
        while !run.is_empty() {
            let len = |at: usize| u32::from_le_bytes(run[at..at + 4].try_into().expect("four"));
            let (key, value) = (len(0) as usize, len(4) as usize);
            let text = String::from_utf8(run[8..8 + key].to_vec()).expect("text");
            rows.push((text, run[8 + key..8 + key + value].to_vec()));
            run = &run[8 + key + value..];
        }
        rows
    }

    #[test]
    fn each_way_to_combine() {
        let number = |n: i64| n.to_le_bytes();
        let of = |value, combine| {
            let mut table = table(value, combine);
            add(&mut table, &[("b", &number(5)), ("a", &number(7)), ("b", &number(-1))])
                .expect("small");
            add(&mut table, &[("b", &number(9))]).expect("small");
            assert!(table.memory_bytes() > 100);
            let run = rows(&table.take_run());
            assert_eq!(table.memory_bytes(), 0);
            let text = |(key, value): (String, Vec<u8>)| {
                (key, i64::from_le_bytes(value.try_into().expect("a number")))
            };
            run.into_iter().map(text).collect::<Vec<_>>()
        };
        let expected = |a, b| [("a".to_owned(), a), ("b".to_owned(), b)];
        assert_eq!(of(Type::I64, Combine::Sum), expected(7, 13));
        assert_eq!(of(Type::I64, Combine::Min), expected(7, -1));
        assert_eq!(of(Type::I64, Combine::Max), expected(7, 9));
        assert_eq!(of(Type::I64, Combine::First), expected(7, 5));
        assert_eq!(of(Type::Text, Combine::Count), expected(1, 3));
        let all = of(Type::I64, Combine::None);
        // In byte order, which is not that of numbers.
        let [a, b] = [("a".to_owned(), 7), ("b".to_owned(), 5)];
        assert_eq!(all, [a, b, ("b".to_owned(), 9), ("b".to_owned(), -1)]);
    }

    #[test]
    fn an_overflow_names_the_key() {
        let mut table = table(Type::I64, Combine::Sum);
        let most = i64::MAX.to_le_bytes();
        let said = add(&mut table, &[("k", &most), ("k", &most)]).expect_err("too large");
        assert!(said.starts_with("the values of the key k: a sum is larger"), "{said}");
    }
}
