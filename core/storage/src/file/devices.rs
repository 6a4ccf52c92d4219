//! The folder of devices, in which no file is made.
//!
//! Names of devices are typed by hand, and a typing error (`/dev/sdzz`) would name a new file. It would be
//! in memory: devtmpfs says that it is a tmpfs, so its number does not tell the two apart, and its device does.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::at::real_path;
use super::own::FileRefusal;

const DEVICES: &str = "/dev";
/// A file system of its own, for files in memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// Accepts a folder in which a file may be made: any that is not `/dev`, below it, or in its file system,
/// by whatever name it is reached. `/dev/shm` is for files.
pub(super) fn check_folder(folder: &File) -> Result<(), FileRefusal> {
    let path = real_path(folder).unwrap_or_default();
    let below = |of: &str| path.starts_with(of);
    if below(SHARED_MEMORY) {
        return Ok(());
    }
    if below(DEVICES) || is_in_file_system_of_devices(folder) {
        return Err(FileRefusal::OfDevices);
    }
    Ok(())
}

/// Whether the folder is in the file system that `/dev` has for itself.
fn is_in_file_system_of_devices(folder: &File) -> bool {
    let device = |path: &str| fs::metadata(Path::new(path)).ok().map(|found| found.dev());
    let (devices, root) = (device(DEVICES), device("/"));
    devices != root
        && devices.is_some()
        && devices == folder.metadata().ok().map(|found| found.dev())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::{OutputKind, check_new, resolve_output};
    use super::*;

    #[test]
    fn no_file_is_made_among_devices_by_whatever_name() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        let typed = Path::new("/dev/merganser-typing-error");
        symlink(typed, at("link")).expect("linked");
        symlink("/dev", at("folder")).expect("linked");
        let names = [typed.to_owned(), at("link"), at("folder/merganser-typing-error")];
        for name in names.iter().chain([&"/dev/../dev/./merganser-typing-error".into()]) {
            for refused in [check_new(name).err(), resolve_output(name).err()] {
                let refused = refused.unwrap_or_else(|| panic!("{}: accepted", name.display()));
                assert_eq!(
                    FileRefusal::of_error(&refused),
                    Some(FileRefusal::OfDevices),
                    "{refused}"
                );
            }
            assert!(!typed.exists());
        }
    }

    #[test]
    fn devices_themselves_and_shared_memory_stay_outputs() {
        let kind = |name: &str| resolve_output(name).map(|found| found.kind()).ok();
        assert_eq!(kind("/dev/null"), Some(OutputKind::Device));
        assert!(check_new(Path::new("/dev/null")).is_ok());
        let place = tempfile::tempdir().expect("a folder");
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        symlink("/dev/null", &link).expect("linked");
        assert_eq!(kind(link.to_str().expect("text")), Some(OutputKind::Device));
        let open = File::create(&file).expect("made");
        let held = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert_eq!(kind(&held), Some(OutputKind::Regular));
        assert_eq!(
            kind(place.path().join("new").to_str().expect("text")),
            Some(OutputKind::Absent)
        );
        if Path::new(SHARED_MEMORY).is_dir() {
            assert_eq!(kind("/dev/shm/merganser-nothing"), Some(OutputKind::Absent));
        }
    }
}
