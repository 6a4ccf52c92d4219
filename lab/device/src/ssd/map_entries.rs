//! Operations that wait for entries of the page map, when the map is on flash.
//!
//! ```text
//!   need_entries ──► awaited: read of the map ─► program of the map ─► …, one after the other
//!                                                                       └─► the operations of the request
//! ```
//!
//! The effect of a request does not wait: the model knows the map. A request whose entry another one is
//! loading does not wait for it either.

use crate::ssd::controller::Controller;
use crate::ssd::event::Owner;
use crate::ssd::lookups::AfterLookup;
use crate::ssd::nand::LogicalUnit;
use crate::ssd::nand::array::UnitBytes;
use crate::ssd::nand::timing::Op;

impl Controller {
    /// Looks up the units of `after`, whose entries a request changes or not; then its operations begin.
    pub(super) fn look_up(&mut self, after: AfterLookup, changes: bool) {
        if after.units.is_empty() {
            return;
        }
        let units = after.units.into_iter().map(LogicalUnit);
        let mut ops = std::mem::take(&mut self.ops);
        let now_ns = self.engine.now().0;
        let random = self.engine.random();
        let awaited = self.ftl.need_entries(units, changes, now_ns, random, &mut ops);
        for op in ops.drain(..) {
            self.issue(op);
        }
        self.ops = ops;
        self.begin_after(awaited, after.ops);
    }

    /// Writes a page to flash; its operations begin when the entries of its units are there. Returns
    /// false if there is no room.
    pub(super) fn program_after_lookup(
        &mut self,
        units: &mut Vec<(LogicalUnit, UnitBytes)>,
        die: Option<u32>,
        owner: Owner,
    ) -> bool {
        let mut ops = std::mem::take(&mut self.ops);
        let now_ns = self.engine.now().0;
        let random = self.engine.random();
        let numbers: Vec<LogicalUnit> = units.iter().map(|(unit, _)| *unit).collect();
        let awaited = self.ftl.need_entries(numbers.into_iter(), true, now_ns, random, &mut ops);
        let mut then = Vec::new();
        let written = self.ftl.write(units, die, owner, now_ns, random, &mut then);
        self.ftl.pay_map(now_ns, random, &mut ops);
        for op in ops.drain(..) {
            self.issue(op);
        }
        self.ops = ops;
        self.begin_after(awaited, then);
        self.has_programmed(written)
    }

    /// Begins `then` when `awaited` have ended, which are done one after the other.
    fn begin_after(&mut self, awaited: Vec<Op>, then: Vec<Op>) {
        let lookup = self.lookups.add(awaited, then);
        self.entry_came(lookup);
    }

    /// An operation of a lookup has ended, or none was begun.
    pub(super) fn entry_came(&mut self, lookup: u32) {
        match self.lookups.next(lookup) {
            Some(op) => self.issue(Op { owner: Owner::Map { lookup }, ..op }),
            None => {
                for op in self.lookups.end(lookup) {
                    self.issue(op);
                }
            }
        }
    }
}
