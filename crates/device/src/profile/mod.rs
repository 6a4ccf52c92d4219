//! What a modelled device is made of: parameters with unit, range, source and meaning.
//!
//! A preset is a list of values with the source of each; what it does not name keeps the default of
//! the table. `name=value` texts override single values.

mod presets;
mod ssd;

use std::fmt;

pub use ssd::{CachePolicy, GcPolicy, Placement, SsdSettings};

/// What a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; written with K, M, G, T for powers of 1,024.
    Bytes,
    /// Bytes a second.
    BytesASecond,
    /// A time; written with ns, us, ms or s.
    Nanoseconds,
    /// Cycles a second.
    Hertz,
    /// Cycles of the processor.
    Cycles,
    /// A number of things.
    Count,
    /// Thousandths.
    Permille,
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Bytes => "bytes",
            Unit::BytesASecond => "bytes/s",
            Unit::Nanoseconds => "ns",
            Unit::Hertz => "Hz",
            Unit::Cycles => "cycles",
            Unit::Count => "count",
            Unit::Permille => "permille",
            Unit::Switch => "on, off",
            Unit::Choice(words) => return f.write_str(&words.join(", ")),
        })
    }
}

impl Unit {
    /// `value` as a person writes it.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        match self {
            Unit::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
            Unit::Choice(words) => {
                usize::try_from(value).ok().and_then(|i| words.get(i)).unwrap_or(&"?").to_string()
            }
            _ => value.to_string(),
        }
    }

    fn parse(self, text: &str) -> Option<u64> {
        let scaled = |suffixes: &[(&str, u64)]| {
            let (digits, factor) = suffixes
                .iter()
                .find_map(|&(suffix, factor)| text.strip_suffix(suffix).map(|d| (d, factor)))
                .unwrap_or((text, 1));
            digits.trim_end().parse::<u64>().ok()?.checked_mul(factor)
        };
        match self {
            Unit::Bytes | Unit::BytesASecond => {
                scaled(&[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)])
            }
            Unit::Nanoseconds => {
                scaled(&[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
            }
            Unit::Hertz | Unit::Cycles | Unit::Count | Unit::Permille => scaled(&[]),
            Unit::Switch => ["off", "on"].iter().position(|&w| w == text).map(|i| i as u64),
            Unit::Choice(words) => words.iter().position(|&w| w == text).map(|i| i as u64),
        }
    }
}

/// One line of the table: what can be set.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in overrides.
    pub name: &'static str,
    /// What its value counts.
    pub unit: Unit,
    /// The least value that the model takes.
    pub least: u64,
    /// The greatest value that the model takes.
    pub most: u64,
    /// The value where a preset names none.
    pub default: u64,
    /// What it does.
    pub meaning: &'static str,
    get: fn(&SsdSettings) -> u64,
    set: fn(&mut SsdSettings, u64),
}

impl Parameter {
    /// The value in `settings`.
    #[must_use]
    pub fn value(&self, settings: &SsdSettings) -> u64 {
        (self.get)(settings)
    }

    /// Sets the value.
    ///
    /// # Errors
    /// A value outside the range.
    pub fn assign(&self, settings: &mut SsdSettings, value: u64) -> Result<(), ProfileError> {
        if !(self.least..=self.most).contains(&value) {
            return Err(self.refuse(value.to_string()));
        }
        (self.set)(settings, value);
        Ok(())
    }

    fn refuse(&self, value: String) -> ProfileError {
        let Parameter { name, unit, least, most, .. } = *self;
        ProfileError::Value { name, unit, least, most, value }
    }
}

/// All parameters of a modelled SSD, in the order of an I/O's way down.
#[must_use]
pub fn ssd_parameters() -> &'static [Parameter] {
    ssd::TABLE
}

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

/// A device that can be modelled: settings, each with the source of its value.
#[derive(Debug, Clone)]
pub struct SsdProfile {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// All values.
    pub settings: SsdSettings,
    sources: Vec<(&'static str, &'static str)>,
}

