//! The node's side: finds requests, has them worked on, appends answers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use merganser_storage::Directory;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::counts::Counts;
use super::log::{LogReader, LogWriter, Next};
use super::record::{self, Answer, Outcome};
use super::wait::{Waiter, Waiting};
use super::work::answer;
use super::{FolderError, answer_file, is_name, is_rows_file, request_file};
use crate::isc::Installed;

/// Locked in the folder while a node serves it.
const LOCK_NAME: &str = ".lock";
/// The most clients of a module.
const CLIENTS_MAX: usize = 1024;
/// The most numbers of a client that are remembered one by one: those that it asked for several times, and those that are
/// not next to the others.
const NUMBERS_MAX: usize = 10_000;
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
/// It may be killed at any time; the next one continues where it was. A request that `stop` interrupts has no
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
        let shown = serve.folder.join(name);
        if !is_name(name) {
            let why = "a module's name has 1 to 64 of a-z, 0-9, - and _";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(FolderError { path: shown, source });
        }
        let handle = open_module(&shown).map_err(FolderError::on(&shown))?;
        // The open folder itself, whatever a client puts under its name.
        let folder = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        waiter.watch(&folder);
        remove_ended(&folder).map_err(FolderError::on(&shown))?;
        modules.push(Module { name, shown, folder, handle, clients: BTreeMap::new() });
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

/// Opens the folder of a module, which is made if there is none, and is no link.
fn open_module(path: &Path) -> io::Result<fs::File> {
    fs::create_dir_all(path)?;
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    fs::OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Keeps other nodes of this machine away: of two, both would append to the files of answers. It ends with the
/// process.
struct Lock(fs::File);

impl Drop for Lock {
    /// To close the file is not enough: a child that another thread starts has it, too, until it runs its program.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Locks a folder, and makes it first if it is missing.
fn lock(folder: &Path) -> Result<Lock, FolderError> {
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
        Ok(Lock(file))
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

struct Module<'a> {
    name: &'a str,
    /// Its name for errors.
    shown: PathBuf,
    /// The open folder.
    folder: PathBuf,
    handle: fs::File,
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

/// The answers that were given: they are in the log, and their numbers here. A node that starts reads all requests
/// again; those that were answered as often as they were asked are done.
struct Answers {
    path: PathBuf,
    log: LogWriter,
    asked: Counts,
    given: Counts,
}

impl Module<'_> {
    /// Serves one request of each client; whether there was one.
    fn serve(&mut self, serve: &Serve, stop: &AtomicBool) -> Result<bool, FolderError> {
        self.look().map_err(FolderError::on(&self.shown))?;
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
        if self.handle.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was removed"));
        }
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
        let mut given = Counts::default();
        let path = folder.join(answer_file(client));
        let log = LogWriter::open(&path, |id, _| {
            if given.places() <= NUMBERS_MAX {
                given.add(id);
            }
        });
        let requests = LogReader::new(folder.join(request_file(client)));
        let asked = Counts::default();
        let answers = log.ok().map(|log| Answers { path, log, asked, given });
        Seen { inode, requests, answers, bad_since: None }
    }

    /// Removes what was made for a client that has ended.
    fn remove(&self, folder: &Path, client: &str) {
        if self.answers.is_none() {
            return;
        }
        let _ = fs::remove_file(folder.join(answer_file(client)));
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| is_rows_file(name, client)) {
                let _ = fs::remove_file(entry.path());
            }
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
                answers.asked.add(id);
                match answers.given.of(id) {
                    _ if answers.asked.places() + answers.given.places() > NUMBERS_MAX => answers
                        .give(0, unreadable("too many of its numbers are repeated or out of order"))
                        .and_then(|()| Err(io::Error::other("too many numbers to remember"))),
                    0 => match answer(serve, module, folder, client, id, &body) {
                        Some(outcome) => answers.give(id, outcome),
                        // The next node does it.
                        None => return false,
                    },
                    given if given < answers.asked.of(id) => answers.repeat(id),
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
            // It is left alone until its files are made again.
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
        self.given.add(id);
        Ok(())
    }

    /// Appends the answer to `id` once more.
    fn repeat(&mut self, id: u64) -> io::Result<()> {
        let mut answer = None;
        LogReader::new(self.path.clone()).scan(|found, body| {
            answer = (found == id).then(|| body.to_vec());
            answer.is_none()
        })?;
        let Some(body) = answer else {
            let why = "an answer that was given is gone";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        };
        let answer: Answer = serde_json::from_slice(&body)?;
        self.give(id, answer.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between `fork` and `exec`, a child of another thread has all files of the process.
    #[test]
    fn a_lock_ends_although_a_child_has_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = lock(folder.path()).expect("locked");
        assert!(lock(folder.path()).is_err(), "two nodes");
        let childs = first.0.try_clone().expect("the same open file");
        drop(first);
        lock(folder.path()).expect("the first has ended");
        drop(childs);
    }
}
