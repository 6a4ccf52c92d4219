//! The settings of `merganser ssdlet`.

use std::path::PathBuf;

use merganser_serve::session::GuestLimits;
use merganser_shell::failure::Failure;

use crate::args::{LanguageName, SsdletArgs, SsdletCommand};

/// What to do about SSDlets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SsdletConfig {
    /// Make a project.
    New {
        /// Its language.
        language: LanguageName,
        /// The folder to make.
        dir: PathBuf,
        /// The last part of its path.
        name: String,
    },
    /// Check a file.
    Check(SsdletCheck),
    /// List SSDlets.
    List {
        /// The folder, or `None` for the built-in ones.
        dir: Option<PathBuf>,
        /// Whether JSON is printed.
        json: bool,
    },
}

/// The settings of `merganser ssdlet check`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SsdletCheck {
    /// The WebAssembly file.
    pub file: PathBuf,
    /// The sample, or `None` for a made-up one.
    pub sample: Option<PathBuf>,
    /// Its arguments.
    pub args: Vec<u8>,
    /// What it may use.
    pub limits: GuestLimits,
    /// Whether JSON is printed.
    pub json: bool,
}

impl TryFrom<SsdletArgs> for SsdletConfig {
    type Error = Failure;

    fn try_from(typed: SsdletArgs) -> Result<Self, Failure> {
        let typed = match typed.what {
            SsdletCommand::New(typed) => {
                let path =
                    std::path::absolute(&typed.dir).map_err(|e| Failure::on(&typed.dir, &e))?;
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let name = name.to_owned();
                return Ok(SsdletConfig::New { language: typed.lang, dir: typed.dir, name });
            }
            SsdletCommand::List(typed) => {
                return Ok(SsdletConfig::List { dir: typed.dir, json: typed.json });
            }
            SsdletCommand::Check(typed) => typed,
        };
        Ok(SsdletConfig::Check(SsdletCheck {
            file: typed.file,
            sample: typed.sample,
            args: typed.args.into_bytes(),
            limits: merganser_guests::limits(&typed.guest)?,
            json: typed.json,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{config, refusal};
    use super::*;
    use crate::args::NearCommand;

    fn meant(words: &[&str]) -> SsdletConfig {
        let NearCommand::Ssdlet(typed) = config(&[&["ssdlet"], words].concat()) else {
            unreachable!()
        };
        SsdletConfig::try_from(typed).unwrap_or_else(|failure| panic!("{:?}", failure.sentence()))
    }

    #[test]
    fn a_project_has_the_name_of_its_folder() {
        for (dir, name) in [("words", "words"), ("/a/b-c", "b-c"), ("./x/", "x"), ("/", "")] {
            let SsdletConfig::New { name: found, language, .. } =
                meant(&["new", "--lang", "rust", dir])
            else {
                unreachable!()
            };
            assert_eq!((found.as_str(), language), (name, LanguageName::Rust));
        }
    }

    #[test]
    fn a_check_has_limits() {
        let SsdletConfig::Check(check) = meant(&["check", "x.wasm", "--time-limit", "0.5"]) else {
            unreachable!()
        };
        assert_eq!(check.limits.call_time, Some(Duration::from_millis(500)));
        assert_eq!((check.limits.fuel_per_byte, check.limits.memory_bytes), (None, None));
        for (option, value, told) in [
            ("--fuel-per-byte", "0", "--fuel-per-byte: at least 1"),
            ("--time-limit", "0", "--time-limit: '0' is no time"),
            ("--time-limit", "inf", "--time-limit: 'inf' is no time"),
            ("--time-limit", "nan", "--time-limit: 'NaN' is no time"),
        ] {
            let sentence = refusal(&["ssdlet", "check", "x.wasm", option, value]);
            assert!(sentence.starts_with(told), "{sentence}");
        }
    }
}
