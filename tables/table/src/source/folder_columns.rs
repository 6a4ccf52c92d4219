//! Columns that the folders of files name, and their types.
//!
//! A column is one of whole numbers (64 bits) if all its values are such numbers as a computer writes them, or else one of
//! text. A column that is in the files, too, is that of the files.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, new_null_array};
use arrow_schema::{DataType, Field, Schema};

use super::TableFile;
use crate::TableError;
use crate::hive::columns_of;

/// What becomes of columns that folders name, as in `country=FR/year=2024/part-00000.parquet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HiveColumns {
    /// They are columns of the table, behind those of the files.
    #[default]
    Read,
    /// They are left out.
    LeaveOut,
}

/// The columns that the folders of all files name.
pub(super) struct FolderColumns {
    how: HiveColumns,
    names: Vec<String>,
    /// The values of each file, in the order of the names.
    values: Vec<Vec<Option<String>>>,
}

/// The value of a column in all rows of a file.
#[derive(Debug, Clone)]
pub(crate) enum FolderValue {
    Integer(Option<i64>),
    Text(Option<Arc<str>>),
}

impl FolderColumns {
    pub(super) fn new(how: HiveColumns) -> FolderColumns {
        FolderColumns { how, names: Vec::new(), values: Vec::new() }
    }

    /// Looks at the folders of one more file, whose own columns are `own`.
    ///
    /// # Errors
    /// Other columns than those of the folders of `first`; a column that two folders name.
    pub(super) fn add(
        &mut self,
        file: &Path,
        own: &Schema,
        first: &Path,
    ) -> Result<(), TableError> {
        if self.how == HiveColumns::LeaveOut {
            return Ok(());
        }
        let mut found = columns_of(file);
        found.retain(|(name, _)| own.index_of(name).is_err());
        let is_first = self.values.is_empty();
        let refused = |column: &String, is_named| TableError::FolderColumns {
            file: file.to_owned(),
            column: column.clone(),
            is_named,
            first: first.to_owned(),
        };
        for (number, (name, _)) in found.iter().enumerate() {
            if found[..number].iter().any(|(other, _)| other == name) {
                let (file, column) = (file.to_owned(), name.clone());
                return Err(TableError::TwiceAFolder { file, column });
            }
            if is_first {
                self.names.push(name.clone());
            } else if !self.names.contains(name) {
                return Err(refused(name, true));
            }
        }
        let value = |name: &String| {
            let at = found.iter().position(|(found, _)| found == name);
            at.map(|at| found[at].1.clone()).ok_or_else(|| refused(name, false))
        };
        let values = self.names.iter().map(value).collect::<Result<_, _>>()?;
        self.values.push(values);
        Ok(())
    }

    /// The columns, each with whether it has nulls; every file gets its values.
    pub(super) fn give_to(self, files: &mut [TableFile]) -> Vec<(Field, bool)> {
        let of = |column: usize| self.values.iter().map(move |values| values[column].as_deref());
        let mut fields = Vec::with_capacity(self.names.len());
        for (column, name) in self.names.iter().enumerate() {
            let is_null = |value: Option<&str>| value.is_none();
            let mut known = of(column).flatten().peekable();
            let is_integer =
                known.peek().is_some() && known.all(|value| integer_of(value).is_some());
            let data_type = if is_integer { DataType::Int64 } else { DataType::Utf8 };
            fields.push((Field::new(name, data_type, true), of(column).any(is_null)));
            for (file, value) in files.iter_mut().zip(of(column)) {
                file.of_folders.push(if is_integer {
                    FolderValue::Integer(value.and_then(integer_of))
                } else {
                    FolderValue::Text(value.map(Arc::from))
                });
            }
        }
        fields
    }
}

