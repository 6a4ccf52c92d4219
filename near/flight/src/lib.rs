//! The network door of a node: sessions ([`merganser_serve::session`]) and views over Arrow Flight.
//!
//! ```text
//!              TCP, TLS        token, limits                     merganser-serve
//!   client ──► listener ─────► gate ──────► service ─┬─ actions ─► Sessions: open set status cancel
//!              connections     before a              │             close list upload
//!              with a deadline body is read          ├─ get ─────► rows of a run ─┐  batches, at most
//!                                                    │  views ───► a part of a ───┴► 4 ahead of the
//!                                                    │             view              client
//!                                                    └─ put ─────► a blob of a session
//! ```
//!
//! The protocol is Arrow Flight as any client of it speaks it; the JSON bodies of actions and tickets
//! ([`wire`]) and the schemas are in docs/formats.md. [`client`] is our own client: one node, or several
//! whose results are merged.
//!
//! tokio runs in this crate and nowhere else: a server owns a runtime of two threads, a client one in
//! the caller's thread. All that reads disks or computes is in threads for blocking work.
//!
//! The harm that a client can do to others is bounded by numbers, each a constant of its module or an
//! option of [`server::FlightServerOptions`].

mod arrival;
mod batches;
mod bind_error;
mod blocking;
pub mod client;
pub mod credentials;
mod decoding;
mod error;
pub mod farm;
mod gate;
mod get;
pub mod identity;
mod limits;
mod listener;
mod outlet;
mod places;
mod presence;
mod put;
mod request_slot;
mod schema;
mod secured;
pub mod server;
mod service;
mod standstill;
mod tables;
mod token;
mod view_access;
mod views;

pub use merganser_serve::session::wire;
pub use server::{FlightServer, FlightServerOptions, FlightStopper};
pub use token::{Token, TokenError};

use sha2::{Digest, Sha256};

/// The name of an uploaded SSDlet: the SHA-256 of its bytes, in hexadecimal digits.
#[must_use]
pub fn sha256(module: &[u8]) -> String {
    Sha256::digest(module).iter().map(|byte| format!("{byte:02x}")).collect()
}
