//! Keys against Arrow's own comparison of values, and back.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SortOptions, TimeUnit};
use merganser_random::Random;

use super::*;
use crate::random_table::random_array;
use crate::types::{Held, plain_type};

fn ordered_types() -> Vec<DataType> {
    vec![
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Binary,
        DataType::BinaryView,
        DataType::FixedSizeBinary(5),
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Duration(TimeUnit::Millisecond),
        DataType::Decimal32(9, 2),
        DataType::Decimal64(18, 4),
        DataType::Decimal128(38, 10),
        DataType::Decimal256(76, 20),
        DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8)),
    ]
}

/// Zeros without a sign, and one NaN: the values that our keys tell apart.
fn one_of_equals(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float16 => one_of_equals(&cast(array, &DataType::Float32).expect("wider")),
        DataType::Float32 => {
            let values = array.as_any().downcast_ref::<Float32Array>().expect("floats");
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(values.iter().map(|value| value.map(one)).collect::<Float32Array>())
        }
        DataType::Float64 => {
            let values = array.as_any().downcast_ref::<Float64Array>().expect("floats");
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(values.iter().map(|value| value.map(one)).collect::<Float64Array>())
        }
        _ => Arc::clone(array),
    }
}

fn key_of(columns: &[(DataType, bool)], how: &[(bool, NullsAt)]) -> Vec<KeyColumn> {
    let name = |number: usize| format!("c{number}");
    let fields = columns.iter().enumerate();
    let fields: Vec<_> = fields
        .map(|(number, (data_type, nullable))| {
            Field::new(name(number), data_type.clone(), *nullable)
        })
        .collect();
    let keys: Vec<_> = how
        .iter()
        .enumerate()
        .map(|(number, (descending, nulls))| TableKey {
            column: name(number),
            descending: *descending,
            nulls: *nulls,
            numeric: false,
        })
        .collect();
    find_keys(&keys, &Schema::new(fields), |_| true, Path::new("t")).expect("ordered types")
}

/// One to three columns of all types: keys are in the order of the values, and the values come back.
#[test]
fn keys_are_in_the_order_of_values() {
    let mut random = Random::new(21);
    let types = ordered_types();
    for case in 0..600 {
        let count = 1 + random.index(3);
        let columns: Vec<_> = (0..count)
            .map(|_| (types[random.index(types.len())].clone(), random.one_in(2)))
            .collect();
        let how: Vec<_> = (0..count)
            .map(|_| {
                let nulls = if random.one_in(2) { NullsAt::First } else { NullsAt::Last };
                (random.one_in(2), nulls)
            })
            .collect();
        let rows = 1 + random.index(40);
        let arrays: Vec<ArrayRef> = columns
            .iter()
            .map(|(data_type, nullable)| random_array(&mut random, data_type, *nullable, rows))
            .collect();
        let views: Vec<_> = arrays
            .iter()
            .map(|array| cast(array, &plain_type(array.data_type(), Held::AsViews)).expect("cast"))
            .collect();
        let keys = key_of(&columns, &how);
        let mut encoder = KeyEncoder::new(&keys);
        encoder.encode(rows, &views).expect("nulls where they may be");
        let comparators: Vec<_> = views
            .iter()
            .zip(&how)
            .map(|(array, (descending, nulls))| {
                let array = one_of_equals(array);
                let nulls_first = *nulls == NullsAt::First;
                let options = SortOptions { descending: *descending, nulls_first };
                make_comparator(&array, &array, options).expect("comparable")
            })
            .collect();
        for a in 0..rows {
            for b in 0..rows {
                let expected = comparators
                    .iter()
                    .map(|compare| compare(a, b))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal);
                let found = encoder.key(a).cmp(encoder.key(b));
                assert_eq!(found, expected, "case {case}: {columns:?} {how:?}, rows {a} and {b}");
            }
        }
        let found: Vec<_> = (0..rows).map(|row| encoder.key(row)).collect();
        let mut decoder = KeyDecoder::new(&keys);
        for (index, array) in decoder.decode(&found).expect("keys of these columns") {
            let offsets = plain_type(&columns[index].0, Held::AsOffsets);
            let expected = cast(&arrays[index], &offsets).expect("cast");
            assert_eq!(array.to_data(), expected.to_data(), "case {case}: {:?}", columns[index]);
        }
    }
}

