//! One storage over several disks.
//!
//! ```text
//!   bytes │lead│ unit │ unit │ unit │ unit │…       a unit goes, when it is first written,
//!           │      │      │     │      │            to the disk with least in flight
//!   disk A ─┘──────┘      │     └──────│───►
//!   disk B ───────────────┘────────────┘───►
//! ```
//!
//! Not stripes in turn: of two disks the slow one would set the pace of both. Where each unit lies is
//! known here and nowhere else, so this is for what ends with the process, as temporary runs do.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::completion::Collect;
use crate::metered::{Meter, Metered, Transfer};
use crate::numbers::{u64_of, usize_of};
use crate::{Buffer, Clock, Completion, Completions, Geometry, Operation, Storage};

/// Space on a disk that was not reserved before is reserved in steps of this size.
const ALLOCATE_BYTES: u64 = 16 << 20;

/// A storage whose units are spread over several others.
pub struct Spread {
    name: String,
    disks: Vec<SpreadDisk>,
    lead_bytes: u64,
    unit_bytes: u64,
    layout: Mutex<SpreadLayout>,
    /// Itself, for operations that wait.
    this: Weak<Spread>,
}

struct SpreadDisk {
    storage: Arc<dyn Storage>,
    load: Arc<TransfersInFlight>,
}

/// Transfers in flight.
#[derive(Default)]
struct TransfersInFlight(AtomicUsize);

impl Meter for TransfersInFlight {
    fn began(&self, _: Transfer) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self, _: Transfer, _: u64) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct SpreadLayout {
    size: u64,
    /// By number of the unit; one that was never written is not there and reads as zeros.
    units: BTreeMap<u64, UnitPlace>,
    /// Of each disk.
    room: Vec<DiskRoom>,
    /// The disk to prefer among equals.
    next: usize,
    /// A cut is under way: places are given back, and the disks may not have dropped what was there.
    cutting: bool,
    /// Operations that wait for the cut, because they could use such a place.
    waiting: Vec<WaitingOperation>,
}

/// An operation that has not begun.
struct WaitingOperation {
    token: u64,
    operation: Operation,
    completions: Completions,
}

#[derive(Debug, Clone, Copy)]
struct UnitPlace {
    disk: usize,
    offset: u64,
}

#[derive(Default)]
struct DiskRoom {
    /// Where the next unit goes, unless one was given back.
    end: u64,
    free: Vec<u64>,
    /// Up to where space is reserved.
    allocated: u64,
}

impl Spread {
    /// Spreads over `disks`, which are empty. The first `lead_bytes` are a unit of their own, then
    /// each `unit_bytes`, so that data after a header is not cut.
    ///
    /// # Panics
    /// Without disks, and when a lead is longer than a unit.
    #[must_use]
    pub fn new(disks: Vec<Arc<dyn Storage>>, lead_bytes: u64, unit_bytes: u64) -> Arc<Spread> {
        assert!(!disks.is_empty() && lead_bytes <= unit_bytes && unit_bytes > 0);
        let names: Vec<&str> = disks.iter().map(|disk| disk.name()).collect();
        let name = names.join(", ");
        let room = disks.iter().map(|_| DiskRoom::default()).collect();
        let metered = |storage| {
            let load = Arc::new(TransfersInFlight::default());
            SpreadDisk { storage: Metered::new(storage, Arc::clone(&load) as _), load }
        };
        let disks = disks.into_iter().map(metered).collect();
        let layout = Mutex::new(SpreadLayout {
            size: 0,
            units: BTreeMap::new(),
            room,
            next: 0,
            cutting: false,
            waiting: Vec::new(),
        });
        Arc::new_cyclic(|this| Spread {
            name,
            disks,
            lead_bytes,
            unit_bytes,
            layout,
            this: Weak::clone(this),
        })
    }

