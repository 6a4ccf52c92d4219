//! Divisions by the sizes of a device, which are nearly always powers of two. Each page operation needs
//! about twenty of them.

/// A number that others are divided by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    by: u64,
    /// If it is a power of two, which one.
    shift: Option<u32>,
}

impl Divisor {
    /// # Panics
    /// When it is 0.
    pub(crate) fn new(by: u64) -> Divisor {
        assert!(by > 0, "nothing is divided by 0");
        Divisor { by, shift: by.is_power_of_two().then(|| by.trailing_zeros()) }
    }

    pub(crate) fn quotient(self, number: u64) -> u64 {
        self.shift.map_or_else(|| number / self.by, |shift| number >> shift)
    }

    /// The quotient, rounded up.
    pub(crate) fn quotient_up(self, number: u64) -> u64 {
        let down = self.quotient(number);
        down + u64::from(down * self.by != number)
    }

    pub(crate) fn remainder(self, number: u64) -> u64 {
        number - self.quotient(number) * self.by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_those_of_numbers() {
        for by in (1..70).chain([1 << 20, (1 << 20) + 1, 1 << 63, u64::MAX]) {
            let divisor = Divisor::new(by);
            for number in (0..200).chain([1 << 20, u64::MAX - 1, u64::MAX]) {
                assert_eq!(divisor.quotient(number), number / by);
                assert_eq!(divisor.quotient_up(number), number.div_ceil(by));
                assert_eq!(divisor.remainder(number), number % by);
            }
        }
    }
}
