//! Records the requests of an emulated disk: a trace, and what a report shows.
//!
//! The thread that answers requests only appends them to a list; a thread of this module takes the
//! list now and then, so that no request wakes a thread. Answers come in any order and the trace is in
//! the order of arrivals, so an answer waits here until all before it have come.
//!
//! If the trace can't be written, it ends there, a line says so at once, and all else continues.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use merganser_device::emulated::{Observer, ServedRequest};
use merganser_device::trace::TraceWriter;
use merganser_results::kept::ReportFile;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::in_order::InOrder;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

use super::activity::DiskActivity;

/// The list is taken and written to the file once in this time.
const PERIOD: Duration = Duration::from_millis(250);

/// A recording that gets requests, and has written nothing.
pub(super) struct Prepared {
    list: Arc<List>,
    trace: Option<ReportFile>,
}

/// A recording that runs.
pub(super) struct TraceRecording {
    list: Arc<List>,
    thread: JoinHandle<(DiskActivity, Result<(), Failure>)>,
}

/// A trace that is being written.
struct TraceFile {
    path: PathBuf,
    writer: TraceWriter<BufWriter<File>>,
}

/// Answered requests that have not been taken.
#[derive(Default)]
struct List {
    state: Mutex<Answered>,
    /// The end.
    ended: Condvar,
}

#[derive(Default)]
struct Answered {
    served: Vec<ServedRequest>,
    ended: bool,
}

impl Prepared {
    /// Opens the file of the trace, unless it is one that is being written. It keeps its content.
    pub(super) fn new(path: Option<&Path>) -> Result<Self, Failure> {
        let trace = path.map(ReportFile::open).transpose()?;
        Ok(Prepared { list: Arc::new(List::default()), trace })
    }

    /// What gets the answered requests of an emulated device.
    pub(super) fn observer(&self) -> Observer {
        let list = Arc::clone(&self.list);
        Box::new(move |served| {
            let mut answered = list.state.lock();
            if !answered.ended {
                answered.served.push(served);
            }
        })
    }

    /// Begins: the trace takes the place of what its file held.
    pub(super) fn start(self, title: &str) -> Result<TraceRecording, Failure> {
        let Prepared { list, trace } = self;
        let trace = trace.map(|kept| TraceFile::begin(kept, title)).transpose()?;
        let theirs = Arc::clone(&list);
        let thread = spawn("recording", move || record(&theirs, trace))
            .map_err(|error| Failure::named(&error))?;
        Ok(TraceRecording { list, thread })
    }
}

impl TraceRecording {
    /// Ends with the requests that were answered so far, and says whether the trace has all of them.
    pub(super) fn finish(self) -> (DiskActivity, Result<(), Failure>) {
        self.list.state.lock().ended = true;
        self.list.ended.notify_all();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl TraceFile {
    fn begin(mut kept: ReportFile, title: &str) -> Result<Self, Failure> {
        let path = kept.path().to_owned();
        let mut write = || {
            let mut writer = TraceWriter::new(BufWriter::new(kept.begin()?))?;
            writer.comment(title)?;
            Ok(TraceFile { path: path.clone(), writer })
        };
        write().map_err(|error: io::Error| Failure::on(&path, &error))
    }

    /// Writes these requests, and what was held back before.
    fn write(&mut self, served: &[ServedRequest]) -> io::Result<()> {
        for one in served {
            self.writer.write_timed(&one.request, one.real_ns)?;
        }
        self.writer.flush()
    }
}

fn record(list: &List, mut trace: Option<TraceFile>) -> (DiskActivity, Result<(), Failure>) {
    let mut activity = DiskActivity::default();
    let mut waiting = InOrder::default();
    let (mut ended, mut traced) = (false, Ok(()));
    while !ended {
        let mut answered = list.state.lock();
        if !answered.ended {
            list.ended.wait_for(&mut answered, PERIOD);
        }
        ended = answered.ended;
        let served = std::mem::take(&mut answered.served);
        drop(answered);
        for one in served {
            waiting.add(one.number, one);
        }
        let mut in_order: Vec<ServedRequest> = std::iter::from_fn(|| waiting.take()).collect();
        if ended {
            // One before these was never answered.
            in_order.extend(waiting.rest());
        }
        for one in &in_order {
            activity.add(one);
        }
        if let Some(writing) = &mut trace
            && let Err(error) = writing.write(&in_order)
        {
            let failure = Failure::on(&writing.path, &error);
            notice(&format!("{}; the trace ends here", failure.sentence().unwrap_or_default()));
            (trace, traced) = (None, Err(failure));
        }
    }
    (activity, traced)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use merganser_device::request::{DeviceRequest, RequestKind, SimTime};

    use super::*;

    #[test]
    fn a_trace_that_is_being_written_is_left_alone() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("trace");
        std::fs::write(&path, "an older and longer one\n".repeat(100)).expect("written");
        let start = |title| Prepared::new(Some(&path)).and_then(|ready| ready.start(title));
        let first = start("the first").expect("begins");
        let second = start("the second").err().expect("refused");
        let said = second.sentence().expect("a sentence");
        assert!(said.ends_with("trace: another run writes it now; name another file"), "{said}");
        first.finish().1.expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.contains("# the first\n") && !text.contains("older"), "{text}");
        start("the second").expect("the first has ended").finish().1.expect("written");
    }

    #[test]
    fn a_trace_that_cannot_be_written_ends_and_the_rest_continues() {
        let ready = Prepared::new(Some(Path::new("/dev/full"))).expect("opened");
        let answered = ready.observer();
        let recording = ready.start("a disk").expect("begins");
        let request = |number| {
            let arrival = SimTime(number);
            DeviceRequest { arrival, kind: RequestKind::Read, offset: 0, len: 4096, content: None }
        };
        for number in 0..3 {
            let request = request(number);
            answered(ServedRequest { number, request, modelled_ns: 1, real_ns: 1, depth: 1 });
            // Entries that are not taken would fill the memory.
            let start = Instant::now();
            while !recording.list.state.lock().served.is_empty() {
                assert!(start.elapsed().as_secs() < 20, "request {number} was not taken");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let (activity, traced) = recording.finish();
        assert_eq!(activity.reads.requests, 3);
        let failure = traced.expect_err("the device is full");
        let said = failure.sentence().expect("a sentence");
        assert!(said.starts_with("/dev/full: "), "{said}");
    }
}