    /// Number of the unit at `offset`, where in it that is, and how many bytes of it follow.
    fn unit(&self, offset: u64) -> (u64, u64, u64) {
        if offset < self.lead_bytes {
            return (0, offset, self.lead_bytes - offset);
        }
        let beyond = offset - self.lead_bytes;
        let within = beyond % self.unit_bytes;
        (1 + beyond / self.unit_bytes, within, self.unit_bytes - within)
    }

    /// The parts of `len` bytes at `offset`, one for each unit: its number, where in it, and
    /// how long.
    fn parts(&self, mut offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let end = offset + len;
        std::iter::from_fn(move || {
            let (unit, within, left) = self.unit(offset);
            let len = left.min(end - offset);
            offset += len;
            (len > 0).then_some((unit, within, len))
        })
    }

    fn place(&self, layout: &mut SpreadLayout, work: &mut Vec<(usize, Operation)>) -> UnitPlace {
        let all = self.disks.len();
        let in_turn = (0..all).map(|i| (layout.next + i) % all);
        let in_flight = |disk: &usize| self.disks[*disk].load.0.load(Ordering::Relaxed);
        let disk = in_turn.min_by_key(in_flight).expect("there are disks");
        layout.next = disk + 1;
        let room = &mut layout.room[disk];
        let offset = room.free.pop().unwrap_or_else(|| {
            let offset = room.end;
            room.end += self.unit_bytes;
            offset
        });
        if room.end > room.allocated {
            let len = (room.end - room.allocated).max(ALLOCATE_BYTES);
            work.push((disk, Operation::Allocate { offset: room.allocated, len }));
            room.allocated += len;
        }
        UnitPlace { disk, offset }
    }

    fn read(&self, layout: &SpreadLayout, offset: u64, mut buffer: Buffer, plan: &mut SpreadPlan) {
        let len = u64_of(buffer.len()).min(layout.size.saturating_sub(offset));
        let beyond = buffer.split_off(usize_of(len));
        for (unit, within, len) in self.parts(offset, len) {
            let rest = buffer.split_off(usize_of(len));
            let mut part = std::mem::replace(&mut buffer, rest);
            match layout.units.get(&unit) {
                Some(place) => {
                    let read = Operation::Read { offset: place.offset + within, buffer: part };
                    plan.part(place.disk, read);
                }
                None => {
                    part.fill(0);
                    plan.pieces.push(Some(part));
                }
            }
        }
        plan.count = usize_of(len);
        plan.pieces.push(Some(beyond));
    }

    fn write(
        &self,
        layout: &mut SpreadLayout,
        offset: u64,
        mut buffer: Buffer,
        plan: &mut SpreadPlan,
    ) {
        let len = u64_of(buffer.len());
        for (unit, within, len) in self.parts(offset, len) {
            let rest = buffer.split_off(usize_of(len));
            let part = std::mem::replace(&mut buffer, rest);
            let place = match layout.units.get(&unit) {
                Some(place) => *place,
                None => {
                    let place = self.place(layout, &mut plan.besides);
                    layout.units.insert(unit, place);
                    place
                }
            };
            let write = Operation::Write { offset: place.offset + within, buffer: part };
            plan.part(place.disk, write);
        }
        if len > 0 {
            layout.size = layout.size.max(offset + len);
        }
        plan.count = usize_of(len);
        plan.pieces.push(Some(buffer));
    }

    /// Neighbours on a disk in one stroke: a file system that punches a hole stops all else.
    fn discard(&self, layout: &SpreadLayout, offset: u64, len: u64, plan: &mut SpreadPlan) {
        let len = len.min(layout.size.saturating_sub(offset));
        let placed = self.parts(offset, len).filter_map(|(unit, within, len)| {
            let place = layout.units.get(&unit)?;
            Some((place.disk, place.offset + within, len))
        });
        let mut ranges: Vec<(usize, u64, u64)> = placed.collect();
        ranges.sort_unstable();
        let mut merged: Vec<(usize, u64, u64)> = Vec::new();
        for (disk, offset, len) in ranges {
            match merged.last_mut() {
                Some((on, from, all)) if (*on, *from + *all) == (disk, offset) => *all += len,
                _ => merged.push((disk, offset, len)),
            }
        }
        let discards = merged.into_iter();
        plan.besides
            .extend(discards.map(|(disk, offset, len)| (disk, Operation::Discard { offset, len })));
    }

