//! SSDlets inside a storage device, as sessions that a host opens (Park et al., "In-Storage Computing for
//! Hadoop MapReduce Framework", section 2.1.2).
//!
//! ```text
//!   host     OPEN │ SET SET … │ GET GET … status │ GET result │ CLOSE      host.rs  command.rs  status.rs
//!                 ▼           ▼                        ▲
//!   device        a session per OPEN: pages ─► SSDlet ─► table ─► result   session.rs  pages.rs  table.rs
//!                                                          └────► PUT: pages of flash      area.rs
//! ```
//!
//! A host writes commands to a *control address* and reads status and results after it. Any
//! [`Ssdlet`](merganser_map::ssdlet::Ssdlet) runs here, as it runs in the command's own process: it sees whole records. The
//! device knows no file system: a split is a list of addresses, which [`crate::place`] finds, and two
//! offsets that leave out the records which cross its ends ([`split`]).
//!
//! Each page that is mapped is charged to the device's processor by the SSDlet's own meter
//! ([`Work::Metered`](merganser_storage::Work)), and its bytes to the bus of the memory. Reads, work,
//! writes and the link overlap.
//!
//! | what may fail | what happens |
//! |---|---|
//! | a bad command, an unknown SSDlet, too little memory | the write is the error |
//! | a page that can't be read, a record that makes no sense, a guest that traps, a result that is too large | the session fails; its status says why, and CLOSE is taken |
//! | the host closes while pages are on their way | they are awaited, then the CLOSE is answered |
//! | the input changes while it is mapped | not detected here: [`crate::place::FilePlacement::check_unchanged`] |

mod area;
pub mod command;
pub mod host;
mod pages;
mod session;
pub mod split;
pub mod status;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use merganser_storage::Buffer;
use merganser_storage::near::{HostRequest, Inside, NearProgram, RequestId, Wake};
use serde_json::Value;

use command::SessionCommand;
use merganser_map::ssdlet::Installed;
use session::DeviceSession;
use status::{ListedSession, PAGE_BYTES};

/// The most sessions at once.
pub const SESSIONS_MAX: usize = 32;

/// How sessions use the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IscSettings {
    /// Pages of a session that are in memory or on their way. Enough for all channels, twice.
    pub pages: usize,
    /// Bytes of a page. `None` takes the device's: the bytes on one channel, or, if these are not known,
    /// the size that the device reads best.
    pub page_bytes: Option<u32>,
    /// Addresses of a session: its status and its result. At least [`command::BYTES_MAX`].
    pub window_bytes: u64,
}

impl Default for IscSettings {
    fn default() -> Self {
        IscSettings { pages: 64, page_bytes: None, window_bytes: 64 << 20 }
    }
}

/// SSDlets as a program of a device: see the [module](self).
pub struct Isc {
    control: u64,
    settings: IscSettings,
    installed: Installed,
    /// By slot: the window of a session.
    slots: Vec<Option<SessionSlot>>,
    next_session: u64,
    next_token: u64,
    /// The slot that gave a token.
    owners: BTreeMap<u64, usize>,
}

struct SessionSlot {
    nonce: u64,
    number: u64,
    session: DeviceSession,
}

/// Gives tokens to one session.
struct Tokens<'a> {
    next: &'a mut u64,
    owners: &'a mut BTreeMap<u64, usize>,
    slot: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> u64 {
        let token = *self.next;
        *self.next += 1;
        self.owners.insert(token, self.slot);
        token
    }
}

impl Isc {
    /// A program that takes commands at `control`, and answers reads of
    /// `(SESSIONS_MAX + 1) * settings.window_bytes` addresses from there on.
    ///
    /// # Panics
    /// When the settings leave no page, or too few addresses.
    #[must_use]
    pub fn new(control: u64, settings: IscSettings, installed: Installed) -> Self {
        assert!(settings.pages > 0, "a session has at least a page");
        let whole =
            |bytes: u32| bytes > 0 && u64::from(bytes).is_multiple_of(command::SECTOR_BYTES);
        assert!(settings.page_bytes.is_none_or(whole), "a page is whole sectors");
        let least = command::BYTES_MAX as u64;
        assert!(settings.window_bytes >= least, "a window has at least {least} bytes");
        Isc {
            control,
            settings,
            installed,
            slots: (0..SESSIONS_MAX).map(|_| None).collect(),
            next_session: 1,
            next_token: 0,
            owners: BTreeMap::new(),
        }
    }

