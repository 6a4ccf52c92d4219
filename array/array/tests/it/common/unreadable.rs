//! Members with pages that can't be read until they are written again, and members that are away for a while.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_array::Members;
use merganser_storage::{Clock, Completion, Completions, Geometry, Operation, Storage};
use parking_lot::Mutex;

use super::PAGE;

/// A member.
pub(crate) struct Unreadable {
    inner: Arc<dyn Storage>,
    bad: Mutex<BTreeSet<u64>>,
    away: AtomicBool,
}

/// `members` whose pages can become unreadable, and the same ones in their order: data members first.
pub(crate) fn unreadable(members: Members) -> (Members, Vec<Arc<Unreadable>>) {
    let wrap =
        |inner| Arc::new(Unreadable { inner, bad: Mutex::default(), away: AtomicBool::new(false) });
    let Members { data, buffer } = members;
    let data: Vec<_> = data.into_iter().map(wrap).collect();
    let buffer: Vec<_> = buffer.into_iter().map(wrap).collect();
    let all = data.iter().chain(&buffer).map(Arc::clone).collect();
    let as_members = |all: Vec<Arc<Unreadable>>| {
        all.into_iter().map(|member| member as Arc<dyn Storage>).collect()
    };
    (Members { data: as_members(data), buffer: as_members(buffer) }, all)
}

impl Unreadable {
    /// The page at byte `at` can't be read any more.
    pub(crate) fn spoil(&self, at: u64) {
        self.bad.lock().insert(at / PAGE as u64);
    }

    /// All pages can be read again.
    pub(crate) fn unspoil(&self) {
        self.bad.lock().clear();
    }

    /// Whether nothing can be read.
    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }
}

impl Storage for Unreadable {
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
        let page = PAGE as u64;
        match &operation {
            Operation::Read { offset, buffer } => {
                let end = (offset + buffer.len() as u64).div_ceil(page);
                let is_bad = self.bad.lock().range(offset / page..end).next().is_some();
                if is_bad || self.away.load(Ordering::Relaxed) {
                    let why = format!("{}: a sector can't be read", self.name());
                    let Operation::Read { buffer, .. } = operation else { unreachable!() };
                    let (buffer, result) = (Some(buffer), Err(io::Error::other(why)));
                    return completions.post(Completion { token, buffer, result });
                }
            }
            Operation::Write { offset, buffer } => {
                let end = (offset + buffer.len() as u64) / page;
                self.bad.lock().retain(|bad| !(offset.div_ceil(page)..end).contains(bad));
            }
            _ => {}
        }
        self.inner.submit(token, operation, completions);
    }
}