/// No bytes make the decoder panic, and every cut of a key is an error or another value.
#[test]
fn other_bytes_are_no_keys() {
    let mut random = Random::new(22);
    let types = ordered_types();
    for _ in 0..3000 {
        let columns = [
            (types[random.index(types.len())].clone(), random.one_in(2)),
            (types[random.index(types.len())].clone(), random.one_in(2)),
        ];
        let keys = key_of(&columns, &[(random.one_in(2), NullsAt::Last), (false, NullsAt::First)]);
        let len = random.index(40);
        let bytes: Vec<_> = (0..len).map(|_| [0, 1, 2, 0xFF, 0x41][random.index(5)]).collect();
        let _ = KeyDecoder::new(&keys).decode(&[&bytes]);
    }
}

#[test]
fn golden_bytes() {
    let columns = [
        (DataType::Utf8, true),
        (DataType::Int32, false),
        (DataType::Float64, false),
        (DataType::Utf8, false),
    ];
    let how = [
        (false, NullsAt::First),
        (true, NullsAt::First),
        (false, NullsAt::Last),
        (false, NullsAt::First),
    ];
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(arrow_array::StringViewArray::from(vec![Some("a\0b"), None])),
        Arc::new(arrow_array::Int32Array::from(vec![1, -1])),
        Arc::new(Float64Array::from(vec![-0.0, 1.5])),
        Arc::new(arrow_array::StringViewArray::from(vec!["end", ""])),
    ];
    let mut encoder = KeyEncoder::new(&key_of(&columns, &how));
    encoder.encode(2, &arrays).expect("encodes");
    let dump = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        dump(encoder.key(0)),
        ["01", "6100ff62", "0000", "7ffffffe", "8000000000000000", "656e64"].concat()
    );
    assert_eq!(dump(encoder.key(1)), ["00", "80000000", "bff8000000000000"].concat());
}

#[test]
fn typed_keys() {
    let key = |typed: &str| typed.parse::<TableKey>();
    let parsed = key("a:b:r:last").expect("a key");
    assert_eq!(parsed.column, "a:b");
    assert!(parsed.descending && parsed.nulls == NullsAt::Last && !parsed.numeric);
    assert!(key("q:nr").expect("a key").numeric);
    assert!(key(":r").is_err() && key("").is_err());
}

#[test]
fn columns_without_an_order_are_refused() {
    let schema = Schema::new(vec![
        Field::new(
            "list",
            DataType::List(Arc::new(Field::new("item", DataType::Int32, true))),
            true,
        ),
        Field::new("span", DataType::Interval(IntervalUnit::DayTime), true),
        Field::new("text", DataType::Utf8, true),
    ]);
    let refusal = |typed: &[&str]| {
        let keys: Vec<_> = typed.iter().map(|typed| typed.parse().expect("a key")).collect();
        let found = find_keys(&keys, &schema, |_| true, Path::new("t.parquet"));
        found.expect_err("refused").to_string()
    };
    assert_eq!(refusal(&["none"]), "t.parquet: has no column none; it has list, span, text");
    assert_eq!(
        refusal(&["span"]),
        "t.parquet: column span is of type Interval(DayTime), which has no order"
    );
    assert!(refusal(&["list"]).contains("which has no order"));
    assert_eq!(
        refusal(&["text:n"]),
        "t.parquet: column text is of type Utf8, which are not numbers"
    );
    assert_eq!(refusal(&["text", "text:r"]), "t.parquet: column text is twice a key");
}
