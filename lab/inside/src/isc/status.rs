//! GET: what a host reads to learn how its session does. The link can't interrupt a host, so it polls
//! (the ISC paper, section 2.1.2).
//!
//! ```text
//!   control             the list of sessions, one page                   reads; commands are written here
//!   control + window    session in slot 0: its status, one page
//!          + 4096         its result, byte by byte, zeros after its end
//!   control + 2 windows session in slot 1 …
//! ```
//!
//! A page is a [`merganser_map::frame`] with zeros after it. Any number of reads give the same bytes, so
//! a read that failed is repeated.

use serde::{Deserialize, Serialize};

use merganser_map::frame::{self, FrameError, RecordFrame};

/// Begins the list of sessions and a status.
pub const MAGIC: [u8; 4] = *b"MGis";
/// Bytes of the list and of a status.
pub const PAGE_BYTES: usize = 4096;

const BODY_MAX: usize = PAGE_BYTES - frame::HEAD_BYTES;
/// The longest text of an error in a status.
const TEXT_MAX: usize = 1000;
/// A status names the lengths of at most this many runs.
pub const RUNS_MAX: usize = 64;

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IscState {
    /// It waits for a split.
    Waiting,
    /// It maps, or makes its result.
    Running,
    /// The result can be read.
    Done,
    /// It has ended with an error; only CLOSE is taken.
    Failed,
}

/// The status of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IscStatus {
    /// Its state.
    pub state: IscState,
    /// Splits of this run that are mapped.
    pub splits: u64,
    /// Bytes of this run that are mapped.
    pub mapped_bytes: u64,
    /// Units of the SSDlet's meter in this run.
    pub metered: u64,
    /// Bytes of each sorted run of the result, in their order; one, unless memory was short.
    pub runs: Vec<u64>,
    /// Whether the result was written to the extents of PUT.
    pub put: bool,
    /// Why it failed; empty otherwise.
    pub error: String,
}

impl IscStatus {
    /// Bytes of the result.
    #[must_use]
    pub fn result_bytes(&self) -> u64 {
        self.runs.iter().sum()
    }

    pub(super) fn page(&self, session: u64) -> Vec<u8> {
        let mut shown = self.clone();
        shown.error = shown.error.replace(|c: char| c.is_control(), " ");
        if shown.error.len() > TEXT_MAX {
            let end = (0..=TEXT_MAX).rev().find(|at| shown.error.is_char_boundary(*at));
            shown.error.truncate(end.unwrap_or(0));
        }
        page(session, &shown)
    }

    /// The status in a page.
    ///
    /// # Errors
    /// Bytes that are not a status.
    pub fn decode(bytes: &[u8]) -> Result<IscStatus, FrameError> {
        let frame = RecordFrame::decode(MAGIC, BODY_MAX, bytes)?;
        frame.ok_or_else(|| FrameError::Body("the status is cut short".to_owned()))?.0.value()
    }
}

/// An open session in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedSession {
    /// The number that the host chose at OPEN.
    pub nonce: u64,
    /// The number that the device gave.
    pub session: u64,
    /// Where its status is read; the result follows a page later.
    pub window: u64,
}

/// The page with the list of `sessions`.
pub(super) fn list(sessions: &[ListedSession]) -> Vec<u8> {
    page(0, &sessions)
}

/// The sessions in the page at the control address.
///
/// # Errors
/// Bytes that are no list.
pub fn decode_list(bytes: &[u8]) -> Result<Vec<ListedSession>, FrameError> {
    let frame = RecordFrame::decode(MAGIC, BODY_MAX, bytes)?;
    frame.ok_or_else(|| FrameError::Body("the list is cut short".to_owned()))?.0.value()
}

fn page(id: u64, value: &impl Serialize) -> Vec<u8> {
    let mut page = frame::encode(MAGIC, id, value, BODY_MAX).expect("its parts are limited");
    page.resize(PAGE_BYTES, 0);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_status_fits_into_its_page() {
        let status = IscStatus {
            state: IscState::Failed,
            splits: u64::MAX,
            mapped_bytes: u64::MAX,
            metered: u64::MAX,
            runs: vec![u64::MAX / 100; RUNS_MAX],
            put: true,
            // An escape makes two bytes of each.
            error: "\"".repeat(TEXT_MAX),
        };
        let mut longer = status.clone();
        longer.error.push('é');
        longer.error.insert(0, '\0');
        for status in [&status, &longer] {
            let page = status.page(u64::MAX);
            assert_eq!(page.len(), PAGE_BYTES);
            assert_eq!(IscStatus::decode(&page).expect("good").runs.len(), RUNS_MAX);
        }
    }

    #[test]
    fn a_full_list_fits_into_its_page() {
        let opened = ListedSession { nonce: u64::MAX, session: u64::MAX, window: u64::MAX };
        let sessions = vec![opened; super::super::SESSIONS_MAX];
        assert_eq!(decode_list(&list(&sessions)), Ok(sessions));
    }
}
