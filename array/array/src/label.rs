//! The label of a member: which volume it belongs to, and in which place. Docs: docs/array/array.md, "Label".

use std::sync::Arc;

use merganser_storage::numbers::usize_of_u32;
use merganser_storage::{Storage, StorageExt};

use crate::bytes::{
    BLOCK, NUMBER_MAX, PAGE, PageBytes, is_sealed, put_u32, put_u64, seal, u32_at, u64_at,
};
use crate::error::{Error, Result};

/// Bytes at the start of each member that are not part of the array.
pub(crate) const LABEL_BYTES: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"MGNSRlbl";
/// Version 1 had no session.
const VERSION: u32 = 2;
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
pub(crate) struct MemberLabel {
    pub(crate) volume: [u8; 16],
    pub(crate) role: Role,
    pub(crate) index: u32,
    pub(crate) count: u32,
    pub(crate) chunk_bytes: u32,
    /// Bytes of the array of all members of this role.
    pub(crate) array_bytes: u64,
    /// Pages of the volume; 0 in a label of version 1.
    pub(crate) volume_pages: u64,
    /// The session that the member was last part of; `None` in a label of version 1.
    pub(crate) sitting: Option<Sitting>,
}

/// What a member knows of the last session of its volume. See `sessions.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sitting {
    /// Number of the session.
    pub(crate) session: u64,
    pub(crate) step: SessionStep,
    /// The last checkpoint that was durable.
    pub(crate) checkpoint: u64,
}

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SessionStep {
    /// It will begin: nothing was written in it.
    Opening,
    /// It has begun.
    Open,
    /// It was closed in order.
    Closed,
}

impl SessionStep {
    fn decode(number: u32) -> Option<SessionStep> {
        [SessionStep::Opening, SessionStep::Open, SessionStep::Closed]
            .get(usize_of_u32(number))
            .copied()
    }
}

impl MemberLabel {
    pub(crate) fn encode(&self) -> Box<PageBytes> {
        let mut out = crate::bytes::zeroed();
        out[..8].copy_from_slice(MAGIC);
        put_u32(&mut *out, 8, if self.sitting.is_some() { VERSION } else { 1 });
        put_u32(&mut *out, 12, u32::from(self.role == Role::Buffer));
        out[16..32].copy_from_slice(&self.volume);
        put_u32(&mut *out, 32, self.index);
        put_u32(&mut *out, 36, self.count);
        put_u32(&mut *out, 40, self.chunk_bytes);
        put_u64(&mut *out, 48, self.array_bytes);
        put_u64(&mut *out, 80, self.volume_pages);
        if let Some(sitting) = self.sitting {
            put_u64(&mut *out, 56, sitting.session);
            put_u64(&mut *out, 64, sitting.checkpoint);
            put_u32(&mut *out, 72, sitting.step as u32);
        }
        seal(&mut *out, SEAL);
        out
    }

    /// The label in `bytes`, or what is wrong with it.
    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<MemberLabel, String> {
        if bytes.len() != PAGE || bytes[..8] != *MAGIC {
            return Err("has no label of a volume".to_owned());
        }
        let version = u32_at(bytes, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(format!(
                "has a label of version {version}; this program reads 1 to {VERSION}"
            ));
        }
        if !is_sealed(bytes, SEAL) {
            return Err("has a damaged label".to_owned());
        }
        let role = if u32_at(bytes, 12) == 0 { Role::Data } else { Role::Buffer };
        let sitting = SessionStep::decode(u32_at(bytes, 72)).map(|step| Sitting {
            session: u64_at(bytes, 56),
            step,
            checkpoint: u64_at(bytes, 64),
        });
        let label = MemberLabel {
            volume: bytes[16..32].try_into().expect("sixteen bytes"),
            role,
            index: u32_at(bytes, 32),
            count: u32_at(bytes, 36),
            chunk_bytes: u32_at(bytes, 40),
            array_bytes: u64_at(bytes, 48),
            volume_pages: u64_at(bytes, 80),
            sitting: sitting.filter(|_| version > 1),
        };
        if label.chunk_bytes == 0
            || !u64::from(label.chunk_bytes).is_multiple_of(BLOCK)
            || label.index >= label.count
            || (version > 1 && label.sitting.is_none_or(|found| found.session >= NUMBER_MAX))
        {
            return Err("has a label of impossible numbers".to_owned());
        }
        Ok(label)
    }
}

/// Writes labels to their members: the first copy of all, and when it is durable, the second one. So a cut leaves each
/// member a good label.
pub(crate) fn write<'a>(
    labels: &(impl Iterator<Item = (&'a Arc<dyn Storage>, MemberLabel)> + Clone),
) -> Result<()> {
    for copy in 0..2 {
        for (member, label) in labels.clone() {
            member.write_at(copy * BLOCK, &*label.encode())?;
        }
        for (member, _) in labels.clone() {
            member.sync()?;
        }
    }
    Ok(())
}

/// Removes the label of `member`, if it has one.
pub(crate) fn erase(member: &dyn Storage) -> Result<()> {
    for copy in 0..2 {
        member.write_at(copy * BLOCK, &crate::bytes::zeroed()[..])?;
    }
    Ok(member.sync()?)
}

/// Whether `member` has a label of any volume.
pub(crate) fn has_one(member: &dyn Storage) -> bool {
    let has = |copy: u64| {
        let block = member.read_vec(copy * BLOCK, PAGE);
        block.is_ok_and(|block| MemberLabel::decode(&block).is_ok())
    };
    has(0) || has(1)
}

/// The label of `member`: the newer one of its copies.
pub(crate) fn read(member: &dyn Storage) -> Result<MemberLabel> {
    let mut found: Option<MemberLabel> = None;
    let mut why = None;
    for copy in 0..2 {
        let mut bytes = vec![0; PAGE];
        let count = member.read_at(copy * BLOCK, &mut bytes)?;
        match (MemberLabel::decode(&bytes[..count]), found) {
            (Ok(label), Some(other)) if other.volume != label.volume => {
                let detail = "has labels of two volumes: a write was lost".to_owned();
                return Err(Error::Member { member: member.name().to_owned(), detail });
            }
            (Ok(label), Some(other)) if other.sitting >= label.sitting => {}
            (Ok(label), _) => found = Some(label),
            (Err(reason), _) => why = why.or(Some(reason)),
        }
    }
    found.ok_or_else(|| Error::Member {
        member: member.name().to_owned(),
        detail: why.expect("two copies were tried"),
    })
}

/// Checks that `members` are all those of one role of one volume, in order, and returns their labels.
pub(crate) fn check(members: &[Arc<dyn Storage>], role: Role) -> Result<Vec<MemberLabel>> {
    let labels = members.iter().map(|member| read(&**member)).collect::<Result<Vec<_>>>()?;
    let first = labels.first().copied().expect("callers give members");
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
        if usize_of_u32(label.index) != at {
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
        if usize_of_u32(label.count) != members.len() {
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
    Ok(labels)
}
