//! The folders of partitions, as Hive names them: `country=FR/year=2024`.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::TableError;
use crate::hive::folder_name;
use crate::key::{KeyColumn, KeyDecoder};

/// Names the folders of partitions by the beginnings of keys.
pub(super) struct PartitionNames {
    columns: Vec<KeyColumn>,
    decoder: KeyDecoder,
}

impl PartitionNames {
    /// For keys that begin with these columns.
    pub(super) fn new(columns: &[KeyColumn]) -> PartitionNames {
        PartitionNames { columns: columns.to_vec(), decoder: KeyDecoder::new(columns) }
    }

    /// The folders of the partition whose keys begin with `prefix`, the outer one first.
    pub(super) fn folders(&mut self, prefix: &[u8]) -> Result<Vec<String>, TableError> {
        let values = self.decoder.decode(&[prefix])?;
        let folder = |(column, (_, value)): (&KeyColumn, &(usize, ArrayRef))| {
            let text = cast(&in_utc(value)?, &DataType::Utf8).map_err(TableError::Arrow)?;
            let text = text.as_string::<i32>();
            let value = text.is_valid(0).then(|| text.value(0));
            Ok(folder_name(&column.name, value))
        };
        self.columns.iter().zip(&values).map(folder).collect()
    }
}

/// Whether a type's values can name folders.
pub(crate) fn can_name_folders(plain: &DataType) -> bool {
    match plain {
        DataType::Utf8 | DataType::Boolean | DataType::Date32 | DataType::Date64 => true,
        DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => true,
        DataType::Decimal32(..) | DataType::Decimal64(..) => true,
        DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        other => other.is_integer(),
    }
}

/// Instants of a time zone in UTC: without a database of zones, no other text can be made of them.
fn in_utc(value: &ArrayRef) -> Result<ArrayRef, TableError> {
    match value.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            cast(value, &utc).map_err(TableError::Arrow)
        }
        _ => Ok(ArrayRef::clone(value)),
    }
}
