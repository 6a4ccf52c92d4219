//! The node's side: finds requests, maps, appends answers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use merganser_sort::{Budget, Error, Progress};
use merganser_storage::{Directory, thread};
use rustix::fs::{FlockOperation, OFlags, flock};

use super::log::{LogReader, LogWriter, Next};
use super::record::{self, Answer, Outcome, Request};
use super::result::ResultSink;
use super::wait::{Waiter, Waiting};
use super::{FolderError, answer_file, is_name, request_file, rows_file};
use crate::isc::Installed;
use crate::map::{MapInput, MapOptions, MapOutput, PartitionSize, map};
use crate::session::DataFolder;
use crate::ssdlet::SsdletError;

/// Locked in the folder while a node serves it.
const LOCK_NAME: &str = ".lock";
/// The most clients of a module.
const CLIENTS_MAX: usize = 1024;
/// For so long bytes that are no record may become one: an NFS server shows the pages of an append in
/// any order.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a node serves.
pub struct Serve {
    /// The folder of the protocol.
    pub folder: PathBuf,
    /// Inputs are files below it.
    pub data: PathBuf,
    /// The SSDlets that may be called; a folder is made for each.
    pub modules: Vec<String>,
    /// Opens them.
    pub installed: Installed,
    /// Memory of a map, in bytes.
    pub memory_bytes: u64,
    /// Workers of a map.
    pub threads: usize,
    /// Where a map puts what does not fit into memory. Without any, that is an error.
    pub temp: Vec<Arc<dyn Directory>>,
    /// How it waits for requests.
    pub waiting: Waiting,
}

/// Serves until `stop` is set. Requests are served one after another, those of all clients in turn.
///
/// It may be killed at any time; the next one goes on where it was. A request that `stop` interrupts has no
/// answer, and the next node serves it.
///
/// # Errors
/// When another node serves the folder; when it or its modules can't be made or listed. What is wrong with one
/// client ends that client alone.
pub fn serve(serve: &Serve, stop: &AtomicBool) -> Result<(), FolderError> {
    let _lock = lock(&serve.folder)?;
    let mut waiter = Waiter::new(serve.waiting);
    let mut modules = Vec::new();
    for name in &serve.modules {
        let folder = serve.folder.join(name);
        if !is_name(name) {
            let why = "a module's name has 1 to 64 of a-z, 0-9, - and _";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(FolderError { path: folder, source });
        }
        fs::create_dir_all(&folder).map_err(FolderError::on(&folder))?;
        waiter.watch(&folder);
        remove_ended(&folder).map_err(FolderError::on(&folder))?;
        modules.push(Module { name, folder, clients: BTreeMap::new() });
    }
    while !stop.load(Ordering::Relaxed) {
        let mut served = false;
        for module in &mut modules {
            served |= module.serve(serve, stop)?;
        }
        if served {
            waiter.reset();
        } else {
            waiter.wait();
        }
    }
    Ok(())
}

/// Keeps other nodes of this machine away: of two, both would append to the files of answers. It ends with the
/// process.
fn lock(folder: &Path) -> Result<fs::File, FolderError> {
    fs::create_dir_all(folder).map_err(FolderError::on(folder))?;
    let path = folder.join(LOCK_NAME);
    let open = || {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o644).custom_flags(flags);
        let file = options.open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                io::Error::new(io::ErrorKind::WouldBlock, "another node serves this folder")
            }
            error => error.into(),
        })?;
        Ok(file)
    };
    open().map_err(FolderError::on(folder))
}

/// Removes what is left of clients that ended while no node served: a file of answers is made after that of requests.
fn remove_ended(folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    for name in &names {
        // CLIENT.res, CLIENT.ID.rows, .CLIENT.ID.rows.part
        let plain = name.strip_prefix('.').unwrap_or(name);
        let made = [".res", ".rows", ".rows.part"].iter().any(|end| plain.ends_with(end));
        let Some((client, _)) = plain.split_once('.').filter(|_| made) else { continue };
        if is_name(client) && !names.contains(&request_file(client)) {
            let _ = fs::remove_file(folder.join(name));
        }
    }
    Ok(())
}

