//! Fences of a view over sorted files: where each file is at every Nth row of their merge.
//!
//! ```text
//!   file a    1 3 3 │ 5 7 │ 9        fence 0    row 0    key 1    a 0, b 0
//!   file b    2     │ 4   │ 8 8      fence 1    row 4    key 4    a 3, b 1
//!                                    fence 2    row 7    key 8    a 5, b 2
//! ```
//!
//! A fence has the key of its row, and how many rows of each file are before it. So a merge can begin there, and what is
//! looked for, a row or a key, is less than `spacing` rows behind a fence. When there are too many for [`BYTES_MAX`],
//! every second one is dropped, and the spacing doubles.

use crate::row::varint::{get_varint, put_varint, varint_len};

/// Rows between fences, before any are dropped.
const SPACING: u64 = 4096;
/// Memory of all fences, in bytes; their place in a manifest is at most twice as large.
const BYTES_MAX: u64 = 1 << 20;
/// Bytes of a key that are kept. A longer key is known by its beginning.
const KEY_BYTES_MAX: usize = 1024;

/// The rows of a merge at equal distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fences {
    files: usize,
    spacing: u64,
    keys: Vec<Vec<u8>>,
    /// For each fence, the rows before it in each file.
    places: Vec<u64>,
    key_bytes: u64,
}

/// One of the fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence<'a> {
    /// The number of its row in the merge.
    pub(crate) row: u64,
    /// The key of that row, or its beginning.
    pub(crate) key: &'a [u8],
    /// The rows of each file before it.
    pub(crate) places: &'a [u64],
}

/// What a fence keeps of a key.
pub(super) fn kept(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

impl Fence<'_> {
    /// Whether `key` may be the key of its row.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        kept(self.key) == kept(key)
    }

    /// Whether the key of its row is surely less than `key`.
    fn is_before(&self, key: &[u8]) -> bool {
        self.key < kept(key)
    }
}

impl Fences {
    /// No fences yet, of a merge of `files` files.
    pub(crate) fn new(files: usize) -> Fences {
        Fences::with_spacing(files, SPACING)
    }

    /// No fences yet, which will be `spacing` rows from one another, or more.
    pub(super) fn with_spacing(files: usize, spacing: u64) -> Fences {
        Fences { files, spacing, keys: Vec::new(), places: Vec::new(), key_bytes: 0 }
    }

    /// No fences yet, where the same merge makes these.
    pub(super) fn at_these_distances(&self) -> Fences {
        Fences::with_spacing(self.files, self.spacing)
    }

    /// Rows between two of them.
    pub(crate) fn spacing(&self) -> u64 {
        self.spacing
    }

    /// Takes a row of the merge, if it is that of a fence. All rows are offered, one after the other.
    pub(crate) fn offer(&mut self, row: u64, key: &[u8], places: &[u64]) {
        if row != self.spacing * self.keys.len() as u64 {
            return;
        }
        self.push(kept(key), places);
        while self.memory_bytes() > BYTES_MAX && self.keys.len() > 1 {
            self.thin_out();
        }
    }

    fn push(&mut self, key: &[u8], places: &[u64]) {
        self.key_bytes += key.len() as u64;
        self.keys.push(key.to_vec());
        self.places.extend_from_slice(places);
    }

    /// Drops every second one.
    fn thin_out(&mut self) {
        let fewer = Fences::with_spacing(self.files, self.spacing * 2);
        let all = std::mem::replace(self, fewer);
        for fence in all.iter().step_by(2) {
            self.push(fence.key, fence.places);
        }
    }

