//! Divisions by the sizes of a device, which are nearly always powers of two. Each page operation needs
//! about ten of them.

/// A number that others are divided by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    by: u32,
    /// If it is a power of two, which one.
    shift: Option<u32>,
}

impl Divisor {
    /// # Panics
    /// When it is 0.
    pub fn new(by: u32) -> Divisor {
        assert!(by > 0, "nothing is divided by 0");
        Divisor { by, shift: by.is_power_of_two().then(|| by.trailing_zeros()) }
    }

    pub fn quotient(self, number: u32) -> u32 {
        self.shift.map_or_else(|| number / self.by, |shift| number >> shift)
    }

    pub fn remainder(self, number: u32) -> u32 {
        number - self.quotient(number) * self.by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_are_those_of_numbers() {
        for by in (1..70).chain([1 << 20, (1 << 20) + 1, 1 << 31, u32::MAX]) {
            let divisor = Divisor::new(by);
            for number in (0..200).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
                assert_eq!(divisor.quotient(number), number / by);
                assert_eq!(divisor.remainder(number), number % by);
            }
        }
    }
}
