//! What a session may do when: its states, without any work.

use serde::{Deserialize, Serialize};

use super::{SessionError, SessionResult};

/// Where a session is. The table in [`super`] says what follows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// Its next run gets its ranges.
    Open,
    /// The run waits for memory and threads.
    Queued,
    /// The run is at work.
    Running,
    /// The results are there.
    Done,
    /// The run failed.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

/// What happens to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEvent {
    /// A client adds ranges.
    Set,
    /// A client wants the results of the ranges so far.
    Begin,
    /// The run got memory and threads.
    Admitted,
    /// The run ended well.
    Finished,
    /// The run failed.
    Failed,
    /// The run noticed that it was cancelled.
    Stopped,
}

impl SessionState {
    /// Whether a run is under way.
    #[must_use]
    pub fn is_busy(self) -> bool {
        matches!(self, SessionState::Queued | SessionState::Running)
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// [`SessionError::State`] for a request that does not fit.
    ///
    /// # Panics
    /// For an event of a run that there is not.
    pub(super) fn after(self, event: SessionEvent) -> SessionResult<SessionState> {
        Ok(match (self, event) {
            (
                SessionState::Open
                | SessionState::Done
                | SessionState::Failed
                | SessionState::Cancelled,
                SessionEvent::Set,
            ) => SessionState::Open,
            (SessionState::Queued | SessionState::Running, SessionEvent::Set) => {
                let told = "a run is under way: wait for its end or cancel it before the next set";
                return Err(SessionError::State(told.to_owned()));
            }
            (SessionState::Open, SessionEvent::Begin) => SessionState::Queued,
            // The results of the same ranges are the same.
            (state, SessionEvent::Begin) => state,
            (SessionState::Queued, SessionEvent::Admitted) => SessionState::Running,
            (SessionState::Running, SessionEvent::Finished) => SessionState::Done,
            (SessionState::Queued | SessionState::Running, SessionEvent::Failed) => {
                SessionState::Failed
            }
            (SessionState::Queued | SessionState::Running, SessionEvent::Stopped) => {
                SessionState::Cancelled
            }
            (state, event) => unreachable!("{event:?} in {state:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_states() {
        use SessionEvent::*;
        let run = |events: &[SessionEvent]| {
            events.iter().try_fold(SessionState::Open, |state, event| state.after(*event))
        };
        let state = |events: &[SessionEvent]| run(events).expect("allowed");
        assert_eq!(state(&[Set, Set]), SessionState::Open);
        assert_eq!(state(&[Set, Begin]), SessionState::Queued);
        assert_eq!(state(&[Set, Begin, Begin, Admitted, Begin]), SessionState::Running);
        assert_eq!(state(&[Set, Begin, Admitted, Finished, Begin]), SessionState::Done);
        assert_eq!(state(&[Set, Begin, Admitted, Finished, Set]), SessionState::Open);
        assert_eq!(state(&[Set, Begin, Stopped]), SessionState::Cancelled);
        assert_eq!(state(&[Set, Begin, Admitted, Failed, Set, Begin]), SessionState::Queued);
        for busy in [&[Set, Begin, Set][..], &[Set, Begin, Admitted, Set]] {
            assert!(matches!(run(busy), Err(SessionError::State(_))));
        }
    }
}
