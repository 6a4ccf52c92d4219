//! The map itself: here, on this machine's inputs, or on nodes.

use std::sync::Arc;

use merganser_map::ssdlet::{Ssdlet, SsdletDescription, SsdletError};
use merganser_map::{MapInput, MapOptions, MapOutput, MapReport, least_memory_bytes, map};
use merganser_shell::config::Destination;
use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_sort::activity::Activity;
use merganser_sort::{Budget, Progress};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use super::farm::NodeFarm;
use super::program;
use super::split::MemorySplit;
use crate::config::{MapConfig, ProgramName};
use crate::sentences::Told;

/// An open SSDlet.
pub(super) enum CommandMapper {
    /// In this process.
    Here(Box<dyn Ssdlet>),
    /// On nodes.
    Nodes(NodeFarm),
}

/// The shape of a [`CommandMapper`]'s rows.
#[derive(Debug, Clone)]
pub(super) struct What {
    /// The SSDlet's formats and options.
    pub description: SsdletDescription,
    /// How many rows are wanted, if it is not all of them.
    pub rows_most: Option<u64>,
}

impl CommandMapper {
    /// Opens the SSDlet `name` where `config` says.
    ///
    /// # Errors
    /// When there is no such SSDlet, or its arguments make no sense; those of nodes.
    pub(super) fn open(
        config: &MapConfig,
        name: &ProgramName,
        args: &serde_json::Value,
        cancel: &Cancel,
    ) -> Result<Self, Failure> {
        let Some(nodes) = &config.nodes else {
            return program::open(name, args, config.limits, config.memory_bytes)
                .map(CommandMapper::Here);
        };
        if let ProgramName::Builtin(_) = name {
            // A mistake in the arguments is found before a node is asked.
            let ssdlet = program::open(name, args, config.limits, config.memory_bytes)?;
            super::refuse_on_nodes(&ssdlet.description().name, ssdlet.rows_most())?;
        }
        let farm = NodeFarm::open(nodes, config, name, args, cancel)?;
        let opened = farm.opened();
        super::refuse_on_nodes(&opened.description.name, opened.rows_most)?;
        Ok(CommandMapper::Nodes(farm))
    }

    /// The shape of its rows.
    pub(super) fn what(&self) -> What {
        match self {
            CommandMapper::Here(ssdlet) => {
                What { description: ssdlet.description().clone(), rows_most: ssdlet.rows_most() }
            }
            CommandMapper::Nodes(farm) => What {
                description: farm.opened().description.clone(),
                rows_most: farm.opened().rows_most,
            },
        }
    }
}

/// An SSDlet, its open inputs, and what it may take.
pub(super) struct MapWork<'a> {
    config: &'a MapConfig,
    mapper: CommandMapper,
    inputs: Vec<MapInput>,
    options: MapOptions,
    /// How the memory of `options` is a part of all.
    split: MemorySplit,
}

impl<'a> MapWork<'a> {
    /// The work of `config` in the memory of `budget`, which is what `split` has for it.
    pub(super) fn new(
        config: &'a MapConfig,
        mapper: CommandMapper,
        inputs: Vec<MapInput>,
        (budget, split): (Budget, MemorySplit),
        temp: &[Arc<FileDirectory>],
    ) -> Self {
        let options = options(config, budget, temp);
        MapWork { config, mapper, inputs, options, split }
    }

    /// Refuses too little memory before anything is read or made.
    ///
    /// # Errors
    /// The least that works.
    pub(super) fn check_memory(&self) -> Result<(), Failure> {
        match &self.mapper {
            CommandMapper::Here(ssdlet) => {
                let about = ssdlet.description();
                check_memory(self.config, about, &self.inputs, &self.options, self.split)
            }
            // The nodes have their own.
            CommandMapper::Nodes(_) => Ok(()),
        }
    }

    /// Maps. This is the one place that knows who does it.
    ///
    /// # Errors
    /// The SSDlet's, the inputs', the engine's and the sink's own.
    pub(super) fn run(
        self,
        output: MapOutput<'_>,
        progress: &dyn Progress,
    ) -> Result<MapReport, Failure> {
        let (ssdlet, output) = match (self.mapper, output) {
            (CommandMapper::Here(ssdlet), output) => (ssdlet, output),
            (CommandMapper::Nodes(farm), MapOutput::Rows(sink)) => return farm.map(sink, progress),
            (CommandMapper::Nodes(_), MapOutput::View { .. }) => unreachable!("refused before"),
        };
        let done = map(&*ssdlet, self.inputs, output, &self.options, progress);
        done.map_err(|error| match error {
            SsdletError::Engine(error) => self.split.of_map(error).into(),
            error => error.told(),
        })
    }
}

/// The options of the engine, in the memory of `budget`.
pub(super) fn options(
    config: &MapConfig,
    budget: Budget,
    temp: &[Arc<FileDirectory>],
) -> MapOptions {
    MapOptions {
        budget,
        threads: config.threads,
        partition: config.partition,
        temp: temp.iter().map(recorded).collect(),
    }
}

/// Refuses too little memory before anything is read or made.
///
/// # Errors
/// The least that works.
pub(super) fn check_memory(
    config: &MapConfig,
    about: &SsdletDescription,
    inputs: &[MapInput],
    options: &MapOptions,
    split: MemorySplit,
) -> Result<(), Failure> {
    let to_view = matches!(config.destination, Destination::View(_));
    let least = least_memory_bytes(about, inputs, options, to_view);
    Ok(split.check(least)?)
}

/// A folder whose reads and writes are in the report.
pub(super) fn recorded(folder: &Arc<FileDirectory>) -> Arc<dyn Directory> {
    Activity::here().directory(Arc::clone(folder) as Arc<dyn Directory>)
}
