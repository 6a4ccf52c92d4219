//! Stored pages that were read together to be compared: pages that follow one another are often equal to pages that
//! follow one another, too.

use crate::bytes::{PAGE, PageBytes};

/// Pages that are read at once, where two in turn were asked for: 128 KiB.
const PAGES: u64 = 32;

/// The bytes of a few stored pages, as they were read a moment ago. They are forgotten when pages are written or
/// committed, and when damage is found: a page that shares a stored one needs its bytes of now.
#[derive(Default)]
pub(super) struct PageWindow {
    first: u64,
    bytes: Vec<u8>,
    /// The place after the last one that was asked for.
    next: u64,
}

impl PageWindow {
    /// The bytes of a page, if they are here.
    pub(super) fn get(&mut self, place: u64) -> Option<&PageBytes> {
        let at = usize::try_from(place.checked_sub(self.first)?).ok()?.checked_mul(PAGE)?;
        let page = self.bytes.get(at..at + PAGE)?;
        self.next = place + 1;
        Some(page.try_into().expect("a whole page"))
    }

    /// How many pages are read from `place` on: one, unless the page before it was the last one that was asked for.
    pub(super) fn pages_from(&self, place: u64) -> u64 {
        if place == self.next { PAGES } else { 1 }
    }

    /// Pages that were read from `place` on.
    pub(super) fn fill(&mut self, place: u64, bytes: Vec<u8>) {
        (self.first, self.bytes) = (place, bytes);
    }

    /// Forgets all bytes.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_turn_are_read_together() {
        let mut window = PageWindow::default();
        let first = |window: &mut PageWindow, place| window.get(place).map(|page| page[0]);
        assert_eq!((window.pages_from(7), first(&mut window, 7)), (1, None));
        window.fill(7, vec![7; PAGE]);
        assert_eq!([7, 6, 8].map(|place| first(&mut window, place)), [Some(7), None, None]);
        assert_eq!((window.pages_from(9), window.pages_from(8)), (1, PAGES));
        window.fill(8, [vec![8; PAGE], vec![9; PAGE]].concat());
        assert_eq!([9, 10].map(|place| first(&mut window, place)), [Some(9), None]);
        assert_eq!(window.pages_from(10), PAGES);
        window.clear();
        assert_eq!([9, u64::MAX].map(|place| first(&mut window, place)), [None, None]);
    }
}
