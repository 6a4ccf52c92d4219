//! `merganser array create`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_array::{Members, Volume};
use merganser_storage::Storage;

use super::file::{Description, open_member, sync_name};
use crate::config::ArrayCreate;
use crate::failure::Failure;
use crate::shown;

/// Makes a volume. When that fails, the files that it made are gone.
pub fn run(config: &ArrayCreate) -> Result<(), Failure> {
    if config.volume.exists() {
        return Err(format!("{}: is there already", shown::name(&config.volume)).into());
    }
    let description = Description::new(&config.volume, &config.data, &config.buffer)?;
    let mut made = Made { files: Vec::new() };
    let data_bytes = match config.data_member_bytes {
        Some(bytes) => bytes,
        None if config.settings.thin => 0,
        None => Volume::data_member_bytes(&config.settings, config.data.len())?,
    };
    let data = config.data.iter().map(|member| made.member(member, data_bytes, config.replace));
    let data = data.collect::<Result<_, Failure>>()?;
    let bytes = config.buffer_member_bytes;
    let buffer = config.buffer.iter().map(|member| made.member(member, bytes, config.replace));
    let members = Members { data, buffer: buffer.collect::<Result<_, Failure>>()? };
    Volume::create(&description.name(), &members, &config.settings, config.replace)?;
    description.write()?;
    made.files.clear();
    Ok(())
}

/// Files that are removed unless the volume is made.
struct Made {
    files: Vec<PathBuf>,
}

impl Made {
    /// Opens a member, or makes it with this many bytes.
    fn member(
        &mut self,
        path: &Path,
        bytes: u64,
        replace: bool,
    ) -> Result<Arc<dyn Storage>, Failure> {
        let on = |error: std::io::Error| Failure::on(path, &error);
        match File::create_new(path) {
            Ok(file) => {
                self.files.push(path.to_owned());
                file.set_len(bytes).map_err(on)?;
                file.sync_all().map_err(on)?;
                // Members may be in other folders than the description.
                sync_name(path)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                if !replace {
                    let name = shown::name(path);
                    return Err(format!(
                        "{name}: is there already; --replace uses it, and what it holds is lost"
                    )
                    .into());
                }
            }
            Err(error) => return Err(on(error)),
        }
        open_member(path, true)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for file in &self.files {
            // It was made a moment ago, and is of no use.
            let _ = fs::remove_file(file);
        }
    }
}
