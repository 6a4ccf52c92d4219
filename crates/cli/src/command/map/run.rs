//! The map itself: here, on this machine's inputs, or on nodes.

use std::sync::Arc;

use merganser_node::map::{MapInput, MapOptions, MapOutput, MapReport, PartitionSize, map};
use merganser_node::ssdlet::{Description, Ssdlet, SsdletError};
use merganser_sort::activity::Activity;
use merganser_sort::{Budget, Error, Progress};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use super::farm::Farm;
use super::program;
use crate::config::{MapConfig, ProgramName};
use crate::failure::Failure;
use crate::signals::Cancel;

/// An open SSDlet.
pub enum Mapper {
    /// In this process.
    Here(Box<dyn Ssdlet>),
    /// On nodes.
    Nodes(Farm),
}

/// What is known of a [`Mapper`]'s rows.
#[derive(Debug, Clone)]
pub struct What {
    /// What the SSDlet takes and gives.
    pub description: Description,
    /// How many rows are wanted, if it is not all of them.
    pub rows_most: Option<u64>,
}

impl Mapper {
    /// Opens the SSDlet `name` where `config` says.
    ///
    /// # Errors
    /// When there is no such SSDlet, or its arguments make no sense; those of nodes.
    pub fn open(
        config: &MapConfig,
        name: &ProgramName,
        args: &serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let Some(nodes) = &config.nodes else {
            return program::open(name, args, config.limits).map(Mapper::Here);
        };
        if let ProgramName::Builtin(_) = name {
            // A mistake in the arguments is found before a node is asked.
            let ssdlet = program::open(name, args, config.limits)?;
            super::refuse_on_nodes(&ssdlet.description().name, ssdlet.rows_most())?;
        }
        let farm = Farm::open(nodes, config, name, args, cancel)?;
        let opened = farm.opened();
        super::refuse_on_nodes(&opened.description.name, opened.rows_most)?;
        Ok(Mapper::Nodes(farm))
    }

    /// What is known of its rows.
    pub fn what(&self) -> What {
        match self {
            Mapper::Here(ssdlet) => {
                What { description: ssdlet.description().clone(), rows_most: ssdlet.rows_most() }
            }
            Mapper::Nodes(farm) => What {
                description: farm.opened().description.clone(),
                rows_most: farm.opened().rows_most,
            },
        }
    }
}

/// An SSDlet, its open inputs, and what it may take.
pub struct Work {
    mapper: Mapper,
    inputs: Vec<MapInput>,
    budget: Budget,
    /// All memory, for sentences: what the map has is a part of it.
    memory_bytes: u64,
    threads: usize,
    partition: PartitionSize,
    temp: Vec<Arc<dyn Directory>>,
}

impl Work {
    /// The work of `config` in the memory of `budget`, which may be less than all.
    pub fn new(
        config: &MapConfig,
        mapper: Mapper,
        inputs: Vec<MapInput>,
        budget: Budget,
        temp: &[Arc<FileDirectory>],
    ) -> Self {
        Work {
            mapper,
            inputs,
            budget,
            memory_bytes: config.memory_bytes,
            threads: config.threads,
            partition: config.partition,
            temp: temp.iter().map(recorded).collect(),
        }
    }

    /// Maps. This is the one place that knows who does it.
    ///
    /// # Errors
    /// The SSDlet's, the inputs', the engine's and the sink's own.
    pub fn run(self, output: MapOutput<'_>, progress: &dyn Progress) -> Result<MapReport, Failure> {
        let (ssdlet, output) = match (self.mapper, output) {
            (Mapper::Here(ssdlet), output) => (ssdlet, output),
            (Mapper::Nodes(farm), MapOutput::Rows(sink)) => return farm.map(sink, progress),
            (Mapper::Nodes(_), MapOutput::View { .. }) => unreachable!("refused before"),
        };
        let options = MapOptions {
            budget: self.budget,
            threads: self.threads,
            partition: self.partition,
            temp: self.temp,
        };
        let done = map(&*ssdlet, self.inputs, output, &options, progress);
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
