//! `merganser array serve`.

use std::sync::Arc;

use merganser_array::{Migrator, Volume};
use merganser_export::fuse::{DiskOptions, Mount};
use merganser_export::nbd::Export;
use merganser_shell::config::DoorConfig;
use merganser_shell::failure::{Failure, export_sentence, notice};
use merganser_shell::signals::Cancel;
use merganser_shell::{mounting, nbd};
use merganser_storage::Storage;

use super::advised;
use super::file::{MemberHold, VolumeFile};
use super::gather::GatheredStorage;
use crate::config::ArrayServe;
use crate::sentences::told;

/// The name of the export, and of the file in a mounted folder.
const NAME: &str = "volume";

/// Serves a volume until a signal ends it or its folder is unmounted, and closes it.
pub(super) fn run(config: ArrayServe, cancel: &Cancel) -> Result<(), Failure> {
    let description = VolumeFile::read(&config.volume)?;
    let members = description.open(MemberHold::Alone)?;
    let volume = Arc::new(
        Volume::open(&description.name(), &members, config.options)
            .map_err(|error| advised(error, &config.volume))?,
    );
    let dropped = volume.space().records_dropped;
    if dropped > 0 {
        notice(&format!(
            "{}: {dropped} records at the end of the buffer were not whole and are dropped: writes that were not flushed, or damage to the last flush before a power cut",
            description.name()
        ));
    }
    let served = serve(&volume, config.door, cancel);
    both(served, volume.close().map_err(told), notice)
}

/// Both ends of a volume. If serving it failed, an error of closing it is printed at once: the last
/// writes may not be on the disks.
fn both(
    served: Result<(), Failure>,
    closed: Result<(), Failure>,
    tell: impl FnOnce(&str),
) -> Result<(), Failure> {
    if let (Err(_), Err(failure)) = (&served, &closed)
        && let Some(sentence) = failure.sentence()
    {
        tell(sentence);
    }
    served.and(closed)
}

fn serve(volume: &Arc<Volume>, door: DoorConfig, cancel: &Cancel) -> Result<(), Failure> {
    let _migrator = Migrator::start(Arc::clone(volume)).map_err(|error| Failure::named(&error))?;
    let storage: Arc<dyn Storage> = Arc::clone(volume) as _;
    match door {
        DoorConfig::Nbd(config) => {
            let exports = vec![Export::writable(NAME, storage)];
            nbd::serve(nbd::options(&config, exports), cancel)
        }
        DoorConfig::Mount { mountpoint, allow_other } => {
            let storage =
                GatheredStorage::start(storage).map_err(|error| Failure::named(&error))?;
            let mount = Mount::disk(DiskOptions {
                mountpoint,
                name: NAME.into(),
                storage: Arc::new(storage),
                allow_other,
                on_error: Some(Box::new(|error| notice(&export_sentence(error)))),
            })?;
            mounting::serve(mount, cancel)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_close_is_printed_whatever_failed_before() {
        let failed = |what: &str| Err::<(), _>(Failure::Error(what.to_owned()));
        let table = [
            (Ok(()), Ok(()), None, None),
            (failed("serve"), Ok(()), Some("serve"), None),
            (Ok(()), failed("close"), Some("close"), None),
            (failed("serve"), failed("close"), Some("serve"), Some("close")),
            (Err(Failure::Cancelled), failed("close"), None, Some("close")),
        ];
        for (served, closed, returned, told) in table {
            let mut said = None;
            let result = both(served, closed, |sentence| said = Some(sentence.to_owned()));
            let ended = result.err();
            assert_eq!(ended.as_ref().and_then(Failure::sentence), returned);
            assert_eq!(said.as_deref(), told);
        }
    }
}
