//! The node's side: finds requests, has them worked on, appends answers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use merganser_storage::file::descriptors;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::counts::NumberCounts;
use super::log::{LogItem, LogReader, LogWriter, is_permanent};
use super::record::{self, CallAnswer, CallOutcome};
use super::serving::Serve;
use super::wait::Waiter;
use super::work::answer;
use super::{FolderError, answer_file, is_name, is_rows_file, request_file};

/// Locked in the folder while a node serves it.
const LOCK_NAME: &str = ".lock";
/// The most clients of a module.
const CLIENTS_MAX: usize = 1024;
/// Files of a client that are open: those of requests and of answers.
const CLIENT_DESCRIPTORS: u64 = 2;
/// The most numbers of a client that are remembered one by one: those that it asked for several times, and those that are
/// not next to the others.
const NUMBERS_MAX: usize = 10_000;
/// For so long bytes that are no record may become one: an NFS server shows the pages of an append in
/// any order.
const PATIENCE: Duration = Duration::from_secs(5);
/// For so long a client must have asked nothing before another one may take its place.
const QUIET: Duration = Duration::from_secs(5);
/// For so long a client is left in peace after an error that may pass. Without a pause, an append that fails and is cut
/// off would wake the node by inotify to fail again.
const RETRY: Duration = Duration::from_millis(250);

/// Serves until `stop` is set. Requests are served one after another, those of all clients in turn.
///
/// It may be killed at any time; the next one continues where it was. A request that `stop` interrupts has no
/// answer, and the next node serves it.
///
/// # Errors
/// When another node serves the folder; when it or its modules can't be made or listed. A fault of one
/// client ends that client alone. An error that may pass, such as a full disk, ends no client: the node tries again.
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
        let handle = open_module(&serve.folder, &shown).map_err(FolderError::on(&shown))?;
        // The open folder itself, whatever a client puts under its name.
        let folder = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        waiter.watch(&folder);
        remove_ended(&folder).map_err(FolderError::on(&shown))?;
        let (clients, quiet) = Default::default();
        modules.push(ServedModule { name, shown, folder, handle, clients, quiet });
    }
    // The calls need open files, too: half of them are for the clients.
    let clients_max = descriptors::left() / 2 / CLIENT_DESCRIPTORS;
    let clients_max = usize::try_from(clients_max).unwrap_or(usize::MAX).max(1);
    while !stop.load(Ordering::Relaxed) {
        let mut served = false;
        for at in 0..modules.len() {
            let known: usize = modules.iter().map(|module| module.clients.len()).sum();
            served |= modules[at].serve(serve, stop, clients_max.saturating_sub(known))?;
        }
        if served {
            waiter.reset();
        } else {
            waiter.wait();
        }
    }
    Ok(())
}

/// Makes the folder of the protocol, for this user alone, if it is missing. Its owner decides which others may call.
///
/// # Errors
/// The system's own.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    make_private(path).map(drop)
}

