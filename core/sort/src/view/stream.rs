//! The bytes of a view in order: over all sections, one after the other.
//!
//! ```text
//!   section 0: portions ──┐
//!   section 1: portions ──┼─► ViewPortions ──► ViewStream (bytes)   output::copy_view   readers
//!   section 2: portions ──┘       only one section's workers run at a time
//! ```

use std::ops::Range;
use std::sync::Arc;

use merganser_storage::Buffer;
use merganser_storage::numbers::{usize_of, usize_of_u32};

use super::making::{Measure, Origin, Purpose, Section};
use super::memory::ReadMemory;
use super::{ResumePoint, View};
use crate::Result;
use crate::bound::Bound;
use crate::portion::{Portion, Portions, Ticket};
use crate::run::format::corrupt;

/// Portions of a view. Places are in bytes, the preamble not counted.
pub(crate) struct ViewPortions {
    /// The name of the view, for errors.
    name: String,
    sections: Arc<[Section]>,
    memory: Arc<ReadMemory>,
    purpose: Purpose,
    align: Option<u64>,
    /// The part of the sections that were not begun yet.
    rest: Range<u64>,
    /// The bound at the start of `rest`, where that is a resume point.
    resumed: Option<Option<Bound>>,
    /// Where the first portion has to begin, then.
    expected: Option<u64>,
    next_section: usize,
    current: Option<Link>,
    /// Streams that are at their end, as long as their buffers are out.
    ended: Vec<Link>,
}

/// The stream of one section.
struct Link {
    section: usize,
    portions: Box<dyn Portions>,
    /// Buffers that did not come back yet.
    out: usize,
}

impl Link {
    /// The number of its section, as tickets have it.
    fn number(&self) -> u32 {
        u32::try_from(self.section).expect("a list of more sections has no room in memory")
    }
}

impl ViewPortions {
    fn new(view: &View, rest: Range<u64>, align: Option<u64>, purpose: Purpose) -> Self {
        let next_section = view.sections.partition_point(|s| s.range().end <= rest.start);
        ViewPortions {
            name: view.name.clone(),
            sections: Arc::clone(&view.sections),
            memory: Arc::clone(&view.memory),
            purpose,
            align,
            rest,
            resumed: None,
            expected: None,
            next_section,
            current: None,
            ended: Vec::new(),
        }
    }

    /// Begins the next section; false after the last one.
    fn begin(&mut self) -> Result<bool> {
        let Some(section) = self.sections.get(self.next_section) else { return Ok(false) };
        if self.rest.is_empty() {
            return Ok(false);
        }
        let Range { start, end } = section.range();
        let place = self.rest.start - start;
        let resumed = self.resumed.take();
        let origin = match &resumed {
            Some(bound) => Origin::Resumed(place, bound.as_ref()),
            None => Origin::Byte(place),
        };
        let align = self.align.map(|base| base + start);
        let (to, purpose) = (self.rest.end.min(end) - start, self.purpose);
        let portions = section.making.portions(&self.memory, origin, to, align, purpose)?;
        self.current = Some(Link { section: self.next_section, portions, out: 0 });
        self.rest.start = end;
        self.next_section += 1;
        Ok(true)
    }
}

impl ViewPortions {
    /// Takes back a portion that its reader has passed. Its bytes are kept where that is worth it.
    pub(super) fn keep(&mut self, portion: Portion) {
        let section = &self.sections[usize_of_u32(portion.ticket.link)];
        let (place, ticket) = (portion.output_offset - section.start.bytes, portion.ticket);
        let left = section.making.keep(&self.memory, place, portion);
        let buffer = left.map_or_else(Buffer::empty, |portion| portion.buffer);
        self.recycle(buffer, ticket);
    }

    /// Whether the next portion is of another section, which gets the memory of this one.
    pub(super) fn is_between_sections(&self) -> bool {
        let more = self.next_section < self.sections.len() && !self.rest.is_empty();
        more && self.current.as_ref().is_some_and(|link| link.portions.is_at_end())
    }
}

impl Portions for ViewPortions {
    fn next(&mut self) -> Result<Option<Portion>> {
        loop {
            if let Some(link) = &mut self.current {
                if let Some(mut portion) = link.portions.next()? {
                    link.out += 1;
                    portion.output_offset += self.sections[link.section].start.bytes;
                    portion.ticket.link = link.number();
                    if let Some(place) =
                        self.expected.take().filter(|e| *e != portion.output_offset)
                    {
                        let detail = "its resume point and its runs contradict each other";
                        return Err(corrupt(&self.name, place, detail.to_owned()));
                    }
                    return Ok(Some(portion));
                }
                self.ended.extend(self.current.take());
                self.ended.retain(|link| link.out > 0);
            }
            if !self.begin()? {
                return Ok(None);
            }
        }
    }

