//! The label of a member: which volume it belongs to, and in which place. Docs: docs/array.md, "Label".

use std::sync::Arc;

use merganser_storage::{Storage, StorageExt};

use crate::bytes::{PAGE, Page, is_sealed, put_u32, put_u64, seal, u32_at, u64_at};
use crate::error::{Error, Result};

/// Bytes at the start of each member that are not part of the array.
pub(crate) const LABEL_BYTES: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"MGNSRlbl";
const VERSION: u32 = 1;
const SEAL: usize = PAGE - 4;

/// The use of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Holds maps and pages (the SSDs).
    Data,
    /// Holds the log of writes (the hard disks).
    Buffer,
}

impl Role {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Data => "data",
            Role::Buffer => "buffer",
        }
    }
}

/// A member's place in a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) volume: [u8; 16],
    pub(crate) role: Role,
    pub(crate) index: u32,
    pub(crate) count: u32,
    pub(crate) chunk_bytes: u32,
    /// Bytes of the array of all members of this role.
    pub(crate) array_bytes: u64,
}

impl Label {
    pub(crate) fn encode(&self) -> Box<Page> {
        let mut out = crate::bytes::zeroed();
        out[..8].copy_from_slice(MAGIC);
        put_u32(&mut *out, 8, VERSION);
        put_u32(&mut *out, 12, u32::from(self.role == Role::Buffer));
        out[16..32].copy_from_slice(&self.volume);
        put_u32(&mut *out, 32, self.index);
        put_u32(&mut *out, 36, self.count);
        put_u32(&mut *out, 40, self.chunk_bytes);
        put_u64(&mut *out, 48, self.array_bytes);
        seal(&mut *out, SEAL);
        out
    }

    /// The label in `bytes`, or what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Label, String> {
        if bytes.len() != PAGE || bytes[..8] != *MAGIC {
            return Err("has no label of a volume".to_owned());
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(format!("has a label of version {version}; this program reads {VERSION}"));
        }
        if !is_sealed(bytes, SEAL) {
            return Err("has a damaged label".to_owned());
        }
        let role = if u32_at(bytes, 12) == 0 { Role::Data } else { Role::Buffer };
        let label = Label {
            volume: bytes[16..32].try_into().expect("sixteen bytes"),
            role,
            index: u32_at(bytes, 32),
            count: u32_at(bytes, 36),
            chunk_bytes: u32_at(bytes, 40),
            array_bytes: u64_at(bytes, 48),
        };
        if label.chunk_bytes == 0
            || !label.chunk_bytes.is_multiple_of(PAGE as u32)
            || label.index >= label.count
        {
            return Err("has a label of impossible numbers".to_owned());
        }
        Ok(label)
    }
}

/// Writes `label` to `member`, in two copies.
pub(crate) fn write(member: &dyn Storage, label: &Label) -> Result<()> {
    let bytes = label.encode();
    member.write_at(0, &*bytes)?;
    member.write_at(PAGE as u64, &*bytes)?;
    Ok(())
}

/// Removes the label of `member`, if it has one.
pub(crate) fn erase(member: &dyn Storage) -> Result<()> {
    for copy in 0..2 {
        member.write_at(copy * PAGE as u64, &crate::bytes::zeroed()[..])?;
    }
    Ok(member.sync()?)
}

/// The label of `member`.
pub(crate) fn read(member: &dyn Storage) -> Result<Label> {
    let mut why = None;
    for copy in 0..2 {
        let mut bytes = vec![0; PAGE];
        let count = member.read_at(copy * PAGE as u64, &mut bytes)?;
        match Label::decode(&bytes[..count]) {
            Ok(label) => return Ok(label),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    let detail = why.expect("two copies were tried");
    Err(Error::Member { member: member.name().to_owned(), detail })
}

/// Checks that `members` are all those of one role of one volume, in order, and returns its label 0.
pub(crate) fn check(members: &[Arc<dyn Storage>], role: Role) -> Result<Label> {
    let labels = members.iter().map(|member| read(&**member)).collect::<Result<Vec<_>>>()?;
    let first = labels.first().expect("callers give members");
    let refuse = |at: usize, detail: String| {
        Err(Error::Member { member: members[at].name().to_owned(), detail })
    };
    for (at, label) in labels.iter().enumerate() {
        if label.volume != first.volume {
            return refuse(at, format!("belongs to another volume than {}", members[0].name()));
        }
        if label.role != role {
            let (found, wanted) = (label.role.name(), role.name());
            return refuse(
                at,
                format!("is a {found} member, and stands where a {wanted} member belongs"),
            );
        }
        if label.index as usize != at {
            return refuse(
                at,
                format!(
                    "is {} member {} of {}, and stands at place {at}",
                    role.name(),
                    label.index,
                    label.count
                ),
            );
        }
        if label.count as usize != members.len() {
            return refuse(
                at,
                format!(
                    "is one of {} {} members, and {} are given",
                    label.count,
                    role.name(),
                    members.len()
                ),
            );
        }
    }
    Ok(*first)
}
