//! A directory that fails as it is told, and forgets what was not synced.
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
//! | [`Fault::Full`] | no more than so many bytes fit, counted in pages; the first pages of the write that is too long arrive |
//! | [`Fault::PowerCut`] | the n-th change is torn and from then on everything is an error, until [`Faulty::crash`] |
//!
//! [`Faulty::crash`] loses power at any moment and comes back. Then:
//!
//! - A storage holds what was there at its last good sync, and of what changed since, page by page
//!   (4 KiB), the old or the new content. Its size is the old or the new one.
//! - Of the creates, renames and removes since the last good sync of the directory, the first few
//!   have happened and the others have not, as in a journalling file system. Syncing a storage does
//!   not secure its name.
//! - Unnamed storages are gone; handles from before only give errors.
//!
//! Not modelled: misdirected writes, slow operations, completions out of order (each operation ends
//! before its submit returns), writes that a storage forgets although it was synced.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use merganser_storage::{
    Buffer, Clock, Completion, Completions, Directory, Geometry, Operation, Storage, StorageExt,
};
use parking_lot::{Mutex, MutexGuard};

use crate::Random;

const PAGE: u64 = 4096;

/// Names that begin so hold what a crash may bring back; nobody sees them.
const HIDDEN: &str = ".faulty-hidden-";

/// One thing that goes wrong. Counts begin at 1 and run over all storages of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table at the top of the file")]
pub enum Fault {
    FailRead { nth: u64 },
    FailWrite { nth: u64 },
    FailSync { nth: u64 },
    FailCreate { nth: u64 },
    FailRename { nth: u64 },
    ShortRead { nth: u64 },
    FlipRead { nth: u64 },
    FlipWrite { nth: u64 },
    Full { bytes: u64 },
    PowerCut { nth: u64 },
}

/// What goes wrong, and the seed for what is left to chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides how much of a torn write arrives and what a crash forgets.
    pub seed: u64,
    /// Each happens once, except that a full disk stays full.
    pub faults: Vec<Fault>,
}

impl Plan {
    /// Nothing goes wrong before a crash.
    #[must_use]
    pub fn quiet(seed: u64) -> Plan {
        Plan { seed, faults: Vec::new() }
    }

    /// One to three faults drawn from `seed`, none of them a full disk, each within the first
    /// `span` operations of its kind. [`Faulty::counts`] of a quiet run tells a good span.
    ///
    /// # Panics
    /// When `span` is 0.
    #[must_use]
    pub fn draw(seed: u64, span: u64) -> Plan {
        let mut random = Random::new(seed);
        let mut draw = || {
            let nth = 1 + random.below(span);
            match random.below(9) {
                0 => Fault::FailRead { nth },
                1 => Fault::FailWrite { nth },
                2 => Fault::FailSync { nth },
                3 => Fault::FailCreate { nth },
                4 => Fault::FailRename { nth },
                5 => Fault::ShortRead { nth },
                6 => Fault::FlipRead { nth },
                7 => Fault::FlipWrite { nth },
                _ => Fault::PowerCut { nth },
            }
        };
        let first = draw();
        let more = std::iter::repeat_with(&mut draw).take((seed % 3) as usize);
        let faults = std::iter::once(first).chain(more).collect();
        Plan { seed, faults }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faults {:?}, seed {:#x}", self.faults, self.seed)
    }
}

/// How many operations of each kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Syncs of storages and of the directory.
    pub syncs: u64,
    /// Creates, unnamed ones too.
    pub creates: u64,
    /// Renames.
    pub renames: u64,
    /// All that is not a read: writes, discards, allocations, size changes, syncs, creates,
    /// renames, removes. What [`Fault::PowerCut`] counts.
    pub changes: u64,
}

/// A directory that wraps another one and fails.
pub struct Faulty {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Directory>,
    state: Mutex<State>,
}

