//! Space of a view that is given back behind a copy, section after section.

use super::View;
use super::making::Space;
use crate::Result;
use crate::portion::{Portion, Start};

/// Space that was given back or is on its way.
pub(crate) struct GivingBack<'a> {
    view: &'a View,
    /// The section that the copy is in.
    section: usize,
    /// The sections up to that one, from the first one that the copy has not left.
    spaces: Vec<Box<dyn Space + 'a>>,
    /// Where the copy began, the preamble not counted.
    from: u64,
    step: u64,
}

impl<'a> GivingBack<'a> {
    /// For a copy that begins at `from`, the preamble not counted. Space is given back in steps of about
    /// `step` bytes.
    pub(crate) fn new(view: &'a View, from: u64, step: u64) -> Self {
        let section = view.section_at(from);
        GivingBack { view, section, spaces: Vec::new(), from, step }
    }

    /// Begins to give back the space before `next`. It is not read again.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn before(&mut self, next: &Portion) -> Result<()> {
        while let Some(section) = self.view.sections.get(self.section) {
            if self.spaces.is_empty() {
                let begun = self.from.saturating_sub(section.start.bytes);
                self.spaces.push(section.making.space(begun, self.step));
            }
            let space = self.spaces.last_mut().expect("just made");
            if next.output_offset < section.range().end {
                let within = next.output_offset - section.start.bytes;
                return space.release(within, &next.start);
            }
            space.release(section.size.bytes, &Start::Here)?;
            self.section += 1;
            if let Some(section) = self.view.sections.get(self.section) {
                self.spaces.push(section.making.space(0, self.step));
            }
        }
        Ok(())
    }

    /// Waits until all of it is given back.
    ///
    /// # Errors
    /// The storage's own.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.spaces.iter_mut().try_for_each(|space| space.finish())
    }
}
