//! Places of connections: who gives way when all are taken.
//!
//! ```text
//!   a new connection ──► a free place? ──► taken
//!                             └ no ──► a connection that has not shown the token gives way, the oldest one of the
//!                                      address that has most of them:
//!                                        at once        if the new one's address has fewer of them
//!                                        after SILENT   if it has sent nothing
//!                                        after SHORT    in any case
//!                                      there is none? it waits until a connection ends
//! ```
//!
//! So connections without the token keep no client with it away for long, however many they are, and whoever makes
//! them from one address keeps no client of another address away at all. A client that has shown the token is not
//! closed for another one.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::presence::ConnectionPresence;

/// The most connections at once; further ones wait.
pub(crate) const CONNECTIONS_MAX: usize = 128;
/// When all places are taken, a connection that has sent nothing for so long gives way. A client begins to send as soon
/// as it is connected.
const SILENT: Duration = Duration::from_millis(250);
/// When all places are taken, a connection without the token gives way after so long: TLS and the first request took a
/// client some milliseconds.
const SHORT: Duration = Duration::from_secs(2);

/// The places of a listener. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Places(Arc<PlaceTable>);

struct PlaceTable {
    taken: Mutex<TakenPlaces>,
    freed: Notify,
}

#[derive(Default)]
struct TakenPlaces {
    /// By number, so the oldest first.
    connections: BTreeMap<u64, HeldConnection>,
    next: u64,
}

struct HeldConnection {
    address: IpAddr,
    since: Instant,
    presence: ConnectionPresence,
}

/// A connection's place, which is free again when this is dropped.
pub(crate) struct ConnectionPlace {
    table: Arc<PlaceTable>,
    number: u64,
    presence: ConnectionPresence,
}

/// The answer to a new connection.
#[derive(Debug, PartialEq, Eq)]
enum PlaceTurn {
    /// It has a place.
    Taken(u64),
    /// A connection ends for it, or one that has shown the token must.
    Later,
    /// A connection may give way from then on.
    At(Instant),
}

impl Places {
    pub(crate) fn new() -> Self {
        Places(Arc::new(PlaceTable { taken: Mutex::default(), freed: Notify::new() }))
    }

    /// A place for a connection from `address`, once there is one.
    pub(crate) async fn take(&self, address: IpAddr) -> ConnectionPlace {
        let presence = ConnectionPresence::new();
        loop {
            // Before the look at the table: a place that becomes free in between is noticed.
            let freed = self.0.freed.notified();
            let turn = self.0.taken.lock().take(address, &presence, Instant::now());
            match turn {
                PlaceTurn::Taken(number) => {
                    return ConnectionPlace { table: Arc::clone(&self.0), number, presence };
                }
                PlaceTurn::Later => freed.await,
                PlaceTurn::At(then) => {
                    let _ = tokio::time::timeout_at(then, freed).await;
                }
            }
        }
    }
}

impl TakenPlaces {
    /// Takes a place, or closes the connection that gives way.
    fn take(&mut self, address: IpAddr, presence: &ConnectionPresence, now: Instant) -> PlaceTurn {
        if self.connections.len() < CONNECTIONS_MAX {
            let number = self.next;
            self.next += 1;
            let connection = HeldConnection { address, since: now, presence: presence.clone() };
            self.connections.insert(number, connection);
            return PlaceTurn::Taken(number);
        }
        if self.connections.values().any(|connection| connection.presence.is_closed()) {
            return PlaceTurn::Later;
        }
        let strangers = || self.connections.values().filter(|each| !each.presence.is_known());
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        strangers().for_each(|stranger| *counts.entry(stranger.address).or_default() += 1);
        let Some(most) = counts.values().copied().max() else { return PlaceTurn::Later };
        let own = counts.get(&address).copied().unwrap_or(0);
        // With this one its address would have as many as the other one: that is no reason to close one.
        let at_once = own + 1 < most;
        let gives_way = |stranger: &HeldConnection| match at_once {
            true => now,
            false if stranger.presence.has_spoken() => stranger.since + SHORT,
            false => stranger.since + SILENT,
        };
        let first = strangers()
            .filter(|stranger| counts[&stranger.address] == most)
            .min_by_key(|stranger| gives_way(stranger))
            .expect("one of them has most");
        match gives_way(first) {
            then if then > now => PlaceTurn::At(then),
            _ => {
                first.presence.close();
                PlaceTurn::Later
            }
        }
    }
}

