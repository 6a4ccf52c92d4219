//! A directory that fails as its plan says, and forgets data that was not synced.
//!
//! Faults that exist (everything else works as the directory inside does):
//!
//! | fault | what happens |
//! |---|---|
//! | [`Fault::FailRead`] | the n-th read moves nothing and is an error |
//! | [`Fault::FailWrite`] | the n-th write is an error; some first pages of it have arrived |
//! | [`Fault::FailSync`] | the n-th sync (of a storage or the directory) is an error; what it should have secured may be lost even if a later sync succeeds |
//! | [`Fault::FailCreate`], [`Fault::FailRename`] | the n-th does nothing and is an error |
//! | [`Fault::ShortRead`] | the n-th read ends early, as if the file had been cut meanwhile |
//! | [`Fault::FlipRead`] | one bit of what the n-th read brings is wrong; the next read is right |
//! | [`Fault::FlipWrite`] | one bit of what the n-th write stores is wrong and stays so |
//! | [`Fault::Full`] | only `bytes` bytes fit, counted in pages; the first pages of the write that is too long arrive |
//! | [`Fault::PowerCut`] | the n-th change is torn and from then on everything is an error, until [`Faulty::crash`] |
//!
//! [`Faulty::crash`] cuts the power at any moment and restores it. Then:
//!
//! - A storage holds its content at its last good sync. Each page (4 KiB) that changed since then
//!   has the old or the new content. The size is the old or the new one.
//! - Of the creates, renames and removes since the last good sync of the directory, the first few
//!   have happened and the others have not, as in a journalling file system. Syncing a storage does
//!   not secure its name.
//! - Unnamed storages are gone; handles from before only give errors.
//!
//! Not modelled: misdirected writes, slow operations, completions out of order (each operation ends
//! before its submit returns), writes that a storage forgets although it was synced.

mod disk;
mod handle;
mod names;
mod node;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use merganser_storage::{Clock, Directory, Storage};
use parking_lot::Mutex;

use disk::{DiskState, HIDDEN, MachinePower, NameChange};
use names::WrappedNames;
use node::NodeId;
pub use plan::{Fault, FaultPlan, OperationCounts};

use crate::Random;

/// A directory that wraps another one and fails.
pub struct Faulty {
    wrapped: Arc<WrappedNames>,
}

impl Faulty {
    /// Wraps `inner`. The plan goes to standard error, so that a failed test shows it.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a failed test shows it")]
    pub fn new(inner: Arc<dyn Directory>, plan: FaultPlan) -> Arc<Faulty> {
        eprintln!("{plan}");
        Self::powered_by(Arc::default(), inner, plan)
    }

    /// Wraps another directory of the same machine under a plan of its own. They share the power:
    /// [`Fault::PowerCut`] counts the changes of both, and belongs into both plans; [`crash`] each
    /// of them before going on.
    ///
    /// [`crash`]: Faulty::crash
    #[must_use]
    pub fn beside(&self, inner: Arc<dyn Directory>, plan: FaultPlan) -> Arc<Faulty> {
        let power = Arc::clone(&self.wrapped.lock().power);
        Self::powered_by(power, inner, plan)
    }

    fn powered_by(
        power: Arc<MachinePower>,
        inner: Arc<dyn Directory>,
        plan: FaultPlan,
    ) -> Arc<Faulty> {
        let state = DiskState {
            random: Random::new(plan.seed),
            full_bytes: plan.full_bytes(),
            faults: plan.faults.into_iter().collect(),
            counts: OperationCounts::default(),
            fired: Vec::new(),
            power,
            boot: 0,
            names: BTreeMap::new(),
            nodes: BTreeMap::new(),
            journal: Vec::new(),
            serial: 0,
        };
        Arc::new(Faulty { wrapped: Arc::new(WrappedNames { inner, state: Mutex::new(state) }) })
    }

    /// Puts another storage, for example an input, under the same plan. It is not writable through
    /// the returned handle. A crash does not change it, but ends the handle.
    #[must_use]
    pub fn wrap(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        let mut state = self.wrapped.lock();
        let id = state.add(&storage, false, false);
        state.node(id).pages.clear();
        self.wrapped.handle(&mut state, id, storage)
    }