    /// What they take in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let each = size_of::<Vec<u8>>() + self.files * size_of::<u64>();
        self.key_bytes + (self.keys.len() * each) as u64
    }

    fn at(&self, number: usize) -> Fence<'_> {
        Fence {
            row: self.spacing * number as u64,
            key: &self.keys[number],
            places: &self.places[number * self.files..(number + 1) * self.files],
        }
    }

    fn iter(&self) -> impl Iterator<Item = Fence<'_>> {
        (0..self.keys.len()).map(|number| self.at(number))
    }

    /// The last fence that is not behind `row`; `None` without fences.
    pub(crate) fn before_row(&self, row: u64) -> Option<Fence<'_>> {
        let last = self.keys.len().checked_sub(1)?;
        let number = usize::try_from(row / self.spacing).unwrap_or(usize::MAX);
        Some(self.at(number.min(last)))
    }

    /// The last fence before which surely no row has `key` or a greater one; `None` without fences.
    pub(crate) fn before_key(&self, key: &[u8]) -> Option<Fence<'_>> {
        self.keys.first()?;
        // Those that are surely before it come first: keys rise, and so do their beginnings.
        let (mut low, mut high) = (0, self.keys.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle).is_before(key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(self.at(low.saturating_sub(1)))
    }

    /// Their bytes in a manifest; docs/formats.md has the form.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |number: u64, more: &[u8]| {
            // Neither a key nor the rows between two fences have 2^42.
            let (number, at) = (number as usize, bytes.len());
            bytes.resize(at + varint_len(number), 0);
            put_varint(&mut bytes, at, number);
            bytes.extend_from_slice(more);
        };
        let mut last = vec![0; self.files];
        for fence in self.iter() {
            put(fence.key.len() as u64, fence.key);
            for (last, place) in last.iter_mut().zip(fence.places) {
                put(place - *last, &[]);
                *last = *place;
            }
        }
        bytes
    }

    /// The fences of files that have these rows; `None` if the bytes are no such fences.
    pub(crate) fn from_bytes(bytes: &[u8], spacing: u64, rows: &[u64]) -> Option<Fences> {
        let all = rows.iter().try_fold(0_u64, |sum, rows| sum.checked_add(*rows))?;
        let mut fences = Fences::with_spacing(rows.len(), spacing);
        let count = usize::try_from(all.div_ceil((spacing > 0).then_some(spacing)?)).ok()?;
        let (mut at, mut places) = (0, vec![0_u64; rows.len()]);
        while at < bytes.len() {
            let (len, start) = get_varint(bytes, at)?;
            let key = bytes.get(start..start.checked_add(len)?).filter(|_| len <= KEY_BYTES_MAX)?;
            at = start + len;
            for (place, rows) in places.iter_mut().zip(rows) {
                let (more, next) = get_varint(bytes, at)?;
                *place = place.checked_add(more as u64).filter(|place| place <= rows)?;
                at = next;
            }
            let row = places.iter().sum::<u64>();
            let rises = fences.keys.last().is_none_or(|last| last[..] <= *key);
            if !rises || fences.keys.len() == count || row != spacing * fences.keys.len() as u64 {
                return None;
            }
            fences.push(key, &places);
        }
        (fences.keys.len() == count).then_some(fences)
    }
}

#[cfg(test)]
mod tests {
    use merganser_random::Random;

    use super::*;

    /// Fences of rows of two files, `a` and `b` in turn, with these keys.
    fn fences_of(spacing: u64, keys: &[Vec<u8>]) -> (Fences, [u64; 2]) {
        let mut fences = Fences::with_spacing(2, spacing);
        let mut places = [0, 0];
        for (row, key) in keys.iter().enumerate() {
            fences.offer(row as u64, key, &places);
            places[row % 2] += 1;
        }
        (fences, places)
    }

    fn texts(keys: &[&str]) -> Vec<Vec<u8>> {
        keys.iter().map(|key| key.as_bytes().to_vec()).collect()
    }

    #[test]
    fn bytes_are_these() {
        let (fences, rows) = fences_of(2, &texts(&["", "b", "c", "d", "ee"]));
        let bytes = fences.to_bytes();
        assert_eq!(bytes, b"\x00\0\0\x01c\x01\x01\x02ee\x01\x01");
        assert_eq!(Fences::from_bytes(&bytes, 2, &rows), Some(fences));
    }

    #[test]
    fn other_bytes_are_refused() {
        let (fences, rows) = fences_of(2, &texts(&["", "b", "c", "d", "ee"]));
        let bytes = fences.to_bytes();
        for end in 0..bytes.len() {
            assert_eq!(Fences::from_bytes(&bytes[..end], 2, &rows), None, "{end}");
        }
        assert_eq!(Fences::from_bytes(&bytes, 0, &rows), None);
        assert_eq!(Fences::from_bytes(&bytes, 3, &rows), None);
        assert_eq!(Fences::from_bytes(&bytes, 2, &[2, 2]), None, "a row less");
        assert_eq!(Fences::from_bytes(&bytes, 2, &[u64::MAX, 1]), None);
        let falls = b"\x01c\0\0\x01b\x01\x01";
        assert_eq!(Fences::from_bytes(falls, 2, &[2, 2]), None);
        let rises = b"\x01b\0\0\x01b\x01\x01";
        assert!(Fences::from_bytes(rises, 2, &[2, 2]).is_some());
    }

