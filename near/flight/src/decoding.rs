//! Arrow's decoder, which panics at some messages that make no sense, such as one with a buffer that begins behind
//! its end. The messages are a stranger's, so its panics are [contained].

use std::future::poll_fn;
use std::task::Poll;

use futures::{Stream, StreamExt};
use merganser_storage::contained::{self, Cause};

/// The decoder panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// The next item of `stream`, which decodes. It is not asked again after an error.
///
/// # Errors
/// When the decoder panics.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Result<Option<S::Item>, Panicked> {
    poll_fn(|context| match contained::run(Cause::Input, || stream.poll_next_unpin(context)) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
