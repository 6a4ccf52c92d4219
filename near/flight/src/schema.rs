//! The columns of a stream.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use merganser_map::ssdlet::{SsdletDescription, SsdletOutput, Type};

use crate::wire::{TextAs, to_json};

/// The name of the description of an SSDlet in the metadata of a schema.
pub(crate) const DESCRIPTION: &str = "merganser.description";

/// The type of a column of `of`.
pub(crate) fn data_type(of: Type, text: TextAs) -> DataType {
    match (of, text) {
        (Type::Text | Type::Decimal, TextAs::Utf8) => DataType::Utf8,
        (Type::Text | Type::Decimal, TextAs::Binary) | (Type::Bytes, _) => DataType::Binary,
        (Type::I64, _) => DataType::Int64,
        (Type::F64, _) => DataType::Float64,
    }
}

/// The schema of the rows of an SSDlet: `key` and `value`, or `record`.
pub(crate) fn of_results(description: &SsdletDescription, text: TextAs) -> SchemaRef {
    let fields = match &description.output {
        SsdletOutput::Keyed { key, value, combine } => {
            let value = combine.result_type(*value);
            vec![
                Field::new("key", data_type(*key, text), false),
                Field::new("value", data_type(value, text), false),
            ]
        }
        SsdletOutput::Ordered { .. } => vec![Field::new("record", DataType::Binary, false)],
    };
    let told = String::from_utf8(to_json(description)).expect("JSON is UTF-8");
    Arc::new(Schema::new_with_metadata(fields, HashMap::from([(DESCRIPTION.to_owned(), told)])))
}

/// The schema of a view: `record`, with whole records unless bytes were asked for.
pub(crate) fn of_view() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("record", DataType::Binary, false)]))
}
