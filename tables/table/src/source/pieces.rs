//! Pieces of an object that are read ahead of their use.
//!
//! ```text
//!   row group   | column 0                    | column 1 | column 2 | column 3               |
//!   pieces      |    0    |    2    |    4    |    0     |    0     |    1    |      3       |   the order of requests
//!
//!   planned ─► begun, at most 8 ─► here ─► read: a piece of a long column is given up, others with their row group
//! ```
//!
//! A reader of a row group reads all columns side by side, each from its front to its end. So the pieces of a column are
//! wanted at even distances, and all columns' first pieces first. A row group that fits into half of the memory is read in
//! pieces across columns, which takes fewer requests, and the next one is read meanwhile.
//!
//! A page that is wanted and not planned, or planned for later, is read at once. So the plan decides how fast it goes, and
//! never what is read.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::object::{ObjectError, RangeRead, StoredObject};

/// Pieces that are begun and not waited for, at most.
const BEGUN_MAX: usize = 8;
/// Bytes of a piece, at most: a request of this size takes several times its latency.
const PIECE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a piece of a long column, at least.
const PIECE_BYTES_MIN: u64 = 64 << 10;
/// Bytes of the first pieces of a run: often only a few are wanted.
const RUN_BYTES_FIRST: u64 = 64 << 10;

/// The memory that a row group's reader takes at least for pieces; `columns` are the sizes of its columns.
pub(super) fn least_bytes(columns: impl Iterator<Item = u64>) -> u64 {
    columns.map(|bytes| bytes.min(3 * PIECE_BYTES_MIN)).sum()
}

/// The most memory that is of use to a reader whose largest row group has `group_bytes`.
pub(super) fn most_bytes(group_bytes: u64) -> u64 {
    (2 * group_bytes).min(BEGUN_MAX as u64 * PIECE_BYTES_MAX)
}

/// When a piece is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    /// When its last byte was read.
    Read,
    /// When its row group was read.
    WithGroup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedPiece {
    range: Range<u64>,
    /// The row group that it belongs to.
    group: usize,
    given_up: GivenUp,
}

struct HeldPiece {
    plan: PlannedPiece,
    content: PieceContent,
}

enum PieceContent {
    Begun(Box<dyn RangeRead>),
    Here(Bytes),
}

/// The pieces of one reader of an object.
pub(super) struct Pieces {
    object: Arc<dyn StoredObject>,
    /// Memory of pieces, at most, in bytes.
    limit: u64,
    /// The row groups that are planned.
    groups: Vec<usize>,
    /// The pieces to begin, in order.
    planned: VecDeque<PlannedPiece>,
    /// Those that are begun or here, by where they begin.
    held: BTreeMap<u64, HeldPiece>,
    held_bytes: u64,
    begun: usize,
    /// The rest of a run, which is planned piece by piece.
    run: Option<Run>,
    failure: Option<ObjectError>,
}

/// A range that is read in order.
struct Run {
    rest: Range<u64>,
    /// Bytes of the next piece.
    bytes: u64,
    /// Bytes of a piece, at most.
    most: u64,
}

impl Pieces {
    pub(super) fn new(object: Arc<dyn StoredObject>, limit: u64) -> Pieces {
        Pieces {
            object,
            limit,
            groups: Vec::new(),
            planned: VecDeque::new(),
            held: BTreeMap::new(),
            held_bytes: 0,
            begun: 0,
            run: None,
            failure: None,
        }
    }

    pub(super) fn object_bytes(&self) -> u64 {
        self.object.bytes()
    }

    /// The error of a read, if there was one. The library that has read shows only its own.
    pub(super) fn failure(&self) -> Option<ObjectError> {
        self.failure.clone()
    }

    /// The end of the object, from `start` on, which was read before. It stays until other pieces are planned, or as long as
    /// this if it is the whole object.
    pub(super) fn put(&mut self, start: u64, bytes: Bytes) {
        if !bytes.is_empty() {
            let range = start..start + bytes.len() as u64;
            let plan = PlannedPiece { range, group: 0, given_up: GivenUp::WithGroup };
            self.hold(plan, PieceContent::Here(bytes));
        }
    }

    fn has_all(&self) -> bool {
        let first = self.held.first_key_value();
        first.is_some_and(|(_, piece)| piece.plan.range == (0..self.object.bytes()))
    }

