//! Members of different ages: each label says which session of the volume its member was last part of.
//!
//! ```text
//!   the volume was closed    labels  3 closed
//!   1. all labels            labels  4 opening      nothing else is written before all members have it
//!   2. checkpoint            superblock of session 4
//!   3. all labels            labels  4 open
//!   …                        journal, pages, log
//!   close                    superblock, closed; then labels  4 closed
//! ```
//!
//! A cut leaves labels of one step and of the step before it, and no other mixture. So a member whose label is of another
//! session is an older copy that was put back, or its disk lost writes.

use std::sync::Arc;

use merganser_storage::Storage;

use crate::error::{Error, Result};
use crate::label::{self, MemberLabel, SessionStep, Sitting};
use crate::superblock::Superblock;

/// The members of a volume, with their labels.
pub(crate) struct Labels(pub(crate) Vec<(Arc<dyn Storage>, MemberLabel)>);

impl Labels {
    /// Writes into all labels how far a session has come.
    pub(crate) fn note(&self, session: u64, step: SessionStep, checkpoint: u64) -> Result<()> {
        let sitting = Some(Sitting { session, step, checkpoint });
        let labels =
            self.0.iter().map(|(member, label)| (member, MemberLabel { sitting, ..*label }));
        label::write(&labels)
    }

    /// Sets the pages of the volume in all labels that are written from now on.
    pub(crate) fn set_volume_pages(&mut self, pages: u64) {
        self.0.iter_mut().for_each(|(_, label)| label.volume_pages = pages);
    }

    /// Checks that all members were part of the same session as `superblock`.
    ///
    /// # Errors
    /// [`Error::Old`], which names one of those that are older.
    pub(crate) fn check(&self, superblock: &Superblock) -> Result<()> {
        let session = superblock.session;
        let old = |at: usize, detail: String| {
            Err(Error::Old { member: self.0[at].0.name().to_owned(), detail })
        };
        let steps = |step| move |sitting: &Sitting| sitting.step == step;
        let own = |sitting: &&Sitting| sitting.session == session;
        let sittings: Vec<Sitting> = self.0.iter().filter_map(|(_, label)| label.sitting).collect();
        for (at, (_, label)) in self.0.iter().enumerate() {
            let Some(sitting) = label.sitting else {
                if superblock.version >= 3 {
                    return old(
                        at,
                        format!("its label has no session, and the volume is in session {session}"),
                    );
                }
                continue;
            };
            let begins = sitting.session == session + 1 && sitting.step == SessionStep::Opening;
            if sitting.session < session {
                return old(
                    at,
                    format!(
                        "it is as it was in session {}, and the volume is in session {session}",
                        sitting.session
                    ),
                );
            }
            if (sitting.session > session && !begins) || sitting.checkpoint > superblock.checkpoint
            {
                return old(
                    0,
                    format!(
                        "the superblock on the data members is of session {session} and checkpoint {}, and {} knows session {} and checkpoint {}",
                        superblock.checkpoint,
                        self.0[at].0.name(),
                        sitting.session,
                        sitting.checkpoint
                    ),
                );
            }
        }
        // A session that was closed had begun on all members.
        let mut of_session = sittings.iter().filter(own);
        let is_mixed = of_session.clone().any(steps(SessionStep::Closed))
            && of_session.any(steps(SessionStep::Opening));
        match is_mixed {
            true => old(
                0,
                format!("session {session} was closed on some members, and not begun on others"),
            ),
            false => Ok(()),
        }
    }
}
