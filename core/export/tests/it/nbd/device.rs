//! Device exports: the storage sees all requests that are under way, as they were made, and its answers
//! leave in the order in which it gives them.

use super::client::*;
use super::*;

const WRITE: u16 = 1;
const FUA: u16 = 1;
const DISK_BYTES: u64 = 64 << 20;

/// Holds every operation until the test ends it.
#[derive(Default)]
struct Held {
    waiting: Mutex<Vec<(Operation, Completions, u64)>>,
    changed: Condvar,
}

impl Storage for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn size(&self) -> u64 {
        DISK_BYTES
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealClock::new())
    }

    fn submit(&self, token: u64, operation: Operation, completions: &Completions) {
        self.waiting.lock().push((operation, completions.clone(), token));
        self.changed.notify_all();
    }
}

impl Held {
    /// The operations under way once there are `count` operations: kind, offset and bytes of each.
    fn under_way(&self, count: usize) -> Vec<(char, u64, usize)> {
        let mut waiting = self.waiting.lock();
        let few = |waiting: &mut Vec<_>| waiting.len() < count;
        let waited = self.changed.wait_while_for(&mut waiting, few, PATIENCE);
        assert!(!waited.timed_out(), "only {} of {count} are under way", waiting.len());
        let shown = waiting.iter().map(|(operation, ..)| match operation {
            Operation::Read { offset, buffer } => ('r', *offset, buffer.len()),
            Operation::Write { offset, buffer } => ('w', *offset, buffer.len()),
            Operation::Sync => ('f', 0, 0),
            other => panic!("{other:?}"),
        });
        shown.collect()
    }

    /// Ends one of them; a read gets bytes of `fill`.
    fn end(&self, at: usize, fill: u8) {
        let (operation, completions, token) = self.waiting.lock().remove(at);
        let (buffer, count) = match operation {
            Operation::Read { mut buffer, .. } => {
                buffer.fill(fill);
                let count = buffer.len();
                (Some(buffer), count)
            }
            Operation::Write { buffer, .. } => (Some(buffer), 0),
            _ => (None, 0),
        };
        completions.post(Completion { token, buffer, result: Ok(count) });
    }
}

/// Serves `held` to one client.
fn with_client(structured: bool, work: impl FnOnce(&Held, &mut Client)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let held = Arc::new(Held::default());
    let exports = vec![Export::device("disk", Arc::clone(&held) as Arc<dyn Storage>)];
    let address = Address::Unix(folder.path().join("s"));
    let server = NbdServer::new(NbdOptions::new(address, exports)).expect("listens");
    let stopper = server.stopper();
    let run = std::thread::spawn(move || server.run());
    let mut client = Client::of_export(&folder.path().join("s"), b"disk", structured);
    work(&held, &mut client);
    assert!(held.waiting.lock().is_empty(), "all were ended");
    drop(client);
    stopper.stop();
    run.join().expect("no panic").expect("nothing failed");
}

#[test]
fn all_requests_are_under_way_at_once() {
    with_client(false, |held, client| {
        // Neighbours are not joined, and nothing is put in order.
        for cookie in 0..100_u64 {
            let offset = (cookie ^ 1) * 4096;
            if cookie.is_multiple_of(3) {
                client.send(&[&request(WRITE, 0, cookie, offset, 4096), &[1; 4096]]);
            } else {
                client.request(READ, 0, cookie, offset, 4096);
            }
        }
        let seen = held.under_way(100);
        let asked = |cookie: u64| {
            (if cookie.is_multiple_of(3) { 'w' } else { 'r' }, (cookie ^ 1) * 4096, 4096)
        };
        assert_eq!(seen, (0..100).map(asked).collect::<Vec<_>>());
        // The last one first.
        for cookie in (0..100_u64).rev() {
            held.end(cookie as usize, cookie as u8);
            assert_eq!(client.simple(), (0, cookie));
            if !cookie.is_multiple_of(3) {
                assert_eq!(client.take(4096), [cookie as u8; 4096]);
            }
        }
    });
}

#[test]
fn a_long_request_is_cut_and_its_pieces_are_under_way_together() {
    const LEN: usize = (5 << 20) / 2;
    for structured in [false, true] {
        with_client(structured, |held, client| {
            let pieces = |kind| {
                [(kind, 512, M), (kind, 512 + M as u64, M), (kind, 512 + 2 * M as u64, M / 2)]
            };
            client.request(READ, 0, 7, 512, LEN as u32);
            assert_eq!(held.under_way(3), pieces('r'));
            (1..=3).rev().for_each(|fill| held.end(fill - 1, fill as u8));
            if structured {
                let mut seen = [0; 4];
                for last in [false, false, true] {
                    let chunk = client.chunk();
                    assert_eq!((chunk.done, chunk.kind), (last, 1));
                    seen[usize::from(chunk.payload[8])] = chunk.payload.len() - 8;
                }
                assert_eq!(seen, [0, M, M, M / 2]);
            } else {
                assert_eq!(client.simple(), (0, 7));
                let bytes = client.take(LEN);
                assert_eq!([bytes[0], bytes[M], bytes[2 * M], bytes[LEN - 1]], [1, 2, 3, 3]);
            }
            let head = request(WRITE, FUA, 8, 512, LEN as u32);
            client.send(&[&head, &vec![9; LEN]]);
            assert_eq!(held.under_way(3), pieces('w'));
            (0..3).for_each(|_| held.end(0, 0));
            // Forced unit access: flushed once, after all pieces and before the answer.
            assert_eq!(held.under_way(1), [('f', 0, 0)]);
            held.end(0, 0);
            assert_eq!(client.status(8), 0);
        });
    }
}

/// A client that leaves does not keep the server from its end.
#[test]
fn requests_of_a_client_that_left_come_to_an_end() {
    with_client(true, |held, client| {
        client.request(READ, 0, 1, 0, 4 << 20);
        client.send(&[&request(WRITE, FUA, 2, 0, 512), &[1; 512]]);
        held.under_way(5);
        client.stream.shutdown(std::net::Shutdown::Both).expect("left");
        while !held.waiting.lock().is_empty() {
            held.end(0, 0);
        }
    });
}
