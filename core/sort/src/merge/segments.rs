//! The sorted runs that are merged, and how their records are compared.

use std::sync::Arc;

use super::width::Width;
use crate::key::Order;
use crate::run::Run;
use crate::run::format::Footer;

/// Runs in tie order, and how to compare their records.
#[derive(Clone)]
pub(crate) struct Segments {
    pub(crate) runs: Arc<[Arc<Run>]>,
    pub(crate) order: Arc<Order>,
    pub(crate) unique: bool,
    pub(crate) width: Arc<Width>,
}

impl Segments {
    /// Bytes of all runs.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.data_bytes()).sum()
    }

    /// Totals of each run.
    pub(crate) fn footers(&self) -> impl Iterator<Item = &Footer> + Clone {
        self.runs.iter().map(|run| run.footer())
    }
}
