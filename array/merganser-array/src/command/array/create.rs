//! `merganser array create`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_array::{Members, Volume};
use merganser_shell::failure::{Failure, notice, plain};
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown};
use merganser_sort::Progress;
use merganser_storage::Storage;
use merganser_storage::file::{check_new, own};
use rustix::fs::{Advice, fadvise};

use super::file::{MemberHold, VolumeFile, lock_new, member_of, open_member};
use super::space;
use crate::config::ArrayCreate;
use crate::sentences::told;

/// Bytes of a new buffer member that are written at once.
const FILL_BYTES: usize = 4 << 20;

/// Makes a volume. When that fails, the files that it made are gone.
pub(super) fn run(config: &ArrayCreate, cancel: &Cancel) -> Result<(), Failure> {
    refuse_existing(&config.volume)?;
    let mut description = VolumeFile::new(&config.volume, &config.data, &config.buffer)?;
    let data_bytes = match config.data_member_bytes {
        Some(bytes) => bytes,
        None if config.settings.thin => 0,
        None => Volume::data_member_bytes(&config.settings, config.data.len()).map_err(told)?,
    };
    let bytes = config.buffer_member_bytes;
    let remedy = match config.sparse {
        true => "make room",
        false => "make room, or leave holes with --sparse",
    };
    check_space(config, data_bytes, remedy)?;
    let mut made =
        NewMemberFiles { files: Vec::new(), replace: config.replace, remedy, unreserved: None };
    let data = config.data.iter().map(|member| {
        made.member(member, config.sparse, |file| match config.sparse {
            true => Ok(file.set_len(data_bytes).map(|()| true)?),
            false => Ok(space::reserve(file, data_bytes)?),
        })
    });
    let data = data.collect::<Result<_, Failure>>()?;
    let progress = progress::on_stderr(config.quiet, cancel);
    let is_new = |member: &&PathBuf| !member.exists();
    let new = config.buffer.iter().filter(is_new).count() as u64;
    if new > 0 {
        progress.phase("writing the buffer", Some(bytes * new));
    }
    let buffer = config
        .buffer
        .iter()
        .map(|member| made.member(member, false, |file| fill(file, bytes, &*progress)));
    let members = Members { data, buffer: buffer.collect::<Result<_, Failure>>()? };
    drop(progress);
    // Another process may have made the volume before this one got the locks of its members.
    refuse_existing(&config.volume)?;
    let name = description.name();
    description
        .set_id(Volume::create(&name, &members, &config.settings, config.replace).map_err(told)?);
    description.write()?;
    made.files.clear();
    if let Some(member) = &made.unreserved {
        notice(&format!(
            "{}: its file system can't reserve space, so members have holes: if it becomes full, the volume fails",
            shown::name(member)
        ));
    }
    Ok(())
}

fn refuse_existing(volume: &Path) -> Result<(), Failure> {
    if volume.exists() {
        return Err(format!("{}: is there already", shown::name(volume)).into());
    }
    Ok(())
}

/// Refuses a volume that the file systems of its members have no room for.
fn check_space(config: &ArrayCreate, data_bytes: u64, remedy: &str) -> Result<(), Failure> {
    let data: &[PathBuf] = if config.sparse { &[] } else { &config.data };
    let data = data.iter().map(|member| (member.as_path(), data_bytes));
    let buffer = config.buffer.iter().map(|member| (member.as_path(), config.buffer_member_bytes));
    // One that is there is refused without `replace`, for another reason.
    let used = |member: &(&Path, u64)| config.replace || !member.0.exists();
    space::check(data.chain(buffer).filter(used), remedy)
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
fn fill(mut file: &File, bytes: u64, progress: &dyn Progress) -> Result<bool, Extending> {
    // A disk that is too full is then known before anything is written. Where it is not, the zeros take the space.
    space::reserve(file, bytes)?;
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
    Ok(true)
}

/// Files that are removed unless the volume is made.
struct NewMemberFiles {
    files: Vec<PathBuf>,
    /// Whether files that are there may be used.
    replace: bool,
    /// The advice when there is no room.
    remedy: &'static str,
    /// The first member whose space could not be reserved.
    unreserved: Option<PathBuf>,
}

impl NewMemberFiles {
    /// Opens a member, or makes it and gives it its bytes with `extend`, which says whether it has blocks for all of them.
    /// One that is there gets blocks for its holes, unless it is to stay `sparse`.
    fn member(
        &mut self,
        path: &Path,
        sparse: bool,
        extend: impl FnOnce(&File) -> Result<bool, Extending>,
    ) -> Result<Arc<dyn Storage>, Failure> {
        let remedy = self.remedy;
        let on = |error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::from(format!(
                "{}: {}, so the member can't be made; {remedy}",
                shown::name(path),
                plain(&error)
            )),
            _ => Failure::on(path, &error),
        };
        check_new(path).map_err(on)?;
        // Whoever can read a member reads the volume.
        match File::options().read(true).write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => {
                // Another process that has found it before this one locks it may use it, so it stays then.
                lock_new(path, &file)?;
                self.files.push(path.to_owned());
                let reserved = extend(&file).map_err(|error| match error {
                    Extending::Cancelled => Failure::Cancelled,
                    Extending::Io(error) => on(error),
                })?;
                self.note(path, reserved);
                file.sync_all().map_err(on)?;
                // Nobody reads the zeros, and each write past the page cache would have to remove them there. A file
                // system that has no use for the advice loses nothing.
                let _ = fadvise(&file, 0, None, Advice::DontNeed);
                // Its name, too: a volume whose member is missing can't be opened.
                own::sync_parent(path).map_err(on)?;
                return Ok(member_of(path, file)?);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !self.replace {
                    let name = shown::name(path);
                    return Err(format!(
                        "{name}: is there already; --replace uses it, and what it holds is lost"
                    )
                    .into());
                }
            }
            Err(error) => return Err(on(error)),
        }
        let member = open_member(path, MemberHold::Alone)?;
        // Now that no other process has it.
        let found = fs::metadata(path).map_err(on)?;
        if !sparse && found.is_file() {
            let file = File::options().write(true).open(path).map_err(on)?;
            let reserved = space::reserve(&file, found.len()).map_err(on)?;
            self.note(path, reserved);
        }
        Ok(member)
    }

    fn note(&mut self, path: &Path, reserved: bool) {
        if !reserved && self.unreserved.is_none() {
            self.unreserved = Some(path.to_owned());
        }
    }
}

impl Drop for NewMemberFiles {
    fn drop(&mut self) {
        for file in &self.files {
            // It was made a moment ago, and is of no use.
            let _ = fs::remove_file(file);
        }
    }
}
