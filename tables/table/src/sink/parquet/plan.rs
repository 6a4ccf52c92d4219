//! The types of a result, and how its columns are packed.

use std::sync::Arc;

use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, encode_arrow_schema};
use parquet::basic::Compression;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::{ParquetCompression, ParquetOptions};
use crate::TableError;
use crate::codec::TableLayout;
use crate::key::NullsAt;
use crate::schema::parquet_type;
use crate::sink::batches::WantedColumns;
use crate::source::ParquetOrigin;

/// The types of a result, and how its columns are packed.
pub(super) fn plan(
    layout: &TableLayout,
    wanted: &WantedColumns,
    origin: Option<&ParquetOrigin>,
    options: &ParquetOptions,
) -> Result<(TypePtr, WriterPropertiesPtr), TableError> {
    let own = &wanted.schema;
    let derived = ArrowSchemaConverter::new().convert(own).map_err(TableError::Parquet)?;
    let columns = origin.and_then(|origin| origin.columns.as_ref());
    let root = match columns {
        Some(root) => parquet_type(root, derived.root_schema()),
        None => derived.root_schema_ptr(),
    };
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("merganser ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(options.compression.unwrap_or(ParquetCompression::Snappy).codec());
    let descriptor = SchemaDescriptor::new(Arc::clone(&root));
    for leaf in origin.iter().flat_map(|origin| &origin.leaves) {
        if !descriptor.columns().iter().any(|column| *column.path() == leaf.path) {
            continue;
        }
        let path = || leaf.path.clone();
        properties = properties.set_column_dictionary_enabled(path(), leaf.has_dictionary);
        if options.compression.is_none() {
            properties = properties.set_column_compression(path(), written(leaf.compression));
        }
        if let Some(encoding) = leaf.encoding.filter(|_| !leaf.has_dictionary) {
            properties = properties.set_column_encoding(path(), encoding);
        }
    }
    // Sorting columns are named by the number of their leaf.
    let leaf_of = |index: usize| {
        (0..descriptor.num_columns()).find(|leaf| descriptor.get_column_root_idx(*leaf) == index)
    };
    let sorting = layout.keys[layout.partitions..].iter().map_while(|key| {
        let index = wanted.numbers.iter().position(|number| *number == key.index)?;
        Some(SortingColumn {
            column_idx: i32::try_from(leaf_of(index)?).ok()?,
            descending: key.descending,
            nulls_first: key.nulls == NullsAt::First,
        })
    });
    let sorting: Vec<_> = sorting.collect();
    properties = properties.set_sorting_columns((!sorting.is_empty()).then_some(sorting));
    let mut notes = origin.map_or_else(Vec::new, |origin| origin.notes.clone());
    notes.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(own)));
    properties = properties.set_key_value_metadata(Some(notes));
    Ok((root, Arc::new(properties.build())))
}

/// The packing of an input, where it can be written.
fn written(input: Compression) -> Compression {
    match input {
        // Hadoop's own frame of LZ4, which Parquet gave up.
        Compression::LZ4 => Compression::LZ4_RAW,
        other => other,
    }
}
