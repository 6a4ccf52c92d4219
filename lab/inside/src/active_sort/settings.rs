//! How merges use the device.

use merganser_storage::Geometry;

use super::schedule::ReadPolicy;

/// How merges use the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveSortSettings {
    /// Pages of a chunk buffer. The paper has 8: four to compute on, and four that are being read,
    /// each from another channel (4.1.3).
    pub chunk_pages: usize,
    /// Pages of the result that are merged before the host asks for them (3.1: "multiple internal
    /// buffers").
    pub output_pages: usize,
    /// Bytes of a page. `None` takes the device's: the bytes on one channel, or, if these are not
    /// known, the size that the device reads best.
    pub page_bytes: Option<u32>,
    /// Which page to read next.
    pub policy: ReadPolicy,
    /// When to ask for pages.
    pub asking: Asking,
}

/// When to ask for the pages for which there is room and whose channel is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    /// Before the next step. A page takes little of the processor, and flash does not have to wait
    /// until another page is merged.
    #[default]
    BeforeStep,
    /// After the step, like firmware that merges in the path of the host's reads and prefetches when
    /// the merge is done.
    AfterStep,
}

impl Default for ActiveSortSettings {
    fn default() -> Self {
        let policy = ReadPolicy::SkipBusy;
        let asking = Asking::BeforeStep;
        ActiveSortSettings { chunk_pages: 8, output_pages: 8, page_bytes: None, policy, asking }
    }
}

impl ActiveSortSettings {
    pub(super) fn page_bytes(self, geometry: Geometry) -> u64 {
        let own = if geometry.stripe_bytes > 0 {
            geometry.stripe_bytes.max(geometry.page_bytes)
        } else {
            geometry.best_io_bytes
        };
        u64::from(self.page_bytes.unwrap_or(own))
    }
}
