//! Clients: taken, given a place each, ended, counted.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::Duration;

use merganser_storage::thread::refused;
use parking_lot::{Condvar, Mutex};

use crate::listener::{ClientStream, Listener};
use crate::{Address, ListenError, Presence};

/// Pause after the system refused a connection, as it does when descriptors run out.
const BREATHER: Duration = Duration::from_millis(50);
/// How long a new client waits for the place of an idle one.
const EVICTION: Duration = Duration::from_secs(1);

/// The service of a server for its clients.
pub trait Service: Sync {
    /// Name of the threads that serve clients.
    const THREAD: &'static str;
    /// Stack of each of them, in bytes.
    const STACK_BYTES: usize = 2 << 20;

    /// Serves one client, in a thread of its own, until it leaves or its stream fails: after a stop,
    /// reads find the end of the stream, and after [`ClientLimits::drain`] writes fail. The connection is
    /// closed when this returns.
    fn serve(&self, client: &ConnectedClient);

    /// Gets to know that a client was not served, or not to the end. Must not wait for a client.
    fn notice(&self, _incident: Incident<'_>) {}
}

/// Why a client was not served.
#[derive(Debug)]
pub enum Incident<'a> {
    /// The system gave no connection: the client changed its mind, or descriptors ran out.
    NotAccepted(io::Error),
    /// All places are taken, and no client is idle. The connection is closed after this.
    Full {
        /// The client's connection.
        stream: &'a ClientStream,
        /// How many places there are.
        connections_max: usize,
    },
    /// The system gave no thread.
    NoThread(io::Error),
    /// [`Service::serve`] panicked.
    Panicked,
}

/// Limits on all clients together.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Clients that may be connected at once.
    pub connections_max: usize,
    /// How long a client must have been idle before a new one may take its place.
    pub idle_at_least: Duration,
    /// How long clients may take, after a stop, to get what they have asked for.
    pub drain: Duration,
    /// Whether other machines may connect. Otherwise an address that they could reach is refused.
    pub other_machines: bool,
}

impl Default for ClientLimits {
    fn default() -> Self {
        ClientLimits {
            connections_max: 64,
            idle_at_least: Duration::from_secs(5),
            drain: Duration::from_secs(2),
            other_machines: false,
        }
    }
}

/// Counts of clients so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Clients that got a place.
    pub accepted: u64,
    /// Clients that found no place, or for which there was no thread.
    pub refused: u64,
    /// Idle clients that lost their place to a new one.
    pub evicted: u64,
    /// Clients whose service panicked.
    pub panicked: u64,
    /// Clients that a stop did not wait for any longer.
    pub cut_off: u64,
    /// Clients that are connected now.
    pub open: usize,
}

/// A connected client.
#[derive(Debug, Clone)]
pub struct ConnectedClient {
    stream: Arc<ClientStream>,
    presence: Arc<Presence>,
}

impl ConnectedClient {
    /// The client's connection.
    #[must_use]
    pub fn stream(&self) -> &ClientStream {
        &self.stream
    }

    /// What decides whether the client may lose its place. The service keeps it up to date.
    #[must_use]
    pub fn presence(&self) -> &Arc<Presence> {
        &self.presence
    }
}

/// The connections of a server: it listens from the start, and [`Connections::run`] serves.
pub struct Connections {
    shared: Arc<ConnectionsShared>,
}

/// Ends [`Connections::run`] from another thread, for example the one that waits for signals. It locks,
/// so a signal handler itself must not call it.
#[derive(Clone)]
pub struct Stopper(Arc<ConnectionsShared>);

/// What the thread that accepts, the threads that serve and the stoppers share.
struct ConnectionsShared {
    listener: Listener,
    limits: ClientLimits,
    state: Mutex<ConnectionsState>,
    gone: Condvar,
}

#[derive(Default)]
struct ConnectionsState {
    stopping: bool,
    clients: HashMap<u64, ConnectedClient>,
    counts: ClientCounts,
}

impl Connections {
    /// Listens at `address`. The file of a Unix socket gets `mode` before any client can connect; a file
    /// that a dead process left there is replaced.
    ///
    /// # Errors
    /// When the address cannot be listened on, or is reachable for more machines than it should be.
    pub fn listen(address: &Address, mode: u32, limits: ClientLimits) -> Result<Self, ListenError> {
        let listener = Listener::bind(address, mode, limits.other_machines)?;
        let (state, gone) = Default::default();
        Ok(Connections { shared: Arc::new(ConnectionsShared { listener, limits, state, gone }) })
    }

