//! Items that come in any order, and are taken in the order of their numbers, which count up from 0 without gaps.

use std::collections::BTreeMap;

/// Holds what came before one with a smaller number.
pub struct InOrder<T> {
    early: BTreeMap<u64, T>,
    next: u64,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        InOrder { early: BTreeMap::new(), next: 0 }
    }
}

impl<T> InOrder<T> {
    /// Adds the one with this number.
    pub fn add(&mut self, number: u64, one: T) {
        self.early.insert(number, one);
    }

    /// Takes the next one, if it has come.
    pub fn take(&mut self) -> Option<T> {
        let one = self.early.remove(&self.next)?;
        self.next += 1;
        Some(one)
    }

    /// Takes all that came, although some before them did not.
    pub fn rest(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.early).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_for_those_before_it() {
        let mut order = InOrder::default();
        order.add(2, "c");
        order.add(1, "b");
        assert_eq!(order.take(), None);
        order.add(0, "a");
        let taken: Vec<_> = std::iter::from_fn(|| order.take()).collect();
        assert_eq!(taken, ["a", "b", "c"]);
        order.add(5, "f");
        order.add(4, "e");
        assert_eq!(order.take(), None);
        assert_eq!(order.rest().collect::<Vec<_>>(), ["e", "f"]);
        assert_eq!(order.rest().count(), 0);
    }
}
