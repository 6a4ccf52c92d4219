//! Errors of sessions as a client of gRPC sees them.

use merganser_serve::session::SessionError;
use tonic::{Code, Status};

/// The status of `error`: its sentence, and the code that says whether trying again helps.
pub(crate) fn status(error: &SessionError) -> Status {
    let code = match error {
        SessionError::NoSession { .. } | SessionError::Missing(_) => Code::NotFound,
        SessionError::Busy { .. } => Code::ResourceExhausted,
        SessionError::Invalid(_) => Code::InvalidArgument,
        SessionError::Refused { .. } => Code::PermissionDenied,
        SessionError::State(_) => Code::FailedPrecondition,
        SessionError::Failed(_) => Code::Aborted,
        SessionError::Cancelled => Code::Cancelled,
    };
    let mut sentence: String =
        error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // A header of HTTP/2 carries it.
    sentence.truncate(sentence.floor_char_boundary(2048));
    Status::new(code, sentence)
}