    /// Reserves an equal share on each disk for what is not placed yet.
    fn allocate(&self, layout: &mut SpreadLayout, offset: u64, len: u64, plan: &mut SpreadPlan) {
        if len == 0 {
            return;
        }
        layout.size = layout.size.max(offset + len);
        let (first, ..) = self.unit(offset);
        let (last, ..) = self.unit(offset + len - 1);
        let placed = u64_of(layout.units.range(first..=last).count());
        let share = (last - first + 1 - placed).div_ceil(u64_of(self.disks.len()));
        for (disk, room) in layout.room.iter_mut().enumerate() {
            let end = room.end.saturating_add(share.saturating_mul(self.unit_bytes));
            if end > room.allocated {
                let (offset, len) = (room.allocated, end - room.allocated);
                plan.besides.push((disk, Operation::Allocate { offset, len }));
                room.allocated = end;
            }
        }
    }

    /// Gives back what is beyond `size`, and what was reserved and not used.
    fn set_size(&self, layout: &mut SpreadLayout, size: u64, plan: &mut SpreadPlan) {
        layout.cutting = true;
        plan.cut = self.this.upgrade();
        if size < layout.size {
            self.discard(layout, size, layout.size - size, plan);
            // The rest of a unit stays where it is.
            let keep = if size == 0 { 0 } else { self.unit(size - 1).0 + 1 };
            for (_, place) in layout.units.split_off(&keep) {
                layout.room[place.disk].free.push(place.offset);
            }
        }
        layout.size = size;
        for (disk, room) in layout.room.iter_mut().enumerate() {
            if room.allocated > room.end {
                plan.besides.push((disk, Operation::SetSize { size: room.end }));
                room.allocated = room.end;
            }
        }
    }

    /// The disks have dropped what a cut gave back: the operations that waited for it begin.
    fn cut_ended(&self) {
        let waiting = {
            let mut layout = self.layout.lock();
            layout.cutting = false;
            std::mem::take(&mut layout.waiting)
        };
        // If one of them is a cut, the rest wait again.
        for WaitingOperation { token, operation, completions } in waiting {
            self.submit(token, operation, &completions);
        }
    }
}

impl Storage for Spread {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.layout.lock().size
    }

    fn geometry(&self) -> Geometry {
        self.disks[0].storage.geometry()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.disks[0].storage.clock()
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        let end = match &operation {
            Operation::Read { offset, buffer } | Operation::Write { offset, buffer } => {
                offset.checked_add(u64_of(buffer.len()))
            }
            Operation::Discard { offset, len } | Operation::Allocate { offset, len } => {
                offset.checked_add(*len)
            }
            Operation::SetSize { size } => Some(*size),
            Operation::Sync => Some(0),
        };
        let mut plan = SpreadPlan::default();
        if end.is_none_or(|end| end > i64::MAX.cast_unsigned()) {
            let text = format!("{}: beyond any file's end", self.name);
            let buffer = match operation {
                Operation::Read { buffer, .. } | Operation::Write { buffer, .. } => Some(buffer),
                _ => None,
            };
            let result = Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            return completions.post(Completion { token, buffer, result });
        }
        {
            let mut layout = self.layout.lock();
            if layout.cutting && !matches!(operation, Operation::Read { .. } | Operation::Sync) {
                let completions = completions.clone();
                return layout.waiting.push(WaitingOperation { token, operation, completions });
            }
            match operation {
                Operation::Read { offset, buffer } => self.read(&layout, offset, buffer, &mut plan),
                Operation::Write { offset, buffer } => {
                    self.write(&mut layout, offset, buffer, &mut plan);
                }
                Operation::Sync => {
                    let all = 0..self.disks.len();
                    plan.besides.extend(all.map(|disk| (disk, Operation::Sync)));
                }
                Operation::Discard { offset, len } => {
                    self.discard(&layout, offset, len, &mut plan);
                }
                Operation::Allocate { offset, len } => {
                    self.allocate(&mut layout, offset, len, &mut plan);
                }
                Operation::SetSize { size } => self.set_size(&mut layout, size, &mut plan),
            }
        }
        plan.start(&self.disks, token, completions);
    }
}

