//! The state of a directory that fails: its plan, its storages, and the changes of names that are not
//! synced.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use merganser_storage::Storage;

use super::node::{FaultyNode, NodeId, PAGE, pages};
use super::plan::{Fault, OperationCounts};
use crate::Random;

/// Files with this prefix hold content that a crash may bring back; they are not listed.
pub(super) const HIDDEN: &str = ".faulty-hidden-";

pub(super) struct DiskState {
    /// The planned faults but a full disk: there may be many, and each operation looks for its own.
    pub(super) faults: HashSet<Fault>,
    /// Bytes at which the disk is full.
    pub(super) full_bytes: Option<u64>,
    pub(super) random: Random,
    pub(super) counts: OperationCounts,
    pub(super) fired: Vec<Fault>,
    pub(super) power: Arc<MachinePower>,
    /// Number of crashes so far; handles of an earlier boot are dead.
    pub(super) boot: u64,
    pub(super) names: BTreeMap<String, NodeId>,
    pub(super) nodes: BTreeMap<NodeId, FaultyNode>,
    /// Changes of names since the last good sync of the directory, oldest first.
    pub(super) journal: Vec<NameChange>,
    /// For node numbers and hidden names.
    pub(super) serial: u64,
}

/// State that the directories of one machine share.
#[derive(Default)]
pub(super) struct MachinePower {
    pub(super) off: AtomicBool,
    pub(super) changes: AtomicU64,
}

impl MachinePower {
    pub(super) fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }
}

pub(super) enum NameChange {
    Created { name: String },
    Renamed { from: String, to: String, replaced: Option<(String, NodeId)> },
    Removed { name: String, hidden: String, node: NodeId },
}

pub(super) fn off() -> io::Error {
    io::Error::other("the power is off")
}

pub(super) fn injected(fault: Fault) -> io::Error {
    io::Error::other(format!("injected fault {fault:?}"))
}

impl DiskState {
    /// Whether one of the planned faults is `fault`; then it has fired.
    pub(super) fn fires(&mut self, fault: Fault) -> bool {
        let fires = self.faults.contains(&fault);
        if fires {
            self.fired.push(fault);
        }
        fires
    }

    /// [`DiskState::fires`], as an error.
    pub(super) fn fail(&mut self, fault: Fault) -> io::Result<()> {
        if self.fires(fault) { Err(injected(fault)) } else { Ok(()) }
    }

    /// Counts a change; true when the power goes with it.
    pub(super) fn change(&mut self) -> bool {
        self.counts.changes += 1;
        let nth = self.power.changes.fetch_add(1, Ordering::SeqCst) + 1;
        let cut = self.fires(Fault::PowerCut { nth });
        if cut {
            self.power.off.store(true, Ordering::SeqCst);
        }
        cut
    }

    /// A change that does not happen at all when the power goes.
    pub(super) fn change_whole(&mut self) -> io::Result<()> {
        if self.change() { Err(off()) } else { Ok(()) }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.change_whole()?;
        self.counts.syncs += 1;
        self.fail(Fault::FailSync { nth: self.counts.syncs })
    }

    pub(super) fn create(&mut self) -> io::Result<()> {
        self.change_whole()?;
        self.counts.creates += 1;
        self.fail(Fault::FailCreate { nth: self.counts.creates })
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let alive = self.nodes.values().filter(|node| node.named || node.handles > 0);
        alive.map(|node| node.pages.len() as u64 * PAGE).sum()
    }

    /// How many of `wanted`, in order, there is room for; fires when not for all.
    pub(super) fn room(&mut self, node: NodeId, wanted: Range<u64>) -> u64 {
        let all = wanted.end - wanted.start;
        let Some(bytes) = self.full_bytes else { return all };
        let mut free = bytes.saturating_sub(self.used_bytes()) / PAGE;
        let has = &self.nodes[&node].pages;
        for (fitting, page) in wanted.enumerate() {
            if !has.contains(&page) {
                if free == 0 {
                    self.fired.push(Fault::Full { bytes });
                    return fitting as u64;
                }
                free -= 1;
            }
        }
        all
    }

    pub(super) fn node(&mut self, id: NodeId) -> &mut FaultyNode {
        self.nodes.get_mut(&id).expect("handles, names and the journal keep it")
    }

    pub(super) fn add(
        &mut self,
        storage: &Arc<dyn Storage>,
        writable: bool,
        named: bool,
    ) -> NodeId {
        self.serial += 1;
        let id = NodeId(self.serial);
        let node = FaultyNode {
            writer: writable.then(|| Arc::clone(storage)),
            handles: 0,
            named,
            pages: pages(0, storage.size()).collect(),
            synced_size: storage.size(),
            unsynced: BTreeMap::new(),
            doubtful: BTreeMap::new(),
        };
        self.nodes.insert(id, node);
        id
    }

    pub(super) fn hidden_name(&mut self) -> String {
        self.serial += 1;
        format!("{HIDDEN}{}", self.serial)
    }

    /// Forgets a node that neither a name nor a handle nor the journal needs.
    pub(super) fn drop_unneeded(&mut self, id: NodeId) {
        let journalled = self.journal.iter().any(|change| match change {
            NameChange::Created { .. } => false,
            NameChange::Renamed { replaced, .. } => {
                replaced.as_ref().is_some_and(|(_, n)| *n == id)
            }
            NameChange::Removed { node, .. } => *node == id,
        });
        let node = &self.nodes[&id];
        if !journalled && !node.named && node.handles == 0 {
            self.nodes.remove(&id);
        }
    }
}
