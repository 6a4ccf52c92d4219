//! Why a profile is refused.

use super::unit::Unit;

/// Why a profile cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No preset of that name.
    #[error("no device is called {name}: there are {known}")]
    Preset {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Not of the form `name=value`.
    #[error("{text}: a setting is written name=value")]
    Form {
        /// What was given.
        text: String,
    },
    /// No parameter of that name.
    #[error("{name} is no parameter of a device{}", near.map_or(String::new(), |n| format!("; {n} is")))]
    Unknown {
        /// What was asked for.
        name: String,
        /// A parameter whose name is near.
        near: Option<&'static str>,
    },
    /// A value that the parameter does not take.
    #[error("{name}={value}: {}", expected(*unit, *least, *most))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its unit.
        unit: Unit,
        /// Its least value.
        least: u64,
        /// Its greatest value.
        most: u64,
        /// What was given.
        value: String,
    },
    /// Values that exclude one another.
    #[error("{0}")]
    Together(String),
}

fn expected(unit: Unit, least: u64, most: u64) -> String {
    match unit {
        Unit::Switch | Unit::Choice(_) => format!("one of {unit}"),
        _ => format!("a value in {unit} from {least} to {most}"),
    }
}
