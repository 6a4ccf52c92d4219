//! The thread that moves pages while no caller waits for it, and seals a volume that is idle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Volume;
use crate::error::Error;
use crate::settings::Migration;

/// How often it looks whether there is something to do.
const PERIOD: Duration = Duration::from_millis(20);
/// After damage, or bytes that can't be read, were found in what moves or in the tables, it is tried again after this many periods: 10 s.
const DAMAGED_PERIODS: u32 = 500;
/// How long no request must have come before a volume is idle, in milliseconds.
const IDLE_MS: u64 = 200;

/// A thread that moves pages from the buffer to the data members as [`Migration`] says. It ends when this
/// is dropped.
pub struct Migrator {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Migrator {
    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(volume: Arc<Volume>) -> io::Result<Migrator> {
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let theirs = Arc::clone(&stop);
        let thread = merganser_storage::thread::spawn("array-migrator", move || {
            let (stopped, wake) = &*theirs;
            let mut stopped = stopped.lock();
            // Periods until the next try.
            let (mut move_pause, mut seal_pause) = (0_u32, 0_u32);
            while !*stopped {
                let timed_out = wake.wait_for(&mut stopped, PERIOD).timed_out();
                move_pause = move_pause.saturating_sub(1);
                seal_pause = seal_pause.saturating_sub(1);
                let mut full = move_pause > 0;
                while timed_out && !*stopped && !full && volume.should_migrate() {
                    let more = parking_lot::MutexGuard::unlocked(&mut stopped, || volume.migrate());
                    match more {
                        Ok(true) => {}
                        Ok(false) => break,
                        // Users get this error when the buffer is full, too.
                        Err(Error::Full { .. }) => full = true,
                        // It may pass: a page that is written again is good.
                        Err(error) if error.is_damage() => {
                            (full, move_pause) = (true, DAMAGED_PERIODS);
                        }
                        // Users get it with their next write.
                        Err(_) => return,
                    }
                }
                if !timed_out || *stopped || seal_pause > 0 || !volume.is_idle() {
                    continue;
                }
                match parking_lot::MutexGuard::unlocked(&mut stopped, || volume.seal()) {
                    Ok(()) => {}
                    Err(error) if error.is_damage() => seal_pause = DAMAGED_PERIODS,
                    Err(_) => return,
                }
            }
        })?;
        Ok(Migrator { stop, thread: Some(thread) })
    }
}

impl Drop for Migrator {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed, and the volume is as after a cut.
            let _ = thread.join();
        }
    }
}

impl Volume {
    fn should_migrate(&self) -> bool {
        match self.options.migration {
            Migration::Immediate => true,
            Migration::HighWater => false,
            Migration::Idle => self.is_idle(),
        }
    }

    fn is_idle(&self) -> bool {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        now.saturating_sub(self.last_request_ms.load(Ordering::Relaxed)) >= IDLE_MS
    }
}