/// What an operation becomes.
#[derive(Default)]
struct SpreadPlan {
    /// Transfers: disk, operation, and which piece its buffer is.
    transfers: Vec<(usize, Operation, usize)>,
    /// Other operations, by disk.
    besides: Vec<(usize, Operation)>,
    /// Pieces of the buffer, in order; those in transfers are not here.
    pieces: Vec<Option<Buffer>>,
    /// What it says it moved when all went well.
    count: usize,
    /// The storage to notify when this cut has ended.
    cut: Option<Arc<Spread>>,
}

impl SpreadPlan {
    fn part(&mut self, disk: usize, operation: Operation) {
        self.transfers.push((disk, operation, self.pieces.len()));
        self.pieces.push(None);
    }

    fn start(self, disks: &[SpreadDisk], token: u64, completions: &Completions) {
        let SpreadPlan { transfers, besides, pieces, count, cut } = self;
        let writes = matches!(transfers.first(), Some((_, Operation::Write { .. }, _)));
        let whole = Arc::new(SplitOperation {
            token,
            writes,
            count,
            completions: completions.clone(),
            // One for this function, so that it does not end before all has begun.
            state: Mutex::new(SplitProgress {
                left: transfers.len() + besides.len() + 1,
                pieces,
                failed: None,
                cut,
            }),
        });
        let parts = Completions::collected(Arc::clone(&whole) as _);
        for (disk, operation, piece) in transfers {
            disks[disk].storage.submit(u64_of(piece), operation, &parts);
        }
        for (disk, operation) in besides {
            disks[disk].storage.submit(BESIDES, operation, &parts);
        }
        whole.ended(None, Ok(()));
    }
}

/// Token of what transfers nothing.
const BESIDES: u64 = u64::MAX;

/// An operation whose parts are under way.
struct SplitOperation {
    token: u64,
    writes: bool,
    count: usize,
    completions: Completions,
    state: Mutex<SplitProgress>,
}

struct SplitProgress {
    left: usize,
    pieces: Vec<Option<Buffer>>,
    failed: Option<io::Error>,
    cut: Option<Arc<Spread>>,
}

impl SplitOperation {
    fn ended(&self, piece: Option<(usize, Buffer)>, result: io::Result<()>) {
        let mut state = self.state.lock();
        if let Some((number, buffer)) = piece {
            state.pieces[number] = Some(buffer);
        }
        if let Err(error) = result {
            state.failed.get_or_insert(error);
        }
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        let pieces = std::mem::take(&mut state.pieces);
        let failed = state.failed.take();
        let cut = state.cut.take();
        drop(state);
        let pieces = pieces.into_iter().map(|piece| piece.expect("all parts have ended"));
        let buffer = pieces.reduce(|mut whole, piece| {
            whole.unsplit(piece).expect("pieces were split off in this order");
            whole
        });
        let result = failed.map_or(Ok(self.count), Err);
        // Before the caller is notified: the spread must be gone when the caller drops it.
        if let Some(spread) = cut {
            spread.cut_ended();
        }
        self.completions.post(Completion { token: self.token, buffer, result });
    }
}