impl SsdProfile {
    /// The preset of that name.
    ///
    /// # Errors
    /// No such preset; the error names those that there are.
    pub fn preset(name: &str) -> Result<SsdProfile, ProfileError> {
        let found = presets::ALL.iter().find(|preset| preset.name == name);
        let Some(preset) = found else {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            return Err(ProfileError::Preset { name: name.to_owned(), known });
        };
        let mut settings = SsdSettings::default();
        let mut sources = Vec::new();
        for &(name, value, source) in preset.values {
            let parameter = find(name).expect("a preset names parameters");
            parameter.assign(&mut settings, value).expect("a preset keeps to the ranges");
            sources.push((name, source));
        }
        settings.check().expect("a preset is a device");
        Ok(SsdProfile { name: preset.name, about: preset.about, settings, sources })
    }

    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        presets::ALL.iter().map(|preset| preset.name)
    }

    /// Where the value of a parameter comes from.
    #[must_use]
    pub fn source(&self, name: &str) -> &'static str {
        let found = self.sources.iter().rev().find(|(n, _)| *n == name);
        found.map_or("default", |(_, source)| source)
    }

    /// Applies one `name=value`.
    ///
    /// # Errors
    /// What is wrong with it: the form, the name, the value with the unit and range that it should
    /// have. Whether the values fit together is said by [`SsdSettings::check`].
    pub fn set(&mut self, text: &str) -> Result<(), ProfileError> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| ProfileError::Form { text: text.to_owned() })?;
        let (name, value) = (name.trim(), value.trim());
        let parameter = find(name)
            .ok_or_else(|| ProfileError::Unknown { name: name.to_owned(), near: nearest(name) })?;
        let number =
            parameter.unit.parse(value).ok_or_else(|| parameter.refuse(value.to_owned()))?;
        parameter.assign(&mut self.settings, number)?;
        self.sources.push((parameter.name, "set by the user"));
        Ok(())
    }
}

fn find(name: &str) -> Option<&'static Parameter> {
    ssd_parameters().iter().find(|parameter| parameter.name == name)
}

/// The parameter that shares the most words with `name`.
fn nearest(name: &str) -> Option<&'static str> {
    let shared = |other: &str| {
        name.split('_').filter(|word| !word.is_empty() && other.contains(word)).count()
    };
    let best = ssd_parameters().iter().max_by_key(|parameter| shared(parameter.name))?;
    (shared(best.name) > 0).then_some(best.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_gives_the_source_of_what_it_says() {
        for name in SsdProfile::names() {
            let profile = SsdProfile::preset(name).expect("a preset");
            for &(parameter, source) in &profile.sources {
                assert!(source.len() > 3, "{name}: {parameter} has no source");
            }
        }
    }

    #[test]
    fn defaults_are_in_range_and_names_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for p in ssd_parameters() {
            assert!((p.least..=p.most).contains(&p.default), "{}", p.name);
            assert!(seen.insert(p.name) && !p.meaning.is_empty(), "{}", p.name);
        }
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        let mut jasmine = SsdProfile::preset("jasmine").expect("a preset");
        let mut said = |text: &str| jasmine.set(text).expect_err("refused").to_string();
        assert_eq!(said("channels"), "channels: a setting is written name=value");
        assert_eq!(said("channels=0"), "channels=0: a value in count from 1 to 64");
        assert_eq!(said("read_ns=fast"), "read_ns=fast: a value in ns from 0 to 1000000000");
        assert_eq!(said("read=5us"), "read is no parameter of a device; read_ns is");
        assert_eq!(said("gc_policy=lazy"), "gc_policy=lazy: one of greedy, cost-benefit, choices");
        let none = SsdProfile::preset("x").expect_err("refused").to_string();
        assert_eq!(none, "no device is called x: there are jasmine, msr, nvme, isc");
    }

    #[test]
    fn values_have_suffixes() {
        let mut jasmine = SsdProfile::preset("jasmine").expect("a preset");
        for text in ["read_ns=300us", "page_bytes = 16K", "gc_policy=choices", "copy_back=on"] {
            jasmine.set(text).expect(text);
        }
        let s = &jasmine.settings;
        assert_eq!((s.read_ns, s.page_bytes), (300_000, 16_384));
        assert_eq!((s.gc_policy(), s.copy_back), (GcPolicy::Choices, 1));
        assert_eq!(jasmine.source("read_ns"), "set by the user");
        assert_ne!(jasmine.source("program_ns"), "default");
    }
}
