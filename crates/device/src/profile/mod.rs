//! Profiles of modelled devices: parameters with unit, range, source and meaning.
//!
//! A preset is a list of values, each with its source. Parameters that it does not list keep the
//! default of the table. Texts of the form `name=value` override single values.

mod error;
mod presets;
mod ssd;
mod unit;

pub use error::ProfileError;
pub use ssd::{CachePolicy, GcPolicy, Parameter, Placement, SsdSettings, ssd_parameters};
pub use unit::Unit;

/// The profile of an SSD: all settings, each with the source of its value.
#[derive(Debug, Clone)]
pub struct SsdProfile {
    /// Its name.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// All values.
    pub settings: SsdSettings,
    sources: Vec<(&'static str, &'static str)>,
}

impl SsdProfile {
    /// The preset with this name.
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

    /// The source of a parameter's value.
    #[must_use]
    pub fn source(&self, name: &str) -> &'static str {
        let found = self.sources.iter().rev().find(|(n, _)| *n == name);
        found.map_or("default", |(_, source)| source)
    }

    /// Applies one `name=value`.
    ///
    /// # Errors
    /// A text of another form, an unknown name, or a value out of range. [`SsdSettings::check`]
    /// checks whether the values fit together.
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

/// The parameter whose name shares the most words with `name`.
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
        assert_eq!(none, "no device is called x: there are jasmine, msr, nvme, isc, 830");
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