struct State {
    plan: Plan,
    random: Random,
    counts: Counts,
    fired: Vec<Fault>,
    power: Arc<Power>,
    /// Number of crashes so far; handles of an earlier boot are dead.
    boot: u64,
    names: BTreeMap<String, NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    /// Changes of names since the last good sync of the directory, oldest first.
    journal: Vec<Change>,
    /// For node numbers and hidden names.
    serial: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NodeId(u64);

/// What directories of one machine have in common.
#[derive(Default)]
struct Power {
    off: AtomicBool,
    changes: AtomicU64,
}

impl Power {
    fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }
}

/// A storage, whatever its name and however many handles it has.
struct Node {
    /// To put content back after a crash; there once it was opened for writing.
    writer: Option<Arc<dyn Storage>>,
    handles: u32,
    /// It has a name that is not hidden.
    named: bool,
    /// Pages that take space.
    pages: BTreeSet<u64>,
    /// Size at the last good sync.
    synced_size: u64,
    /// Pages changed since the last good sync, as they were then.
    unsynced: BTreeMap<u64, OldPage>,
    /// The same for pages that a failed sync should have secured.
    doubtful: BTreeMap<u64, OldPage>,
}

/// Content of a page; `None` for zeros.
type OldPage = Option<Vec<u8>>;

enum Change {
    Created { name: String },
    Renamed { from: String, to: String, replaced: Option<(String, NodeId)> },
    Removed { name: String, hidden: String, node: NodeId },
}

fn pages(offset: u64, len: u64) -> Range<u64> {
    if len == 0 { 0..0 } else { offset / PAGE..offset.saturating_add(len).div_ceil(PAGE) }
}

/// The pages that lie wholly inside.
fn whole_pages(offset: u64, len: u64) -> Range<u64> {
    offset.div_ceil(PAGE)..offset.saturating_add(len) / PAGE
}

fn off() -> io::Error {
    io::Error::other("the power is off")
}

fn injected(fault: Fault) -> io::Error {
    io::Error::other(format!("injected fault {fault:?}"))
}

impl State {
    /// Whether one of the planned faults is `fault`; then it has fired.
    fn fires(&mut self, fault: Fault) -> bool {
        let fires = self.plan.faults.contains(&fault);
        if fires {
            self.fired.push(fault);
        }
        fires
    }

    /// [`State::fires`], as an error.
    fn fail(&mut self, fault: Fault) -> io::Result<()> {
        if self.fires(fault) { Err(injected(fault)) } else { Ok(()) }
    }

    /// Counts a change; true when the power goes with it.
    fn change(&mut self) -> bool {
        self.counts.changes += 1;
        let nth = self.power.changes.fetch_add(1, Ordering::SeqCst) + 1;
        let cut = self.fires(Fault::PowerCut { nth });
        if cut {
            self.power.off.store(true, Ordering::SeqCst);
        }
        cut
    }

