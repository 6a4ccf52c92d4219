//! The map itself: here, on this machine's inputs, or on nodes.

use std::sync::Arc;

use merganser_node::map::{MapInput, MapOptions, MapOutput, MapReport, PartitionSize, map};
use merganser_node::ssdlet::{Ssdlet, SsdletError};
use merganser_sort::activity::Activity;
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use super::farm;
use crate::config::MapConfig;
use crate::failure::Failure;

/// An SSDlet, its open inputs, and what it may take.
pub struct Work<'a> {
    config: &'a MapConfig,
    ssdlet: &'a dyn Ssdlet,
    inputs: Vec<MapInput>,
    budget: Budget,
    /// All memory, for sentences: what the map has is a part of it.
    memory_bytes: u64,
    threads: usize,
    partition: PartitionSize,
    temp: Vec<Arc<dyn Directory>>,
}

impl<'a> Work<'a> {
    /// The work of `config` in the memory of `budget`, which may be less than all.
    pub fn new(
        config: &'a MapConfig,
        ssdlet: &'a dyn Ssdlet,
        inputs: Vec<MapInput>,
        budget: Budget,
        temp: &[Arc<FileDirectory>],
    ) -> Self {
        Work {
            config,
            ssdlet,
            inputs,
            budget,
            memory_bytes: config.memory_bytes,
            threads: config.threads,
            partition: config.partition,
            temp: temp.iter().map(recorded).collect(),
        }
    }

    /// Its SSDlet.
    pub fn ssdlet(&self) -> &'a dyn Ssdlet {
        self.ssdlet
    }

    /// Maps. This is the one place that knows who does it.
    ///
    /// # Errors
    /// The SSDlet's, the inputs', the engine's and the sink's own.
    pub fn run(self, output: MapOutput<'_>, progress: &dyn Progress) -> Result<MapReport, Failure> {
        if let Some(nodes) = &self.config.nodes {
            return farm::run(nodes, self.config, output, progress);
        }
        let options = MapOptions {
            budget: self.budget,
            threads: self.threads,
            partition: self.partition,
            temp: self.temp,
        };
        let done = map(self.ssdlet, self.inputs, output, &options, progress);
        done.map_err(|error| of_whole(error, self.memory_bytes))
    }
}

/// The failure of a part of the work that has a part of `memory_bytes`. The least that works is said of
/// the whole.
pub fn of_whole(error: impl Into<SsdletError>, memory_bytes: u64) -> Failure {
    match error.into() {
        SsdletError::Engine(Error::Memory { owner, least_bytes, limit_bytes }) => {
            let whole = u128::from(least_bytes) * u128::from(memory_bytes);
            let least_bytes = whole.div_ceil(u128::from(limit_bytes.max(1)));
            let least_bytes = u64::try_from(least_bytes).unwrap_or(u64::MAX);
            Error::Memory { owner, least_bytes, limit_bytes: memory_bytes }.into()
        }
        error => error.into(),
    }
}

/// A folder whose reads and writes are in the report.
pub fn recorded(folder: &Arc<FileDirectory>) -> Arc<dyn Directory> {
    Activity::here().directory(Arc::clone(folder) as Arc<dyn Directory>)
}
