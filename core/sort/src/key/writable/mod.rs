//! Keys of Hadoop's Writable types, as they are serialized.
//!
//! A [`WritableOrder`] is described by the fields of the key in order, separated by commas, each
//! `TYPE` or `TYPE:desc`:
//!
//! | type | serialized as | order of |
//! |---|---|---|
//! | `text` | VInt length, bytes | `Text`: bytes, unsigned |
//! | `bytes` | 4-byte length, bytes | `BytesWritable`: bytes, unsigned |
//! | `int`, `long` | 4, 8 bytes | `IntWritable`, `LongWritable` |
//! | `vint`, `vlong` | 1 to 5, 1 to 9 bytes | `VIntWritable`, `VLongWritable` |
//! | `null` | nothing | `NullWritable`: all are equal |
//! | `boolean` | 1 byte | `BooleanWritable`: bytes, unsigned |
//! | `float`, `double` | 4, 8 bytes IEEE 754 | `FloatWritable`, `DoubleWritable` |
//! | `fixed:N` | N bytes | bytes, unsigned |
//! | `raw` | all that is left of the key | bytes, unsigned, then the shorter first |
//!
//! All numbers are big-endian. The orders are those of the comparators in hadoop-common 3.4.2. Floats
//! follow `Float.compare`: -0.0 before 0.0, all NaNs equal to one another and after infinity. A key of
//! one field is compared as its comparator does it, which skips the length of a text whatever it says
//! and compares the rest of the key; in a key of several fields each ends where its length says, and
//! a length that can't be is an error.
//!
//! A key of one field is never copied: it is a slice of its record, or a number of 64 bits that sorts
//! as the key does. Several fields are encoded into one byte string that sorts as they do (see
//! [`crate::key`]).

mod order;
mod reader;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use order::{KeyFault, WritableOrder, WritableOrderError};
pub(crate) use reader::{EncodedReader, KeyReader, SliceReader, WordReader};

impl WritableOrder {
    /// How a key of one field of bytes is read.
    pub(crate) fn slice_reader(&self) -> Option<SliceReader> {
        self.only().filter(|field| !field.is_word()).map(SliceReader::new)
    }

    /// How a key of one number is read.
    pub(crate) fn word_reader(&self) -> Option<WordReader> {
        self.only().filter(|field| field.is_word()).map(WordReader::new)
    }

    /// Compares two keys; `Equal` means that the order of their segments decides.
    ///
    /// # Errors
    /// When one of them is no key of this order.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Result<Ordering, KeyFault> {
        if let Some(reader) = self.slice_reader() {
            reader::compare(reader, a, b)
        } else if let Some(reader) = self.word_reader() {
            reader::compare(reader, a, b)
        } else {
            reader::compare(EncodedReader(self), a, b)
        }
    }
}