impl Collect for SplitOperation {
    fn arrived(&self, Completion { token, buffer, result }: Completion) {
        let Some(mut buffer) = buffer else { return self.ended(None, result.map(drop)) };
        // A unit may be shorter on its disk than here. A write that writes less is an error.
        let result = result.and_then(|moved| match (self.writes, moved == buffer.len()) {
            (_, true) => Ok(()),
            (true, false) => Err(io::ErrorKind::WriteZero.into()),
            (false, false) => {
                buffer[moved..].fill(0);
                Ok(())
            }
        });
        self.ended(Some((usize_of(token), buffer)), result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageExt;
    use crate::memory::MemoryStorage;

    const UNIT: u64 = 4096;

    /// A disk that ends its operations when a test says so.
    struct Held {
        inner: Arc<MemoryStorage>,
        /// Which operations wait.
        held: fn(&Operation) -> bool,
        waiting: Mutex<Vec<(u64, Operation, Completions)>>,
    }

    impl Held {
        fn new(held: fn(&Operation) -> bool) -> Arc<Held> {
            Arc::new(Held { inner: MemoryStorage::new("held"), held, waiting: Mutex::default() })
        }

        fn go_on(&self) {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            for (token, operation, completions) in waiting {
                self.inner.submit(token, operation, &completions);
            }
        }
    }

    impl Storage for Held {
        fn name(&self) -> &str {
            self.inner.name()
        }

        fn size(&self) -> u64 {
            self.inner.size()
        }

        fn clock(&self) -> Arc<dyn Clock> {
            self.inner.clock()
        }

        fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
            if (self.held)(&operation) {
                self.waiting.lock().push((token, operation, completions.clone()));
            } else {
                self.inner.submit(token, operation, completions);
            }
        }
    }

    fn write(spread: &Spread, unit: u64, completions: &Completions) {
        let mut buffer = Buffer::new(UNIT as usize);
        buffer.fill(unit as u8 + 1);
        spread.submit(unit, Operation::Write { offset: unit * UNIT, buffer }, completions);
    }

    #[test]
    fn a_slow_disk_gets_less_and_nobody_waits_for_it() {
        let (slow, fast) = (
            Held::new(|operation| matches!(operation, Operation::Write { .. })),
            MemoryStorage::new("fast"),
        );
        let spread = Spread::new(vec![Arc::clone(&slow) as _, Arc::clone(&fast) as _], 0, UNIT);
        let completions = Completions::new();
        for unit in 0..100 {
            write(&spread, unit, &completions);
        }
        let ended = std::iter::from_fn(|| completions.poll()).count();
        assert_eq!((ended, slow.waiting.lock().len()), (99, 1));
        slow.go_on();
        assert_eq!(completions.poll().expect("ended").result.expect("written"), UNIT as usize);
        let all = spread.read_vec(0, 100 * UNIT as usize).expect("read");
        assert!(all.chunks(UNIT as usize).zip(1u8..).all(|(unit, n)| unit.iter().all(|b| *b == n)));
    }

    #[test]
    fn equal_disks_get_equal_shares() {
        let disks = [MemoryStorage::new("a"), MemoryStorage::new("b"), MemoryStorage::new("c")];
        let spread = Spread::new(disks.iter().map(|d| Arc::clone(d) as _).collect(), 0, UNIT);
        let completions = Completions::new();
        for unit in 0..99 {
            write(&spread, unit, &completions);
        }
        assert_eq!(disks.map(|disk| disk.allocated_bytes()), [33 * UNIT; 3]);
    }

    #[test]
    fn what_was_reserved_and_is_not_used_is_given_back() {
        let disks = [MemoryStorage::new("a"), MemoryStorage::new("b")];
        let spread = Spread::new(disks.iter().map(|d| Arc::clone(d) as _).collect(), 0, UNIT);
        spread.run(Operation::Allocate { offset: 0, len: 100 * UNIT }).expect("reserved");
        assert_eq!(disks.each_ref().map(|disk| disk.size()), [50 * UNIT; 2]);
        write(&spread, 0, &Completions::new());
        spread.run(Operation::SetSize { size: UNIT }).expect("cut");
        assert_eq!(disks.each_ref().map(|disk| disk.size()), [UNIT, 0]);
        assert_eq!(spread.size(), UNIT);
    }

    /// Units 1 to 3 are given back, and their disk drops them late. Unit 4 is written meanwhile.
    #[test]
    fn a_place_is_used_again_only_when_the_disk_has_dropped_it() {
        let disk = Held::new(|operation| matches!(operation, Operation::Discard { .. }));
        let spread = Spread::new(vec![Arc::clone(&disk) as _], 0, UNIT);
        let completions = Completions::new();
        for unit in 0..4 {
            write(&spread, unit, &completions);
        }
        spread.submit(100, Operation::SetSize { size: UNIT }, &completions);
        write(&spread, 4, &completions);
        // A second cut, and a write after it.
        spread.submit(101, Operation::SetSize { size: 0 }, &completions);
        write(&spread, 5, &completions);
        assert_eq!(spread.read_vec(0, UNIT as usize).expect("reads need no place"), [1; 4096]);
        disk.go_on();
        disk.go_on();
        let ended: Vec<_> =
            std::iter::from_fn(|| completions.poll()).map(|done| done.token).collect();
        assert_eq!(ended.len(), 8, "{ended:?}");
        assert_eq!(spread.size(), 6 * UNIT);
        let found = spread.read_vec(0, 6 * UNIT as usize).expect("read");
        let expected = [0, 0, 0, 0, 0, 6].map(|byte: u8| [byte; UNIT as usize]).concat();
        assert!(found == expected, "{:?}", found.iter().step_by(UNIT as usize).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_owns_the_spread_no_longer_when_its_caller_knows() {
        /// Notes how many own the spread when an operation has ended.
        struct Owners(Weak<Spread>, Mutex<Vec<usize>>);
        impl Collect for Owners {
            fn arrived(&self, _: Completion) {
                self.1.lock().push(self.0.strong_count());
            }
        }
        let disk = Held::new(|operation| matches!(operation, Operation::Discard { .. }));
        let spread = Spread::new(vec![Arc::clone(&disk) as _], 0, UNIT);
        let owners = Arc::new(Owners(Arc::downgrade(&spread), Mutex::default()));
        write(&spread, 0, &Completions::new());
        let size = Operation::SetSize { size: 0 };
        spread.submit(1, size, &Completions::collected(Arc::clone(&owners) as _));
        disk.go_on();
        assert_eq!(*owners.1.lock(), [1]);
    }

    #[test]
    fn a_disk_that_fails_fails_the_whole_operation_once() {
        /// Refuses writes.
        struct Broken(Arc<MemoryStorage>);
        impl Storage for Broken {
            fn name(&self) -> &str {
                "broken"
            }
            fn size(&self) -> u64 {
                self.0.size()
            }
            fn clock(&self) -> Arc<dyn Clock> {
                self.0.clock()
            }
            fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
                let Operation::Write { buffer, .. } = operation else {
                    return self.0.submit(token, operation, completions);
                };
                let result = Err(io::Error::other("broken: gone"));
                completions.post(Completion { token, buffer: Some(buffer), result });
            }
        }
        let (good, bad) = (MemoryStorage::new("good"), Broken(MemoryStorage::new("")));
        let spread = Spread::new(vec![good, Arc::new(bad)], 100, UNIT);
        assert_eq!(spread.name(), "good, broken");
        let completions = Completions::new();
        let buffer = Buffer::new(10 * UNIT as usize);
        spread.submit(7, Operation::Write { offset: 50, buffer }, &completions);
        let done = completions.poll().expect("ended");
        assert_eq!(done.result.expect_err("failed").to_string(), "broken: gone");
        assert_eq!((done.token, done.buffer.map(|b| b.len())), (7, Some(10 * UNIT as usize)));
        assert!(completions.poll().is_none(), "once");
    }
}
