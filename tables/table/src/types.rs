//! The types of columns while they are rows.
//!
//! ```text
//!   a file's own type          read as          in rows, and written from
//!   strings, bytes: any kind   views            offsets of 32 bits
//!   a dictionary, run ends     its values       its values
//!   lists: any kind            a list           a list
//!   everything else            itself           itself
//! ```
//!
//! A reader has views, because then it copies no strings. The own types come back where Arrow is written; in Parquet they
//! are in the metadata of the file.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

/// How strings and bytes are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// As views of the buffers that they were decoded into.
    AsViews,
    /// One behind the other.
    AsOffsets,
}

/// The plain form of a type.
pub(crate) fn plain_type(own: &DataType, held: Held) -> DataType {
    let field = |field: &FieldRef| plain_field(field, held);
    match own {
        DataType::Dictionary(_, values) => plain_type(values, held),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type(), held),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match held {
            Held::AsViews => DataType::Utf8View,
            Held::AsOffsets => DataType::Utf8,
        },
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => match held {
            Held::AsViews => DataType::BinaryView,
            Held::AsOffsets => DataType::Binary,
        },
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => DataType::List(field(item)),
        DataType::FixedSizeList(item, count) => DataType::FixedSizeList(field(item), *count),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        other => other.clone(),
    }
}

fn plain_field(own: &FieldRef, held: Held) -> FieldRef {
    Arc::new(Field::clone(own).with_data_type(plain_type(own.data_type(), held)))
}

/// The schema with the plain forms of all types.
pub(crate) fn plain_schema(own: &Schema, held: Held) -> SchemaRef {
    let fields: Fields = own.fields().iter().map(|field| plain_field(field, held)).collect();
    Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()))
}

/// The part of a type that rows can't hold, if there is one.
pub(crate) fn unknown_part(own: &DataType) -> Option<DataType> {
    match own {
        DataType::Union(..) => Some(own.clone()),
        DataType::Dictionary(_, values) => unknown_part(values),
        DataType::RunEndEncoded(_, field)
        | DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => unknown_part(field.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| unknown_part(field.data_type())),
        _ => None,
    }
}