impl ConnectionPlace {
    /// The presence of its connection.
    pub(crate) fn presence(&self) -> &ConnectionPresence {
        &self.presence
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.table.taken.lock().connections.remove(&self.number);
        self.table.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// All places, taken at `now` by connections from here.
    fn full(now: Instant) -> (TakenPlaces, Vec<ConnectionPresence>) {
        let (mut taken, mut all) = (TakenPlaces::default(), Vec::new());
        for number in 0..CONNECTIONS_MAX {
            let presence = ConnectionPresence::new();
            assert_eq!(taken.take(HERE, &presence, now), PlaceTurn::Taken(number as u64));
            all.push(presence);
        }
        (taken, all)
    }

    fn closed(all: &[ConnectionPresence]) -> Vec<usize> {
        (0..all.len()).filter(|at| all[*at].is_closed()).collect()
    }

    #[test]
    fn a_silent_connection_gives_way_before_one_that_speaks() {
        let now = Instant::now();
        let (mut taken, all) = full(now);
        all[0].spoke();
        all[1].known();
        let new = ConnectionPresence::new();
        assert_eq!(taken.take(HERE, &new, now), PlaceTurn::At(now + SILENT));
        assert!(closed(&all).is_empty());
        assert_eq!(taken.take(HERE, &new, now + SILENT), PlaceTurn::Later);
        assert_eq!(closed(&all), [2], "the oldest that has said nothing");
        assert_eq!(taken.take(HERE, &new, now + SHORT), PlaceTurn::Later);
        assert_eq!(closed(&all), [2], "one at a time");
        taken.connections.remove(&2);
        assert!(matches!(taken.take(HERE, &new, now + SHORT), PlaceTurn::Taken(_)));
    }

    #[test]
    fn one_that_speaks_without_the_token_gives_way_later() {
        let now = Instant::now();
        let (mut taken, all) = full(now);
        all.iter().for_each(ConnectionPresence::spoke);
        let new = ConnectionPresence::new();
        assert_eq!(taken.take(HERE, &new, now + SILENT), PlaceTurn::At(now + SHORT));
        assert_eq!(taken.take(HERE, &new, now + SHORT), PlaceTurn::Later);
        assert_eq!(closed(&all), [0]);
    }

    #[test]
    fn an_address_with_many_gives_way_to_another_at_once() {
        let now = Instant::now();
        let (mut taken, all) = full(now);
        assert_eq!(taken.take(THERE, &ConnectionPresence::new(), now), PlaceTurn::Later);
        assert_eq!(closed(&all), [0]);
    }

    #[test]
    fn those_with_the_token_are_not_closed_for_others() {
        let now = Instant::now();
        let (mut taken, all) = full(now);
        all.iter().for_each(ConnectionPresence::known);
        for address in [HERE, THERE] {
            assert_eq!(
                taken.take(address, &ConnectionPresence::new(), now + 2 * SHORT),
                PlaceTurn::Later
            );
        }
        assert!(closed(&all).is_empty());
    }

    #[tokio::test]
    async fn a_place_that_becomes_free_is_given_to_the_one_that_waits() {
        let places = Places::new();
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let place = places.take(HERE).await;
            place.presence().known();
            held.push(place);
        }
        let waiting = places.clone();
        let task = tokio::spawn(async move { waiting.take(THERE).await });
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
        held.pop();
        task.await.expect("it has a place");
    }
}