    /// Gives up all pieces of other row groups.
    pub(super) fn keep_groups(&mut self, is_kept: impl Fn(usize) -> bool) {
        if self.has_all() {
            return;
        }
        self.planned.retain(|piece| is_kept(piece.group));
        self.groups.retain(|group| is_kept(*group));
        let others = self.held.values().filter(|piece| !is_kept(piece.plan.group));
        for start in others.map(|piece| piece.plan.range.start).collect::<Vec<_>>() {
            self.give_up(start);
        }
    }

    /// Plans to read a row group, behind what is planned, if it is not planned yet; `columns` are the places of its columns.
    pub(super) fn plan_group(&mut self, group: usize, columns: impl FnOnce() -> Vec<Range<u64>>) {
        if self.has_all() || self.groups.contains(&group) {
            return;
        }
        self.groups.push(group);
        let mut columns = columns();
        let size = self.object.bytes();
        columns.sort_by_key(|column| column.start);
        // A damaged file says anything. What is not planned is read when it is wanted.
        columns.retain(|column| column.start < column.end && column.end <= size);
        let mut end = 0;
        columns.retain(|column| {
            let is_apart = column.start >= end;
            end = end.max(column.end);
            is_apart
        });
        let all_bytes: u64 = columns.iter().map(|column| column.end - column.start).sum();
        let pieces = if all_bytes <= self.limit / 2 {
            across(&columns, (self.limit / 4).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX))
        } else {
            let third = self.limit / 3 / columns.len().max(1) as u64;
            by_column(&columns, third.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX))
        };
        let planned =
            pieces.into_iter().map(|(range, given_up)| PlannedPiece { range, group, given_up });
        self.planned.extend(planned);
        self.top_up();
    }

    /// Plans to read all bytes of a range in order, and nothing else.
    pub(super) fn plan_run(&mut self, range: Range<u64>) {
        self.keep_groups(|_| false);
        let most = (self.limit / 3).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        self.run = Some(Run { rest: range, bytes: RUN_BYTES_FIRST.min(most), most });
        self.extend_run();
    }

    /// Plans the next piece of a run, if none is planned.
    fn extend_run(&mut self) {
        if let Some(Run { rest, bytes, most }) = &mut self.run
            && self.planned.is_empty()
            && !rest.is_empty()
        {
            let range = rest.start..(rest.start + *bytes).min(rest.end);
            rest.start = range.end;
            // Each one is larger, since it is more certain that it is wanted.
            *bytes = (2 * *bytes).min(*most);
            self.planned.push_back(PlannedPiece { range, group: 0, given_up: GivenUp::Read });
        }
    }

    /// Whether the byte at `at` is planned, begun or here.
    pub(super) fn is_planned(&self, at: u64) -> bool {
        self.held_at(at).is_some() || self.planned.iter().any(|piece| piece.range.contains(&at))
    }

    /// Bytes from `at` on, at least one and at most to `end`, as they are in one piece.
    pub(super) fn bytes_at(&mut self, at: u64, end: u64) -> Result<Bytes, ObjectError> {
        debug_assert!(at < end && end <= self.object.bytes(), "a range of the object");
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let start = self.begun_at(at, end);
        // The others are on their way while this one is waited for.
        self.top_up();
        let piece = self.held.get_mut(&start).expect("held above");
        let range = piece.plan.range.clone();
        if let PieceContent::Begun(_) = &piece.content {
            let begun = std::mem::replace(&mut piece.content, PieceContent::Here(Bytes::new()));
            let PieceContent::Begun(read) = begun else { unreachable!("looked at above") };
            self.begun -= 1;
            match read.wait() {
                Ok(bytes) => {
                    assert_eq!(
                        bytes.len() as u64,
                        range.end - range.start,
                        "a store gives what was asked for"
                    );
                    piece.content = PieceContent::Here(bytes);
                }
                Err(error) => {
                    self.failure = Some(error.clone());
                    self.keep_groups(|_| false);
                    return Err(error);
                }
            }
            self.top_up();
        }
        let PieceContent::Here(bytes) = &self.held[&start].content else {
            unreachable!("here by now")
        };
        let from = usize::try_from(at - start).expect("in memory");
        let to = usize::try_from(end.min(range.end) - start).expect("in memory");
        Ok(bytes.slice(from..to))
    }

    /// Gives up the pieces whose last byte is in a range, which was read.
    pub(super) fn was_read(&mut self, range: Range<u64>) {
        let ends_there = |piece: &&HeldPiece| {
            let end = piece.plan.range.end;
            piece.plan.given_up == GivenUp::Read && end > range.start && end <= range.end
        };
        let read = self.held.range(..range.end).rev().map(|(_, piece)| piece);
        let read = read.take_while(|piece| piece.plan.range.end > range.start);
        for start in read.filter(ends_there).map(|piece| piece.plan.range.start).collect::<Vec<_>>()
        {
            self.give_up(start);
        }
        self.top_up();
    }

    /// The start of the piece that has the byte at `at`, which is begun if it is not there.
    fn begun_at(&mut self, at: u64, end: u64) -> u64 {
        if let Some(start) = self.held_at(at) {
            return start;
        }
        if let Some(number) = self.planned.iter().position(|piece| piece.range.contains(&at)) {
            let piece = self.planned.remove(number).expect("found above");
            self.extend_run();
            self.begin(piece);
        }
        if let Some(start) = self.held_at(at) {
            return start;
        }
        let range = at..end.min(at + PIECE_BYTES_MAX);
        self.begin(PlannedPiece { range, group: 0, given_up: GivenUp::Read });
        at
    }

    fn held_at(&self, at: u64) -> Option<u64> {
        let (start, piece) = self.held.range(..=at).next_back()?;
        piece.plan.range.contains(&at).then_some(*start)
    }

    /// Begins planned pieces, as far as memory lasts.
    fn top_up(&mut self) {
        while self.begun < BEGUN_MAX
            && let Some(next) = self.planned.front()
            // What is left of the limit is for pieces that are wanted before their turn.
            && self.held_bytes + (next.range.end - next.range.start) <= self.limit / 3 * 2
        {
            let next = self.planned.pop_front().expect("looked at above");
            self.extend_run();
            self.begin(next);
        }
    }

    fn begin(&mut self, piece: PlannedPiece) {
        // Tables that are not damaged have no pieces twice.
        if self.held_at(piece.range.start).is_none() {
            let read = self.object.begin(piece.range.clone());
            self.begun += 1;
            self.hold(piece, PieceContent::Begun(read));
        }
    }

    fn hold(&mut self, plan: PlannedPiece, content: PieceContent) {
        self.held_bytes += plan.range.end - plan.range.start;
        let before = self.held.insert(plan.range.start, HeldPiece { plan, content });
        assert!(before.is_none(), "a piece is held once");
    }

    fn give_up(&mut self, start: u64) {
        if let Some(piece) = self.held.remove(&start) {
            self.held_bytes -= piece.plan.range.end - piece.plan.range.start;
            self.begun -= usize::from(matches!(piece.content, PieceContent::Begun(_)));
        }
    }
}

