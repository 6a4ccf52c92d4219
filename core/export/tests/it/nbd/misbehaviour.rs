//! Clients that break the protocol, flood, stall, lie and leave: other clients do not notice.

use std::io::{Read, Write};

use merganser_export::nbd::CONNECTIONS_MAX;

use super::client::*;
use super::*;

/// Each of these breaks the protocol, and is hung up on; another client never notices.
#[test]
fn garbage_ends_only_its_own_connection() {
    let served = Served::new();
    let mut bystander = served.client(true);
    let greeting = [&[0, 0, 0, 3], &b"IHAVEOPT"[..]].concat();
    let beginnings: [&[u8]; 6] = [
        &[0xff; 4],                                                       // flags
        &[0, 0, 0, 4],                                                    // flags of later days
        &[&greeting[..4], b"IHAVENOT"].concat(),                          // no option
        &[&greeting[..], &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]].concat(), // 4 GiB of data
        &[&greeting[..], &[0, 0, 0, 3, 0, 1, 0, 1]].concat(),             // one byte too many
        &[&greeting[..], b"\0\0\0\x01\0\0\0\x07missing"].concat(),        // no words for this
    ];
    for bytes in beginnings {
        let mut client = served.connect();
        client.take(18);
        client.send(&[bytes]);
        client.is_hung_up_on();
        assert!(bystander.read(0, 100).is_ok());
    }
    for bytes in [&[0; 28][..], &request(1, 0, 0, 0, (32 << 20) + 1)] {
        let mut client = served.client(false);
        client.send(&[bytes]);
        client.is_hung_up_on();
        assert!(bystander.read(0, 100).is_ok());
    }
}

/// Clients that leave at any point, mid-message and mid-reply.
#[test]
fn leaving_at_any_moment_harms_nobody() {
    let served = Served::new();
    let mut bystander = served.client(true);
    let whole: Vec<u8> = [
        &[0, 0, 0, 3],
        &b"IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x07\0\0\0\x0a\0\0\0\x04view\0\0"[..],
        &request(READ, 0, 1, 0, 4 << 20),
        &request(1, 0, 2, 0, 10),
        b"12345",
    ]
    .concat();
    for end in 0..=whole.len() {
        let mut client = served.connect();
        client.send(&[&whole[..end]]);
        if end % 2 == 0 {
            client.take(18);
        }
    }
    assert!(bystander.read(0, SIZE).is_ok());
    let all_gone = || {
        let clients: Vec<_> = (1..CONNECTIONS_MAX).map(|_| served.connect()).collect();
        clients.into_iter().all(|mut c| c.stream.read_exact(&mut [0; 18]).is_ok())
    };
    within_patience(all_gone, "the places of those who left are free");
}

/// A client that asks and never reads waits for itself; the memory of its replies is bounded.
#[test]
fn a_client_that_floods_or_stalls_slows_only_itself() {
    let served = Served::new();
    let mut flooder = served.client(true);
    let flood: Vec<_> = (0..1000).flat_map(|i| request(READ, 0, i, 0, SIZE as u32)).collect();
    flooder.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("set");
    let rounds = (0..100).take_while(|_| flooder.stream.write_all(&flood).is_ok()).count();
    assert!(rounds < 100, "the server takes every request there is");
    let mut small = served.client(false);
    let many: Vec<_> = (0..1000).flat_map(|i| request(FLUSH, 0, i, 0, 0)).collect();
    small.stream.set_write_timeout(Some(Duration::from_millis(300))).expect("set");
    let rounds = (0..1000).take_while(|_| small.stream.write_all(&many).is_ok()).count();
    assert!(rounds < 1000, "the server answers into the void");

    let start = Instant::now();
    let mut bystander = served.client(true);
    assert!(bystander.read(0, SIZE).is_ok_and(|read| read == served.bytes.content));
    assert!(start.elapsed() < PATIENCE);
    // Neither keeps the server from its end.
    let start = Instant::now();
    served.stop().expect("no failed read");
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn who_does_not_come_to_the_point_is_hung_up_on() {
    // It is the time of all three clients, also of the one that is to be served.
    let soon = Duration::from_secs(5);
    let bytes = Bytes { content: lines(100), ..Bytes::default() };
    let served = Served::with(bytes, |o| NbdOptions { handshake_timeout: soon, ..o });
    let mut patient = served.client(true);
    let mut silent = served.connect();
    let mut busy = served.connect();
    busy.greet(3);
    silent.is_hung_up_on();
    // Many words are no excuse.
    let start = Instant::now();
    while busy.stream.write_all(b"IHAVEOPT\0\0\0\x03\0\0\0\0").is_ok() {
        assert!(start.elapsed() < PATIENCE, "it talks for ever");
        std::thread::yield_now();
    }
    assert!(patient.read(0, 100).is_ok(), "after the handshake there is no hurry");
}

/// Clients that lose their place when it is wanted have been idle for this long.
const IDLE: Duration = Duration::from_millis(300);

fn with_short_idle() -> Served {
    let bytes = Bytes { content: lines(SIZE), ..Bytes::default() };
    Served::with(bytes, |o| NbdOptions { idle_at_least: IDLE, ..o })
}

#[test]
fn one_client_too_many_is_hung_up_on() {
    let served = Served::new();
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| served.client(false)).collect();
    let mut late = served.connect();
    late.is_hung_up_on();
    assert!(clients[0].read(0, 10).is_ok());
    drop(clients);
    let free = || served.connect().stream.read_exact(&mut [0; 18]).is_ok();
    within_patience(free, "a place is free again");
}