    fn recycle(&mut self, buffer: Buffer, ticket: Ticket) {
        let of = |link: &&mut Link| link.number() == ticket.link;
        if let Some(link) = self.current.iter_mut().chain(&mut self.ended).find(of) {
            link.out -= 1;
            link.portions.recycle(buffer, ticket);
        }
        self.ended.retain(|link| link.out > 0);
    }

    /// The next section gets the memory of this one, so all of that has to be back.
    fn wants_buffers(&self) -> bool {
        let waiting = self.current.as_ref().is_some_and(|link| link.portions.wants_buffers());
        waiting || self.is_between_sections()
    }

    fn is_at_end(&self) -> bool {
        let ended = self.current.as_ref().is_none_or(|link| link.portions.is_at_end());
        ended && (self.rest.is_empty() || self.next_section == self.sections.len())
    }
}

impl View {
    /// The bytes of `range`, in order, made ahead on all cores.
    ///
    /// # Errors
    /// [`crate::Error::Memory`]; the storage's own. A range is cut at the end of the view.
    pub fn stream(&self, range: Range<u64>) -> Result<ViewStream<'_>> {
        let end = range.end.min(self.manifest.size_bytes);
        let start = range.start.min(end);
        let preamble = self.preamble_bytes();
        let head =
            &self.manifest.preamble[usize_of(start.min(preamble))..usize_of(end.min(preamble))];
        let (from, to) = (start.max(preamble) - preamble, end.max(preamble) - preamble);
        let mut portions = ViewPortions::new(self, from..to, None, Purpose::Whole);
        // Errors of the first section are returned now.
        portions.begin()?;
        Ok(ViewStream { view: self, head, portions, current: None, given: 0..0, from, to })
    }

    /// Portions for a reader that continues from `place`.
    pub(super) fn read_ahead(&self, place: u64) -> Result<ViewPortions> {
        let rest = place..self.whole().bytes;
        let mut portions = ViewPortions::new(self, rest, None, Purpose::ReadAhead);
        portions.begin()?;
        Ok(portions)
    }

    /// All portions from `point` on, each with the place in its buffer that it has in a file that
    /// reads like the view.
    ///
    /// # Errors
    /// As [`View::stream`].
    pub(crate) fn resume(&self, point: &ResumePoint) -> Result<ViewPortions> {
        let preamble = self.preamble_bytes();
        let from = point.written.saturating_sub(preamble);
        let rest = from..self.whole().bytes;
        let mut portions = ViewPortions::new(self, rest, Some(preamble), Purpose::Whole);
        portions.resumed = Some(point.bound.clone());
        portions.expected = Some(from);
        portions.begin()?;
        Ok(portions)
    }

    /// All bytes and records, the preamble not counted.
    pub(super) fn whole(&self) -> Measure {
        let bytes = self.manifest.size_bytes - self.preamble_bytes();
        Measure { bytes, records: self.manifest.records }
    }
}

/// A stretch of a view, read in order.
pub struct ViewStream<'a> {
    view: &'a View,
    head: &'a [u8],
    portions: ViewPortions,
    current: Option<Portion>,
    /// The bytes of `current` that were handed out last.
    given: Range<usize>,
    from: u64,
    to: u64,
}

impl ViewStream<'_> {
    /// The next bytes, at least one; `None` at the end.
    ///
    /// # Errors
    /// Damage found, or the storage's own; the stream ends there.
    pub fn next_bytes(&mut self) -> Result<Option<&[u8]>> {
        if !self.head.is_empty() {
            return Ok(Some(std::mem::take(&mut self.head)));
        }
        if self.from >= self.to {
            return Ok(None);
        }
        loop {
            if let Some(portion) = self.current.take() {
                self.given = 0..0;
                self.portions.recycle(portion.buffer, portion.ticket);
            }
            let Some(portion) = self.portions.next()? else {
                return Err(self.view.contradiction(self.view.preamble_bytes() + self.from));
            };
            let range = portion.range();
            let (start, end) = (range.start.max(self.from), range.end.min(self.to));
            if start < end {
                let wanted = usize_of(start - range.start)..usize_of(end - range.start);
                (self.from, self.given) = (end, wanted.clone());
                return Ok(Some(&self.current.insert(portion).bytes()[wanted]));
            }
            self.current = Some(portion);
        }
    }

    /// The records that [`ViewStream::next_bytes`] handed out last, for a reader that comes back to them; no
    /// bytes before its first call, and none of the preamble.
    #[must_use]
    pub fn last_bytes(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |portion| &portion.bytes()[self.given.clone()])
    }
}