    /// A change that does not happen at all when the power goes.
    fn change_whole(&mut self) -> io::Result<()> {
        if self.change() { Err(off()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.change_whole()?;
        self.counts.syncs += 1;
        self.fail(Fault::FailSync { nth: self.counts.syncs })
    }

    fn create(&mut self) -> io::Result<()> {
        self.change_whole()?;
        self.counts.creates += 1;
        self.fail(Fault::FailCreate { nth: self.counts.creates })
    }

    fn used_bytes(&self) -> u64 {
        let alive = self.nodes.values().filter(|node| node.named || node.handles > 0);
        alive.map(|node| node.pages.len() as u64 * PAGE).sum()
    }

    /// How many of `wanted`, in order, there is room for; fires when not for all.
    fn room(&mut self, node: NodeId, wanted: Range<u64>) -> u64 {
        let full = self.plan.faults.iter().find_map(|&fault| match fault {
            Fault::Full { bytes } => Some(bytes),
            _ => None,
        });
        let all = wanted.end - wanted.start;
        let Some(bytes) = full else { return all };
        let mut free = bytes.saturating_sub(self.used_bytes()) / PAGE;
        let has = &self.nodes[&node].pages;
        for (fitting, page) in wanted.enumerate() {
            if !has.contains(&page) {
                if free == 0 {
                    self.fired.push(Fault::Full { bytes });
                    return fitting as u64;
                }
                free -= 1;
            }
        }
        all
    }

    fn node(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("handles, names and the journal keep it")
    }

    fn add(&mut self, storage: &Arc<dyn Storage>, writable: bool, named: bool) -> NodeId {
        self.serial += 1;
        let id = NodeId(self.serial);
        let node = Node {
            writer: writable.then(|| Arc::clone(storage)),
            handles: 0,
            named,
            pages: pages(0, storage.size()).collect(),
            synced_size: storage.size(),
            unsynced: BTreeMap::new(),
            doubtful: BTreeMap::new(),
        };
        self.nodes.insert(id, node);
        id
    }

    fn hidden_name(&mut self) -> String {
        self.serial += 1;
        format!("{HIDDEN}{}", self.serial)
    }

    /// Forgets a node that neither a name nor a handle nor the journal needs.
    fn drop_unneeded(&mut self, id: NodeId) {
        let journalled = self.journal.iter().any(|change| match change {
            Change::Created { .. } => false,
            Change::Renamed { replaced, .. } => replaced.as_ref().is_some_and(|(_, n)| *n == id),
            Change::Removed { node, .. } => *node == id,
        });
        let node = &self.nodes[&id];
        if !journalled && !node.named && node.handles == 0 {
            self.nodes.remove(&id);
        }
    }
}

impl Node {
    /// Keeps the pages of a stretch that is about to change as they were at the last sync.
    fn remember(&mut self, inner: &dyn Storage, changing: Range<u64>) -> io::Result<()> {
        let size = inner.size();
        for page in changing {
            if self.unsynced.contains_key(&page) {
                continue;
            }
            let old = match self.doubtful.remove(&page) {
                Some(old) => old,
                None if page * PAGE >= size => None,
                None => {
                    let mut bytes = vec![0; PAGE as usize];
                    inner.read_at(page * PAGE, &mut bytes)?;
                    Some(bytes)
                }
            };
            self.unsynced.insert(page, old);
        }
        Ok(())
    }

    /// Puts the content into a state that a crash may leave.
    fn forget(&mut self, random: &mut Random) -> io::Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let changed = std::mem::take(&mut self.doubtful)
            .into_iter()
            .chain(std::mem::take(&mut self.unsynced));
        // All kept and all lost are the likeliest in life and would be the rarest in a drawing.
        let fate = random.below(4);
        let size = if random.one_in(2) { writer.size() } else { self.synced_size };
        for (page, old) in changed {
            let kept = match fate {
                0 => true,
                1 => false,
                _ => random.one_in(2),
            };
            if !kept {
                let old = old.unwrap_or_else(|| vec![0; PAGE as usize]);
                writer.write_at(page * PAGE, &old)?;
                self.pages.insert(page);
            }
        }
        writer.run(Operation::SetSize { size })?;
        writer.sync()?;
        self.synced_size = size;
        self.pages.retain(|&page| page < size.div_ceil(PAGE));
        Ok(())
    }
}

impl Faulty {
    /// Wraps `inner`. The plan goes to standard error, so that a failed test shows it.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "a failed test shows it")]
    pub fn new(inner: Arc<dyn Directory>, plan: Plan) -> Arc<Faulty> {
        eprintln!("{plan}");
        Self::powered_by(Arc::default(), inner, plan)
    }

    /// Wraps another directory of the same machine under a plan of its own. They share the power:
    /// [`Fault::PowerCut`] counts the changes of both, and belongs into both plans; [`crash`] each
    /// of them before going on.
    ///
    /// [`crash`]: Faulty::crash
    #[must_use]
    pub fn beside(&self, inner: Arc<dyn Directory>, plan: Plan) -> Arc<Faulty> {
        let power = Arc::clone(&self.shared.lock().power);
        Self::powered_by(power, inner, plan)
    }

