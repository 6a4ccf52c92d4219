//! How large the parts of an upload are.
//!
//! A store takes 10,000 parts of an object. The first half of them has about the size that the result is expected to have;
//! behind it, each thousand parts are twice as large as those before, as far as the memory allows.

/// Parts of an object, at most.
pub(super) const PARTS_MAX: usize = 10_000;
/// Bytes of a part, at least; but for the last one, stores refuse parts of less than 5 MiB.
const PART_BYTES_MIN: u64 = 8 << 20;
/// Parts in whose number a result of the expected size fits.
const PARTS_EXPECTED: u64 = 5_000;
/// Parts of one size behind those.
const PARTS_OF_A_SIZE: u64 = 1_000;
/// Buffers of parts that help: one is filled and two are sent.
const BUFFERS: u64 = 3;
/// The share of the free memory that an upload takes, if it wants so much.
const MEMORY_SHARE: u64 = 4;

/// The sizes of parts, and the memory that they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadPlan {
    first_bytes: u64,
    memory_bytes: u64,
}

impl UploadPlan {
    /// For a result of about `expected_bytes`, where `free_bytes` of memory are free.
    #[must_use]
    pub fn of_object(expected_bytes: u64, free_bytes: u64) -> UploadPlan {
        let wanted =
            expected_bytes.div_ceil(PARTS_EXPECTED).max(PART_BYTES_MIN).next_multiple_of(1 << 20);
        let least = 2 * PART_BYTES_MIN;
        let memory_bytes = (BUFFERS * wanted).min(free_bytes / MEMORY_SHARE).max(least);
        UploadPlan { first_bytes: wanted.min(memory_bytes / 2), memory_bytes }
    }

    /// For each of many files, of which one grows at a time.
    #[must_use]
    pub fn of_file() -> UploadPlan {
        UploadPlan { first_bytes: PART_BYTES_MIN, memory_bytes: 2 * PART_BYTES_MIN }
    }

    /// Memory of its parts, in bytes.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        self.memory_bytes
    }

    /// Bytes of the largest part.
    pub(super) fn most_bytes(self) -> u64 {
        self.memory_bytes / 2
    }

    /// Bytes of the part of this number.
    pub(super) fn part_bytes(self, number: usize) -> u64 {
        let behind = (number as u64).saturating_sub(PARTS_EXPECTED);
        let doubled = u32::try_from(behind.div_ceil(PARTS_OF_A_SIZE)).unwrap_or(0);
        (self.first_bytes << doubled).min(self.most_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most_of_object(plan: UploadPlan) -> u64 {
        (0..PARTS_MAX).map(|number| plan.part_bytes(number)).sum()
    }

    #[test]
    fn five_terabytes_are_ten_thousand_parts() {
        const TERABYTE: u64 = 1_000_000_000_000;
        for free in [4 << 30, 16 << 30] {
            let plan = UploadPlan::of_object(5 * TERABYTE, free);
            assert!(most_of_object(plan) >= 5 * TERABYTE, "{plan:?}");
            assert!(plan.memory_bytes() <= free / 4);
            // Of S3.
            assert!(plan.most_bytes() <= 5 << 30);
        }
        // A result may be twice as large as expected.
        assert!(most_of_object(UploadPlan::of_object(TERABYTE, 16 << 30)) >= 2 * TERABYTE);
    }

    #[test]
    fn little_memory_is_enough_for_small_results() {
        let plan = UploadPlan::of_object(1 << 30, 64 << 20);
        assert_eq!((plan.part_bytes(0), plan.memory_bytes()), (8 << 20, 16 << 20));
        assert_eq!(most_of_object(plan), 10_000 * (8 << 20));
        // A result that is larger than expected has larger parts.
        let plan = UploadPlan::of_object(0, 1 << 30);
        assert_eq!((plan.part_bytes(5_000), plan.part_bytes(5_001)), (8 << 20, 12 << 20));
    }
}
