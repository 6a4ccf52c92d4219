//! How values of one key are combined in a table.

/// The values of a table and how they become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Sums of signed numbers.
    Sum,
    /// The smallest signed number.
    LeastI64,
    /// The largest signed number.
    GreatestI64,
    /// The smallest floating-point number in their total order.
    LeastF64,
    /// The largest.
    GreatestF64,
    /// The value that is first in byte order.
    LeastBytes,
    /// The value that is last in byte order.
    GreatestBytes,
    /// All values.
    All,
}

/// What became of a number.
pub(super) enum Folded {
    /// It is combined.
    Done,
    /// The sum would leave 64 bits; nothing was changed.
    Overflow,
}

impl TableKind {
    /// Whether values are 8 bytes that are in the slot.
    pub fn is_number(self) -> bool {
        !matches!(self, TableKind::LeastBytes | TableKind::GreatestBytes | TableKind::All)
    }

    /// Combines `number` into `value`.
    #[inline]
    pub(super) fn fold(self, value: &mut u64, number: u64) -> Folded {
        let signed = u64::cast_signed;
        let replaces = match self {
            TableKind::Sum => {
                let Some(sum) = signed(*value).checked_add(signed(number)) else {
                    return Folded::Overflow;
                };
                *value = sum.cast_unsigned();
                return Folded::Done;
            }
            TableKind::LeastI64 => signed(number) < signed(*value),
            TableKind::GreatestI64 => signed(number) > signed(*value),
            TableKind::LeastF64 => {
                f64::from_bits(number).total_cmp(&f64::from_bits(*value)).is_lt()
            }
            TableKind::GreatestF64 => {
                f64::from_bits(number).total_cmp(&f64::from_bits(*value)).is_gt()
            }
            TableKind::LeastBytes | TableKind::GreatestBytes | TableKind::All => {
                unreachable!("these values are not numbers")
            }
        };
        if replaces {
            *value = number;
        }
        Folded::Done
    }

    /// Whether `new` (its parts, end to end) takes the place of `old`.
    pub(super) fn replaces(self, old: &[u8], new: &[&[u8]]) -> bool {
        let order = new.iter().copied().flatten().cmp(old);
        match self {
            TableKind::LeastBytes => order.is_lt(),
            _ => order.is_gt(),
        }
    }
}
