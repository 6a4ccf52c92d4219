//! `merganser array serve`.

use std::sync::Arc;

use merganser_array::{Migrator, Volume};
use merganser_export::nbd::{Address, Export, ServerOptions};

use super::file::Description;
use crate::command::nbd;
use crate::config::ArrayServe;
use crate::failure::{Failure, notice};
use crate::signals::Cancel;

/// Serves a volume until a signal ends it, and closes it.
pub fn run(config: ArrayServe, cancel: &Cancel) -> Result<(), Failure> {
    let description = Description::read(&config.volume)?;
    let members = description.open(true)?;
    let volume = Arc::new(Volume::open(&description.name(), &members, config.options)?);
    let dropped = volume.space().records_dropped;
    if dropped > 0 {
        notice(&format!(
            "{}: {dropped} records at the end of the buffer were not whole and are dropped: writes that were not flushed, or damage to the last flush before a power cut",
            description.name()
        ));
    }
    let served = serve(&volume, config.address, cancel);
    both(served, volume.close().map_err(Failure::from), notice)
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

fn serve(volume: &Arc<Volume>, address: Address, cancel: &Cancel) -> Result<(), Failure> {
    let exports = vec![Export::writable("volume", Arc::clone(volume) as Arc<_>)];
    let _migrator = Migrator::start(Arc::clone(volume)).map_err(|error| Failure::named(&error))?;
    nbd::serve(ServerOptions::new(address, exports), cancel)
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
