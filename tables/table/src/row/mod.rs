//! Rows of values as byte strings: what is written to a disk while a table is sorted, and what a view of a table holds.
//! docs/formats.md has the bytes.
//!
//! ```text
//!   row      ├ bits: which nullable columns are there ┼ value ┼ value ┼ ... ┤     a null has no value
//!   struct   the same, of its fields
//!   number   its bytes, the lowest first            boolean  a byte
//!   string   ├ length, varint ┼ bytes ┤
//!   list     ├ count, varint ┼ bits, if items can be null ┼ item ┼ item ┼ ... ┤
//!   map      a list of structs of key and value
//! ```

mod decode;
mod encode;
pub(crate) mod varint;

pub(crate) use decode::{ColumnBuilder, RowDecoder, damaged_row};
pub(crate) use encode::RowEncoder;

#[cfg(test)]
mod tests;
