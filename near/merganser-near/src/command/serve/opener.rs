//! SSDlets from a folder: `NAME.wasm`, and those of clients as `SHA256.wasm`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use merganser_guests::{judged, of_engine};
use merganser_map::ssdlet::{MemoryLender, Ssdlet, SsdletDescription, SsdletError};
use merganser_serve::session::request::Wanted;
use merganser_serve::session::{GuestLimits, Offered, SsdletOpener};
use merganser_shell::failure::Failure;
use merganser_storage::file::{FileOptions, UnpublishedFile};
use merganser_storage::{Storage, StorageExt};
use serde_json::Value;

/// The longest module, in bytes.
const MODULE_BYTES_MAX: u64 = 4 << 20;
/// The most SSDlets that clients may add.
const FILES_MAX: usize = 1000;

/// The SSDlets of a folder.
pub(super) struct FolderOpener {
    dir: PathBuf,
    /// What any of them may use at most.
    limits: GuestLimits,
}

impl FolderOpener {
    /// Those in `dir`, within `limits`. One that is not given is its default: a client asks for less, never
    /// for more.
    ///
    /// # Errors
    /// When it can't be read.
    pub(super) fn new(dir: PathBuf, limits: GuestLimits) -> Result<Self, Failure> {
        fs::read_dir(&dir).map_err(|e| Failure::on(&dir, &e))?;
        Ok(FolderOpener { dir, limits: most(limits) })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.wasm"))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().filter_map(io::Result::ok);
        let name = |file: &str| file.strip_suffix(".wasm").map(str::to_owned);
        let names = entries.filter_map(|entry| name(entry.file_name().to_str()?));
        let mut names: Vec<_> = names.filter(|name| is_name(name)).collect();
        names.sort_unstable();
        names
    }
}

/// Whether `name` can be that of a file here.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() < 200 && !name.starts_with('.') && name.bytes().all(plain)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MODULE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MODULE_BYTES_MAX {
        let why = format!("longer than {MODULE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

impl SsdletOpener for FolderOpener {
    fn open(
        &self,
        wanted: Wanted<'_>,
        args: &Value,
        limits: GuestLimits,
        lender: &dyn MemoryLender,
    ) -> Result<Option<Box<dyn Ssdlet>>, SsdletError> {
        let (Wanted::Name(name) | Wanted::Sha256(name)) = wanted;
        if !is_name(name) {
            return Ok(None);
        }
        match read(&self.path(name)) {
            Ok(module) => open(&module, args, limits.within(self.limits), lender).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SsdletError::Failed(format!("{name}: {error}"))),
        }
    }

    fn list(&self) -> Vec<Offered> {
        let about = |name: &str| match name.len() {
            64 => "an uploaded guest",
            _ => "a guest in this server's folder",
        };
        let offered = |name: String| Offered { about: about(&name).to_owned(), name };
        self.names().into_iter().map(offered).collect()
    }

    fn upload(
        &self,
        sha256: &str,
        bytes: &[u8],
        lender: &dyn MemoryLender,
    ) -> Result<SsdletDescription, SsdletError> {
        let description = describe(bytes, self.limits, lender)?;
        let path = self.path(sha256);
        let failed = |e: io::Error| SsdletError::Failed(format!("it can't be kept: {e}"));
        if !path.exists() {
            if self.names().len() >= FILES_MAX {
                let told = format!("this server keeps at most {FILES_MAX} SSDlets");
                return Err(SsdletError::Failed(told));
            }
            // It appears whole or not at all.
            let output = UnpublishedFile::create(path, FileOptions::default()).map_err(failed)?;
            output.storage().write_at(0, bytes).map_err(failed)?;
            debug_assert_eq!(output.storage().size(), bytes.len() as u64);
            output.publish().map_err(failed)?;
        }
        Ok(description)
    }
}

/// Opens a guest. Its arguments are a text, as those of `merganser map --args`: a guest parses JSON if it
/// wants to. An object is the text of its JSON, and no arguments are an empty text.
fn open(
    module: &[u8],
    args: &Value,
    limits: GuestLimits,
    lender: &dyn MemoryLender,
) -> Result<Box<dyn Ssdlet>, SsdletError> {
    let text = match args {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        _ => args.to_string(),
    };
    let limits = of_engine(limits);
    Ok(Box::new(judged(|| merganser_wasm::open_within(module, text.as_bytes(), limits, lender))?))
}

/// The limits that hold where `given` were given.
fn most(given: GuestLimits) -> GuestLimits {
    let limits = of_engine(given);
    GuestLimits {
        fuel_per_byte: Some(limits.fuel_per_byte),
        call_time: limits.call_time,
        memory_bytes: Some(limits.memory_bytes),
    }
}

/// Verifies a guest before any client has arguments for it.
fn describe(
    module: &[u8],
    limits: GuestLimits,
    lender: &dyn MemoryLender,
) -> Result<SsdletDescription, SsdletError> {
    judged(|| merganser_wasm::describe(module, &of_engine(limits), lender))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clients_can_only_lower_the_limits() {
        let dir = tempfile::tempdir().expect("a folder");
        let opener = |limits| FolderOpener::new(dir.path().to_owned(), limits).expect("there");
        let asked = GuestLimits {
            fuel_per_byte: Some(u64::MAX),
            call_time: None,
            memory_bytes: Some(u64::MAX),
        };
        let held = asked.within(opener(GuestLimits::default()).limits);
        assert_eq!((held.fuel_per_byte, held.memory_bytes), (Some(10_000), Some(256 << 20)));
        let given = GuestLimits {
            fuel_per_byte: Some(20_000),
            call_time: Some(Duration::from_secs(1)),
            memory_bytes: None,
        };
        let held = asked.within(opener(given).limits);
        assert_eq!((held.fuel_per_byte, held.call_time), (given.fuel_per_byte, given.call_time));
    }
}
