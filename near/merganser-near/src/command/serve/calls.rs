//! Calls through files (smartFAM).

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use merganser_map::ssdlet::{Alone, SsdletError, builtin};
use merganser_serve::session::request::Wanted;
use merganser_serve::session::{GuestLimits, SsdletOpener};
use merganser_serve::smart_fam::{PollIntervals, Serve, is_name, serve};
use merganser_shell::failure::{Failure, notice};
use merganser_shell::serving::Listening;
use merganser_shell::shown;
use merganser_storage::Directory;
use merganser_storage::file::FileDirectory;
use serde_json::Value;

use super::opener::FolderOpener;
use crate::config::CallsConfig;

/// Makes the folders of all modules, and is ready to serve.
///
/// # Errors
/// When a folder is not there or can't be made.
pub(super) fn listen(config: CallsConfig) -> Result<Listening, Failure> {
    let CallsConfig { folder, data, temp_dir, memory_bytes, threads, inotify, .. } = config;
    if !data.is_dir() {
        return Err(format!("{}: no such folder; --data names one", shown::name(&data)).into());
    }
    let guests =
        config.ssdlets.map(|dir| FolderOpener::new(dir, config.guest_limits)).transpose()?;
    let builtin = builtin::ALL.iter().map(|builtin| builtin.name.to_owned());
    let others = guests.iter().flat_map(|guests| guests.list()).map(|offered| offered.name);
    // A guest with another name can't be called in this way.
    let mut modules: Vec<_> = builtin.chain(others).filter(|name| is_name(name)).collect();
    modules.sort_unstable();
    modules.dedup();
    let temp = FileDirectory::open(&temp_dir).map_err(|e| Failure::named(&e))?;
    // Problems with the folders are reported before anything is served.
    merganser_serve::smart_fam::make_folder(&folder).map_err(|e| Failure::on(&folder, &e))?;
    if !folder.is_dir() {
        return Err(
            format!("{}: is no folder; --log-folder takes one", shown::name(&folder)).into()
        );
    }
    let real = |path: &Path| path.canonicalize().map_err(|e| Failure::on(path, &e));
    if real(&folder)?.starts_with(real(&data)?) {
        notice(&format!(
            "{}: the calls are below --data, so each caller can read the requests and answers of all others; use another folder",
            shown::name(&folder)
        ));
    }
    let serving = Serve {
        folder: folder.clone(),
        data,
        modules,
        installed: Arc::new(move |name: &str, args: &Value| {
            opened(guests.as_ref(), name, args, memory_bytes)
        }),
        memory_bytes,
        threads,
        temp: vec![temp as Arc<dyn Directory>],
        waiting: PollIntervals { inotify, ..PollIntervals::default() },
    };
    notice(&format!(
        "calls through files in {}: {} SSDlets, in {memory_bytes} bytes",
        shown::name(&folder),
        serving.modules.len()
    ));
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    let run = move || {
        serve(&serving, &stopped).map_err(|error| match error.source.kind() {
            io::ErrorKind::WouldBlock => {
                format!("{error}; stop it, or give --log-folder another one").into()
            }
            _ => Failure::from(error.to_string()),
        })
    };
    let stop = move || stop.store(true, Ordering::Relaxed);
    Ok(Listening { run: Box::new(run), stop: Box::new(stop) })
}

/// Opens the SSDlet of a call.
fn opened(
    guests: Option<&FolderOpener>,
    name: &str,
    args: &Value,
    memory_bytes: u64,
) -> Result<Box<dyn merganser_map::ssdlet::Ssdlet>, SsdletError> {
    // Calls are served one after another, and a map begins when its SSDlet is open.
    let lender = Alone { memory_bytes };
    let unknown = match builtin::open_within(name, args, &lender) {
        Err(unknown @ SsdletError::Unknown { .. }) => unknown,
        opened => return opened,
    };
    // A caller has no limits of its own; those of the folder hold.
    let limits = GuestLimits::default();
    let guest =
        guests.map(|guests| guests.open(Wanted::Name(name), args, limits, &lender)).transpose()?;
    guest.flatten().ok_or(unknown)
}