/// Audit finding F21: clients that choose an export and say nothing more, say a part of a request, or
/// ask and never read the reply. None of them keeps a new client out, and a client that is at work
/// keeps its place.
#[test]
fn f21_silent_clients_keep_nobody_out() {
    let served = with_short_idle();
    let mut busy = served.client(true);
    let mut hostile: Vec<_> = (1..CONNECTIONS_MAX)
        .map(|i| {
            let mut client = served.client(i % 2 == 0);
            match i % 4 {
                0 => {}
                1 => client.send(&[&request(READ, 0, 1, 0, 4)[..27]]),
                2 => {
                    client.request(READ, 0, 1, 0, SIZE as u32);
                    client.request(READ, 0, 2, 0, SIZE as u32);
                }
                _ => client.send(&[&request(1, 0, 1, 0, 1000), b"a part"]),
            }
            if i == 1 {
                // The server notes the time of what it has read and answered a moment later.
                std::thread::sleep(IDLE);
            }
            client
        })
        .collect();
    let oldest = Instant::now();
    while oldest.elapsed() < IDLE * 2 {
        assert!(busy.read(0, 1000).is_ok());
        std::thread::sleep(IDLE / 20);
    }
    // Each newcomer is at work and takes another place, that of the oldest hostile client first.
    for i in 1..CONNECTIONS_MAX {
        let mut late = served.client(true);
        assert_eq!(late.read(0, 1000).as_deref(), Ok(&served.bytes.content[..1000]), "{i}");
        assert!(busy.read(0, 1000).is_ok());
        hostile.push(late);
        if i == 1 {
            hostile[0].is_hung_up_on();
        }
    }
    assert_eq!(busy.read(0, SIZE).as_ref(), Ok(&served.bytes.content));
}

/// Clients that wait for the server are not idle, however long it takes.
#[test]
fn f21_who_waits_for_an_answer_keeps_its_place() {
    let served = with_short_idle();
    let mut clients: Vec<_> = (0..CONNECTIONS_MAX).map(|_| served.client(false)).collect();
    served.bytes.gate.set(true);
    for (i, client) in clients.iter_mut().enumerate() {
        client.request(READ, 0, 7, i as u64 * 100_000, 10);
    }
    std::thread::sleep(IDLE * 3);
    served.connect().is_hung_up_on();
    served.bytes.gate.set(false);
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.simple(), (0, 7));
        assert_eq!(client.take(10), served.bytes.content[i * 100_000..][..10]);
    }
}

/// A client that is idle keeps its place as long as there are others.
#[test]
fn f21_the_longest_idle_client_goes_and_only_when_its_place_is_wanted() {
    let served = with_short_idle();
    let mut idle = vec![served.client(false)];
    // The server notes the time of its answer a moment after that has left.
    std::thread::sleep(IDLE);
    idle.extend((2..CONNECTIONS_MAX).map(|_| served.client(false)));
    std::thread::sleep(IDLE * 3);
    let mut fits = served.client(false);
    assert!(fits.read(0, 10).is_ok());
    let mut late = served.client(false);
    assert!(late.read(0, 10).is_ok());
    idle.remove(0).is_hung_up_on();
    for client in &mut idle {
        assert!(client.read(0, 10).is_ok());
    }
}

/// A client that asks and leaves keeps its place until its reads are done: what waits is bounded.
#[test]
fn who_leaves_early_keeps_its_place_for_a_while() {
    let served = Served::new();
    served.bytes.gate.set(true);
    for i in 0..CONNECTIONS_MAX as u64 {
        let mut client = served.client(true);
        client.request(READ, 0, i, i * 100_000, 10);
        client.send(&[&[0; 28]]);
        client.is_hung_up_on();
    }
    served.connect().is_hung_up_on();
    served.bytes.gate.set(false);
    within_patience(|| served.connect().stream.read_exact(&mut [0]).is_ok(), "all free");
}
