//! Settings that an option or a variable of the environment gives: for containers and profiles of shells. Sentences
//! name the one that was used.
//!
//! ```text
//!   config ─► or_variable(typed) ─► the value; remembers that the variable gave it
//!   failure ─► name, with ─► `--memory 1M` or `MERGANSER_MEMORY=1M`
//! ```

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much memory to use.
pub static MEMORY: Setting = Setting::new("--memory", "MERGANSER_MEMORY");
/// How many threads to use.
pub static THREADS: Setting = Setting::new("--threads", "MERGANSER_THREADS");
/// For `--temp-dir`; several folders are separated by colons.
const TEMP_DIR: &str = "MERGANSER_TEMP_DIR";

/// The folders that `MERGANSER_TEMP_DIR` gave.
static TEMP_DIRS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// A setting of this process.
#[derive(Debug)]
pub struct Setting {
    option: &'static str,
    variable: &'static str,
    is_of_variable: AtomicBool,
}

impl Setting {
    const fn new(option: &'static str, variable: &'static str) -> Self {
        Setting { option, variable, is_of_variable: AtomicBool::new(false) }
    }

    /// The value that was typed or, without one, that of the variable; `None` if that is not set, or empty.
    ///
    /// # Errors
    /// A sentence that names the variable, if it can't be read.
    pub fn or_variable<T: FromStr<Err: Display>>(
        &self,
        typed: Option<T>,
    ) -> Result<Option<T>, String> {
        if typed.is_some() {
            return Ok(typed);
        }
        let name = self.variable;
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let read = match value.to_str() {
            Some(text) => text.parse().map_err(|error: T::Err| error.to_string()),
            None => Err("it is no UTF-8".to_owned()),
        };
        let read = read.map_err(|why| format!("{name}={}: {why}", value.display()))?;
        self.is_of_variable.store(true, Ordering::Relaxed);
        Ok(Some(read))
    }

    /// What a user changes: the variable if that gave the value, or else the option.
    pub fn name(&self) -> &'static str {
        if self.is_of_variable.load(Ordering::Relaxed) { self.variable } else { self.option }
    }

    /// The name with a value, as a user types it.
    pub fn with(&self, value: impl Display) -> String {
        let between = if self.is_of_variable.load(Ordering::Relaxed) { '=' } else { ' ' };
        format!("{}{between}{value}", self.name())
    }
}

/// The folders of the variable that stands for `--temp-dir`; none if it is not set, or empty.
pub(crate) fn temp_dirs_of_variable() -> Vec<PathBuf> {
    let named = std::env::var_os(TEMP_DIR).unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|dir| !dir.as_os_str().is_empty());
    let named: Vec<_> = named.collect();
    // The variable does not change while the process runs.
    let _ = TEMP_DIRS.set(named.clone());
    named
}

/// The variable that gave `folder` as a folder for temporary files, if one did.
pub(crate) fn variable_of_temp_dir(folder: &Path) -> Option<&'static str> {
    let dirs = TEMP_DIRS.get()?;
    dirs.iter().any(|dir| dir == folder).then_some(TEMP_DIR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_place_where_the_value_is_from() {
        // `$PATH` is set wherever tests run, and is no number.
        let setting = Setting::new("--memory", "PATH");
        assert_eq!(setting.or_variable(Some(5)), Ok(Some(5)));
        assert_eq!((setting.name(), setting.with(5)), ("--memory", "--memory 5".to_owned()));
        let refused = setting.or_variable::<u64>(None).expect_err("no number");
        assert!(refused.starts_with("PATH="), "{refused}");
        assert_eq!(setting.name(), "--memory");
        assert!(setting.or_variable::<String>(None).expect("text").is_some());
        assert_eq!((setting.name(), setting.with(5)), ("PATH", "PATH=5".to_owned()));
        let unset = Setting::new("--memory", "MERGANSER_IS_NOT_SET");
        assert_eq!(unset.or_variable::<u64>(None), Ok(None));
    }
}
