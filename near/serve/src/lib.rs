//! Sessions of SSDlets on a storage node: clients that the node does not trust open one, name ranges of the node's
//! files, and get the rows. A hostile client can end its own session only.
//!
//! - [`session`] has no network itself; `merganser-flight` carries it over Arrow Flight.
//! - [`smart_fam`] takes calls through files in a shared folder.

pub mod session;
pub mod smart_fam;
