//! Profiles of modelled devices: parameters with unit, range, source and meaning.
//!
//! A preset is a list of values, each with its source. Parameters that it does not list keep the
//! default of the table. Texts of the form `name=value` override single values.

mod error;
mod presets;
mod ssd;
mod unit;

use std::cmp::Reverse;

pub use error::ProfileError;
pub use ssd::{CachePolicy, DiePlacement, GcPolicy, Parameter, SsdSettings, ssd_parameters};
pub use unit::ParameterUnit;

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

/// The parameter that a user probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, ssd_parameters().iter().map(|parameter| parameter.name))
}

/// The name that shares the most words with `name`, and of those the one that differs in the fewest
/// letters; if none shares a word, the name that differs in the fewest letters, at most a third of them.
pub(crate) fn nearest_of(
    name: &str,
    names: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let shared = |other: &str| {
        name.split('_').filter(|word| !word.is_empty() && other.contains(word)).count()
    };
    let nearest = |other: &&'static str| (shared(other), Reverse(letters_apart(name, other)));
    let best = names.clone().max_by_key(nearest)?;
    if shared(best) > 0 {
        return Some(best);
    }
    let closest = names.min_by_key(|other| letters_apart(name, other))?;
    (letters_apart(name, closest) <= closest.len() / 3).then_some(closest)
}

/// Letters to insert, remove or replace until `a` is `b` (Levenshtein's distance).
fn letters_apart(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = corner + usize::from(letter != *other);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Whether `source` says how a value came about, or names what it is from: a paper, a data sheet, a
/// measurement, another simulator, or a standard. A new document has to be added here.
#[cfg(test)]
pub(crate) fn is_source(source: &str) -> bool {
    const WAYS: [&str; 4] = ["assumed", "fitted", "inferred", "computed from"];
    const DOCUMENTS: [&str; 17] = [
        "ActiveSort 4",
        "ActiveSort 5",
        "openssd-project.org",
        "SKKU ICE3028",
        "DiskSim",
        "ssdmodel/valid/ssd-",
        "NVMeVirt",
        "ISC for Hadoop",
        "Tech Report 22401",
        "hdparm of the drive",
        "(hdparm)",
        "X-bit labs",
        "FEMU",
        "data sheet",
        "technical reference manual",
        "SATA",
        "SCSI",
    ];
    const BUSES: [&str; 3] = ["SAS is", "SAS, 3 Gb/s", "PCIe has"];
    WAYS.iter().chain(&DOCUMENTS).chain(&BUSES).any(|text| source.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_gives_the_source_of_what_it_says() {
        for name in SsdProfile::names() {
            let profile = SsdProfile::preset(name).expect("a preset");
            for parameter in ssd_parameters() {
                let source = profile.source(parameter.name);
                let value = parameter.value(&profile.settings);
                let said = if source == "default" {
                    value == parameter.default
                } else {
                    is_source(source)
                };
                assert!(said, "{name}: {} = {value} has no source: {source:?}", parameter.name);
            }
        }
        for empty in ["", "a guess", "as usual", "dies of 32 Gb", "default"] {
            assert!(!is_source(empty), "{empty:?}");
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
        assert_eq!(
            said("read_ns=1.5us"),
            "read_ns=1.5us: a value in ns (or whole us, ms, s) from 0 to 1000000000"
        );
        assert_eq!(said("read=5us"), "read is no parameter of a device; read_ns is");
        assert_eq!(said("chanels=4"), "chanels is no parameter of a device; channels is");
        assert_eq!(said("colour=4"), "colour is no parameter of a device");
        assert_eq!(said("gc_policy=lazy"), "gc_policy=lazy: one of greedy, cost-benefit, choices");
        let none = SsdProfile::preset("x").expect_err("refused").to_string();
        assert_eq!(none, "no device is called x: there are jasmine, msr, nvme, isc, 830, tlc");
    }

    #[test]
    fn rates_are_decimal_and_sizes_binary() {
        let mut jasmine = SsdProfile::preset("jasmine").expect("a preset");
        jasmine.set("link_bytes_per_second=100M").expect("100 MB/s");
        jasmine.set("dram_bytes=128M").expect("128 MiB");
        let s = &jasmine.settings;
        assert_eq!((s.link_bytes_per_second, s.dram_bytes), (100_000_000, 128 << 20));
    }

    /// Tables of 30 GB once ended the process (section 5 of the audit).
    #[test]
    fn tables_that_do_not_fit_are_refused() {
        let mut nvme = SsdProfile::preset("nvme").expect("a preset");
        for text in ["channels=64", "ways=64", "blocks_per_plane=131072", "pages_per_block=2"] {
            nvme.set(text).expect(text);
        }
        for text in ["page_bytes=512", "map_unit_bytes=512", "transfer_unit_bytes=512"] {
            nvme.set(text).expect(text);
        }
        nvme.set("over_provisioning_permille=600").expect("a value");
        let said = nvme.settings.check().expect_err("refused").to_string();
        assert!(said.starts_with("536870912 blocks are more than the 16777216 whose"), "{said}");
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
        // Issue 43: clocks took no suffixes.
        for (text, hz) in [("400M", 400_000_000), ("87500K", 87_500_000), ("2G", 2_000_000_000)] {
            jasmine.set(&format!("processor_hz={text}")).expect(text);
            assert_eq!(jasmine.settings.processor_hz, hz, "{text}");
        }
        let said = jasmine.set("processor_hz=1T").expect_err("refused").to_string();
        assert!(said.contains("a value in Hz (or whole K, M, G of 1000) from 1000000"), "{said}");
        assert_eq!(jasmine.source("read_ns"), "set by the user");
        assert_ne!(jasmine.source("program_ns"), "default");
    }
}
