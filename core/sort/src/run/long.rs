//! The lengths of a chunk's records that are too long for the length of a tag.
//!
//! They are few, because each has at least [`Tag::LONG`] bytes. Their end can't be searched from their
//! beginning alone where records end at the next one's beginning, and each search would read all of them.

use super::tag::Tag;

/// Places and lengths of long records, in the order of places.
#[derive(Debug, Default)]
pub(crate) struct LongRecords(Vec<(u64, usize)>);

impl LongRecords {
    /// Those that were noted, in any order; the same one perhaps twice.
    pub(crate) fn new(mut noted: Vec<(u64, usize)>) -> Self {
        noted.sort_unstable();
        LongRecords(noted)
    }

    /// Notes the record at `place` if it is one, when its tag is made.
    pub(crate) fn note(noted: &mut Vec<(u64, usize)>, place: usize, len: usize) {
        if len >= Tag::LONG {
            noted.push((place as u64, len));
        }
    }

    /// Length of the long record at `place`.
    pub(crate) fn len_at(&self, place: usize) -> usize {
        let found = self.0.binary_search_by_key(&(place as u64), |(place, _)| *place);
        self.0[found.expect("it was noted when its tag was made")].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_records_are_noted() {
        let mut noted = Vec::new();
        for (place, len) in [(90 << 20, Tag::LONG + 7), (5, Tag::LONG), (1, Tag::LONG - 1), (0, 1)]
        {
            LongRecords::note(&mut noted, place, len);
        }
        let long = LongRecords::new(noted);
        assert_eq!(long.0.len(), 2);
        assert_eq!((long.len_at(5), long.len_at(90 << 20)), (Tag::LONG, Tag::LONG + 7));
    }
}