    /// Where it listens, with the port that was chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.shared.listener.address
    }

    /// A handle that can end it from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.shared))
    }

    /// Serves until [`Stopper::stop`], and then sees the clients off. Returns when no thread of a client
    /// is left: after [`ClientLimits::drain`] and the time that [`Service::serve`] needs to notice that its
    /// stream has ended.
    pub fn run<S: Service>(&self, service: &S) -> ClientCounts {
        thread::scope(|scope| {
            // Also when `accept` panics: the scope would wait for clients for ever.
            let _ending = ConnectionsGuard(&self.shared);
            self.accept(service, scope);
        });
        self.shared.counts()
    }

    /// Takes clients until the server is stopped.
    fn accept<'scope, S: Service>(
        &'scope self,
        service: &'scope S,
        scope: &'scope Scope<'scope, '_>,
    ) {
        for id in 0.. {
            let accepted = self.shared.listener.accept();
            if self.shared.state.lock().stopping {
                return;
            }
            let stream = match accepted {
                Ok(stream) => Arc::new(stream),
                Err(error) => {
                    service.notice(Incident::NotAccepted(error));
                    thread::sleep(BREATHER);
                    continue;
                }
            };
            let Some(place) = self.shared.admit(id, &stream) else {
                let connections_max = self.shared.limits.connections_max;
                service.notice(Incident::Full { stream: &stream, connections_max });
                continue;
            };
            let serve = move || {
                // Leaves when this ends, or when it is dropped without a thread.
                let place = place;
                if catch_unwind(AssertUnwindSafe(|| service.serve(&place.client))).is_err() {
                    place.shared.state.lock().counts.panicked += 1;
                    service.notice(Incident::Panicked);
                }
            };
            let thread = thread::Builder::new().name(S::THREAD.into()).stack_size(S::STACK_BYTES);
            if let Err(error) = thread.spawn_scoped(scope, serve) {
                self.shared.state.lock().counts.refused += 1;
                service.notice(Incident::NoThread(refused(&error)));
            }
        }
    }
}

impl Stopper {
    /// Stops listening and taking requests. After this [`Connections::run`] returns.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Counts of clients so far.
    #[must_use]
    pub fn counts(&self) -> ClientCounts {
        self.0.counts()
    }
}

impl ConnectionsShared {
    fn counts(&self) -> ClientCounts {
        let state = self.state.lock();
        ClientCounts { open: state.clients.len(), ..state.counts }
    }

    /// Gives a client a place; `None` when there is no place, not even that of an idle client.
    fn admit(&self, id: u64, stream: &Arc<ClientStream>) -> Option<ClientSlot<'_>> {
        let ClientLimits { connections_max, idle_at_least, .. } = self.limits;
        let mut state = self.state.lock();
        if state.clients.len() >= connections_max {
            let idle = state.clients.values().filter_map(|client| {
                let idle = client.presence.idle().filter(|idle| *idle >= idle_at_least)?;
                Some((idle, client))
            });
            if let Some((_, longest)) = idle.max_by_key(|(idle, _)| *idle) {
                longest.stream.shut_down(Shutdown::Both);
                state.counts.evicted += 1;
                let full = |state: &mut ConnectionsState| state.clients.len() >= connections_max;
                self.gone.wait_while_for(&mut state, full, EVICTION);
            }
        }
        if state.clients.len() >= connections_max || state.stopping {
            state.counts.refused += 1;
            return None;
        }
        state.counts.accepted += 1;
        let client =
            ConnectedClient { stream: Arc::clone(stream), presence: Arc::new(Presence::new()) };
        state.clients.insert(id, client.clone());
        Some(ClientSlot { shared: self, id, client })
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        self.listener.close();
        for client in state.clients.values() {
            // Requests end here; answers continue.
            client.stream.shut_down(Shutdown::Read);
        }
    }

    /// Waits until all clients are gone, and ends them when they take too long.
    fn see_off(&self) {
        let some = |state: &mut ConnectionsState| !state.clients.is_empty();
        let mut state = self.state.lock();
        self.gone.wait_while_for(&mut state, some, self.limits.drain);
        state.counts.cut_off += state.clients.len() as u64;
        for client in state.clients.values() {
            client.stream.shut_down(Shutdown::Both);
        }
        self.gone.wait_while(&mut state, some);
    }
}

/// A client's place, which is free again when this is dropped.
struct ClientSlot<'a> {
    shared: &'a ConnectionsShared,
    id: u64,
    client: ConnectedClient,
}

impl Drop for ClientSlot<'_> {
    fn drop(&mut self) {
        self.client.stream.shut_down(Shutdown::Both);
        self.shared.state.lock().clients.remove(&self.id);
        self.shared.gone.notify_all();
    }
}

/// Ends all connections when it is dropped.
struct ConnectionsGuard<'a>(&'a ConnectionsShared);

impl Drop for ConnectionsGuard<'_> {
    fn drop(&mut self) {
        self.0.stop();
        self.0.see_off();
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("address", self.address()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.0.listener.address;
        f.debug_struct("Stopper").field("address", address).finish_non_exhaustive()
    }
}
