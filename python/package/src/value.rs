//! Values of Python as keys of a view.
//!
//! A value becomes text, and the text a value of the column's type: so dates, times, decimals and numbers of any width are
//! read in one way, that of `merganser cat --from-key`. Bytes are themselves.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::failure::Failure;

const STRICT: CastOptions<'_> =
    CastOptions { safe: false, format_options: arrow_cast::display::FormatOptions::new() };

/// `value` as an array of one value of `data_type`, the type of the column `column`. If it is `exact`, a value that the
/// type has to round is refused; otherwise the nearest one is taken.
///
/// # Errors
/// A value that such a column can't have.
pub(crate) fn key_value(
    value: &Bound<'_, PyAny>,
    (column, data_type): (&str, &DataType),
    exact: bool,
) -> PyResult<ArrayRef> {
    let given = given(value, data_type)?;
    let refused = || {
        let shown = value.repr().map_or_else(|_| "a value".to_owned(), |shown| shown.to_string());
        let kind = value.get_type();
        let kind = kind.name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        Failure::Key(format!(
            "{shown} ({kind}) is no value of column {column}, which is of type {data_type}"
        ))
    };
    let given = given.ok_or_else(refused)?;
    let found = match data_type {
        // The text says which moment it is, whatever the zone of the column is called.
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            let moment = cast_with_options(&given, &utc, &STRICT);
            moment.and_then(|moment| cast_with_options(&moment, data_type, &STRICT))
        }
        _ => cast_with_options(&given, data_type, &STRICT),
    };
    let found = found.map_err(|_| refused())?;
    if found.null_count() > 0 || (exact && !is_same(&given, &found)) {
        return Err(refused().into());
    }
    Ok(found)
}

/// The value as text or bytes; `None` for one of a kind that the column can't have.
fn given(value: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<Option<ArrayRef>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return Ok(match data_type {
            DataType::Binary => Some(Arc::new(BinaryArray::from(vec![bytes]))),
            // Shorter bytes would be another value.
            DataType::FixedSizeBinary(width) if bytes.len() == *width as usize => {
                Some(Arc::new(BinaryArray::from(vec![bytes])))
            }
            _ => None,
        });
    }
    let is_text = value.is_instance_of::<PyString>();
    let is_bool = value.is_instance_of::<PyBool>();
    let is_number =
        !is_bool && (value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>());
    let fits = match data_type {
        DataType::Utf8 => is_text,
        DataType::Boolean => is_bool,
        DataType::Binary | DataType::FixedSizeBinary(_) => false,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => !is_bool && !is_number,
        DataType::Time32(_) | DataType::Time64(_) => !is_bool && !is_number,
        _ => !is_text && !is_bool,
    };
    let has_zone = value.getattr_opt("tzinfo")?.is_some_and(|zone| !zone.is_none());
    let wants_zone = matches!(data_type, DataType::Timestamp(_, Some(_)));
    if !fits || has_zone != wants_zone {
        return Ok(None);
    }
    let text = match value.getattr_opt("isoformat")? {
        // A date is the midnight that begins it.
        Some(isoformat) => isoformat.call0()?.extract::<String>()?,
        None if is_bool => (if value.is_truthy()? { "true" } else { "false" }).to_owned(),
        None => value.str()?.extract::<String>()?,
    };
    Ok(Some(Arc::new(StringArray::from(vec![text]))))
}

/// Whether nothing of the given text was rounded away. Floats may be rounded: a user who looks for 0.1 in a column of
/// float32 means the value that is stored for it.
fn is_same(given: &ArrayRef, found: &ArrayRef) -> bool {
    let finer = match found.data_type() {
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "+00:00".into()))
        }
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => DataType::Decimal256(76, scale.saturating_add(18)),
        _ => return true,
    };
    let one = cast_with_options(given, &finer, &STRICT);
    let other = cast_with_options(found, &finer, &STRICT);
    match (one, other) {
        (Ok(one), Ok(other)) => one.to_data() == other.to_data(),
        _ => false,
    }
}