    /// The number of operations so far.
    #[must_use]
    pub fn counts(&self) -> OperationCounts {
        self.wrapped.lock().counts
    }

    /// The faults that have happened so far, in order.
    #[must_use]
    pub fn fired(&self) -> Vec<Fault> {
        self.wrapped.lock().fired.clone()
    }

    /// Bytes in use, in whole pages, by storages that have a name or a handle.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.wrapped.lock().used_bytes()
    }

    /// Cuts the power and restores it; the top of the file describes the effects. Planned faults
    /// that have not fired may still do so.
    ///
    /// # Errors
    /// Those of the directory inside.
    pub fn crash(&self) -> io::Result<()> {
        let mut state = self.wrapped.lock();
        state.boot += 1;
        state.power.off.store(false, Ordering::SeqCst);
        let mut journal = std::mem::take(&mut state.journal);
        let surviving = state.random.below(journal.len() as u64 + 1) as usize;
        for change in journal.drain(surviving..).rev() {
            self.wrapped.undo(&mut state, change)?;
        }
        for change in journal {
            self.wrapped.commit(change)?;
        }
        let DiskState { names, nodes, random, .. } = &mut *state;
        let named: BTreeSet<NodeId> = names.values().copied().collect();
        nodes.retain(|id, _| named.contains(id));
        for node in nodes.values_mut() {
            node.handles = 0;
            node.named = true;
            node.forget(random)?;
        }
        self.wrapped.inner.sync()
    }
}

impl Directory for Faulty {
    fn name(&self) -> &str {
        self.wrapped.inner.name()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.wrapped.inner.clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.wrapped.powered()?;
        state.create().map_err(|e| self.wrapped.named(&e))?;
        let inner = self.wrapped.inner.create(name)?;
        let id = state.add(&inner, true, true);
        state.names.insert(name.to_owned(), id);
        state.journal.push(NameChange::Created { name: name.to_owned() });
        Ok(self.wrapped.handle(&mut state, id, inner))
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.wrapped.powered()?;
        state.create().map_err(|e| self.wrapped.named(&e))?;
        let inner = self.wrapped.inner.create_unnamed()?;
        let id = state.add(&inner, true, false);
        Ok(self.wrapped.handle(&mut state, id, inner))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.wrapped.powered()?;
        let inner = self.wrapped.inner.open(name, writable)?;
        let id = self.wrapped.find(&mut state, name)?;
        if writable {
            state.node(id).writer.get_or_insert_with(|| Arc::clone(&inner));
        }
        Ok(self.wrapped.handle(&mut state, id, inner))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.wrapped.powered()?;
        state.change_whole().map_err(|e| self.wrapped.named(&e))?;
        state.counts.renames += 1;
        let nth = state.counts.renames;
        state.fail(Fault::FailRename { nth }).map_err(|e| self.wrapped.named(&e))?;
        let id = self.wrapped.find(&mut state, from)?;
        if from == to {
            return Ok(());
        }
        let replaced = match self.wrapped.hide(&mut state, to) {
            Ok(replaced) => Some(replaced),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        self.wrapped.inner.rename(from, to)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), id);
        let (from, to) = (from.to_owned(), to.to_owned());
        state.journal.push(NameChange::Renamed { from, to, replaced });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.wrapped.powered()?;
        state.change_whole().map_err(|e| self.wrapped.named(&e))?;
        let (hidden, node) = self.wrapped.hide(&mut state, name)?;
        state.journal.push(NameChange::Removed { name: name.to_owned(), hidden, node });
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let _powered = self.wrapped.powered()?;
        let mut names = self.wrapped.inner.list()?;
        names.retain(|name| !name.starts_with(HIDDEN));
        Ok(names)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.wrapped.powered()?;
        state.sync().map_err(|e| self.wrapped.named(&e))?;
        self.wrapped.inner.sync()?;
        for change in std::mem::take(&mut state.journal) {
            if let Some(node) = self.wrapped.commit(change)? {
                state.drop_unneeded(node);
            }
        }
        Ok(())
    }
}
