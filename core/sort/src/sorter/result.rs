//! Runs that memory merges at once become the result: a manifest, a file or a stream.

use std::io::Write;
use std::sync::Arc;

use merganser_storage::{Directory, Storage};

use super::{Sorter, merge_room};
use crate::activity;
use crate::merge::sizes::stream_size;
use crate::merge::stream::Stream;
use crate::output::{FileSink, Follow, Out, Top, copy};
use crate::portion::{Portion, Portions, Start};
use crate::run::Run;
use crate::run::release::Released;
use crate::view::{Manifest, Segment, unix_ns};
use crate::{Progress, Result};

impl Sorter<'_> {
    pub(super) fn make_view(
        &mut self,
        folder: &Arc<dyn Directory>,
        name: String,
        header: Vec<u8>,
    ) -> Result<()> {
        let segments = self.runs.iter().map(|run| Segment::of_run(run)).collect();
        let now = unix_ns();
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
        let segments = self.segments();
        let base = header.len() as u64;
        // Removed duplicates move all later records, so windows cannot be aligned beforehand. A
        // sort that wants only the first records does not know its size.
        let exact = !segments.unique && self.options.top.is_none();
        let total = exact.then(|| base + segments.data_bytes());
        let sink = FileSink::new(Arc::clone(storage), 0, Vec::new(), total);
        let (out, align) =
            if exact { (Out::File(sink), Some(base)) } else { (Out::Copied(sink), None) };
        self.merge_to(out, align, header, progress)
    }

    pub(super) fn merge_to_writer(
        &mut self,
        writer: &mut (dyn Write + Send),
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        self.merge_to(Out::Stream(writer, 0), None, header, progress)
    }

    fn merge_to(
        &mut self,
        mut out: Out<'_>,
        align: Option<u64>,
        header: &[u8],
        progress: &dyn Progress,
    ) -> Result<()> {
        let _worker = activity::enter("write");
        let segments = self.segments();
        progress.phase("merging", Some(header.len() as u64 + segments.data_bytes()));
        out.push_bytes(header)?;
        let budget = &self.options.budget;
        let size = stream_size(&segments, budget, merge_room(budget), self.workers)?;
        let mut stream = Stream::new(segments.clone(), None, None, align, size, budget)?;
        let mut behind = Behind { runs: &segments.runs, released: Released::new(&segments.runs) };
        let all = segments.runs.iter().map(|run| run.records()).sum();
        let mut top = Top::new(self.options.top);
        let counted = segments.unique || self.options.top.is_some();
        let taking = counted.then_some((&mut top, &*self.order));
        self.report.output_bytes = copy(&mut stream, out, taking, &mut behind, progress)?;
        behind.released.finish(&segments.runs)?;
        self.report.records = if counted { top.taken } else { all };
        Ok(())
    }
}

/// Gives temporary runs back behind a merge.
struct Behind<'a> {
    runs: &'a [Arc<Run>],
    released: Released,
}

impl Follow for Behind<'_> {
    fn before(&mut self, next: &Portion, _: &mut Out<'_>, _: &mut dyn Portions) -> Result<()> {
        let Start::Merge { needed, .. } = &next.start else { return Ok(()) };
        self.released.release(self.runs, needed)
    }
}
