//! Runs that memory merges at once become the result: a manifest, a file or a stream.

use std::io::Write;
use std::sync::Arc;

use storage::{Directory, Storage};

use super::{Sorter, merge_room};
use crate::activity::{self, State, wait};
use crate::merge::stream::Stream;
use crate::output::{FileSink, Released, Top};
use crate::view::{Manifest, Segment, stream_size};
use crate::{Error, Progress, Result};

impl Sorter<'_> {
    pub(super) fn make_view(
        &mut self,
        folder: &Arc<dyn Directory>,
        name: String,
        header: Vec<u8>,
    ) -> Result<()> {
        let segments = self.runs.iter().map(|run| Segment::of(run)).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        let manifest = Manifest::new(name, self.options.order.clone(), header, now, segments);
        manifest.write(folder)?;
        self.report.records = manifest.records;
        self.report.output_bytes = manifest.size_bytes;
        Ok(())
    }

    pub(super) fn merge_to_storage(
        &mut self,
        storage: &Arc<dyn Storage>,
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let _worker = activity::enter("write");
        let segments = self.segments();
        let base = header.len() as u64;
        // Removed duplicates move what follows, so windows cannot be aligned beforehand; and a sort
        // that wants only the top does not know its size.
        let exact = !segments.unique && self.options.top.is_none();
        let total = exact.then(|| base + segments.data_bytes());
        progress.phase("merging", Some(base + segments.data_bytes()));
        let mut sink = FileSink::new(Arc::clone(storage), 0, Vec::new(), total);
        sink.push_bytes(header)?;
        let size = {
            let budget = &self.options.budget;
            stream_size(&segments, budget, merge_room(budget), self.options.threads)?
        };
        let budget = &self.options.budget;
        let align = exact.then_some(base);
        let mut stream = Stream::new(segments.clone(), None, None, align, size, budget)?;
        let mut released = Released::new(&segments.runs);
        let mut top = Top::new(self.options.top);
        while let Some(window) = stream.next_window()? {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            released.release(&segments.runs, &window.needed)?;
            progress.advance(window.len as u64);
            if exact {
                sink.push_window(window, &mut stream)?;
            } else {
                let (bytes, more) = top.take(&self.order, window.bytes());
                sink.push_bytes(bytes)?;
                stream.recycle(window.buffer);
                if !more {
                    break;
                }
            }
        }
        released.finish(&segments.runs)?;
        self.report.output_bytes = sink.offset();
        self.report.records = match exact {
            true => segments.runs.iter().map(|r| r.records()).sum(),
            false => top.taken,
        };
        sink.finish()
    }

    pub(super) fn merge_to_writer(
        &mut self,
        writer: &mut (dyn Write + Send),
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let _worker = activity::enter("write");
        let segments = self.segments();
        progress.phase("merging", Some(header.len() as u64 + segments.data_bytes()));
        writer.write_all(header)?;
        let size = {
            let budget = &self.options.budget;
            stream_size(&segments, budget, merge_room(budget), self.options.threads)?
        };
        let mut stream =
            Stream::new(segments.clone(), None, None, None, size, &self.options.budget)?;
        let mut released = Released::new(&segments.runs);
        let mut top = Top::new(self.options.top);
        let mut written = header.len() as u64;
        while let Some(window) = stream.next_window()? {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            released.release(&segments.runs, &window.needed)?;
            progress.advance(window.len as u64);
            let (bytes, more) = top.take(&self.order, window.bytes());
            {
                let _waiting = wait(State::Writing);
                writer.write_all(bytes)?;
            }
            written += bytes.len() as u64;
            stream.recycle(window.buffer);
            if !more {
                break;
            }
        }
        released.finish(&segments.runs)?;
        writer.flush()?;
        self.report.output_bytes = written;
        let known = !segments.unique && self.options.top.is_none();
        let all = segments.runs.iter().map(|r| r.records()).sum();
        self.report.records = if known { all } else { top.taken };
        Ok(())
    }
}
