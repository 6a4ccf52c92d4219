//! Lists of slots by age: a slot leaves at any place, and comes back as the newest.

/// No slot.
const NONE: u32 = u32::MAX;

/// Several lists of slots of one table. A slot is in one of them, or in none.
#[derive(Debug)]
pub(crate) struct Ages {
    /// The neighbours of each slot.
    links: Vec<AgeLink>,
    /// The ends of each list.
    ends: Vec<AgeLink>,
}

/// Slots, or [`NONE`]: next to a slot, or at the ends of a list.
#[derive(Debug, Clone, Copy)]
struct AgeLink {
    older: u32,
    newer: u32,
}

const NOTHING: AgeLink = AgeLink { older: NONE, newer: NONE };

impl Ages {
    /// So many empty lists.
    pub(super) fn new(lists: usize) -> Ages {
        Ages { links: Vec::new(), ends: vec![NOTHING; lists] }
    }

    /// The number of lists.
    pub(super) fn lists(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Adds `slot`, which is in no list, as the newest of `list`.
    pub(super) fn push(&mut self, list: u32, slot: u32) {
        if self.links.len() <= slot as usize {
            self.links.resize(slot as usize + 1, NOTHING);
        }
        let ends = &mut self.ends[list as usize];
        let older = std::mem::replace(&mut ends.newer, slot);
        self.links[slot as usize] = AgeLink { older, newer: NONE };
        match older {
            NONE => ends.older = slot,
            older => self.links[older as usize].newer = slot,
        }
    }

    /// Takes `slot` out of `list`, which it is in.
    pub(super) fn remove(&mut self, list: u32, slot: u32) {
        let AgeLink { older, newer } = self.links[slot as usize];
        let ends = &mut self.ends[list as usize];
        match older {
            NONE => ends.older = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => ends.newer = older,
            newer => self.links[newer as usize].older = older,
        }
    }

    /// The oldest slot of `list`.
    pub(super) fn oldest(&self, list: u32) -> Option<u32> {
        some(self.ends[list as usize].older)
    }

    /// The slots of `list`, oldest first.
    pub(super) fn iter(&self, list: u32) -> impl Iterator<Item = u32> + '_ {
        let newer = |slot: &u32| some(self.links[*slot as usize].newer);
        std::iter::successors(self.oldest(list), newer)
    }
}

fn some(slot: u32) -> Option<u32> {
    (slot != NONE).then_some(slot)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slot_leaves_anywhere_and_comes_back_as_the_newest() {
        let mut ages = Ages::new(2);
        for slot in [5, 0, 3] {
            ages.push(1, slot);
        }
        assert_eq!(ages.iter(1).collect::<Vec<_>>(), [5, 0, 3]);
        ages.remove(1, 0);
        ages.push(1, 0);
        assert_eq!((ages.oldest(1), ages.iter(1).collect::<Vec<_>>()), (Some(5), vec![5, 3, 0]));
        assert_eq!(ages.oldest(0), None);
    }

    proptest! {
        #[test]
        fn lists_are_those_of_a_model(steps in prop::collection::vec((0_u32..3, 0_u32..8), 0..200)) {
            let mut ages = Ages::new(3);
            let mut model = vec![Vec::new(); 3];
            for (list, slot) in steps {
                let found = (0..).zip(&mut model).find(|(_, slots)| slots.contains(&slot));
                if let Some((list, slots)) = found {
                    slots.retain(|other| *other != slot);
                    ages.remove(list, slot);
                } else {
                    model[list as usize].push(slot);
                    ages.push(list, slot);
                }
                for (list, slots) in (0..).zip(&model) {
                    prop_assert_eq!(&ages.iter(list).collect::<Vec<_>>(), slots);
                    prop_assert_eq!(ages.oldest(list), slots.first().copied());
                }
            }
        }
    }
}
