//! Sessions: open SSDlets on a node, for clients that it does not trust (the ISC paper, section 2.1.2:
//! OPEN, SET, GET, PUT, CLOSE). There is no network here; `merganser-flight` is a door to it.
//!
//! ```text
//!   OPEN ──► Session ◄── SET, SET, ...   ranges below the data folder, or of blobs
//!               │    ◄── PUT             a blob: intermediate data that stays on the node
//!               │ first GET, or SET with run
//!               ▼
//!            admission ──► run (its own threads) ──► results ──GET(row)──► rows, from any row on
//!            first come,   map::map                  kept until the next
//!            first served                            SET, or CLOSE
//! ```
//!
//! | state | SET | GET | cancel | the run |
//! |---|---|---|---|---|
//! | open | adds ranges | begins the run: queued | nothing to do | |
//! | queued | refused | waits for the end | cancelled | gets memory: running |
//! | running | refused | waits for the end | cancelled | ends: done or failed |
//! | done | a new run: open | the rows | nothing to do | |
//! | failed | a new run: open | its sentence | nothing to do | |
//! | cancelled | a new run: open | says so | nothing to do | |
//!
//! PUT is possible in every state, and CLOSE ends each. A session that no client has used for
//! [`SessionOptions::idle`], and whose run is over, is closed.
//!
//! ```text
//!   request    what clients ask for, in JSON      state     what may follow what
//!   data       files and views below one folder   session   one session
//!   scratch    space on the node's disk           run       its work in the background
//!   results    rows, from any one on              sessions  all of them, and their end
//!                                                 catalog   where SSDlets come from
//!   wire       requests and tickets as JSON    in_use    a client's GET or PUT under way
//!   holdings   memory that sessions hold between runs
//! ```

mod catalog;
mod data;
mod error;
mod guest_limits;
mod holdings;
mod in_use;
mod meter;
pub mod request;
mod results;
mod run;
mod scratch;
#[allow(clippy::module_inception)]
mod session;
mod sessions;
mod state;
pub mod wire;

pub use catalog::{BuiltinOnly, Offered, SsdletOpener};
pub use data::DataFolder;
pub use error::{SessionError, SessionResult};
pub use guest_limits::GuestLimits;
pub use in_use::{BlobWriter, Getting};
pub use results::{FinishedRows, ROW_BYTES_MAX, RowReader, key_and_value};
pub use session::{BlobStatus, SessionStatus};
pub use sessions::{Grant, Listing, OpenedSession, SessionOptions, Sessions};
pub use state::SessionState;
