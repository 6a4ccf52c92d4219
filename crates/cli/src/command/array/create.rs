//! `merganser array create`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_array::{Members, Volume};
use merganser_sort::Progress;
use merganser_storage::Storage;
use merganser_storage::file::own;
use rustix::fs::{Advice, fadvise};

use super::file::{Description, open_member};
use crate::config::ArrayCreate;
use crate::failure::Failure;
use crate::signals::Cancel;
use crate::{progress, shown};

/// Bytes of a new buffer member that are written at once.
const FILL_BYTES: usize = 4 << 20;

/// Makes a volume. When that fails, the files that it made are gone.
pub fn run(config: &ArrayCreate, cancel: &Cancel) -> Result<(), Failure> {
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
    let data = config
        .data
        .iter()
        .map(|member| made.member(member, config.replace, |file| Ok(file.set_len(data_bytes)?)));
    let data = data.collect::<Result<_, Failure>>()?;
    let bytes = config.buffer_member_bytes;
    let progress = progress::on_stderr(config.quiet, cancel);
    let is_new = |member: &&PathBuf| !member.exists();
    let new = config.buffer.iter().filter(is_new).count() as u64;
    if new > 0 {
        progress.phase("writing the buffer", Some(bytes * new));
    }
    let buffer = config
        .buffer
        .iter()
        .map(|member| made.member(member, config.replace, |file| fill(file, bytes, &*progress)));
    let members = Members { data, buffer: buffer.collect::<Result<_, Failure>>()? };
    drop(progress);
    Volume::create(&description.name(), &members, &config.settings, config.replace)?;
    description.write()?;
    made.files.clear();
    Ok(())
}

/// Why a new member could not get its bytes.
enum Extending {
    Cancelled,
    Io(io::Error),
}

impl From<io::Error> for Extending {
    fn from(error: io::Error) -> Self {
        Extending::Io(error)
    }
}

/// Writes `bytes` zeros. If a file is sparse, a sync after a write must also make the new blocks durable, which takes as long
/// as the data. A file that was written once has all its blocks, and can't run out of space later.
fn fill(mut file: &File, bytes: u64, progress: &dyn Progress) -> Result<(), Extending> {
    let zeros = vec![0; FILL_BYTES];
    let mut left = bytes;
    while left > 0 {
        if progress.cancelled() {
            return Err(Extending::Cancelled);
        }
        let part = left.min(FILL_BYTES as u64);
        file.write_all(&zeros[..part as usize])?;
        progress.advance(part);
        left -= part;
    }
    Ok(())
}

/// Files that are removed unless the volume is made.
struct Made {
    files: Vec<PathBuf>,
}

impl Made {
    /// Opens a member, or makes it and gives it its bytes.
    fn member(
        &mut self,
        path: &Path,
        replace: bool,
        extend: impl FnOnce(&File) -> Result<(), Extending>,
    ) -> Result<Arc<dyn Storage>, Failure> {
        let on = |error: io::Error| Failure::on(path, &error);
        match File::create_new(path) {
            Ok(file) => {
                self.files.push(path.to_owned());
                extend(&file).map_err(|error| match error {
                    Extending::Cancelled => Failure::Cancelled,
                    Extending::Io(error) => on(error),
                })?;
                file.sync_all().map_err(on)?;
                // Nobody reads the zeros, and each write past the page cache would have to remove them there. A file
                // system that has no use for the advice loses nothing.
                let _ = fadvise(&file, 0, None, Advice::DontNeed);
                // Its name, too: a volume whose member is missing can't be opened.
                own::sync_parent(path).map_err(on)?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
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
