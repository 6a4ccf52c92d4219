//! Sessions, the end of the ring, and the bound of what isn't synced.

use super::*;
use merganser_storage::memory::MemoryStorage;
use merganser_storage::{Clock, Geometry};
use parking_lot::Mutex;

const VOLUME: [u8; 16] = [7; 16];
const FIRST: RingPlace = RingPlace { seq: 1, at: 0, chain: 5 };

fn ring(blocks: u64) -> Arc<dyn Storage> {
    MemoryStorage::from_bytes("ring", &vec![0; (blocks * PAGE as u64) as usize])
}

/// Appends a record of `pages` pages of `byte`.
fn append(log: &mut Log, pages: usize, byte: u8) {
    let page = [byte; PAGE];
    let crc = crc32c::crc32c(&page);
    let entries: Vec<RecordEntry> =
        (0..pages as u64).map(|page| RecordEntry::Page { page, crc }).collect();
    log.append(&entries, &vec![&page; pages]).expect("room");
    log.write().expect("begun, and ended: it is memory");
}

/// Numbers and first blocks of the records that an opening finds.
fn found(array: &Arc<dyn Storage>, known: Known) -> Result<(Vec<(u64, u64)>, Log)> {
    let mut found = Vec::new();
    let session = known.session + 1;
    let log = Log::recover(Arc::clone(array), VOLUME, session, known, |header, block| {
        found.push((header.seq, block - 1));
        Ok(())
    })?;
    Ok((found, log))
}

/// A log whose third record was torn at the end of the ring, in session 1. Session 2 dropped it, and its own third
/// record is at block 0. Returns the tail, too.
fn torn_at_the_end(array: &Arc<dyn Storage>) -> RingPlace {
    let mut log = Log::new(Arc::clone(array), VOLUME, 1, FIRST);
    for _ in 0..2 {
        append(&mut log, 125, 1);
    }
    log.sync().expect("synced");
    log.release(2);
    let tail = log.tail();
    append(&mut log, 2, 2);
    // Its first page did not reach the disk.
    array.write_at(253 * PAGE as u64, &[0; PAGE]).expect("torn");
    let known = Known { tail, synced: 2, session: 1, checkpoint: 0, opened: 1 };
    let (records, mut log) = found(array, known).expect("opens");
    assert_eq!((records, log.dropped(), log.next_seq()), (vec![], 1, 3));
    append(&mut log, 20, 3);
    log.sync().expect("synced");
    tail
}

/// The torn record must not hide the later one: not from the next session, and not from sessions after that.
#[test]
fn a_dropped_record_at_the_end_of_the_ring_hides_none() {
    let array = ring(256);
    let tail = torn_at_the_end(&array);
    let known = Known { tail, synced: 2, session: 2, checkpoint: 0, opened: 3 };
    let (records, _) = found(&array, known).expect("opens");
    assert_eq!(records, [(3, 0)]);
    let known = Known { tail, synced: 3, session: 3, checkpoint: 0, opened: 4 };
    let (records, _) = found(&array, known).expect("opens");
    assert_eq!(records, [(3, 0)]);
}

/// Nor may it take the place of the later one when that is damaged.
#[test]
fn a_dropped_record_replaces_no_damaged_one() {
    let array = ring(256);
    let tail = torn_at_the_end(&array);
    array.write_at(0, &[0; PAGE]).expect("damaged");
    let known = Known { tail, synced: 3, session: 3, checkpoint: 0, opened: 4 };
    let error = found(&array, known).err().expect("refused");
    assert!(error.to_string().contains("record 3 is damaged: it was durable"), "{error}");
}

/// A record whose number and predecessor are right counts only in the session that could write it.
#[test]
fn records_of_other_sessions_do_not_count() {
    let forged = |session| {
        let array = ring(64);
        let mut log = Log::new(Arc::clone(&array), VOLUME, 4, FIRST);
        append(&mut log, 1, 1);
        let mut other = Log::new(Arc::clone(&array), VOLUME, session, log.ring.head);
        append(&mut other, 1, 2);
        let known = Known { tail: FIRST, synced: 0, session: 4, checkpoint: 0, opened: 1 };
        found(&array, known).map(|(records, _)| records.len())
    };
    assert_eq!(forged(4).expect("opens"), 2);
    assert_eq!(forged(3).expect("opens"), 1);
    let error = forged(5).expect_err("refused").to_string();
    assert!(error.contains("record 2 is damaged: it was written in session 5"), "{error}");
}