/// Makes a folder for this user alone, if it is missing. Returns whether it was made.
fn make_private(path: &Path) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens the folder of a module, which is made if it is missing, and may not be a link. One that is made has the permissions
/// of the folder of the protocol, whatever the umask is: these decide who may call.
fn open_module(above: &Path, path: &Path) -> io::Result<fs::File> {
    let is_new = make_private(path)?;
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    let handle = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if is_new {
        // Set-user-ID, set-group-ID and sticky bits included.
        let mode = fs::metadata(above)?.mode() & 0o7777;
        handle.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(handle)
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
    make_folder(folder).map_err(FolderError::on(folder))?;
    let path = folder.join(LOCK_NAME);
    let open = || {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(&path)?;
        // Whoever may open it could hold the lock. Earlier versions left it open to readers; another user's file stays.
        let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            Errno::WOULDBLOCK => {
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

struct ServedModule<'a> {
    name: &'a str,
    /// Its name for errors.
    shown: PathBuf,
    /// The open folder.
    folder: PathBuf,
    handle: fs::File,
    clients: BTreeMap<String, Seen>,
    /// Clients that lost their place to another one, because they asked nothing.
    quiet: BTreeMap<String, QuietFile>,
}

/// The file of requests of a client that was read to its end. Another file, or more of it, is asked again.
#[derive(Debug, PartialEq, Eq)]
struct QuietFile {
    device: u64,
    inode: u64,
    /// `None` for a file that is of no use: it is left alone until it is made again.
    len: Option<u64>,
}

impl QuietFile {
    /// Whether there is nothing new in the file that has these metadata now.
    fn is_still(&self, found: &fs::Metadata) -> bool {
        self.is_of(found) && self.len.is_none_or(|len| len == found.len())
    }

    fn is_of(&self, found: &fs::Metadata) -> bool {
        (self.device, self.inode) == (found.dev(), found.ino())
    }
}

/// A client whose request file was found.
struct Seen {
    /// Reads the request file that was found, and no other one of its name: that is another client's.
    requests: LogReader,
    /// `None` until the file of answers could be opened.
    answers: Option<AnswerLog>,
    /// The next append to the answers. It stays here until it succeeds.
    due: Option<Due>,
    /// Its file when it was looked for last.
    found: QuietFile,
    /// Since when it has asked nothing.
    quiet_since: Option<Instant>,
    /// Since when the next bytes are no record.
    bad_since: Option<Instant>,
    /// It is not served before. `None` if its files can't be used: it is left alone until they are made again.
    served_from: Option<Instant>,
}

/// An append to the answers of a client.
enum Due {
    /// The answer to a request.
    Answer(u64, CallAnswer),
    /// The answer that this request has already, once more.
    Repeat(u64),
    /// The last answer, because of this error.
    Last(String),
}

/// The answers that were given: they are in the log, and their numbers here. A node that starts reads all requests
/// again; those that were answered as often as they were asked are done.
struct AnswerLog {
    path: PathBuf,
    log: LogWriter,
    asked: NumberCounts,
    given: NumberCounts,
}

impl ServedModule<'_> {
    /// Serves one request of each client; whether there was one. It takes at most `room` new clients.
    fn serve(
        &mut self,
        serve: &Serve,
        stop: &AtomicBool,
        room: usize,
    ) -> Result<bool, FolderError> {
        match self.look(room) {
            // The clients that are known are served. The next round finds the others.
            Err(error) if is_used_up(&error) => {}
            looked => looked.map_err(FolderError::on(&self.shown))?,
        }
        let mut served = false;
        for (client, seen) in &mut self.clients {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let answered = seen.next((serve, stop), self.name, &self.folder, client);
            seen.quiet_since = match seen.quiet_since {
                _ if answered || seen.due.is_some() => None,
                since => since.or_else(|| Some(Instant::now())),
            };
            served |= answered;
        }
        Ok(served)
    }

    /// Finds new clients, at most `room` or in the places of quiet ones, and forgets those whose request file is gone or is
    /// another one: they have ended.
    fn look(&mut self, room: usize) -> io::Result<()> {
        if self.handle.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was removed"));
        }
        let mut present = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let client = name.to_str().and_then(|name| name.strip_suffix(".req"));
            let Some(client) = client.filter(|client| is_name(client)) else { continue };
            let metadata = entry.metadata();
            if !metadata.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                present.insert(client.to_owned(), metadata.ok());
            }
        }
        let folder = &self.folder;
        self.clients.retain(|client, seen| {
            let Some(found) = present.get(client) else {
                remove(folder, client);
                return false;
            };
            // A file whose metadata can't be read now may still be the same.
            let Some(found) = found else { return true };
            if !seen.requests.is_of(found) {
                remove(folder, client);
                return false;
            }
            seen.found.len = Some(found.len());
            true
        });
        self.quiet.retain(|client, quiet| match present.get(client) {
            Some(Some(found)) if quiet.is_of(found) => true,
            Some(None) => true,
            _ => {
                remove(folder, client);
                false
            }
        });
        // A file without a byte asks nothing, and takes no place.
        let asks = |client: &String, found: &fs::Metadata| {
            found.len() > 0
                && !self.clients.contains_key(client)
                && !self.quiet.get(client).is_some_and(|quiet| quiet.is_still(found))
        };
        let new: Vec<_> = present
            .into_iter()
            .filter_map(|(client, found)| Some((client, found?)))
            .filter(|(client, found)| asks(client, found))
            .collect();
        let most = CLIENTS_MAX.min(self.clients.len().saturating_add(room));
        for (client, found) in new {
            if self.clients.len() >= most && !self.give_way() {
                break;
            }
            if let Ok(requests) = LogReader::pinned(self.folder.join(request_file(&client))) {
                self.quiet.remove(&client);
                self.clients.insert(client, Seen::new(requests, &found));
            }
        }
        Ok(())
    }

    /// Takes its place from the client that has asked nothing for longest; false if all have asked something lately.
    fn give_way(&mut self) -> bool {
        let quiet = self.clients.iter().filter_map(|(client, seen)| {
            let since = seen.quiet_since.filter(|since| since.elapsed() >= QUIET)?;
            Some((since, client))
        });
        let Some((_, client)) = quiet.min() else { return false };
        let client = client.clone();
        let seen = self.clients.remove(&client).expect("it was found");
        let len = seen.found.len.filter(|_| seen.served_from.is_some());
        self.quiet.insert(client, QuietFile { len, ..seen.found });
        true
    }
}