    /// The number of open sessions.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    fn addresses(&self) -> Range<u64> {
        let windows = SESSIONS_MAX as u64 + 1;
        self.control..self.control + windows * self.settings.window_bytes
    }

    fn window(&self, slot: usize) -> u64 {
        self.control + (slot as u64 + 1) * self.settings.window_bytes
    }

    /// Obeys a command. Returns the slot of its session if the session may continue now.
    fn command(
        &mut self,
        request: RequestId,
        bytes: &[u8],
        inside: &mut dyn Inside,
    ) -> io::Result<Option<usize>> {
        let invalid = |e: String| io::Error::new(io::ErrorKind::InvalidInput, e);
        let (id, command) = SessionCommand::decode(bytes).map_err(|e| invalid(e.to_string()))?;
        if let SessionCommand::Open { ssdlet, args, memory_bytes } = command {
            self.open(id, &ssdlet, &args, memory_bytes, inside)?;
            inside.answer(request, Ok(Buffer::empty()));
            return Ok(None);
        }
        let of = |slot: &Option<SessionSlot>| slot.as_ref().is_some_and(|slot| slot.number == id);
        let slot = self.slots.iter().position(of).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("session {id} is not open"))
        })?;
        let session = &mut self.slots[slot].as_mut().expect("just found").session;
        match command {
            SessionCommand::Open { .. } => unreachable!("handled above"),
            SessionCommand::Set { split, more } => session.set(split, more).map_err(invalid)?,
            SessionCommand::Put { extents } => {
                let page = u64::from(inside.geometry().page_bytes);
                session.put(extents, page).map_err(invalid)?;
            }
            SessionCommand::Close => {
                session.close(request).map_err(invalid)?;
                return Ok(Some(slot));
            }
        }
        inside.answer(request, Ok(Buffer::empty()));
        Ok(Some(slot))
    }

    fn open(
        &mut self,
        nonce: u64,
        ssdlet: &str,
        args: &Value,
        memory_bytes: u64,
        inside: &mut dyn Inside,
    ) -> io::Result<()> {
        if self.slots.iter().flatten().any(|slot| slot.nonce == nonce) {
            let why = format!("the number {nonce} is that of an open session; OPEN with another");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let Some(free) = self.slots.iter().position(Option::is_none) else {
            let why = format!("{SESSIONS_MAX} sessions are open; close one");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        };
        let ssdlet = (self.installed)(ssdlet, args)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
        let session = DeviceSession::open(ssdlet, memory_bytes, &self.settings, inside)?;
        self.slots[free] = Some(SessionSlot { nonce, number: self.next_session, session });
        self.next_session += 1;
        Ok(())
    }

    fn list(&self) -> Vec<u8> {
        let opened = |(at, slot): (usize, &Option<SessionSlot>)| {
            let SessionSlot { nonce, number, .. } = slot.as_ref()?;
            Some(ListedSession { nonce: *nonce, session: *number, window: self.window(at) })
        };
        let sessions: Vec<ListedSession> =
            self.slots.iter().enumerate().filter_map(opened).collect();
        status::list(&sessions)
    }

    /// The `len` bytes at `offset`, which is in the addresses.
    fn get(&self, offset: u64, len: usize) -> Result<Buffer, String> {
        let within = offset - self.control;
        let window = within / self.settings.window_bytes;
        let at = within % self.settings.window_bytes;
        let end = at + len as u64;
        if end > self.settings.window_bytes {
            return Err("a read ends in its window".to_owned());
        }
        let mut out = Buffer::try_new(len).map_err(|e| e.to_string())?;
        let page = match window {
            0 => self.list(),
            _ => {
                let Some(SessionSlot { number, session, .. }) = &self.slots[window as usize - 1]
                else {
                    return Err("no session is open here".to_owned());
                };
                if at >= PAGE_BYTES as u64 {
                    session.result(at - PAGE_BYTES as u64, &mut out)?;
                    return Ok(out);
                }
                session.status().page(*number)
            }
        };
        let Some(part) = page.get(at as usize..end as usize) else {
            return Err(format!("this is a page of {PAGE_BYTES} bytes; a read ends in it"));
        };
        out.copy_from_slice(part);
        Ok(out)
    }

    /// Lets the session of `slot` continue, and removes it when it is closed.
    fn advance(&mut self, slot: usize, inside: &mut dyn Inside) {
        let Some(open) = &mut self.slots[slot] else { return };
        let mut tokens = Tokens { next: &mut self.next_token, owners: &mut self.owners, slot };
        open.session.advance(&mut tokens, inside);
        if open.session.gone(inside) {
            self.slots[slot] = None;
        }
    }
}

impl NearProgram for Isc {
    fn claims(&self, _write: bool, offset: u64, len: usize) -> bool {
        let Range { start, end } = self.addresses();
        offset < end && offset.saturating_add(len as u64) > start
    }

    fn request(&mut self, id: RequestId, request: HostRequest<'_>, inside: &mut dyn Inside) {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        match request {
            HostRequest::Write { offset, bytes } if offset == self.control => {
                match self.command(id, bytes, inside) {
                    Ok(Some(slot)) => self.advance(slot, inside),
                    Ok(None) => {}
                    Err(error) => inside.answer(id, Err(error)),
                }
            }
            HostRequest::Write { .. } => {
                let why = "a command begins at the control address; nothing else is written here";
                inside.answer(id, Err(invalid(why.to_owned())));
            }
            HostRequest::Read { offset, len } => {
                let Range { start, end } = self.addresses();
                let result = if offset < start || offset.saturating_add(len as u64) > end {
                    Err("the read begins or ends outside the windows".to_owned())
                } else {
                    self.get(offset, len)
                };
                inside.answer(id, result.map_err(invalid));
            }
        }
    }

    fn wake(&mut self, wake: Wake, inside: &mut dyn Inside) {
        let (Wake::Read { token, .. } | Wake::Written { token, .. } | Wake::Worked { token }) =
            &wake;
        let slot = self.owners.remove(token).expect("it was given");
        let open = self.slots[slot].as_mut().expect("it ends after all that it started");
        match wake {
            Wake::Read { token, buffer, result } => open.session.read_ended(token, buffer, result),
            Wake::Written { token, result, .. } => open.session.write_ended(token, result),
            Wake::Worked { .. } => open.session.worked(),
        }
        self.advance(slot, inside);
    }
}