/// Records gather in memory, and reach the members when they are read, when they are many, at a sync, and at
/// the end.
#[test]
fn records_are_gathered() {
    let array = ring(1024);
    let mut log = Log::new(Arc::clone(&array), VOLUME, 1, FIRST);
    let page = [3; PAGE];
    let add = |log: &mut Log| {
        let (seq, block) =
            log.append(&[RecordEntry::Trim { page: 0, count: 1 }], &[]).expect("room");
        let entry = RecordEntry::Page { page: 0, crc: crc32c::crc32c(&page) };
        assert_eq!(log.append(&[entry], &[&page]).expect("room"), (seq + 1, block + 1));
        block + 1
    };
    let is_there = |block: u64| {
        array.read_vec(block * PAGE as u64, PAGE).expect("read").iter().all(|&byte| byte == 3)
    };
    let block = add(&mut log);
    assert!(!is_there(block));
    let mut out = [0; PAGE];
    log.read_page(block, &mut out).expect("reads");
    assert!(out == page && is_there(block));
    let block = add(&mut log);
    assert!(!is_there(block));
    log.sync().expect("synced");
    assert!(is_there(block));
    let block = add(&mut log);
    // Three blocks each: more than the rest of 1 MiB.
    for _ in 0..90 {
        add(&mut log);
    }
    assert!(is_there(block));
    let block = add(&mut log);
    assert!(!is_there(block));
    drop(log);
    assert!(is_there(block));
}

/// A storage whose syncs end when this many more bytes have been written.
struct LateSync {
    inner: Arc<dyn Storage>,
    bytes: u64,
    held: Mutex<Option<(u64, Completions, u64)>>,
}

impl Storage for LateSync {
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
        let mut held = self.held.lock();
        match &operation {
            Operation::Sync => {
                *held = Some((token, completions.clone(), self.bytes));
                return;
            }
            Operation::Write { buffer, .. } => {
                if let Some((_, _, left)) = &mut *held {
                    *left = left.saturating_sub(buffer.len() as u64);
                }
            }
            _ => {}
        }
        self.inner.submit(token, operation, completions);
        if let Some((token, completions, _)) = held.take_if(|(_, _, left)| *left == 0) {
            completions.post(Completion { token, buffer: None, result: Ok(0) });
        }
    }
}

/// Blocks written without a sync are bounded, so that recovery is bounded, too. A sync begins when half of
/// them are written, and may end much later.
#[test]
fn a_log_syncs_by_itself_from_time_to_time() {
    for bytes in [0, 5 << 20, 12 << 20] {
        syncs_by_itself(bytes);
    }
}

fn syncs_by_itself(bytes: u64) {
    let array = ring(UNSYNCED_BLOCKS_MAX + 600);
    let array: Arc<dyn Storage> = match bytes {
        0 => array,
        bytes => Arc::new(LateSync { inner: array, bytes, held: Mutex::default() }),
    };
    let mut log = Log::new(Arc::clone(&array), VOLUME, 1, FIRST);
    while log.synced() == 0 {
        append(&mut log, 125, 1);
        assert!(log.fill().1 <= UNSYNCED_BLOCKS_MAX + 126);
    }
    assert!(log.fill().1 > SYNC_FROM_BLOCKS + bytes / PAGE as u64);
    // Both copies of the first record's first block are damaged. The proof is up to 32 MiB away.
    array.write_at(10, b"damage").expect("written");
    array.write_at(126 * PAGE as u64 + 10, b"damage").expect("written");
    append(&mut log, 125, 1);
    let known = Known { tail: FIRST, synced: 0, session: 1, checkpoint: 0, opened: 1 };
    assert!(found(&array, known).err().expect("refused").is_damage());
}
