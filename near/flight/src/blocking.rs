//! Work in a thread that may block.

use merganser_serve::session::SessionError;
use tonic::Status;

use crate::error::status;

/// Does `work` in a thread that may block. A panic of it is an error of this request alone, in a program that
/// does not end at panics; the command does.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionError> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|e| status(&e)),
        Err(_) => Err(Status::internal("the request was ended by a mistake in this program")),
    }
}
