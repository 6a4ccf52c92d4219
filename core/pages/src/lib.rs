//! Pages for people: one file of HTML each, complete in itself, without a script.
//!
//! [`frame`] is the document around the figures, [`text`] shows numbers and makes the names of others harmless, and
//! [`chart`] draws.

pub mod chart;
pub mod frame;
pub mod text;

pub use chart::{Chart, ChartSeries};
