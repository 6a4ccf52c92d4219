//! How far all nodes are with their inputs.

use merganser_serve::session::SessionStatus;
use merganser_sort::Progress;
use parking_lot::Mutex;

/// The phase while nodes map.
const MAPPING: &str = "mapping";

/// Adds up the bytes of the nodes. How many there are in all is known once every node has told its own.
pub(super) struct FarmMeter<'a> {
    progress: &'a dyn Progress,
    all: Mutex<MeterTotals>,
}

#[derive(Debug)]
struct MeterTotals {
    /// Nodes that have not told their bytes.
    unknown: usize,
    total: u64,
    done: u64,
}

/// The progress that one node reported.
pub(super) struct NodeMeter<'m, 'a> {
    meter: &'m FarmMeter<'a>,
    is_known: bool,
    done: u64,
}

impl<'a> FarmMeter<'a> {
    pub(super) fn of_nodes(nodes: usize, progress: &'a dyn Progress) -> Self {
        progress.phase(MAPPING, None);
        FarmMeter { progress, all: Mutex::new(MeterTotals { unknown: nodes, total: 0, done: 0 }) }
    }

    pub(super) fn node(&self) -> NodeMeter<'_, 'a> {
        NodeMeter { meter: self, is_known: false, done: 0 }
    }
}

impl NodeMeter<'_, '_> {
    /// The node is as far as `status` says.
    pub(super) fn is_at(&mut self, status: &SessionStatus) {
        // A run that waits for memory, or opens its inputs, does not know yet how much it will read.
        if !self.is_known && status.bytes_total == 0 && status.state.is_busy() {
            return;
        }
        let mut all = self.meter.all.lock();
        let more = status.bytes_done.saturating_sub(self.done);
        self.done += more;
        all.done += more;
        if !std::mem::replace(&mut self.is_known, true) {
            all.total += status.bytes_total;
            all.unknown -= 1;
            if all.unknown == 0 {
                // A phase begins with nothing done.
                self.meter.progress.phase(MAPPING, Some(all.total));
                self.meter.progress.advance(all.done);
                return;
            }
        }
        self.meter.progress.advance(more);
    }
}

#[cfg(test)]
mod tests {
    use merganser_serve::session::SessionState;

    use super::*;

    /// The reports: `phase TOTAL` and `+BYTES`.
    #[derive(Default)]
    struct Said(Mutex<Vec<String>>);

    impl Progress for Said {
        fn phase(&self, name: &'static str, total: Option<u64>) {
            self.0.lock().push(format!("{name} {total:?}"));
        }

        fn advance(&self, bytes: u64) {
            self.0.lock().push(format!("+{bytes}"));
        }
    }

    fn status(state: SessionState, done: u64, total: u64) -> SessionStatus {
        SessionStatus {
            session: String::new(),
            state,
            run: 1,
            ranges: 1,
            bytes_total: total,
            bytes_done: done,
            metered: 0,
            rows: 0,
            output_bytes: 0,
            kept_bytes: 0,
            memory: 0,
            threads: 0,
            error: None,
            blobs: Vec::new(),
        }
    }

    #[test]
    fn the_total_is_said_when_every_node_has_told_its_own() {
        let said = Said::default();
        let meter = FarmMeter::of_nodes(3, &said);
        let (mut one, mut two, mut three) = (meter.node(), meter.node(), meter.node());
        one.is_at(&status(SessionState::Running, 10, 100));
        two.is_at(&status(SessionState::Queued, 0, 0));
        one.is_at(&status(SessionState::Running, 30, 100));
        // An empty file is done at once.
        three.is_at(&status(SessionState::Done, 0, 0));
        two.is_at(&status(SessionState::Running, 5, 50));
        one.is_at(&status(SessionState::Done, 100, 100));
        two.is_at(&status(SessionState::Done, 50, 50));
        let expected =
            ["mapping None", "+10", "+20", "+0", "mapping Some(150)", "+35", "+70", "+45"];
        assert_eq!(*said.0.lock(), expected);
    }
}
