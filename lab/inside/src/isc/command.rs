//! What a host writes to the control address: a [`merganser_map::frame`] with a command.
//!
//! ```text
//!   OPEN   id: the host's nonce   an SSDlet, its arguments, its memory    ──► a session (in the list)
//!   SET    id: the session        a split; whether more follow
//!   PUT    id: the session        where on the device the result goes
//!   CLOSE  id: the session
//! ```
//!
//! GET is a read: see [`super::status`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

use merganser_map::frame::{self, FrameError, RecordFrame};

/// Begins a command.
pub const MAGIC: [u8; 4] = *b"MGic";
/// Bytes of a sector: extents are whole sectors.
pub const SECTOR_BYTES: u64 = 512;
/// The longest command, in bytes.
pub const BYTES_MAX: usize = 1 << 20;
/// The most extents of a split or of an output.
pub const EXTENTS_MAX: usize = 10_000;

const BODY_MAX: usize = BYTES_MAX - frame::HEAD_BYTES;

/// Consecutive bytes of the device, whole sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteExtent {
    /// Its first byte on the device.
    pub offset: u64,
    /// Its length; at least a sector.
    pub bytes: u64,
}

impl ByteExtent {
    /// Its bytes on the device.
    #[must_use]
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

/// A part of an input on the device, and which of its bytes are mapped.
///
/// ```text
///   extents joined   ├── start_offset ──┤ mapped: whole records ├── end_offset ──┤ rest of a sector
///                    0                                                        bytes
/// ```
///
/// The offsets leave out the parts of records that cross the ends of a split. Such a record is
/// mapped as a split of its own (the ISC paper, section 3.3.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSplit {
    /// The number of the input that it is a part of, from 0.
    pub input: u32,
    /// The place in the input of the first mapped byte.
    pub place: u64,
    /// Bytes of the split; what the extents hold after that is ignored.
    pub bytes: u64,
    /// Bytes at its start that are not mapped.
    pub start_offset: u64,
    /// Bytes at its end that are not mapped.
    pub end_offset: u64,
    /// Where its bytes are, in order.
    pub extents: Vec<ByteExtent>,
}

impl DeviceSplit {
    /// The bytes that are mapped, counted from the start of the split.
    #[must_use]
    pub fn mapped(&self) -> Range<u64> {
        self.start_offset..self.bytes - self.end_offset
    }

    fn check(&self) -> Result<(), FrameError> {
        let held = check_extents(&self.extents)?;
        let field = |text: String| Err(FrameError::Body(text));
        if self.bytes > held {
            return field(format!("split: {} bytes, but its extents hold {held}", self.bytes));
        }
        let left_out = self.start_offset.checked_add(self.end_offset);
        if left_out.is_none_or(|left_out| left_out > self.bytes) {
            return field(format!(
                "split: its offsets leave out more than its {} bytes",
                self.bytes
            ));
        }
        if self.place.checked_add(self.bytes).is_none() {
            return field("split: its place is too large".to_owned());
        }
        Ok(())
    }
}

/// The bytes that `extents` hold.
fn check_extents(extents: &[ByteExtent]) -> Result<u64, FrameError> {
    let field = |text: String| Err(FrameError::Body(text));
    if extents.len() > EXTENTS_MAX {
        return field(format!("extents: {} of them; at most {EXTENTS_MAX}", extents.len()));
    }
    let mut held = 0_u64;
    for (number, extent) in extents.iter().enumerate() {
        let ByteExtent { offset, bytes } = *extent;
        let whole = offset.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES);
        if bytes == 0 || !whole || offset.checked_add(bytes).is_none() {
            return field(format!(
                "extent {number}: {bytes} bytes at {offset}; whole sectors of {SECTOR_BYTES}, at least one"
            ));
        }
        let Some(sum) = held.checked_add(bytes) else {
            return field(format!("extent {number}: all together are too long"));
        };
        held = sum;
    }
    Ok(held)
}

/// A command to the control address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum SessionCommand {
    /// Starts a session of an SSDlet. The frame's id is a number that the host chose; with it the host
    /// finds its session in the list.
    Open {
        /// The SSDlet's name.
        ssdlet: String,
        /// Its arguments.
        args: serde_json::Value,
        /// Memory for everything that it holds: pages, keys, result.
        memory_bytes: u64,
    },
    /// Gives the session another split. After the last one the session makes its result. A split
    /// after that starts a new run in the same session.
    Set {
        /// What to map.
        split: DeviceSplit,
        /// Whether another split of the same run follows.
        more: bool,
    },
    /// Lets the session write its result to the device instead of keeping it in memory.
    Put {
        /// Where to; space that no other file uses.
        extents: Vec<ByteExtent>,
    },
    /// Ends the session and releases its memory.
    Close,
}