    #[test]
    fn a_fence_is_before_what_is_looked_for() {
        let (fences, _) = fences_of(2, &texts(&["a", "b", "b", "b", "c", "d"]));
        let row = |fence: Option<Fence<'_>>| fence.expect("one").row;
        let of_row: Vec<_> = (0..7).map(|at| row(fences.before_row(at))).collect();
        assert_eq!(of_row, [0, 0, 2, 2, 4, 4, 4]);
        // The first b is before the fence whose key is b.
        let of_key = |key: &str| row(fences.before_key(key.as_bytes()));
        assert_eq!(["", "a", "b", "ba", "c", "cc", "x"].map(of_key), [0, 0, 0, 2, 2, 4, 4]);
        assert_eq!(Fences::new(3).before_row(0), None);
        assert_eq!(Fences::new(3).before_key(b"a"), None);
    }

    #[test]
    fn too_many_fences_are_thinned_out() {
        let rows = 3_000_000_u64;
        let mut fences = Fences::new(40);
        let mut places = [0; 40];
        for row in 0..rows {
            if row % SPACING == 0 {
                let key = format!("{row:09}").repeat(200);
                fences.offer(row, key.as_bytes(), &places);
            }
            places[row as usize % 40] += 1;
        }
        assert!(fences.memory_bytes() <= BYTES_MAX);
        assert_eq!((fences.spacing(), fences.keys.len() as u64), (SPACING, rows.div_ceil(SPACING)));
        for row in rows..2 * rows {
            if row % SPACING == 0 {
                let key = format!("{row:09}").repeat(200);
                fences.offer(row, key.as_bytes(), &places);
            }
            places[row as usize % 40] += 1;
        }
        assert!(fences.memory_bytes() <= BYTES_MAX);
        assert_eq!(fences.spacing(), 2 * SPACING);
        assert_eq!(fences.keys.len() as u64, (2 * rows).div_ceil(2 * SPACING));
        let bytes = fences.to_bytes();
        assert!(bytes.len() as u64 <= BYTES_MAX);
        assert_eq!(Fences::from_bytes(&bytes, 2 * SPACING, &places), Some(fences));
    }

    /// Keys of about the length that is kept, which differ behind it or not: no row that is looked for is before its fence.
    #[test]
    fn long_keys_are_found() {
        for case in 0..2000 {
            let mut random = Random::of_record(3, case);
            let mut key = || {
                let mut key = vec![b'a'; KEY_BYTES_MAX - random.index(4)];
                key.extend((0..random.index(5)).map(|_| b'a' + u8::from(random.one_in(2))));
                key
            };
            let wanted = key();
            let mut keys: Vec<_> = (0..1 + case as usize % 40).map(|_| key()).collect();
            keys.sort();
            let (fences, _) = fences_of(2, &keys);
            let first = keys.iter().position(|key| *key >= wanted).unwrap_or(keys.len());
            let fence = fences.before_key(&wanted).expect("one");
            assert!(fence.row <= first as u64, "case {case}");
            assert!(fence.may_have(&keys[fence.row as usize]), "case {case}");
        }
    }

    #[test]
    fn any_bytes_are_fences_or_none() {
        let mut found = 0;
        for case in 0..20_000 {
            let mut random = Random::of_record(4, case);
            let bytes: Vec<_> = (0..random.index(12)).map(|_| random.below(3) as u8).collect();
            let rows: Vec<_> = (0..random.index(4)).map(|_| random.below(4)).collect();
            let spacing = random.below(4);
            if let Some(fences) = Fences::from_bytes(&bytes, spacing, &rows) {
                found += 1;
                let again = Fences::from_bytes(&fences.to_bytes(), spacing, &rows);
                assert_eq!(again, Some(fences), "case {case}");
            }
        }
        assert!(found > 20, "{found}");
    }
}
