//! Any modelled device, by name.

use merganser_device::device::Device;
use merganser_device::hdd::{Hdd, HddProfile};
use merganser_device::profile::{ProfileError, SsdProfile};
use merganser_device::results::DevicePower;
use merganser_device::ssd::Ssd;
use merganser_shell::failure::Failure;

use crate::config::DeviceChoice;

/// A modelled device: an SSD or a disk.
#[derive(Debug, Clone)]
pub(crate) enum ModelledDevice {
    /// Flash.
    Ssd(Box<SsdProfile>),
    /// Platters.
    Hdd(Box<HddProfile>),
}

impl ModelledDevice {
    /// The names of all presets.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SsdProfile::names().chain(HddProfile::names())
    }

    /// The preset of that name.
    ///
    /// # Errors
    /// If there is no such preset.
    pub(crate) fn preset(name: &str) -> Result<Self, ProfileError> {
        if SsdProfile::names().any(|known| known == name) {
            return SsdProfile::preset(name).map(|profile| ModelledDevice::Ssd(Box::new(profile)));
        }
        if HddProfile::names().any(|known| known == name) {
            return HddProfile::preset(name).map(|profile| ModelledDevice::Hdd(Box::new(profile)));
        }
        let known = Self::names().collect::<Vec<_>>().join(", ");
        Err(ProfileError::Preset { name: name.to_owned(), known })
    }

    /// The preset that was chosen, with its changes.
    ///
    /// # Errors
    /// When there is no such device or parameter, or a value can't be.
    pub(crate) fn chosen(choice: &DeviceChoice) -> Result<Self, Failure> {
        let mut model = Self::preset(&choice.name).map_err(|error| format!("--device: {error}"))?;
        for text in &choice.settings {
            model.set(text).map_err(|error| format!("--set {error}"))?;
        }
        Ok(model)
    }

    /// Applies one `name=value`.
    ///
    /// # Errors
    /// A text that is not `name=value`, an unknown name, or a value out of range.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), ProfileError> {
        match self {
            ModelledDevice::Ssd(profile) => profile.set(text),
            ModelledDevice::Hdd(profile) => profile.set(text),
        }
    }

    /// The device, with its first `filled_bytes` written once. A disk needs no filling.
    ///
    /// # Errors
    /// When its values do not fit together.
    pub(crate) fn device(&self, seed: u64, filled_bytes: u64) -> Result<Box<dyn Device>, Failure> {
        let made: Result<Box<dyn Device>, ProfileError> = match self {
            ModelledDevice::Ssd(profile) => Ssd::new(profile, seed).map(|mut ssd| {
                ssd.precondition(filled_bytes.min(ssd.capacity_bytes()));
                Box::new(ssd) as _
            }),
            ModelledDevice::Hdd(profile) => Hdd::new(profile).map(|hdd| Box::new(hdd) as _),
        };
        made.map_err(|error| format!("{}: {error}", self.name()).into())
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            ModelledDevice::Ssd(profile) => profile.name,
            ModelledDevice::Hdd(profile) => profile.name,
        }
    }

    /// One line about it.
    pub(crate) fn about(&self) -> &'static str {
        match self {
            ModelledDevice::Ssd(profile) => profile.about,
            ModelledDevice::Hdd(profile) => profile.about,
        }
    }

    /// The power of its components.
    pub(crate) fn power(&self) -> DevicePower {
        match self {
            ModelledDevice::Ssd(profile) if profile.name == "nvme" => DevicePower::ssd(
                1.0,
                "assumed of its class; dies by the currents of NAND data sheets",
            ),
            ModelledDevice::Ssd(_) => DevicePower::ssd(
                0.6,
                "assumed of its class; dies by the currents of NAND data sheets",
            ),
            ModelledDevice::Hdd(profile) if profile.name == "cheetah" => {
                DevicePower::hdd(11.0, 5.0, "assumed of its class: 15,000 rpm")
            }
            ModelledDevice::Hdd(profile) if profile.name == "barracuda" => {
                DevicePower::hdd(5.0, 1.6, "Seagate Barracuda 7200.12 data sheet, rounded")
            }
            ModelledDevice::Hdd(_) => DevicePower::hdd(
                5.0,
                1.6,
                "assumed, as the Seagate Barracuda 7200.12's data sheet says",
            ),
        }
    }

    /// Every parameter: name, value, unit, range, source and meaning.
    pub(crate) fn parameters(&self) -> Vec<ParameterLine> {
        match self {
            ModelledDevice::Ssd(profile) => merganser_device::profile::ssd_parameters()
                .iter()
                .map(|p| ParameterLine {
                    name: p.name,
                    value: p.unit.show(p.value(&profile.settings)),
                    unit: p.unit.to_string(),
                    range: range(p.unit, p.least, p.most),
                    source: profile.source(p.name),
                    meaning: p.meaning,
                })
                .collect(),
            ModelledDevice::Hdd(profile) => merganser_device::hdd::hdd_parameters()
                .iter()
                .map(|p| ParameterLine {
                    name: p.name,
                    value: p.unit.show(p.value(&profile.settings)),
                    unit: p.unit.to_string(),
                    range: range(p.unit, p.least, p.most),
                    source: profile.source(p.name),
                    meaning: p.meaning,
                })
                .collect(),
        }
    }
}

/// A parameter of a device.
pub(crate) struct ParameterLine {
    /// Its name in `--set`.
    pub name: &'static str,
    /// Its value, as a user writes it.
    pub value: String,
    /// Its unit, or the words that it accepts.
    pub unit: String,
    /// Its least and its greatest value.
    pub range: String,
    /// The source of the value.
    pub source: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

fn range(unit: merganser_device::profile::ParameterUnit, least: u64, most: u64) -> String {
    use merganser_device::profile::ParameterUnit;
    match unit {
        ParameterUnit::Switch | ParameterUnit::Choice(_) => String::new(),
        _ => format!("{least} to {most}"),
    }
}
