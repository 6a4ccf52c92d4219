//! How often each number of a client occurred.

use std::collections::BTreeMap;

/// Counts of numbers. Clients count from 1, so a long row of numbers that occurred once takes the place of one.
#[derive(Debug, Default)]
pub(super) struct NumberCounts {
    /// Each number from 1 to this one occurred once, unless `others` has it.
    once_up_to: u64,
    others: BTreeMap<u64, u64>,
}

impl NumberCounts {
    /// How often `number` occurred.
    pub(super) fn of_number(&self, number: u64) -> u64 {
        let usual = u64::from((1..=self.once_up_to).contains(&number));
        self.others.get(&number).copied().unwrap_or(usual)
    }

    /// Counts `number` once more.
    pub(super) fn add(&mut self, number: u64) {
        let count = self.of_number(number) + 1;
        self.others.insert(number, count);
        while let Some(next) = self.once_up_to.checked_add(1)
            && self.others.get(&next) == Some(&1)
        {
            self.others.remove(&next);
            self.once_up_to = next;
        }
    }

    /// Numbers that take a place of their own.
    pub(super) fn places(&self) -> usize {
        self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::NumberCounts;

    #[test]
    fn a_client_that_counts_takes_no_place() {
        let mut counts = NumberCounts::default();
        (1..=1000).for_each(|number| counts.add(number));
        assert_eq!(
            (counts.places(), counts.of_number(0), counts.of_number(1000), counts.of_number(1001)),
            (0, 0, 1, 0)
        );
        counts.add(7);
        assert_eq!((counts.places(), counts.of_number(7)), (1, 2));
        counts.add(1002);
        assert_eq!((counts.places(), counts.of_number(1001)), (2, 0));
        counts.add(1001);
        assert_eq!((counts.places(), counts.of_number(1002)), (1, 1));
        counts.add(u64::MAX);
        assert_eq!((counts.places(), counts.of_number(u64::MAX)), (2, 1));
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(numbers in prop::collection::vec(0u64..12, 0..60)) {
            let mut counts = NumberCounts::default();
            let mut expected: HashMap<u64, u64> = HashMap::new();
            for number in numbers {
                counts.add(number);
                *expected.entry(number).or_default() += 1;
                for number in 0..14 {
                    prop_assert_eq!(counts.of_number(number), expected.get(&number).copied().unwrap_or(0));
                }
            }
        }
    }
}
