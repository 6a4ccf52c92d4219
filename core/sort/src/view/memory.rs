//! Memory of a view's readers, all of it within one budget.
//!
//! ```text
//!   budget ├ indexes ┼ streams of sequential readers ┼ kept pieces ┼ spare window ┼ free ┤
//!                      given up last                   given up first, oldest first
//! ```

use std::sync::{Arc, Weak};
use std::time::Duration;

use merganser_storage::numbers::u64_of;
use merganser_storage::{ALIGNMENT, Buffer};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::budget::Reservation;
use crate::portion::Portion;
use crate::{Budget, Result};

/// How long a random read waits for the memory of others.
const PATIENCE: Duration = Duration::from_secs(20);

/// Portions that a reader of a stream holds while it waits for the next one.
pub(super) const HELD: usize = 2;

/// Read-ahead, whose memory goes to a read that can't be made without it.
pub(super) trait ReadAhead: Send + Sync {
    /// Ends all read-ahead; it begins again when readers continue.
    fn give_up(&self);
}

/// The memory that all readers of a view share.
pub(super) struct ReadMemory {
    pub(super) budget: Budget,
    /// Threads that make the bytes for one reader.
    pub(super) threads: usize,
    /// The view's own. Its streams hold this memory, so this is no reason to keep them.
    pub(super) ahead: Weak<dyn ReadAhead>,
    pub(super) kept: KeptPieces,
    pub(super) spare: Mutex<Option<Scratch>>,
}

/// Memory of a random read of a merge.
pub(super) struct Scratch {
    pub(super) input: Buffer,
    pub(super) merged: Buffer,
    pub(super) memory: Reservation,
}

impl ReadMemory {
    /// Memory for one random access. Kept pieces and read-ahead are given up for it, and other
    /// random accesses are waited for.
    pub(super) fn reserve(&self, bytes: u64, owner: &'static str) -> Result<Reservation> {
        loop {
            if let Ok(memory) = self.budget.reserve(bytes, owner) {
                return Ok(memory);
            }
            if !self.kept.forget_one() && self.take_spare().is_none() {
                break;
            }
        }
        self.give_up_ahead();
        self.budget.reserve_within(PATIENCE, bytes, owner)
    }

    /// Ends all read-ahead of the view.
    pub(super) fn give_up_ahead(&self) {
        if let Some(ahead) = self.ahead.upgrade() {
            ahead.give_up();
        }
    }

    /// Forgets kept pieces until `bytes` are free, or until none is left.
    pub(super) fn make_room(&self, bytes: u64) {
        while self.budget.free_bytes() < bytes && self.kept.forget_one() {}
    }

    /// Keeps a piece that a sequential reader has passed, in the place of pieces that were used less recently.
    /// Returns the portion if there is no memory for it, or if the piece is kept already.
    pub(super) fn keep_passed(&self, id: PieceId, mut portion: Portion) -> Option<Portion> {
        let bytes = u64_of(portion.len.next_multiple_of(ALIGNMENT));
        self.make_room(bytes);
        let Ok(reserved) = self.budget.reserve(bytes, "a piece that was read") else {
            return Some(portion);
        };
        if self.kept.knows(id) {
            return Some(portion);
        }
        // A buffer may be longer than its piece, and its end was used before.
        let (len, end) = (portion.len, portion.buffer.len());
        portion.buffer.release(len..end);
        self.kept.add(id, KeptPiece { buffer: portion.buffer, len, _memory: reserved });
        None
    }

    pub(super) fn take_spare(&self) -> Option<Scratch> {
        self.spare.lock().take()
    }
}

/// Which piece it is: number of the section, number of the piece in it.
pub(super) type PieceId = (usize, usize);

/// Pieces that were made for reads at random or passed by sequential readers, most recently used last.
#[derive(Default)]
pub(super) struct KeptPieces {
    /// A piece is `None` while it is being made.
    pieces: Mutex<Vec<(PieceId, Option<Arc<KeptPiece>>)>>,
    changed: Condvar,
}

/// Ordered bytes that are kept.
pub(super) struct KeptPiece {
    pub(super) buffer: Buffer,
    pub(super) len: usize,
    pub(super) _memory: Reservation,
}

impl KeptPiece {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl KeptPieces {
    fn lock(&self) -> MutexGuard<'_, Vec<(PieceId, Option<Arc<KeptPiece>>)>> {
        self.pieces.lock()
    }

    /// Whether a piece is here.
    pub(super) fn has(&self, id: PieceId) -> bool {
        self.lock().iter().any(|(other, piece)| *other == id && piece.is_some())
    }

    /// Whether a piece is here or being made.
    fn knows(&self, id: PieceId) -> bool {
        self.lock().iter().any(|(other, _)| *other == id)
    }

    /// Adds a piece, unless it came or began to be made meanwhile.
    fn add(&self, id: PieceId, piece: KeptPiece) {
        let mut pieces = self.lock();
        if !pieces.iter().any(|(other, _)| *other == id) {
            pieces.push((id, Some(Arc::new(piece))));
        }
    }

    /// Piece `id`: made now unless it is kept. Others that want it meanwhile wait for it.
    pub(super) fn get(
        &self,
        id: PieceId,
        make: impl FnOnce() -> Result<KeptPiece>,
    ) -> Result<Arc<KeptPiece>> {
        let mut pieces = self.lock();
        loop {
            let found = pieces.iter().position(|(other, _)| *other == id);
            match found.map(|at| pieces.remove(at)) {
                Some((_, Some(piece))) => {
                    pieces.push((id, Some(Arc::clone(&piece))));
                    return Ok(piece);
                }
                Some(being_made) => {
                    pieces.push(being_made);
                    self.changed.wait(&mut pieces);
                }
                None => break,
            }
        }
        pieces.push((id, None));
        drop(pieces);
        // Ends the wait of others however this one ends.
        let mut entry = Entry { kept: self, id, piece: None };
        let piece = Arc::new(make()?);
        entry.piece = Some(Arc::clone(&piece));
        Ok(piece)
    }

    /// Forgets the least recently used piece that no read holds; false when there is no such piece.
    fn forget_one(&self) -> bool {
        let mut pieces = self.lock();
        let unread = |(_, piece): &(PieceId, Option<Arc<KeptPiece>>)| {
            piece.as_ref().is_some_and(|piece| Arc::strong_count(piece) == 1)
        };
        let oldest = pieces.iter().position(unread);
        oldest.map(|at| pieces.remove(at)).is_some()
    }
}

/// The place of a piece that is being made.
struct Entry<'a> {
    kept: &'a KeptPieces,
    id: PieceId,
    piece: Option<Arc<KeptPiece>>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut pieces = self.kept.lock();
        if let Some(at) = pieces.iter().position(|(other, _)| *other == self.id) {
            match self.piece.take() {
                Some(piece) => pieces[at].1 = Some(piece),
                None => drop(pieces.remove(at)),
            }
        }
        drop(pieces);
        self.kept.changed.notify_all();
    }
}
