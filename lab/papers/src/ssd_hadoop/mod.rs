//! "A Case for Flash Memory SSD in Hadoop Applications": stock Hadoop on an emulated hard disk and an
//! emulated SSD.
//!
//! ```text
//!   --results study-x0.05-slower4.json ──────────────────┐
//!   --bench DIR ──► DIR/study.py FIGURE --json ──────────┴─► Study ──► ssd-hadoop-size, -settings, ...
//! ```
//!
//! Times are predictions of the device models: nothing is fitted to the paper's. A cell whose emulation
//! was late is shown as not valid, and no ratio uses it.

pub mod beyond;
pub mod energy;
pub mod jobs;
pub mod settings;
pub mod size;
mod study;
pub mod traces;
