//! Rows of random columns, and back.

use arrow_array::ArrayRef;
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use merganser_random::Random;

use super::*;
use crate::random_table::{random_array, random_type};
use crate::types::{Held, plain_type};

fn encoded(fields: &[Field], arrays: &[ArrayRef], rows: usize) -> Vec<Vec<u8>> {
    let views: Vec<_> = fields
        .iter()
        .map(|field| {
            let plain = plain_type(field.data_type(), Held::AsViews);
            field.clone().with_data_type(plain)
        })
        .collect();
    let columns: Vec<_> = arrays
        .iter()
        .zip(&views)
        .map(|(array, field)| cast(array, field.data_type()).expect("cast"))
        .collect();
    let mut encoder = RowEncoder::default();
    encoder.encode(rows, columns.iter().zip(&views)).expect("nulls where they may be");
    (0..rows).map(|row| encoder.row(row).to_vec()).collect()
}

fn decoder(fields: &[Field]) -> RowDecoder {
    RowDecoder::new(
        fields
            .iter()
            .map(|field| (plain_type(field.data_type(), Held::AsOffsets), field.is_nullable())),
    )
}

fn random_fields(random: &mut Random) -> Vec<Field> {
    let count = 1 + random.index(12);
    (0..count)
        .map(|number| {
            let data_type = random_type(random, 0);
            let nullable = data_type == DataType::Null || random.one_in(2);
            Field::new(format!("c{number}"), data_type, nullable)
        })
        .collect()
}

#[test]
fn columns_come_back() {
    let mut random = Random::new(31);
    for case in 0..800 {
        let fields = random_fields(&mut random);
        let rows = random.index(60);
        let arrays: Vec<_> = fields
            .iter()
            .map(|field| random_array(&mut random, field.data_type(), field.is_nullable(), rows))
            .collect();
        let found = encoded(&fields, &arrays, rows);
        let found: Vec<_> = found.iter().map(Vec::as_slice).collect();
        let mut decoder = decoder(&fields);
        for _ in 0..2 {
            let decoded = decoder.decode(&found).expect("rows of these columns");
            for (field, (found, expected)) in fields.iter().zip(decoded.iter().zip(&arrays)) {
                let offsets = plain_type(field.data_type(), Held::AsOffsets);
                let expected = cast(expected, &offsets).expect("cast");
                // Bytes under a null may differ; values may not.
                assert_eq!(&**found, &*expected, "case {case}: {field}");
            }
        }
    }
}

/// Rows that are cut, longer, or changed are errors or other values: no decoder panics.
#[test]
fn other_bytes_are_no_rows() {
    let mut random = Random::new(32);
    let mut refused = 0;
    for _ in 0..600 {
        let fields = random_fields(&mut random);
        let arrays: Vec<_> = fields
            .iter()
            .map(|field| random_array(&mut random, field.data_type(), field.is_nullable(), 1))
            .collect();
        let row = encoded(&fields, &arrays, 1).remove(0);
        for _ in 0..20 {
            let mut changed = row.clone();
            match random.index(3) {
                0 if !changed.is_empty() => changed.truncate(random.index(row.len())),
                1 => changed.push(random.below(256) as u8),
                _ if !changed.is_empty() => {
                    let at = random.index(changed.len());
                    changed[at] ^= 1 << random.index(8);
                }
                _ => {}
            }
            refused += u64::from(decoder(&fields).decode(&[&changed]).is_err());
        }
    }
    assert!(refused > 3000, "{refused} were refused");
}
