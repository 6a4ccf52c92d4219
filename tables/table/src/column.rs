//! The values of a column in its plain form, as bytes.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

/// A column of a batch, or the items of one.
pub(crate) struct Column {
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) values: Values,
}

/// The values of a column, by kind.
pub(crate) enum Values {
    /// All are null.
    Null,
    Booleans(BooleanArray),
    /// Numbers, dates and the like: as many bytes each, the lowest first.
    Fixed {
        bytes: Buffer,
        width: usize,
    },
    Bytes(BinaryViewArray),
    List {
        offsets: OffsetBuffer<i32>,
        items: Box<Column>,
        nullable: bool,
    },
    FixedList {
        count: usize,
        items: Box<Column>,
        nullable: bool,
    },
    Struct(Group),
}

/// Columns that are together: those of a table, or the fields of a struct.
pub(crate) struct Group {
    pub(crate) columns: Vec<Column>,
    /// The number of the bit that says whether a column is null; `None` for one that never is.
    pub(crate) bits: Vec<Option<usize>>,
    /// Bytes that these bits take.
    pub(crate) bits_bytes: usize,
}

/// The bit of each nullable column, and the bytes of all bits.
pub(crate) fn bits_of(nullable: impl IntoIterator<Item = bool>) -> (Vec<Option<usize>>, usize) {
    let mut next = 0;
    let number = |nullable: bool| {
        nullable.then(|| {
            next += 1;
            next - 1
        })
    };
    let bits: Vec<_> = nullable.into_iter().map(number).collect();
    (bits, next.div_ceil(8))
}

/// A column has a null, and must not have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NullFound;

impl Group {
    /// Columns of these fields, which are in their plain forms with views.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = (&'a ArrayRef, &'a Field)>) -> Group {
        let column = |(array, field): (&ArrayRef, &Field)| {
            (Column::new(array, field.data_type()), field.is_nullable())
        };
        let (columns, nullable): (Vec<_>, Vec<_>) = columns.into_iter().map(column).unzip();
        let (bits, bits_bytes) = bits_of(nullable);
        Group { columns, bits, bits_bytes }
    }

    /// Refuses nulls in columns that must have none. (In a null struct, a field may have one; Arrow's arrays see to the
    /// others.)
    pub(crate) fn refuse_nulls(&self) -> Result<(), NullFound> {
        let has_wrong =
            |(column, bit): (&Column, &Option<usize>)| bit.is_none() && column.nulls.is_some();
        if self.columns.iter().zip(&self.bits).any(has_wrong) { Err(NullFound) } else { Ok(()) }
    }
}

impl Column {
    /// The values of an array of the plain type `plain`, with views for bytes.
    pub(crate) fn new(array: &ArrayRef, plain: &DataType) -> Column {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let items =
            |values: &ArrayRef, item: &Field| Box::new(Column::new(values, item.data_type()));
        let values = match plain {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Booleans(array.as_boolean().clone()),
            DataType::Utf8View => Values::Bytes(array.as_string_view().clone().to_binary_view()),
            DataType::BinaryView => Values::Bytes(array.as_binary_view().clone()),
            DataType::List(item) => {
                let list = array.as_list::<i32>();
                Values::List {
                    offsets: list.offsets().clone(),
                    items: items(list.values(), item),
                    nullable: item.is_nullable(),
                }
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let pairs = Values::Struct(group_of(map.entries(), entries.data_type()));
                Values::List {
                    offsets: map.offsets().clone(),
                    items: Box::new(Column { nulls: None, values: pairs }),
                    nullable: false,
                }
            }
            DataType::FixedSizeList(item, count) => Values::FixedList {
                count: usize::try_from(*count).unwrap_or(0),
                items: items(array.as_fixed_size_list().values(), item),
                nullable: item.is_nullable(),
            },
            DataType::Struct(_) => Values::Struct(group_of(array.as_struct(), plain)),
            other => {
                let width = width_of(other).expect("a plain type that rows can hold");
                let data = array.to_data();
                let (start, bytes) = (data.offset() * width, data.len() * width);
                let bytes = data.buffers()[0].slice_with_length(start, bytes);
                Values::Fixed { bytes, width }
            }
        };
        Column { nulls, values }
    }

    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        !matches!(self.values, Values::Null)
            && self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
    }
}

fn group_of(array: &StructArray, plain: &DataType) -> Group {
    let DataType::Struct(fields) = plain else { unreachable!("a struct") };
    Group::new(array.columns().iter().zip(fields.iter().map(|field| &**field)))
}

/// Bytes of one value of a type whose values are all as long.
pub(crate) fn width_of(plain: &DataType) -> Option<usize> {
    match plain {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        other => other.primitive_width(),
    }
}
