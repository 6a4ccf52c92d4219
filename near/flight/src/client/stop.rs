//! The end of a call before the node ends it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{ClientError, Result};

/// How often a call looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Ends the calls of all clients that have a clone of it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends their calls, also those to come.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The result of `call`, if that takes at most `patience`.
    pub(super) async fn within<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = T>,
    ) -> Result<T> {
        match timeout_at(Instant::now() + patience, self.unless_set(call)).await {
            Ok(answer) => answer,
            Err(_) => {
                let told = format!("no answer within {} seconds", patience.as_secs());
                Err(ClientError::Connection(told))
            }
        }
    }

    /// The result of `call`, however long it takes.
    pub(super) async fn unless_set<T>(&self, call: impl Future<Output = T>) -> Result<T> {
        let stopped = async {
            while !self.is_set() {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            answer = call => Ok(answer),
            () = stopped => Err(ClientError::Stopped),
        }
    }
}
