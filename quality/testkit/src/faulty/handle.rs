//! An open storage that fails.

use std::io;
use std::sync::Arc;

use merganser_storage::{Buffer, Clock, Completion, Completions, Geometry, Operation, Storage};

use super::disk::{DiskState, injected, off};
use super::names::WrappedNames;
use super::node::{NodeId, PAGE, pages, whole_pages};
use super::plan::Fault;

/// An open storage of a [`Faulty`](super::Faulty).
pub(super) struct Handle {
    pub(super) wrapped: Arc<WrappedNames>,
    pub(super) inner: Arc<dyn Storage>,
    pub(super) id: NodeId,
    pub(super) boot: u64,
}

impl WrappedNames {
    pub(super) fn handle(
        self: &Arc<Self>,
        state: &mut DiskState,
        id: NodeId,
        inner: Arc<dyn Storage>,
    ) -> Arc<dyn Storage> {
        state.node(id).handles += 1;
        Arc::new(Handle { wrapped: Arc::clone(self), inner, id, boot: state.boot })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.wrapped.lock();
        if state.boot == self.boot {
            state.node(self.id).handles -= 1;
            state.drop_unneeded(self.id);
        }
    }
}

impl Handle {
    /// Performs `operation`; the error does not have the name yet.
    pub(super) fn perform(&self, operation: Operation) -> (Option<Buffer>, io::Result<usize>) {
        let mut state = self.wrapped.lock();
        let state = &mut *state;
        let refused = if state.boot != self.boot {
            Some("from before the crash")
        } else {
            state.power.is_off().then_some("the power is off")
        };
        match (refused, operation) {
            (Some(why), operation) => (buffer_of(operation), Err(io::Error::other(why))),
            (None, Operation::Read { offset, buffer }) => self.read(state, offset, buffer),
            (None, Operation::Write { offset, buffer }) => {
                let (buffer, result) = self.write(state, offset, buffer);
                (Some(buffer), result)
            }
            (None, operation) => (None, self.alter(state, operation)),
        }
    }

    pub(super) fn read(
        &self,
        state: &mut DiskState,
        offset: u64,
        buffer: Buffer,
    ) -> (Option<Buffer>, io::Result<usize>) {
        state.counts.reads += 1;
        let nth = state.counts.reads;
        if let Err(e) = state.fail(Fault::FailRead { nth }) {
            return (Some(buffer), Err(e));
        }
        let (mut buffer, result) = run(&*self.inner, Operation::Read { offset, buffer });
        let result = result.map(|count| {
            if count > 0 && state.fires(Fault::FlipRead { nth }) {
                let at = state.random.index(count);
                buffer.as_mut().expect("comes back")[at] ^= 1 << state.random.below(8);
            }
            if count > 0 && state.fires(Fault::ShortRead { nth }) {
                state.random.index(count)
            } else {
                count
            }
        });
        (buffer, result)
    }

    pub(super) fn write(
        &self,
        state: &mut DiskState,
        offset: u64,
        mut buffer: Buffer,
    ) -> (Buffer, io::Result<usize>) {
        let cut = state.change();
        state.counts.writes += 1;
        let nth = state.counts.writes;
        let touched = pages(offset, buffer.len() as u64);
        let all = touched.end - touched.start;
        let mut arriving = state.room(self.id, touched.clone());
        let mut error = (arriving < all).then(|| io::ErrorKind::StorageFull.into());
        if all > 0 && state.fires(Fault::FailWrite { nth }) {
            arriving = arriving.min(state.random.below(all));
            error = Some(injected(Fault::FailWrite { nth }));
        }
        if cut {
            arriving = arriving.min(state.random.below(all + 1));
            error = Some(off());
        }
        let end = ((touched.start + arriving) * PAGE).saturating_sub(offset);
        let end = buffer.len().min(usize::try_from(end).unwrap_or(usize::MAX));
        let rest = buffer.split_off(end);
        let flipped = (end > 0 && state.fires(Fault::FlipWrite { nth }))
            .then(|| (state.random.index(end), 1_u8 << state.random.below(8)));
        if let Some((at, bit)) = flipped {
            buffer[at] ^= bit;
        }
        let node = state.node(self.id);
        let arriving = touched.start..touched.start + arriving;
        let remembered = node.remember(&*self.inner, arriving.clone());
        let (back, result) = run(&*self.inner, Operation::Write { offset, buffer });
        if result.is_ok() {
            node.pages.extend(arriving);
        }
        let mut buffer = back.expect("comes back");
        if let Some((at, bit)) = flipped {
            buffer[at] ^= bit;
        }
        buffer.unsplit(rest).expect("split above");
        let result = remembered.and(result);
        (buffer, error.map_or(result, Err))
    }

    /// Every operation without a buffer.
    pub(super) fn alter(&self, state: &mut DiskState, operation: Operation) -> io::Result<usize> {
        if matches!(operation, Operation::Sync) {
            let synced = state.sync();
            let (off, node) = (state.power.is_off(), state.node(self.id));
            if synced.is_err() && !off {
                node.doubtful.append(&mut node.unsynced);
            }
            synced?;
            run(&*self.inner, operation).1?;
            node.unsynced.clear();
            node.synced_size = self.inner.size();
            return Ok(0);
        }
        state.change_whole()?;
        let size = self.inner.size();
        let (changing, freed, taken) = match operation {
            Operation::Discard { offset, len } => {
                let len = len.min(size.saturating_sub(offset));
                (pages(offset, len), whole_pages(offset, len), 0..0)
            }
            Operation::Allocate { offset, len } => (0..0, 0..0, pages(offset, len)),
            Operation::SetSize { size: to } => {
                let cut = size.saturating_sub(to);
                (pages(to, cut), pages(to.next_multiple_of(PAGE), cut), 0..0)
            }
            Operation::Read { .. } | Operation::Write { .. } | Operation::Sync => {
                unreachable!("done elsewhere")
            }
        };
        if state.room(self.id, taken.clone()) < taken.end - taken.start {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let node = state.node(self.id);
        node.remember(&*self.inner, changing)?;
        let result = run(&*self.inner, operation).1?;
        node.pages.retain(|page| !freed.contains(page));
        node.pages.extend(taken);
        Ok(result)
    }
}

/// Runs `operation` to its end. In contrast to `StorageExt::run`, the buffer comes back with an
/// error too.
pub(super) fn run(
    storage: &dyn Storage,
    operation: Operation,
) -> (Option<Buffer>, io::Result<usize>) {
    let completions = Completions::new();
    storage.submit(0, operation, &completions);
    let done = completions.wait(&*storage.clock());
    (done.buffer, done.result)
}

pub(super) fn buffer_of(operation: Operation) -> Option<Buffer> {
    match operation {
        Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => Some(buffer),
        _ => None,
    }
}

impl Storage for Handle {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let what = match &operation {
            Operation::Read { offset, buffer } => {
                format!("read of {} bytes at {offset}", buffer.len())
            }
            Operation::Write { offset, buffer } => {
                format!("write of {} bytes at {offset}", buffer.len())
            }
            other => format!("{other:?}"),
        };
        let (buffer, result) = self.perform(operation);
        let result = result
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {what}: {e}", self.inner.name())));
        completions.post(Completion { token, buffer, result });
    }
}
