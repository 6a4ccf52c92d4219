//! The common part of all servers: listen, admit clients, stop, wait for them, count.
//!
//! ```text
//!   Address ──► Connections::listen ──► run ──► accept ──► admit ──► a thread ──► Service::serve
//!   (Unix socket                         ▲                 at most    per client
//!    or TCP)                             │                 connections_max
//!                            Stopper::stop, from any thread
//! ```
//!
//! - **A full server** gives the place of the client that is idle for longest to a new one. A client is
//!   idle while the server owes it no answer and it neither sends nor takes bytes ([`Presence`]). Where
//!   no client is idle, the new one is refused.
//! - **A stop** ends listening at once and the clients' requests with it. Clients get what they have
//!   asked for, within [`ClientLimits::drain`]; then their connections are closed.
//! - **A panic** of [`Service::serve`] ends that client's connection and no other.
//!
//! The protocol, and timeouts for what a client sends or takes, are the service's own.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//!
//! use merganser_server::{Address, ConnectedClient, Connections, ClientLimits, Service};
//!
//! struct Greeter;
//!
//! impl Service for Greeter {
//!     const THREAD: &'static str = "greeter";
//!
//!     fn serve(&self, client: &ConnectedClient) {
//!         let _ = client.stream().write_all(b"hello");
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("socket");
//! let connections = Connections::listen(&Address::Unix(path.clone()), 0o600, ClientLimits::default())?;
//! let stopper = connections.stopper();
//! let server = std::thread::spawn(move || connections.run(&Greeter));
//! let mut heard = String::new();
//! UnixStream::connect(path)?.read_to_string(&mut heard)?;
//! assert_eq!(heard, "hello");
//! stopper.stop();
//! assert_eq!(server.join().expect("no panic").accepted, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
pub mod beneath;
mod connections;
mod error;
mod listener;
mod presence;
mod socket;

pub use address::Address;
pub use connections::{
    ClientCounts, ClientLimits, ConnectedClient, Connections, Incident, Service, Stopper,
};
pub use error::ListenError;
pub use listener::ClientStream;
pub use presence::Presence;
