//! Records the requests of an emulated disk: a trace, and what a report shows.
//!
//! The thread that answers requests only appends them to a list; a thread of this module takes the
//! list now and then, so that no request wakes a thread. Answers come in any order and the trace is in
//! the order of arrivals, so an answer waits here until all before it have come.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use merganser_device::emulated::{Observer, Served};
use merganser_device::trace::Writer;
use merganser_storage::thread::spawn;
use parking_lot::{Condvar, Mutex};

use super::activity::Activity;
use crate::failure::Failure;

/// The list is taken and written to the file once in this time.
const PERIOD: Duration = Duration::from_millis(250);

/// A recording that runs.
pub struct Recording {
    list: Arc<List>,
    thread: JoinHandle<io::Result<Activity>>,
    path: Option<PathBuf>,
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
    served: Vec<Served>,
    ended: bool,
}

impl Recording {
    /// Begins, with a trace in `path`.
    pub fn start(path: Option<&Path>, title: &str) -> Result<Self, Failure> {
        let trace = path.map(|path| {
            let begin = || {
                let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
                writer.comment(title)?;
                Ok(writer)
            };
            begin().map_err(|error| Failure::on(path, &error))
        });
        let trace = trace.transpose()?;
        let list = Arc::new(List::default());
        let theirs = Arc::clone(&list);
        let thread = spawn("recording", move || record(&theirs, trace))
            .map_err(|error| Failure::named(&error))?;
        Ok(Recording { list, thread, path: path.map(Path::to_owned) })
    }

    /// What gets the answered requests of an emulated device.
    pub fn observer(&self) -> Observer {
        let list = Arc::clone(&self.list);
        Box::new(move |served| {
            let mut answered = list.state.lock();
            if !answered.ended {
                answered.served.push(served);
            }
        })
    }

    /// Ends with the requests that were answered so far.
    pub fn finish(self) -> Result<Activity, Failure> {
        self.list.state.lock().ended = true;
        self.list.ended.notify_all();
        let recorded = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        recorded.map_err(|error| match &self.path {
            Some(path) => Failure::on(path, &error),
            None => Failure::named(&error),
        })
    }
}

fn record(list: &List, mut trace: Option<Writer<BufWriter<File>>>) -> io::Result<Activity> {
    let mut activity = Activity::default();
    let mut early: BTreeMap<u64, Served> = BTreeMap::new();
    let mut next = 0;
    let mut ended = false;
    while !ended {
        let mut answered = list.state.lock();
        if !answered.ended {
            list.ended.wait_for(&mut answered, PERIOD);
        }
        ended = answered.ended;
        let served = std::mem::take(&mut answered.served);
        drop(answered);
        early.extend(served.into_iter().map(|served| (served.number, served)));
        // At the end, one before these was never answered.
        while let Some(entry) = early.first_entry()
            && (ended || *entry.key() == next)
        {
            let served = entry.remove();
            next = served.number + 1;
            activity.add(&served);
            if let Some(trace) = &mut trace {
                trace.write_timed(&served.request, served.real_ns)?;
            }
        }
        if let Some(trace) = &mut trace {
            trace.flush()?;
        }
    }
    Ok(activity)
}