impl SessionCommand {
    /// The bytes to write: a frame, filled with zeros up to whole sectors.
    ///
    /// # Errors
    /// A command that is longer than [`BYTES_MAX`], or that a device would refuse.
    pub fn encode(&self, id: u64) -> Result<Vec<u8>, FrameError> {
        self.check()?;
        let mut out = frame::encode(MAGIC, id, self, BODY_MAX)?;
        out.resize(out.len().next_multiple_of(SECTOR_BYTES as usize), 0);
        Ok(out)
    }

    /// The id and the command in `bytes`; zeros may follow.
    ///
    /// # Errors
    /// Bytes that are no command.
    pub fn decode(bytes: &[u8]) -> Result<(u64, SessionCommand), FrameError> {
        let Some((frame, end)) = RecordFrame::decode(MAGIC, BODY_MAX, bytes)? else {
            return Err(FrameError::Body("the command is cut short".to_owned()));
        };
        if bytes[end..].iter().any(|byte| *byte != 0) {
            return Err(FrameError::Body("bytes follow the command".to_owned()));
        }
        let command: SessionCommand = frame.value()?;
        command.check()?;
        Ok((frame.id, command))
    }

    fn check(&self) -> Result<(), FrameError> {
        match self {
            SessionCommand::Set { split, .. } => split.check(),
            SessionCommand::Put { extents } => check_extents(extents).map(|_| ()),
            SessionCommand::Open { .. } | SessionCommand::Close => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(
        bytes: u64,
        start_offset: u64,
        end_offset: u64,
        extents: &[(u64, u64)],
    ) -> SessionCommand {
        let extent = |&(offset, bytes)| ByteExtent { offset, bytes };
        let extents = extents.iter().map(extent).collect();
        let split = DeviceSplit { input: 0, place: 0, bytes, start_offset, end_offset, extents };
        SessionCommand::Set { split, more: false }
    }

    #[test]
    fn commands_come_back() {
        let open = SessionCommand::Open {
            ssdlet: "w".into(),
            args: serde_json::json!({"n": 1}),
            memory_bytes: 9,
        };
        let put = SessionCommand::Put { extents: vec![ByteExtent { offset: 512, bytes: 1024 }] };
        for command in [open, set(700, 3, 5, &[(512, 1024)]), put, SessionCommand::Close] {
            let bytes = command.encode(5).expect("good");
            assert!(bytes.len().is_multiple_of(512));
            assert_eq!(SessionCommand::decode(&bytes), Ok((5, command)));
        }
    }

    #[test]
    fn what_a_device_could_not_do_is_refused_with_its_field() {
        let said = |command: SessionCommand| command.encode(1).expect_err("refused").to_string();
        assert_eq!(said(set(513, 0, 0, &[(0, 512)])), "split: 513 bytes, but its extents hold 512");
        assert_eq!(
            said(set(10, 6, 5, &[(0, 512)])),
            "split: its offsets leave out more than its 10 bytes"
        );
        let sectors = "extent 0: 512 bytes at 100; whole sectors of 512, at least one";
        assert_eq!(said(set(10, 0, 0, &[(100, 512)])), sectors);
        assert!(said(set(0, 0, 0, &[(u64::MAX - 511, 512)])).contains("whole sectors"));
        assert!(said(set(0, u64::MAX, 1, &[])).contains("leave out"));
        let overflow = [(0, u64::MAX - 511), (0, 1024)];
        assert!(said(set(0, 0, 0, &overflow)).contains("too long"));
    }

    #[test]
    fn bytes_that_are_no_command_are_refused() {
        let good = SessionCommand::Close.encode(1).expect("good");
        let said = |bytes: &[u8]| SessionCommand::decode(bytes).expect_err("refused").to_string();
        assert_eq!(said(&good[..30]), "the command is cut short");
        let mut longer = good.clone();
        *longer.last_mut().expect("not empty") = 1;
        assert_eq!(said(&longer), "bytes follow the command");
        let other = frame::encode(MAGIC, 1, &serde_json::json!({"command": "erase"}), 100);
        assert!(said(&other.expect("short")).contains("unknown variant `erase`"));
    }
}
