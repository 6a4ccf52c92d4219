//! The directory inside, whose names a crash may give back.

use std::io;
use std::sync::Arc;

use merganser_storage::Directory;
use parking_lot::{Mutex, MutexGuard};

use super::disk::{DiskState, NameChange, off};
use super::node::NodeId;

pub(super) struct WrappedNames {
    pub(super) inner: Arc<dyn Directory>,
    pub(super) state: Mutex<DiskState>,
}

impl WrappedNames {
    pub(super) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock()
    }

    /// The state, if there is power.
    pub(super) fn powered(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let state = self.lock();
        if state.power.is_off() { Err(self.named(&off())) } else { Ok(state) }
    }

    /// `error` with the directory's name.
    pub(super) fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.inner.name()))
    }

    /// The node of a name, which may have been there before us.
    pub(super) fn find(&self, state: &mut DiskState, name: &str) -> io::Result<NodeId> {
        if let Some(&id) = state.names.get(name) {
            return Ok(id);
        }
        let storage = self.inner.open(name, false)?;
        let id = state.add(&storage, false, true);
        state.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Takes the name from what bears it, so that a crash can give it back.
    pub(super) fn hide(&self, state: &mut DiskState, name: &str) -> io::Result<(String, NodeId)> {
        let id = self.find(state, name)?;
        let hidden = state.hidden_name();
        self.inner.rename(name, &hidden)?;
        state.names.remove(name);
        state.node(id).named = false;
        Ok((hidden, id))
    }

    /// Takes a change of names back.
    pub(super) fn undo(&self, state: &mut DiskState, change: NameChange) -> io::Result<()> {
        match change {
            NameChange::Created { name } => {
                self.inner.remove(&name)?;
                state.names.remove(&name);
            }
            NameChange::Renamed { from, to, replaced } => {
                self.inner.rename(&to, &from)?;
                let id = state.names.remove(&to).expect("renamed to it");
                state.names.insert(from, id);
                if let Some((hidden, id)) = replaced {
                    self.inner.rename(&hidden, &to)?;
                    state.names.insert(to, id);
                }
            }
            NameChange::Removed { name, hidden, node } => {
                self.inner.rename(&hidden, &name)?;
                state.names.insert(name, node);
            }
        }
        Ok(())
    }

    /// Makes a change of names final.
    pub(super) fn commit(&self, change: NameChange) -> io::Result<Option<NodeId>> {
        match change {
            NameChange::Renamed { replaced: Some((hidden, node)), .. }
            | NameChange::Removed { hidden, node, .. } => {
                self.inner.remove(&hidden)?;
                Ok(Some(node))
            }
            NameChange::Created { .. } | NameChange::Renamed { replaced: None, .. } => Ok(None),
        }
    }
}
