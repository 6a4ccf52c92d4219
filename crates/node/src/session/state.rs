//! What a session may do when: its states, without any work.

use serde::{Deserialize, Serialize};

use super::{Result, SessionError};

/// Where a session is. The table in [`super`] says what follows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
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
pub(super) enum Event {
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

impl State {
    /// Whether a run is under way.
    #[must_use]
    pub fn is_busy(self) -> bool {
        matches!(self, State::Queued | State::Running)
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// [`SessionError::State`] for a request that does not fit.
    ///
    /// # Panics
    /// For an event of a run that there is not.
    pub(super) fn after(self, event: Event) -> Result<State> {
        Ok(match (self, event) {
            (State::Open | State::Done | State::Failed | State::Cancelled, Event::Set) => {
                State::Open
            }
            (State::Queued | State::Running, Event::Set) => {
                let told = "a run is under way: wait for its end or cancel it before the next set";
                return Err(SessionError::State(told.to_owned()));
            }
            (State::Open, Event::Begin) => State::Queued,
            // The results of the same ranges are the same.
            (state, Event::Begin) => state,
            (State::Queued, Event::Admitted) => State::Running,
            (State::Running, Event::Finished) => State::Done,
            (State::Queued | State::Running, Event::Failed) => State::Failed,
            (State::Queued | State::Running, Event::Stopped) => State::Cancelled,
            (state, event) => unreachable!("{event:?} in {state:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_states() {
        use Event::*;
        let run = |events: &[Event]| {
            events.iter().try_fold(State::Open, |state, event| state.after(*event))
        };
        let state = |events: &[Event]| run(events).expect("allowed");
        assert_eq!(state(&[Set, Set]), State::Open);
        assert_eq!(state(&[Set, Begin]), State::Queued);
        assert_eq!(state(&[Set, Begin, Begin, Admitted, Begin]), State::Running);
        assert_eq!(state(&[Set, Begin, Admitted, Finished, Begin]), State::Done);
        assert_eq!(state(&[Set, Begin, Admitted, Finished, Set]), State::Open);
        assert_eq!(state(&[Set, Begin, Stopped]), State::Cancelled);
        assert_eq!(state(&[Set, Begin, Admitted, Failed, Set, Begin]), State::Queued);
        for busy in [&[Set, Begin, Set][..], &[Set, Begin, Admitted, Set]] {
            assert!(matches!(run(busy), Err(SessionError::State(_))));
        }
    }
}
