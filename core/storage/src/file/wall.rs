//! The clock of real files.

use std::sync::{Arc, LazyLock};

use crate::{Clock, RealClock};

static WALL: LazyLock<Arc<RealClock>> = LazyLock::new(|| Arc::new(RealClock::new()));

/// The one clock of all real files.
pub(super) fn wall_clock() -> Arc<dyn Clock> {
    Arc::clone(&WALL) as Arc<dyn Clock>
}