/// Ends a map when the node is to end.
struct Stopping<'a>(&'a AtomicBool);

impl Progress for Stopping<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Module<'a> {
    name: &'a str,
    folder: PathBuf,
    clients: BTreeMap<String, Seen>,
}

/// A client whose request file was found.
struct Seen {
    /// The request file that was found.
    inode: u64,
    requests: LogReader,
    /// `None` if the file of answers can't be used: the client is left alone.
    answers: Option<Answers>,
    /// Since when the next bytes are no record.
    bad_since: Option<Instant>,
}

/// The answers that were given: they are in the log, and their numbers here.
struct Answers {
    path: PathBuf,
    log: LogWriter,
    times: BTreeMap<u64, Times>,
}

/// How often a number was asked for and answered. A node that starts reads all requests again; those
/// that were answered as often as they were asked are done.
#[derive(Default)]
struct Times {
    asked: u64,
    given: u64,
}

impl Module<'_> {
    /// Serves one request of each client; whether there was one.
    fn serve(&mut self, serve: &Serve, stop: &AtomicBool) -> Result<bool, FolderError> {
        self.look().map_err(FolderError::on(&self.folder))?;
        let mut served = false;
        for (client, seen) in &mut self.clients {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            served |= seen.next((serve, stop), self.name, &self.folder, client);
        }
        Ok(served)
    }

    /// Finds new clients, and forgets those whose request file is gone: they have ended.
    fn look(&mut self) -> io::Result<()> {
        let mut present = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let client = name.to_str().and_then(|name| name.strip_suffix(".req"));
            if let Some(client) = client.filter(|client| is_name(client)) {
                present.insert(client.to_owned(), entry.ino());
            }
        }
        let folder = &self.folder;
        self.clients.retain(|client, seen| {
            let now = present.get(client);
            if now.is_none() {
                seen.remove(folder, client);
            }
            // One that was left alone has another chance with another file.
            now.is_some_and(|inode| seen.answers.is_some() || seen.inode == *inode)
        });
        for (client, inode) in present {
            if self.clients.len() < CLIENTS_MAX && !self.clients.contains_key(&client) {
                let seen = Seen::new(folder, &client, inode);
                self.clients.insert(client, seen);
            }
        }
        Ok(())
    }
}

impl Seen {
    fn new(folder: &Path, client: &str, inode: u64) -> Seen {
        let mut times: BTreeMap<u64, Times> = BTreeMap::new();
        let path = folder.join(answer_file(client));
        let log = LogWriter::open(&path, |id, _| {
            times.entry(id).or_default().given += 1;
        });
        let requests = LogReader::new(folder.join(request_file(client)));
        let answers = log.ok().map(|log| Answers { path, log, times });
        Seen { inode, requests, answers, bad_since: None }
    }

    /// Removes what was made for a client that has ended.
    fn remove(&self, folder: &Path, client: &str) {
        let Some(answers) = &self.answers else { return };
        let _ = fs::remove_file(folder.join(answer_file(client)));
        for id in answers.times.keys() {
            let _ = fs::remove_file(folder.join(rows_file(client, *id)));
        }
    }

