//! The written bytes, in pages that are allocated by the first write.

use std::collections::BTreeMap;

/// A trim frees whole pages of this size.
pub(super) const PAGE: usize = 4096;

/// The bytes by their offset; bytes that were never written are zeros.
#[derive(Debug, Default)]
pub(super) struct Platters {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl Platters {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        for (page, within, range) in parts(offset, out.len()) {
            let out = &mut out[range];
            match self.pages.get(&page) {
                Some(bytes) => out.copy_from_slice(&bytes[within..within + out.len()]),
                None => out.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (page, within, range) in parts(offset, bytes.len()) {
            let bytes = &bytes[range];
            let page = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
            page[within..within + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Whole pages are freed.
    pub(super) fn forget(&mut self, offset: u64, len: u64) {
        let page = PAGE as u64;
        let (first, end) = (offset.div_ceil(page), (offset + len) / page);
        if first < end {
            let mut later = self.pages.split_off(&first);
            self.pages.append(&mut later.split_off(&end));
        }
    }
}

/// For each page of the `len` bytes at `offset`: its number, the first byte in it, and the range of
/// the bytes.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < len).then(|| {
            let at = offset + done as u64;
            let within = (at % PAGE as u64) as usize;
            let take = (PAGE - within).min(len - done);
            let range = done..done + take;
            done += take;
            (at / PAGE as u64, within, range)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_vector(
            writes in prop::collection::vec((0..30_000_u64, 1..9000_usize, any::<Option<u8>>()), 0..20),
        ) {
            let mut model = vec![0_u8; 40_000];
            let mut platters = Platters::new();
            for (at, len, byte) in writes {
                match byte {
                    Some(byte) => {
                        platters.write(at, &vec![byte; len]);
                        model[at as usize..at as usize + len].fill(byte);
                    }
                    None => {
                        platters.forget(at, len as u64);
                        let (first, end) = (at.div_ceil(4096), (at + len as u64) / 4096);
                        if first < end {
                            model[first as usize * 4096..end as usize * 4096].fill(0);
                        }
                    }
                }
            }
            let mut seen = vec![1; 39_000];
            platters.read(17, &mut seen);
            prop_assert_eq!(&seen, &model[17..39_017]);
        }
    }
}
