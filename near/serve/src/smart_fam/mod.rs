//! smartFAM: calls of SSDlets through files in a shared folder, without a network (McSD, section 3.4.2).
//!
//! ```text
//!   client                     folder (an export of the node, or local)                node
//!   append request ──────────► MODULE/<client>.req ──────────────────► read, map, answer
//!   wait, read  ◄───────────── MODULE/<client>.res ◄─────────────────── append answer
//!   read        ◄───────────── MODULE/<client>.<id>.rows ◄──────────── results longer than 64 KiB
//! ```
//!
//! The node makes a folder for each module that it has loaded. Each file has one writer, so that no two
//! machines append to one file. A file is a sequence of [frames](merganser_map::frame), which only grows:
//!
//! - a frame that is not whole yet is awaited; its writer cuts it off when it starts again after a crash;
//! - a request's number is answered once and remembered in the file of answers. If a client sends
//!   it again, or the node was killed at any point, the answer is the same;
//! - a long result is written under another name, synced and renamed before its answer is appended;
//! - an error that may pass, such as a full disk, ends no client: the node keeps the answer and appends it later;
//! - another file with the name of a file of requests is a new client's. The old client has ended.
//!
//! The paper's daemons use inotify on both sides. Over NFS it reports nothing of what another machine
//! did, so here both sides poll, less often while nothing happens. inotify only ends a wait early
//! where the folder is local ([`PollIntervals`]).
//!
//! A client is trusted with nothing: names are checked, no link is followed, only regular files are
//! opened, inputs are opened below the node's data folder, and a file that is no log is left alone.
//! Whoever may write in the folder may call the modules and read all data: its permissions decide.

mod client;
mod counts;
mod log;
mod node;
mod record;
mod result;
mod serving;
mod wait;
mod work;

use std::io;
use std::path::{Path, PathBuf};

pub use client::{CallError, CallResult, ModuleClient};
pub use node::{make_folder, serve};
pub use record::{BODY_MAX, CallAnswer, CallOutcome, CallRequest, MAGIC};
pub use serving::Serve;
pub use wait::PollIntervals;

/// Results up to this many bytes are in the answer itself.
pub const INLINE_MAX: usize = 64 << 10;

/// A file or folder of the protocol could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FolderError {
    /// Which one.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl FolderError {
    fn on(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
        move |source| FolderError { path: path.to_owned(), source }
    }
}

/// Whether `name` may be that of a module or a client: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn request_file(client: &str) -> String {
    format!("{client}.req")
}

fn answer_file(client: &str) -> String {
    format!("{client}.res")
}

fn rows_file(client: &str, id: u64) -> String {
    format!("{client}.{id}.rows")
}

/// The name of a file of rows while it is written.
fn part_file(rows: &str) -> String {
    format!(".{rows}.part")
}

/// Whether `name` is that of a long result of `client`, or of a part of one.
fn is_rows_file(name: &str, client: &str) -> bool {
    let part = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    let name = part.unwrap_or(name);
    let rest = name.strip_prefix(client).and_then(|rest| rest.strip_prefix('.'));
    let id = rest.and_then(|rest| rest.strip_suffix(".rows")).and_then(|id| id.parse().ok());
    id.is_some_and(|id| rows_file(client, id) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_rows_and_their_parts_are_known_by_their_names() {
        assert!(is_rows_file("c.7.rows", "c") && is_rows_file(&part_file("c.7.rows"), "c"));
        for other in
            ["c.rows", "c.07.rows", "c.7.rows.part", ".c.7.rows", "d.7.rows", ".d.7.rows.part"]
        {
            assert!(!is_rows_file(other, "c"), "{other}");
        }
    }
}
