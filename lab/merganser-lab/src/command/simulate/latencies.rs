//! `simulate run --latencies`: each request with the time that it took, as a trace in the order of submission.
//!
//! Requests end in any order, so one that has ended waits here until all that were submitted before it have ended.
//! If the file can't be written, it ends there, and the run continues: its results are not lost.

use std::fs::File;
use std::io::{self, BufWriter};

use merganser_device::request::{DeviceRequest, SimTime};
use merganser_device::results::EndedRequest;
use merganser_device::trace::TraceWriter;
use merganser_results::kept::ReportFile;
use merganser_shell::failure::Failure;
use merganser_shell::in_order::InOrder;

/// The file, and the requests that wait.
pub(super) struct Latencies {
    kept: ReportFile,
    title: String,
    /// Times in the file count from here.
    start: SimTime,
    /// The file keeps its old content until the first request has ended.
    writer: Option<TraceWriter<BufWriter<File>>>,
    waiting: InOrder<EndedRequest>,
    failed: Option<io::Error>,
}

impl Latencies {
    /// Requests from `start` on, below a comment with the title.
    pub(super) fn new(kept: ReportFile, title: String, start: SimTime) -> Self {
        let (writer, failed) = (None, None);
        Latencies { kept, title, start, writer, waiting: InOrder::default(), failed }
    }

    /// A request that has ended.
    pub(super) fn add(&mut self, ended: &EndedRequest) {
        if self.failed.is_some() {
            return;
        }
        self.waiting.add(ended.order, *ended);
        while let Some(ended) = self.waiting.take() {
            if let Err(error) = self.write(&ended) {
                self.failed = Some(error);
                self.waiting = InOrder::default();
            }
        }
    }

    fn write(&mut self, ended: &EndedRequest) -> io::Result<()> {
        let EndedRequest { kind, offset, len, submitted, at, .. } = *ended;
        let arrival = SimTime(submitted.0.saturating_sub(self.start.0));
        let request = DeviceRequest { arrival, kind, offset, len, content: None };
        self.writer()?.write_timed(&request, at.0.saturating_sub(submitted.0))
    }

    fn writer(&mut self) -> io::Result<&mut TraceWriter<BufWriter<File>>> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => {
                let mut writer = TraceWriter::new(BufWriter::new(self.kept.begin()?))?;
                writer.comment(&self.title)?;
                Ok(none.insert(writer))
            }
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first error of writing, with the file's name.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let written = match self.failed.take() {
            Some(error) => Err(error),
            None => self.writer().and_then(TraceWriter::flush),
        };
        written.map_err(|error| Failure::on(self.kept.path(), &error))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use merganser_device::request::RequestKind;

    use super::*;

    fn ended(order: u64, submitted: u64, at: u64) -> EndedRequest {
        EndedRequest {
            stream: 0,
            number: order,
            order,
            together: true,
            kind: RequestKind::Read,
            offset: order * 4096,
            len: 4096,
            submitted: SimTime(submitted),
            at: SimTime(at),
        }
    }

    #[test]
    fn requests_are_in_the_order_of_submission() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("trace");
        let kept = ReportFile::open(&path).expect("opened");
        let mut latencies = Latencies::new(kept, "reads".to_owned(), SimTime(100));
        for one in [ended(1, 110, 150), ended(2, 150, 160), ended(0, 100, 400)] {
            latencies.add(&one);
        }
        latencies.finish().expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        let lines = ["0 R 0 4096 +300", "10 R 4096 4096 +40", "50 R 8192 4096 +10"].join("\n");
        assert_eq!(text, format!("# merganser trace 1\n# reads\n{lines}\n"));
    }

    #[test]
    fn an_older_file_is_kept_until_a_request_has_ended() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("trace");
        std::fs::write(&path, "older").expect("written");
        let new = || {
            let kept = ReportFile::open(&path).expect("opened");
            Latencies::new(kept, "reads".to_owned(), SimTime(0))
        };
        drop(new());
        assert_eq!(std::fs::read(&path).expect("there"), b"older");
        new().finish().expect("a run without requests");
        assert_eq!(std::fs::read(&path).expect("there"), b"# merganser trace 1\n# reads\n");
    }

    #[test]
    fn the_first_error_is_told_at_the_end() {
        let kept = ReportFile::open(Path::new("/dev/full")).expect("opened");
        let mut latencies = Latencies::new(kept, "reads".to_owned(), SimTime(0));
        for order in 0..10_000 {
            latencies.add(&ended(order, order, order + 5));
        }
        assert_eq!(latencies.waiting.rest().count(), 0, "what can't be written takes no memory");
        let said = latencies.finish().expect_err("the device is full");
        assert!(said.sentence().expect("a sentence").starts_with("/dev/full: "), "{said:?}");
    }
}
