//! Random columns of all types, for tests.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, StringDictionaryBuilder};
use arrow_array::types::Int16Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeListArray, ListArray, MapArray, NullArray, StringArray,
    StructArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};
use merganser_random::Random;

use crate::column::width_of;

fn random_nulls(random: &mut Random, nullable: bool, rows: usize) -> Option<NullBuffer> {
    let share = 1 + random.below(5);
    (nullable && !random.one_in(4))
        .then(|| NullBuffer::from((0..rows).map(|_| !random.one_in(share + 1)).collect::<Vec<_>>()))
}

fn random_bytes(random: &mut Random) -> Vec<u8> {
    let len = if random.one_in(50) { 300 } else { random.index(20) };
    let alphabet: &[u8] = if random.one_in(2) { b"ab\0" } else { b"\x00\x01abz~" };
    (0..len).map(|_| alphabet[random.index(alphabet.len())]).collect()
}

/// A column of `rows` values; few of them differ, so that keys are often equal.
pub(crate) fn random_array(
    random: &mut Random,
    data_type: &DataType,
    nullable: bool,
    rows: usize,
) -> ArrayRef {
    let nulls = random_nulls(random, nullable, rows);
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    match data_type {
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            (0..rows)
                .for_each(|row| builder.append_option((!is_null(row)).then(|| random.one_in(2))));
            Arc::new(builder.finish())
        }
        DataType::Utf8 => Arc::new(
            (0..rows)
                .map(|row| {
                    let text = String::from_utf8(random_bytes(random)).expect("ASCII");
                    (!is_null(row)).then_some(text)
                })
                .collect::<StringArray>(),
        ),
        DataType::Binary => Arc::new(
            (0..rows)
                .map(|row| {
                    let bytes = random_bytes(random);
                    (!is_null(row)).then_some(bytes)
                })
                .collect::<BinaryArray>(),
        ),
        DataType::LargeUtf8 | DataType::Utf8View => {
            cast(&random_array(random, &DataType::Utf8, nullable, rows), data_type).expect("cast")
        }
        DataType::LargeBinary | DataType::BinaryView => {
            cast(&random_array(random, &DataType::Binary, nullable, rows), data_type).expect("cast")
        }
        DataType::Dictionary(..) => {
            let mut builder = StringDictionaryBuilder::<Int16Type>::new();
            for row in 0..rows {
                let word = ["", "a", "b\0", "longer than twelve"][random.index(4)];
                builder.append_option((!is_null(row)).then_some(word));
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for row in 0..rows {
                if is_null(row) {
                    builder.append_null();
                } else {
                    let value: Vec<_> = (0..*width).map(|_| random.below(3) as u8).collect();
                    builder.append_value(value).expect("as wide");
                }
            }
            Arc::new(builder.finish())
        }
        DataType::List(item) => {
            let lengths: Vec<_> =
                (0..rows).map(|row| if is_null(row) { 0 } else { random.index(4) }).collect();
            let items = lengths.iter().sum();
            let items = random_array(random, item.data_type(), item.is_nullable(), items);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::new(Arc::clone(item), offsets, items, nulls))
        }
        DataType::FixedSizeList(item, count) => {
            let items = rows * usize::try_from(*count).expect("a count");
            let items = random_array(random, item.data_type(), item.is_nullable(), items);
            Arc::new(FixedSizeListArray::new(Arc::clone(item), *count, items, nulls))
        }
        DataType::Struct(fields) => {
            let columns = fields
                .iter()
                .map(|field| random_array(random, field.data_type(), field.is_nullable(), rows))
                .collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::Map(entries, sorted) => {
            let lengths: Vec<_> =
                (0..rows).map(|row| if is_null(row) { 0 } else { random.index(3) }).collect();
            let pairs = random_array(random, entries.data_type(), false, lengths.iter().sum());
            let pairs = pairs.as_any().downcast_ref::<StructArray>().expect("pairs").clone();
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::new(Arc::clone(entries), offsets, pairs, nulls, *sorted))
        }
        other => {
            let width = width_of(other).expect("numbers");
            let mut bytes = Vec::with_capacity(rows * width);
            for _ in 0..rows {
                bytes.extend_from_slice(&random_number(random, other, width));
            }
            let data = ArrayData::builder(other.clone())
                .len(rows)
                .add_buffer(Buffer::from(bytes))
                .nulls(nulls)
                .align_buffers(true)
                .build();
            make_array(data.expect("numbers"))
        }
    }
}

/// The bytes of a number: small ones, the ends of the range, and special floats.
fn random_number(random: &mut Random, data_type: &DataType, width: usize) -> Vec<u8> {
    let special = random.one_in(3);
    match data_type {
        DataType::Float64 if special => {
            let all = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324];
            all[random.index(7)].to_le_bytes().to_vec()
        }
        DataType::Float32 if special => {
            let all = [0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-45];
            all[random.index(7)].to_le_bytes().to_vec()
        }
        // Within a day, as times are, and with as few digits as decimals have.
        DataType::Time32(_) | DataType::Time64(_) | DataType::Decimal32(..) => {
            let mut bytes = random.below(80_000).to_le_bytes().to_vec();
            bytes.resize(width, 0);
            bytes
        }
        DataType::Date64 => (random.below(50_000) as i64 * 86_400_000).to_le_bytes().to_vec(),
        DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let number = random.below(1 << 50) as i64 - (1 << 49);
            let mut bytes = number.to_le_bytes().to_vec();
            bytes.resize(width, if number < 0 { 0xFF } else { 0 });
            bytes
        }
        _ if special => [0x00, 0xFF, 0x7F, 0x80].map(|byte| {
            let mut bytes = vec![if byte == 0x7F { 0xFF } else { byte & 0x80 }; width];
            bytes[width - 1] = byte;
            bytes
        })[random.index(4)]
        .clone(),
        _ => (0..width).map(|_| random.below(3) as u8).collect(),
    }
}

/// A field with a random type.
pub(crate) fn random_type(random: &mut Random, depth: usize) -> DataType {
    let item = |random: &mut Random| {
        let data_type = random_type(random, depth + 1);
        let nullable = data_type == DataType::Null || random.one_in(2);
        Arc::new(Field::new("item", data_type, nullable))
    };
    let nested = if depth < 2 { 6 } else { 0 };
    match random.index(16 + nested) {
        0 => DataType::Boolean,
        1 => DataType::Int8,
        2 => DataType::Int32,
        3 => DataType::Int64,
        4 => DataType::UInt64,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 => DataType::Utf8,
        8 => DataType::Binary,
        9 => DataType::FixedSizeBinary(7),
        10 => DataType::Date32,
        11 => DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, Some("UTC".into())),
        12 => DataType::Decimal128(20, 3),
        13 => DataType::UInt16,
        14 => DataType::Utf8,
        15 => DataType::Null,
        16 | 17 => DataType::List(item(random)),
        18 => DataType::FixedSizeList(item(random), 1 + random.below(3) as i32),
        19 | 20 => {
            let count = 1 + random.index(3);
            let field = |number: usize, random: &mut Random| {
                let data_type = random_type(random, depth + 1);
                let nullable = data_type == DataType::Null || random.one_in(2);
                Field::new(format!("f{number}"), data_type, nullable)
            };
            DataType::Struct((0..count).map(|number| field(number, random)).collect())
        }
        _ => {
            let pair = vec![
                Field::new("keys", DataType::Utf8, false),
                Field::new("values", random_type(random, depth + 1), true),
            ];
            let entries = Field::new("entries", DataType::Struct(pair.into()), false);
            DataType::Map(Arc::new(entries), false)
        }
    }
}