    fn powered_by(power: Arc<Power>, inner: Arc<dyn Directory>, plan: Plan) -> Arc<Faulty> {
        let state = State {
            random: Random::new(plan.seed),
            plan,
            counts: Counts::default(),
            fired: Vec::new(),
            power,
            boot: 0,
            names: BTreeMap::new(),
            nodes: BTreeMap::new(),
            journal: Vec::new(),
            serial: 0,
        };
        Arc::new(Faulty { shared: Arc::new(Shared { inner, state: Mutex::new(state) }) })
    }

    /// Puts a storage from elsewhere, an input for example, under the same plan. It is not writable
    /// through what is returned, and a crash does not touch it, but the handle.
    #[must_use]
    pub fn wrap(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        let mut state = self.shared.lock();
        let id = state.add(&storage, false, false);
        state.node(id).pages.clear();
        self.shared.handle(&mut state, id, storage)
    }

    /// What has been done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// The faults that have happened so far, in order.
    #[must_use]
    pub fn fired(&self) -> Vec<Fault> {
        self.shared.lock().fired.clone()
    }

    /// Bytes in use, in whole pages, by storages that have a name or a handle.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.shared.lock().used_bytes()
    }

    /// Loses power and comes back; what that means stands at the top of the file. Planned faults
    /// that have not fired may still do so.
    ///
    /// # Errors
    /// Those of the directory inside.
    pub fn crash(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.boot += 1;
        state.power.off.store(false, Ordering::SeqCst);
        let mut journal = std::mem::take(&mut state.journal);
        let surviving = state.random.below(journal.len() as u64 + 1) as usize;
        for change in journal.drain(surviving..).rev() {
            self.shared.undo(&mut state, change)?;
        }
        for change in journal {
            self.shared.settle(change)?;
        }
        let State { names, nodes, random, .. } = &mut *state;
        let named: BTreeSet<NodeId> = names.values().copied().collect();
        nodes.retain(|id, _| named.contains(id));
        for node in nodes.values_mut() {
            node.handles = 0;
            node.named = true;
            node.forget(random)?;
        }
        self.shared.inner.sync()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The state, if there is power.
    fn powered(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.power.is_off() { Err(self.named(&off())) } else { Ok(state) }
    }

    /// `error` with the directory's name.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.inner.name()))
    }

    fn handle(
        self: &Arc<Self>,
        state: &mut State,
        id: NodeId,
        inner: Arc<dyn Storage>,
    ) -> Arc<dyn Storage> {
        state.node(id).handles += 1;
        Arc::new(Handle { shared: Arc::clone(self), inner, id, boot: state.boot })
    }

    /// The node of a name, which may have been there before us.
    fn find(&self, state: &mut State, name: &str) -> io::Result<NodeId> {
        if let Some(&id) = state.names.get(name) {
            return Ok(id);
        }
        let storage = self.inner.open(name, false)?;
        let id = state.add(&storage, false, true);
        state.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Takes the name from what bears it, so that a crash can give it back.
    fn hide(&self, state: &mut State, name: &str) -> io::Result<(String, NodeId)> {
        let id = self.find(state, name)?;
        let hidden = state.hidden_name();
        self.inner.rename(name, &hidden)?;
        state.names.remove(name);
        state.node(id).named = false;
        Ok((hidden, id))
    }

    /// Takes a change of names back.
    fn undo(&self, state: &mut State, change: Change) -> io::Result<()> {
        match change {
            Change::Created { name } => {
                self.inner.remove(&name)?;
                state.names.remove(&name);
            }
            Change::Renamed { from, to, replaced } => {
                self.inner.rename(&to, &from)?;
                let id = state.names.remove(&to).expect("renamed to it");
                state.names.insert(from, id);
                if let Some((hidden, id)) = replaced {
                    self.inner.rename(&hidden, &to)?;
                    state.names.insert(to, id);
                }
            }
            Change::Removed { name, hidden, node } => {
                self.inner.rename(&hidden, &name)?;
                state.names.insert(name, node);
            }
        }
        Ok(())
    }

    /// Makes a change of names final.
    fn settle(&self, change: Change) -> io::Result<Option<NodeId>> {
        match change {
            Change::Renamed { replaced: Some((hidden, node)), .. }
            | Change::Removed { hidden, node, .. } => {
                self.inner.remove(&hidden)?;
                Ok(Some(node))
            }
            Change::Created { .. } | Change::Renamed { replaced: None, .. } => Ok(None),
        }
    }
}

impl Directory for Faulty {
    fn name(&self) -> &str {
        self.shared.inner.name()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.shared.inner.clock()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.shared.powered()?;
        state.create().map_err(|e| self.shared.named(&e))?;
        let inner = self.shared.inner.create(name)?;
        let id = state.add(&inner, true, true);
        state.names.insert(name.to_owned(), id);
        state.journal.push(Change::Created { name: name.to_owned() });
        Ok(self.shared.handle(&mut state, id, inner))
    }

