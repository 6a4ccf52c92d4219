//! The columns of a table that is in several files.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::schema::types::{Type, TypePtr};

use crate::TableError;
use crate::types::{Held, plain_schema, plain_type, unknown_part};

/// The columns of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableSchema {
    /// With the types that the first file has; a column is nullable if it is in any file.
    pub(crate) own: SchemaRef,
    /// How batches are read.
    pub(crate) views: SchemaRef,
    /// How rows become columns again.
    pub(crate) offsets: SchemaRef,
}

impl TableSchema {
    /// # Errors
    /// A type that rows can't hold.
    pub(crate) fn new(own: SchemaRef, file: &Path) -> Result<TableSchema, TableError> {
        for field in own.fields() {
            if let Some(data_type) = unknown_part(field.data_type()) {
                let (file, column) = (file.to_owned(), field.name().clone());
                return Err(TableError::UnknownType { file, column, data_type });
            }
        }
        let (views, offsets) =
            (plain_schema(&own, Held::AsViews), plain_schema(&own, Held::AsOffsets));
        Ok(TableSchema { own, views, offsets })
    }

    /// The same columns, as one more file has them.
    ///
    /// # Errors
    /// Other columns.
    pub(crate) fn with(
        &self,
        other: &Schema,
        (file, first): (&Path, &Path),
    ) -> Result<TableSchema, TableError> {
        let different = |what: String, expected: String| TableError::Different {
            file: file.to_owned(),
            what,
            first: first.to_owned(),
            expected,
        };
        let (own, found) = (self.own.fields(), other.fields());
        if own.len() != found.len() {
            let count = |fields: &Fields| format!("{} columns", fields.len());
            return Err(different(format!("has {}", count(found)), count(own)));
        }
        let mut fields = Vec::with_capacity(own.len());
        for (number, (own, found)) in own.iter().zip(found).enumerate() {
            let (number, named) = (number + 1, |field: &Field| field.name().clone());
            if own.name() != found.name() {
                let what = format!("column {number} is {}", found.name());
                return Err(different(what, named(own)));
            }
            let Some(field) = merged(own, found) else {
                let what = format!("column {} is of type {}", own.name(), found.data_type());
                return Err(different(what, own.data_type().to_string()));
            };
            fields.push(field);
        }
        let own = Schema::new_with_metadata(fields, self.own.metadata().clone());
        TableSchema::new(Arc::new(own), first)
    }

    /// Whether the values of `other`, the columns of a file, fit into `own`, the first columns of these.
    pub(crate) fn has_columns_of(own: &SchemaRef, other: &Schema) -> bool {
        let nowhere = Path::new("");
        let of_files = TableSchema::new(Arc::clone(own), nowhere);
        let both = of_files.and_then(|of_files| of_files.with(other, (nowhere, nowhere)));
        both.is_ok_and(|both| both.own.fields() == own.fields())
    }
}

/// A field that holds the values of both; `None` if their types differ in more than how strings, lists and dictionaries are
/// held, and in where nulls may be.
fn merged(own: &FieldRef, other: &FieldRef) -> Option<FieldRef> {
    let data_type = merged_type(own.data_type(), other.data_type())?;
    let nullable = own.is_nullable() || other.is_nullable();
    Some(Arc::new(Field::clone(own).with_data_type(data_type).with_nullable(nullable)))
}

fn merged_type(own: &DataType, other: &DataType) -> Option<DataType> {
    let plain = plain_type(other, Held::AsOffsets);
    match (own, &plain) {
        (DataType::List(a), DataType::List(b)) => Some(DataType::List(merged(a, b)?)),
        (DataType::LargeList(a), DataType::List(b)) => Some(DataType::LargeList(merged(a, b)?)),
        (DataType::ListView(a), DataType::List(b)) => Some(DataType::ListView(merged(a, b)?)),
        (DataType::LargeListView(a), DataType::List(b)) => {
            Some(DataType::LargeListView(merged(a, b)?))
        }
        (DataType::FixedSizeList(a, count), DataType::FixedSizeList(b, other)) => (count == other)
            .then(|| merged(a, b))?
            .map(|item| DataType::FixedSizeList(item, *count)),
        (DataType::Map(a, sorted), DataType::Map(b, _)) => {
            Some(DataType::Map(merged(a, b)?, *sorted))
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.name() != b.name()) {
                return None;
            }
            let fields = a.iter().zip(b).map(|(a, b)| merged(a, b));
            Some(DataType::Struct(fields.collect::<Option<_>>()?))
        }
        _ => (plain_type(own, Held::AsOffsets) == plain).then(|| own.clone()),
    }
}

/// The columns of a result in Parquet: each as it is in `input`, or else as it is made from its Arrow type.
///
/// Timestamps of 96 bits and decimals in strings are types that Parquet gave up, and its library does not write them.
pub(crate) fn parquet_type(input: &Type, derived: &Type) -> TypePtr {
    let own = |derived: &TypePtr| {
        let same = |input: &&TypePtr| input.name() == derived.name() && is_written(input);
        Arc::clone(input.get_fields().iter().find(same).unwrap_or(derived))
    };
    let fields: Vec<_> = derived.get_fields().iter().map(own).collect();
    let built = Type::group_type_builder(input.name()).with_fields(fields).build();
    Arc::new(built.expect("fields that were in a schema"))
}

fn is_written(field: &Type) -> bool {
    match field {
        Type::GroupType { fields, .. } => fields.iter().all(|field| is_written(field)),
        Type::PrimitiveType { physical_type, basic_info, .. } => match physical_type {
            PhysicalType::INT96 => false,
            PhysicalType::BYTE_ARRAY => {
                !matches!(basic_info.logical_type_ref(), Some(LogicalType::Decimal { .. }))
                    && basic_info.converted_type() != parquet::basic::ConvertedType::DECIMAL
            }
            _ => true,
        },
    }
}