/// Whether no more files can be opened now.
fn is_used_up(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Removes what was made for a client that has ended.
fn remove(folder: &Path, client: &str) {
    let _ = fs::remove_file(folder.join(answer_file(client)));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_rows_file(name, client)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Seen {
    fn new(requests: LogReader, found: &fs::Metadata) -> Seen {
        Seen {
            requests,
            answers: None,
            due: None,
            found: QuietFile { device: found.dev(), inode: found.ino(), len: Some(found.len()) },
            quiet_since: None,
            bad_since: None,
            served_from: Some(Instant::now()),
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
        if self.served_from.is_none_or(|from| Instant::now() < from) {
            return false;
        }
        match self.try_next(serve, module, folder, client) {
            Ok(served) => served,
            Err(error) if is_permanent(&error) => {
                (self.answers, self.due, self.served_from) = (None, None, None);
                true
            }
            Err(_) => {
                self.served_from = Some(Instant::now() + RETRY);
                false
            }
        }
    }

    fn try_next(
        &mut self,
        serve: (&Serve, &AtomicBool),
        module: &str,
        folder: &Path,
        client: &str,
    ) -> io::Result<bool> {
        let answers = match &mut self.answers {
            Some(answers) => answers,
            none => none.insert(AnswerLog::open(folder.join(answer_file(client)))?),
        };
        if self.due.is_none() {
            let next = self.requests.next()?;
            if !matches!(next, LogItem::Bad(_)) {
                self.bad_since = None;
            }
            let due = match next {
                LogItem::Nothing => return Ok(false),
                LogItem::Record { id, body, is_first } => {
                    if is_first {
                        answers.asked = NumberCounts::default();
                    }
                    answers.asked.add(id);
                    match answers.given.of_number(id) {
                        _ if answers.asked.places() + answers.given.places() > NUMBERS_MAX => {
                            Due::Last("too many of its numbers are repeated or out of order".into())
                        }
                        0 => match answer(serve, module, folder, client, id, &body) {
                            Some(outcome) => Due::Answer(id, CallAnswer { outcome }),
                            // The next node does it.
                            None => return Ok(false),
                        },
                        given if given < answers.asked.of_number(id) => Due::Repeat(id),
                        _ => return Ok(true),
                    }
                }
                LogItem::Bad(error) => {
                    let since = *self.bad_since.get_or_insert_with(Instant::now);
                    if since.elapsed() < PATIENCE {
                        return Ok(false);
                    }
                    Due::Last(error.to_string())
                }
            };
            self.due = Some(due);
        }
        match &self.due {
            Some(Due::Answer(id, answer)) => answers.give(*id, answer)?,
            Some(Due::Repeat(id)) => answers.repeat(*id)?,
            Some(Due::Last(error)) => {
                answers.give(0, &unreadable(error))?;
                return Err(io::Error::other("the rest of the file is of no use"));
            }
            None => {}
        }
        self.due = None;
        Ok(true)
    }
}

fn unreadable(error: &str) -> CallAnswer {
    let error = format!("the file of requests can't be read further: {error}; use a new client");
    CallAnswer { outcome: CallOutcome::Failed { error } }
}

impl AnswerLog {
    /// Opens or makes the file of answers at `path`, and counts those that are there.
    fn open(path: PathBuf) -> io::Result<AnswerLog> {
        let mut given = NumberCounts::default();
        let log = LogWriter::open(&path, |id, _| {
            if given.places() <= NUMBERS_MAX {
                given.add(id);
            }
        })?;
        Ok(AnswerLog { path, log, asked: NumberCounts::default(), given })
    }

    /// Appends an answer to `id`.
    fn give(&mut self, id: u64, answer: &CallAnswer) -> io::Result<()> {
        let record = record::encode(id, answer);
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
        self.give(id, &serde_json::from_slice(&body)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use serde_json::json;

    use super::super::record::CallRequest;
    use super::super::wait::PollIntervals;
    use super::*;
    use merganser_map::ssdlet::builtin;

    /// A file system gives the inode of a removed file to the next one: most of the time, hence the attempts.
    #[test]
    fn a_new_client_with_the_name_of_an_old_one_is_served() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("wordcount");
        let serving = Serve {
            folder: dir.path().to_owned(),
            data: dir.path().to_owned(),
            modules: Vec::new(),
            installed: Arc::new(builtin::open),
            memory_bytes: 64 << 20,
            threads: 1,
            temp: Vec::new(),
            waiting: PollIntervals::default(),
        };
        let handle = open_module(dir.path(), &folder).expect("made");
        let (name, clients) = ("wordcount", BTreeMap::new());
        let mut module = ServedModule {
            name,
            shown: folder.clone(),
            folder: folder.clone(),
            handle,
            clients,
            quiet: BTreeMap::new(),
        };
        let mut serve =
            || module.serve(&serving, &AtomicBool::new(false), 1).expect("there is a folder");
        let path = folder.join("c.req");
        for attempt in 100..130 {
            if attempt % 3 == 0 {
                // It is left alone.
                symlink("nothing", &path).expect("linked");
                serve();
                assert!(!serve());
                fs::remove_file(&path).expect("there");
            }
            let inputs = vec![format!("none-{attempt}")];
            let request =
                record::encode(1, &CallRequest { args: json!({}), inputs }).expect("short");
            fs::write(&path, request).expect("written");
            assert!(serve());
            let mut given = Vec::new();
            let each = |id, body: &[u8]| {
                given.push((id, String::from_utf8_lossy(body).into_owned()));
                true
            };
            LogReader::new(folder.join("c.res")).scan(each).expect("readable");
            assert_eq!((given.len(), given[0].0), (1, 1));
            assert!(given[0].1.contains(&format!("none-{attempt}: ")), "{given:?}");
            fs::remove_file(&path).expect("there");
        }
    }

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