    fn create_unnamed(&self) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.shared.powered()?;
        state.create().map_err(|e| self.shared.named(&e))?;
        let inner = self.shared.inner.create_unnamed()?;
        let id = state.add(&inner, true, false);
        Ok(self.shared.handle(&mut state, id, inner))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<Arc<dyn Storage>> {
        let mut state = self.shared.powered()?;
        let inner = self.shared.inner.open(name, writable)?;
        let id = self.shared.find(&mut state, name)?;
        if writable {
            state.node(id).writer.get_or_insert_with(|| Arc::clone(&inner));
        }
        Ok(self.shared.handle(&mut state, id, inner))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.shared.powered()?;
        state.change_whole().map_err(|e| self.shared.named(&e))?;
        state.counts.renames += 1;
        let nth = state.counts.renames;
        state.fail(Fault::FailRename { nth }).map_err(|e| self.shared.named(&e))?;
        let id = self.shared.find(&mut state, from)?;
        if from == to {
            return Ok(());
        }
        let replaced = match self.shared.hide(&mut state, to) {
            Ok(replaced) => Some(replaced),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        self.shared.inner.rename(from, to)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), id);
        let (from, to) = (from.to_owned(), to.to_owned());
        state.journal.push(Change::Renamed { from, to, replaced });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.shared.powered()?;
        state.change_whole().map_err(|e| self.shared.named(&e))?;
        let (hidden, node) = self.shared.hide(&mut state, name)?;
        state.journal.push(Change::Removed { name: name.to_owned(), hidden, node });
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let _powered = self.shared.powered()?;
        let mut names = self.shared.inner.list()?;
        names.retain(|name| !name.starts_with(HIDDEN));
        Ok(names)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.shared.powered()?;
        state.sync().map_err(|e| self.shared.named(&e))?;
        self.shared.inner.sync()?;
        for change in std::mem::take(&mut state.journal) {
            if let Some(node) = self.shared.settle(change)? {
                state.drop_unneeded(node);
            }
        }
        Ok(())
    }
}

/// An open storage of a [`Faulty`].
struct Handle {
    shared: Arc<Shared>,
    inner: Arc<dyn Storage>,
    id: NodeId,
    boot: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.boot == self.boot {
            state.node(self.id).handles -= 1;
            state.drop_unneeded(self.id);
        }
    }
}

impl Handle {
    /// What has to happen to `operation`, but for the name in the error.
    fn perform(&self, operation: Operation) -> (Option<Buffer>, io::Result<usize>) {
        let mut state = self.shared.lock();
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

    fn read(
        &self,
        state: &mut State,
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

    fn write(
        &self,
        state: &mut State,
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
    fn alter(&self, state: &mut State, operation: Operation) -> io::Result<usize> {
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

/// Runs `operation` to its end; unlike `StorageExt::run` the buffer comes back from an error too.
fn run(storage: &dyn Storage, operation: Operation) -> (Option<Buffer>, io::Result<usize>) {
    let completions = Completions::new();
    storage.submit(0, operation, &completions);
    let done = completions.wait(&*storage.clock());
    (done.buffer, done.result)
}

fn buffer_of(operation: Operation) -> Option<Buffer> {
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
