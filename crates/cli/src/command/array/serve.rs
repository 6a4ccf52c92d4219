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
    let closed = volume.close();
    served?;
    Ok(closed?)
}

fn serve(volume: &Arc<Volume>, address: Address, cancel: &Cancel) -> Result<(), Failure> {
    let exports = vec![Export::writable("volume", Arc::clone(volume) as Arc<_>)];
    let _migrator = Migrator::start(Arc::clone(volume)).map_err(|error| Failure::named(&error))?;
    nbd::serve(ServerOptions::new(address, exports), cancel)
}
