//! Why a profile is refused.

use super::unit::ParameterUnit;

/// Why a profile is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// There is no preset with this name.
    #[error("no device is called {name}: there are {known}")]
    Preset {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The text does not have the form `name=value`.
    #[error("{text}: a setting is written name=value")]
    Form {
        /// The text that was given.
        text: String,
    },
    /// There is no parameter with this name.
    #[error("{name} is no parameter of a device{}", near.map_or(String::new(), |n| format!("; {n} is")))]
    Unknown {
        /// The name that was given.
        name: String,
        /// A parameter with a similar name.
        near: Option<&'static str>,
    },
    /// A value outside the range of the parameter.
    #[error("{name}={value}: {}", expected(*unit, *least, *most))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its unit.
        unit: ParameterUnit,
        /// Its least value.
        least: u64,
        /// Its greatest value.
        most: u64,
        /// The text that was given.
        value: String,
    },
    /// The system has no memory for the device's tables.
    #[error("the page map of the device: {0}")]
    Memory(String),
    /// Values that do not fit together.
    #[error("{0}")]
    Together(String),
}

fn expected(unit: ParameterUnit, least: u64, most: u64) -> String {
    match unit {
        ParameterUnit::Switch | ParameterUnit::Choice(_) => format!("one of {unit}"),
        _ => format!("a value in {unit}{} from {least} to {most}", unit.suffixes()),
    }
}
