//! Where a server's SSDlets come from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guest_limits::GuestLimits;
use super::request::Wanted;
use super::{SessionError, SessionResult};
use merganser_map::ssdlet::{MemoryLender, Ssdlet, SsdletDescription, SsdletError, builtin};

/// An SSDlet that a client can open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// Its purpose, or its file, in one line.
    pub about: String,
}

/// Opens SSDlets that are not built in. The program that makes the server knows which kinds there are.
pub trait SsdletOpener: Send + Sync {
    /// Opens the SSDlet `wanted`; `None` if no SSDlet has this name. `args` is an object or a text. The opening takes
    /// its memory from `lender`.
    ///
    /// # Errors
    /// When it is damaged, `args` make no sense to it, or the memory is not there.
    fn open(
        &self,
        wanted: Wanted<'_>,
        args: &Value,
        limits: GuestLimits,
        lender: &dyn MemoryLender,
    ) -> SessionResult<Option<Box<dyn Ssdlet>>, SsdletError>;

    /// Those that [`SsdletOpener::open`] knows by name.
    fn list(&self) -> Vec<Offered>;

    /// Verifies an SSDlet that a client sends, and keeps it under the SHA-256 of `bytes`.
    ///
    /// # Errors
    /// When it is not a guest, or can't be kept.
    fn upload(
        &self,
        sha256: &str,
        bytes: &[u8],
        lender: &dyn MemoryLender,
    ) -> SessionResult<SsdletDescription, SsdletError>;
}

/// An opener of nothing.
#[derive(Debug, Clone, Copy)]
pub struct BuiltinOnly;

impl SsdletOpener for BuiltinOnly {
    fn open(
        &self,
        _: Wanted<'_>,
        _: &Value,
        _: GuestLimits,
        _: &dyn MemoryLender,
    ) -> SessionResult<Option<Box<dyn Ssdlet>>, SsdletError> {
        Ok(None)
    }

    fn list(&self) -> Vec<Offered> {
        Vec::new()
    }

    fn upload(
        &self,
        _: &str,
        _: &[u8],
        _: &dyn MemoryLender,
    ) -> SessionResult<SsdletDescription, SsdletError> {
        Err(SsdletError::Failed("this server runs no uploaded SSDlets".to_owned()))
    }
}

/// Built-in SSDlets, and those of an opener. A built-in name can't be taken by a file.
pub(super) struct Catalog {
    opener: Arc<dyn SsdletOpener>,
}

impl Catalog {
    pub(super) fn new(opener: Arc<dyn SsdletOpener>) -> Self {
        Catalog { opener }
    }

    pub(super) fn open(
        &self,
        wanted: Wanted<'_>,
        args: &Value,
        limits: GuestLimits,
        lender: &dyn MemoryLender,
    ) -> SessionResult<Box<dyn Ssdlet>> {
        let (Wanted::Name(name) | Wanted::Sha256(name)) = wanted;
        if matches!(wanted, Wanted::Name(name) if builtin::ALL.iter().any(|b| b.name == name)) {
            return Ok(builtin::open_within(name, args, lender)?);
        }
        let found = self.opener.open(wanted, args, limits, lender)?;
        found.ok_or_else(|| {
            let mut name = name.to_owned();
            name.truncate(name.floor_char_boundary(128));
            SessionError::from(SsdletError::Unknown { name })
        })
    }

    pub(super) fn list(&self) -> Vec<Offered> {
        let builtin = builtin::ALL
            .iter()
            .map(|b| Offered { name: b.name.to_owned(), about: b.about.to_owned() });
        builtin.chain(self.opener.list()).collect()
    }

    pub(super) fn upload(
        &self,
        sha256: &str,
        bytes: &[u8],
        lender: &dyn MemoryLender,
    ) -> SessionResult<SsdletDescription> {
        Ok(self.opener.upload(sha256, bytes, lender)?)
    }
}