/// The number that a text is, if a computer would write that number so.
fn integer_of(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

impl FolderValue {
    /// A column of this value in its plain form.
    fn column(&self, rows: usize) -> ArrayRef {
        match self {
            FolderValue::Integer(Some(value)) => Arc::new(Int64Array::from_value(*value, rows)),
            FolderValue::Integer(None) => new_null_array(&DataType::Int64, rows),
            FolderValue::Text(None) => new_null_array(&DataType::Utf8View, rows),
            FolderValue::Text(Some(text)) => {
                // All views are of the same bytes.
                let one = StringViewArray::from_iter_values([text]);
                let views = vec![one.views()[0]; rows];
                Arc::new(StringViewArray::new(views.into(), one.data_buffers().to_vec(), None))
            }
        }
    }
}

/// A batch of a file with the columns of its folders.
pub(super) fn with_columns(
    batch: RecordBatch,
    values: &[FolderValue],
) -> Result<RecordBatch, TableError> {
    if values.is_empty() {
        return Ok(batch);
    }
    let rows = batch.num_rows();
    let (schema, mut columns, _) = batch.into_parts();
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    for value in values {
        let column = value.column(rows);
        // The rows are made by number, and no name is looked at.
        fields.push(Arc::new(Field::new("", column.data_type().clone(), true)));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(TableError::Arrow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileKind;

    /// The columns of these files, whose own column is `own`, and the values of the first one.
    fn columns(files: &[&str]) -> Result<String, String> {
        let own = Schema::new(vec![Field::new("own", DataType::Int64, true)]);
        let mut columns = FolderColumns::new(HiveColumns::Read);
        let mut all = Vec::new();
        for file in files {
            let (file, first) = (Path::new(file), Path::new(files[0]));
            columns.add(file, &own, first).map_err(|error| error.to_string())?;
            all.push(TableFile::new(file, FileKind::Parquet, super::super::FileContent::Disk));
        }
        let fields = columns.give_to(&mut all);
        let values = all[0].of_folders.iter().map(|value| match value {
            FolderValue::Integer(value) => format!("{value:?}"),
            FolderValue::Text(value) => format!("{value:?}"),
        });
        let told = fields.iter().zip(values).map(|((field, has_nulls), value)| {
            let null = if *has_nulls { "?" } else { "" };
            format!("{} {}{null} {value}", field.name(), field.data_type())
        });
        Ok(told.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn numbers_are_numbers_if_all_values_are() {
        let one = |value: &str| columns(&[&format!("a={value}/x")]).expect("columns");
        assert_eq!(one("7"), "a Int64 Some(7)");
        assert_eq!(one("-9223372036854775808"), "a Int64 Some(-9223372036854775808)");
        for text in ["007", "-0", "+7", "", " 7", "1e3", "9223372036854775808", "2024-01-05", "7.0"]
        {
            assert_eq!(one(text), format!("a Utf8 Some({text:?})"));
        }
        assert_eq!(one("__HIVE_DEFAULT_PARTITION__"), "a Utf8? None");
        let both = columns(&["a=7/b=__HIVE_DEFAULT_PARTITION__/x", "a=x/b=2/x"]);
        assert_eq!(both.expect("columns"), "a Utf8 Some(\"7\"), b Int64? None");
        // The order of folders may differ; a column of the files is theirs.
        let both = columns(&["own=1/a=1/b=2/x", "b=3/a=4/x", "a=1/own=9/b=2/x"]);
        assert_eq!(both.expect("columns"), "a Int64 Some(1), b Int64 Some(2)");
    }

    #[test]
    fn folders_of_all_files_name_the_same_columns() {
        let refused = |files: &[&str]| columns(files).expect_err("refused");
        assert_eq!(
            refused(&["a=1/x", "y"]),
            "y: its folders do not name column a, as those of a=1/x do"
        );
        assert_eq!(
            refused(&["a=1/x", "a=1/b=2/x"]),
            "a=1/b=2/x: its folders name column b, and those of a=1/x do not"
        );
        assert_eq!(refused(&["a=1/a=2/x"]), "a=1/a=2/x: two of its folders name column a");
    }
}