/// Pieces of at most `bytes` across columns, in the order of the file.
fn across(columns: &[Range<u64>], bytes: u64) -> Vec<(Range<u64>, GivenUp)> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for column in columns {
        match runs.last_mut() {
            Some(run) if run.end == column.start => run.end = column.end,
            _ => runs.push(column.clone()),
        }
    }
    let pieces = runs.iter().flat_map(|run| cut(run, bytes));
    pieces.map(|range| (range, GivenUp::WithGroup)).collect()
}

/// Pieces of at most `bytes`, each of one column, in the order in which a reader of all columns wants them.
fn by_column(columns: &[Range<u64>], bytes: u64) -> Vec<(Range<u64>, GivenUp)> {
    let mut pieces = Vec::new();
    for column in columns {
        let all = column.end - column.start;
        // Where in its column a piece begins, as a fraction of 2^64.
        let place = |start: u64| (u128::from(start - column.start) << 64) / u128::from(all);
        pieces.extend(cut(column, bytes).map(|range| (place(range.start), range)));
    }
    pieces.sort_by_key(|(place, range)| (*place, range.start));
    pieces.into_iter().map(|(_, range)| (range, GivenUp::Read)).collect()
}

fn cut(range: &Range<u64>, bytes: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = range.end;
    let starts = (range.start..end).step_by(usize::try_from(bytes).expect("a size in memory"));
    starts.map(move |start| start..(start + bytes).min(end))
}

#[cfg(test)]
mod tests;
