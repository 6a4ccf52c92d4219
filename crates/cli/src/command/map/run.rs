//! The map itself: here, on this machine's inputs, or on nodes.

use std::sync::Arc;

use merganser_node::map::{MapInput, MapOptions, MapOutput, MapReport, least_memory_bytes, map};
use merganser_node::ssdlet::{Ssdlet, SsdletError};
use merganser_sort::activity::Activity;
use merganser_sort::{Budget, Progress};
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;

use super::farm;
use super::split::Split;
use crate::config::{Destination, MapConfig};
use crate::failure::Failure;

/// An SSDlet, its open inputs, and what it may take.
pub struct Work<'a> {
    config: &'a MapConfig,
    ssdlet: &'a dyn Ssdlet,
    inputs: Vec<MapInput>,
    options: MapOptions,
    /// How the memory of `options` is a part of all.
    split: Split,
}

impl<'a> Work<'a> {
    /// The work of `config` in the memory of `budget`, which is what `split` has for it.
    pub fn new(
        config: &'a MapConfig,
        ssdlet: &'a dyn Ssdlet,
        inputs: Vec<MapInput>,
        (budget, split): (Budget, Split),
        temp: &[Arc<FileDirectory>],
    ) -> Self {
        let options = MapOptions {
            budget,
            threads: config.threads,
            partition: config.partition,
            temp: temp.iter().map(recorded).collect(),
        };
        Work { config, ssdlet, inputs, options, split }
    }

    /// Refuses too little memory before anything is read or made.
    ///
    /// # Errors
    /// The least that works.
    pub fn check_memory(&self) -> Result<(), Failure> {
        if self.config.nodes.is_some() {
            // The nodes have their own.
            return Ok(());
        }
        let to_view = matches!(self.config.destination, Destination::View(_));
        let about = self.ssdlet.description();
        let least = least_memory_bytes(about, &self.inputs, &self.options, to_view);
        Ok(self.split.check(least)?)
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
        let done = map(self.ssdlet, self.inputs, output, &self.options, progress);
        done.map_err(|error| match error {
            SsdletError::Engine(error) => self.split.of_map(error).into(),
            error => error.into(),
        })
    }
}

/// A folder whose reads and writes are in the report.
pub fn recorded(folder: &Arc<FileDirectory>) -> Arc<dyn Directory> {
    Activity::here().directory(Arc::clone(folder) as Arc<dyn Directory>)
}
