//! `merganser simulate`: plays requests to modelled devices and shows the results.
//!
//! ```text
//!   model      a preset and its changes ──► a device
//!   play       requests ──► device, once it is worn
//!   run        play ──► measured ──► table, data, page (with time_series and stream_report)
//!   latencies  the time of each request of a run, in a file
//!   streams    several workloads on one device, and each alone
//!   sort       the engine on a device
//!   rates      what a few streams get of a device
//!   record     a trace of something else
//!   array      traces ──► a hybrid volume without its data, on several devices
//! ```

mod array;
pub(super) mod data;
mod latencies;
mod list;
mod measured;
pub(super) mod model;
mod opened;
mod page;
mod play;
mod rates;
mod record;
mod run;
mod sort;
mod stream_report;
mod streams;
pub(super) mod table;
mod time_series;

use merganser_shell::failure::Failure;
use merganser_shell::signals::Cancel;
use merganser_shell::standard::print;

use crate::config::SimulateConfig;

/// Lists, plays, sorts or records.
pub(super) fn run(config: &SimulateConfig, cancel: &Cancel) -> Result<(), Failure> {
    match config {
        SimulateConfig::ListDevices => print(list::devices()),
        SimulateConfig::ListParameters(name) => print(&list::parameters(name)?),
        SimulateConfig::Array(config) => array::run(config, cancel),
        SimulateConfig::Run(config) => run::run(config, cancel),
        SimulateConfig::Sort(config) => sort::run(config, cancel),
        SimulateConfig::Rates(config) => rates::run(config),
        SimulateConfig::Record(config) => record::run(config, cancel),
    }
}
