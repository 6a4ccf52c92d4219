//! The client's side: appends requests, waits for answers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::log::{self, LogReader, LogWriter};
use super::record::{self, CallAnswer, CallOutcome, CallRequest, from_hex};
use super::wait::{PollIntervals, Waiter};
use super::{FolderError, answer_file, is_name, request_file, rows_file};
use merganser_map::ssdlet::rows;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// A name that no file may have.
    #[error("{0:?} is no name: 1 to 64 of a-z, 0-9, - and _")]
    Name(String),
    /// No node has loaded the module.
    #[error("no node serves {module} in {}", folder.display())]
    NoModule {
        /// The module.
        module: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A file could not be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The request is longer than a record may be.
    #[error("the request: {0}")]
    TooLong(String),
    /// The node answered with an error.
    #[error("{0}")]
    Failed(String),
    /// No answer came in time. The node may still answer: ask for the same number again.
    #[error("no answer to request {id} within {waited:?}")]
    Timeout {
        /// Its number.
        id: u64,
        /// The limit.
        waited: Duration,
    },
    /// The answer or its file is not what the protocol says.
    #[error("the answer to request {id} is damaged: {detail}")]
    Damaged {
        /// Its number.
        id: u64,
        /// The fault.
        detail: String,
    },
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallResult {
    /// Keys and values.
    Rows(Vec<(Vec<u8>, Vec<u8>)>),
    /// Records, end to end.
    Records(Vec<u8>),
}

/// A client of the modules in a folder. Its name is its own: of two clients with one name at the same
/// time, both would append to one file.
pub struct ModuleClient {
    folder: PathBuf,
    name: String,
    waiting: PollIntervals,
    modules: BTreeMap<String, ModuleCalls>,
}

struct ModuleCalls {
    requests: LogWriter,
    next: u64,
    /// Where new answers come.
    answers: LogReader,
}

impl ModuleClient {
    /// The client `name` in `folder`. After a crash, the same name finds the answers to its old requests.
    ///
    /// # Errors
    /// A name that no file may have.
    pub fn new(
        folder: &Path,
        name: &str,
        waiting: PollIntervals,
    ) -> Result<ModuleClient, CallError> {
        if !is_name(name) {
            return Err(CallError::Name(name.to_owned()));
        }
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Ok(ModuleClient { folder, name, waiting, modules: BTreeMap::new() })
    }

    /// Calls `module` and waits for its rows, at most `limit`.
    ///
    /// # Errors
    /// As [`CallError`] says. After a timeout, [`ModuleClient::ask`] with the same number continues.
    pub fn call(
        &mut self,
        module: &str,
        args: &Value,
        inputs: &[&str],
        limit: Duration,
    ) -> Result<CallResult, CallError> {
        let id = self.calls(module)?.next;
        self.ask(module, id, args, inputs, limit)
    }

    /// As [`ModuleClient::call`], with a number of the caller's choice, 1 or more. A number that was used before
    /// has the answer that it had then, whatever the arguments are now.
    ///
    /// # Errors
    /// As [`ModuleClient::call`].
    pub fn ask(
        &mut self,
        module: &str,
        id: u64,
        args: &Value,
        inputs: &[&str],
        limit: Duration,
    ) -> Result<CallResult, CallError> {
        let folder = self.folder.join(module);
        let (waiting, client) = (self.waiting, self.name.clone());
        let calls = self.calls(module)?;
        let answers = folder.join(answer_file(&client));
        let found = |body: &[u8]| result(id, body, &folder.join(rows_file(&client, id)));
        // A new number has no answer yet; that of an old one may be anywhere.
        let mut from_start = LogReader::new(answers.clone());
        let is_new = id >= calls.next;
        if !is_new
            && let Some(body) = look(&mut from_start, id).map_err(FolderError::on(&answers))?
        {
            return found(&body);
        }
        let inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        let request = CallRequest { args: args.clone(), inputs };
        let record = record::encode(id, &request).map_err(|e| CallError::TooLong(e.to_string()))?;
        let requests = folder.join(request_file(&client));
        calls.requests.append(&record).map_err(FolderError::on(&requests))?;
        calls.next = calls.next.max(id.saturating_add(1));
        let reader = if is_new { &mut calls.answers } else { &mut from_start };
        let mut waiter = Waiter::new(waiting);
        waiter.watch(&folder);
        let started = Instant::now();
        loop {
            if let Some(body) = look(reader, id).map_err(FolderError::on(&answers))? {
                return found(&body);
            }
            if started.elapsed() >= limit {
                return Err(CallError::Timeout { id, waited: limit });
            }
            waiter.wait();
        }
    }

    /// Ends the client: the node then removes the answers and results.
    pub fn close(self) {
        for module in self.modules.keys() {
            let _ = fs::remove_file(self.folder.join(module).join(request_file(&self.name)));
        }
    }

    fn calls(&mut self, module: &str) -> Result<&mut ModuleCalls, CallError> {
        if !is_name(module) {
            return Err(CallError::Name(module.to_owned()));
        }
        let folder = self.folder.join(module);
        if !self.modules.contains_key(module) {
            if !folder.is_dir() {
                let (module, folder) = (module.to_owned(), self.folder.clone());
                return Err(CallError::NoModule { module, folder });
            }
            let path = folder.join(request_file(&self.name));
            let mut next = 1;
            let requests = LogWriter::open(&path, |id, _| next = next.max(id.saturating_add(1)))
                .map_err(FolderError::on(&path))?;
            // Numbers that an earlier client of this name used are not used again.
            let path = folder.join(answer_file(&self.name));
            let mut answers = LogReader::new(path.clone());
            let used = answers.scan(|id, _| {
                next = next.max(id.saturating_add(1));
                true
            });
            used.map_err(FolderError::on(&path))?;
            let calls = ModuleCalls { requests, next, answers };
            self.modules.insert(module.to_owned(), calls);
        }
        Ok(self.modules.get_mut(module).expect("just there"))
    }
}

/// Reads answers until that to `id`, or the answer 0, which ends all calls of a client. Bytes that are no
/// record are awaited: the node cuts them off, or they become one.
fn look(answers: &mut LogReader, id: u64) -> io::Result<Option<Vec<u8>>> {
    let mut answer = None;
    answers.scan(|found, body| {
        answer = (found == id || found == 0).then(|| body.to_vec());
        answer.is_none()
    })?;
    Ok(answer)
}

/// The result that an answer gives.
fn result(id: u64, body: &[u8], rows_path: &Path) -> Result<CallResult, CallError> {
    let damaged = |detail: String| CallError::Damaged { id, detail };
    let answer: CallAnswer = serde_json::from_slice(body).map_err(|e| damaged(e.to_string()))?;
    let (keyed, bytes) = match answer.outcome {
        CallOutcome::Failed { error } => return Err(CallError::Failed(error)),
        CallOutcome::Inline { keyed, hex } => {
            (keyed, from_hex(&hex).ok_or_else(|| damaged("it is not hexadecimal".to_owned()))?)
        }
        CallOutcome::File { keyed, bytes, crc32c } => {
            let file = log::open(rows_path).map_err(FolderError::on(rows_path))?;
            let mut found = Vec::new();
            file.take(bytes.saturating_add(1))
                .read_to_end(&mut found)
                .map_err(FolderError::on(rows_path))?;
            let crc = crc32c::crc32c(&found);
            if found.len() as u64 != bytes || crc != crc32c {
                let detail = format!(
                    "{} has {} bytes with the CRC {crc:08x} instead of {bytes} with {crc32c:08x}",
                    rows_path.display(),
                    found.len()
                );
                return Err(damaged(detail));
            }
            (keyed, found)
        }
    };
    if !keyed {
        return Ok(CallResult::Records(bytes));
    }
    rows(&bytes).map(CallResult::Rows).map_err(|e| damaged(e.to_string()))
}