    /// Answers the next request, if there is one.
    fn next(
        &mut self,
        serve: (&Serve, &AtomicBool),
        module: &str,
        folder: &Path,
        client: &str,
    ) -> bool {
        let Some(answers) = &mut self.answers else { return false };
        let outcome = match self.requests.next() {
            Ok(Next::Nothing) => {
                self.bad_since = None;
                return false;
            }
            Ok(Next::Record(id, body)) => {
                self.bad_since = None;
                let times = answers.times.entry(id).or_default();
                times.asked += 1;
                match times.given {
                    0 => match answer(serve, module, folder, client, id, &body) {
                        Some(outcome) => answers.give(id, outcome),
                        // The next node does it.
                        None => return false,
                    },
                    given if given < times.asked => answers.repeat(id),
                    _ => Ok(()),
                }
            }
            Ok(Next::Bad(error)) => {
                let since = *self.bad_since.get_or_insert_with(Instant::now);
                if since.elapsed() < PATIENCE {
                    return false;
                }
                answers
                    .give(0, unreadable(&error.to_string()))
                    .and_then(|()| Err(io::Error::other("the rest of the file is of no use")))
            }
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            // It is left alone until its files are made anew.
            self.answers = None;
        }
        true
    }
}

fn unreadable(error: &str) -> Outcome {
    Outcome::Failed {
        error: format!("the file of requests can't be read further: {error}; use a new client"),
    }
}

impl Answers {
    /// Appends an answer to `id`.
    fn give(&mut self, id: u64, outcome: Outcome) -> io::Result<()> {
        let record = record::encode(id, &Answer { outcome });
        self.log.append(&record.map_err(|e| io::Error::other(e.to_string()))?)?;
        self.times.entry(id).or_default().given += 1;
        Ok(())
    }

    /// Appends the answer to `id` once more.
    fn repeat(&mut self, id: u64) -> io::Result<()> {
        let mut given = LogReader::new(self.path.clone());
        while let Next::Record(found, body) = given.next()? {
            if found == id {
                let answer: Answer = serde_json::from_slice(&body)?;
                return self.give(id, answer.outcome);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "an answer that was given is gone"))
    }
}

/// Does what a request asks for; `None` if the node is to end before that is done.
fn answer(
    (serve, stop): (&Serve, &AtomicBool),
    module: &str,
    folder: &Path,
    client: &str,
    id: u64,
    body: &[u8],
) -> Option<Outcome> {
    let mut sink = ResultSink::new(folder, client, id);
    let mapped = thread::contain(|| run((serve, stop), module, body, &mut sink));
    let mapped = mapped.unwrap_or_else(|_| {
        let told = "the call was ended by a mistake in this program";
        Err(SsdletError::Failed(told.to_owned()))
    });
    let outcome = match mapped {
        Ok(()) => sink.finish().map_err(|e| format!("the result can't be written: {e}")),
        Err(error) => {
            sink.discard();
            if matches!(error, SsdletError::Engine(Error::Cancelled)) {
                return None;
            }
            Err(error.to_string())
        }
    };
    Some(outcome.unwrap_or_else(|error| Outcome::Failed { error: shortened(error) }))
}

/// An error that fits into a record.
fn shortened(mut error: String) -> String {
    let end = (0..=4096.min(error.len())).rev().find(|at| error.is_char_boundary(*at));
    error.truncate(end.unwrap_or(0));
    error
}

fn run(
    (serve, stop): (&Serve, &AtomicBool),
    module: &str,
    body: &[u8],
    sink: &mut ResultSink,
) -> Result<(), SsdletError> {
    let request: Request = serde_json::from_slice(body)
        .map_err(|e| SsdletError::Failed(format!("the request makes no sense: {e}")))?;
    let ssdlet = (serve.installed)(module, &request.args)?;
    let budget = Budget::new(serve.memory_bytes);
    let data = DataFolder::new(serve.data.clone());
    let mut inputs = Vec::new();
    for path in &request.inputs {
        let file = data.file(path).map_err(|e| SsdletError::Failed(e.to_string()))?;
        inputs.push(MapInput::detect(file, &budget)?);
    }
    let options = MapOptions {
        budget,
        threads: serve.threads,
        partition: PartitionSize::Auto,
        temp: serve.temp.clone(),
    };
    let options = options.fitting(ssdlet.description(), &inputs);
    map(&*ssdlet, inputs, MapOutput::Rows(sink), &options, &Stopping(stop))?;
    Ok(())
}
