//! Why a request of a session is refused, or why its run failed.

use std::io;

use merganser_map::admission::AdmissionError;
use merganser_map::ssdlet::NotNow;
use merganser_map::ssdlet::SsdletError;

/// The answer to a request that can't be done. The texts are whole sentences for the client.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No open session has this id: it was closed, was idle for too long, or never was.
    #[error("there is no open session {id}; it was closed or idle for too long, open another one")]
    NoSession {
        /// What the client called it, cut to 64 bytes.
        id: String,
    },
    /// Too much is going on.
    #[error("busy: {what}; come again later")]
    Busy {
        /// The thing that is used up.
        what: String,
    },
    /// A request breaks a limit or makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// There is no such file, view, blob or SSDlet.
    #[error("{0}")]
    Missing(String),
    /// The path may not be read.
    #[error("{path}: {reason}")]
    Refused {
        /// The path below the data folder.
        path: String,
        /// Why.
        reason: String,
    },
    /// The request does not fit the session's state.
    #[error("{0}")]
    State(String),
    /// The run failed; this is its one sentence.
    #[error("{0}")]
    Failed(String),
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
}

impl SessionError {
    /// An error of the system on `path`, a path as the client knows it.
    pub(super) fn on(path: &str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => {
                SessionError::Missing(format!("{path}: there is no such file"))
            }
            io::ErrorKind::PermissionDenied => {
                let inner = error.get_ref().map(ToString::to_string);
                let reason = inner.unwrap_or_else(|| "this server may not read it".to_owned());
                SessionError::Refused { path, reason }
            }
            _ => SessionError::Failed(format!("{path}: {error}")),
        }
    }
}

impl From<AdmissionError> for SessionError {
    fn from(error: AdmissionError) -> Self {
        match error {
            AdmissionError::Least { .. } => SessionError::Invalid(error.to_string()),
            AdmissionError::Queue { .. } | AdmissionError::InUse => {
                SessionError::Busy { what: error.to_string() }
            }
            AdmissionError::Cancelled => SessionError::Cancelled,
        }
    }
}

impl From<SsdletError> for SessionError {
    fn from(error: SsdletError) -> Self {
        match error {
            SsdletError::Unknown { .. } => {
                SessionError::Missing(format!("{error}; the action list names those of this node"))
            }
            SsdletError::Args { .. } | SsdletError::Argument { .. } => {
                SessionError::Invalid(error.to_string())
            }
            SsdletError::Engine(merganser_sort::Error::Cancelled) => SessionError::Cancelled,
            error if NotNow::of_error(&error).is_some() => {
                let what = error.to_string();
                let what = what.strip_suffix("; come again later").unwrap_or(&what).to_owned();
                SessionError::Busy { what }
            }
            error => SessionError::Failed(error.to_string()),
        }
    }
}

/// The results of this module.
pub type SessionResult<T, E = SessionError> = Result<T, E>;
