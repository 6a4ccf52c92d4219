//! The systems of TritonSort's evaluation (Tables 12 and 15 to 18), and the metrics of 4.4.2 that
//! are computed from their hardware.

/// A published sort: the machine, the data and the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublishedSort {
    /// As in the paper.
    pub name: &'static str,
    /// Machines.
    pub nodes: f64,
    /// Physical cores.
    pub cores: f64,
    /// Disks.
    pub disks: f64,
    /// MB (1,000,000 bytes) sorted.
    pub megabytes: f64,
    /// In this time.
    pub seconds: f64,
}

impl PublishedSort {
    /// MB per second.
    pub(super) fn throughput(&self) -> f64 {
        self.megabytes / self.seconds
    }

    /// TB a minute.
    pub(super) fn terabytes_per_minute(&self) -> f64 {
        self.throughput() * 60. / 1e6
    }
}

const fn gray(
    name: &'static str,
    [nodes, cores, disks]: [f64; 3],
    terabytes: f64,
    seconds: f64,
) -> PublishedSort {
    PublishedSort { name, nodes, cores, disks, megabytes: terabytes * 1e6, seconds }
}

/// Table 12: in its order.
pub(super) const GRAY: [PublishedSort; 5] = [
    gray("MapReduce", [4000., 32000., 48000.], 1000., 21720.),
    gray("Hadoop (PB)", [3658., 29264., 14632.], 1000., 58500.),
    gray("Hadoop", [3452., 27616., 13808.], 100., 10380.),
    gray("DEMSort", [195., 1560., 780.], 100., 10628.),
    gray("Tritonsort", [47., 376., 752.], 100., 10318.),
];
/// In [`GRAY`].
pub(super) const HADOOP: usize = 2;
/// In [`GRAY`].
pub(super) const DEMSORT: usize = 3;
/// In [`GRAY`].
pub(super) const TRITONSORT: usize = 4;

/// Tables 17 and 18: Hadoop, DEMSort, Tritonsort.
pub(super) const MINUTE: [PublishedSort; 3] = [
    gray("Hadoop", [1406., 11248., 5624.], 0.5, 59.),
    gray("DEMSort", [195., 1560., 780.], 0.955, 60.),
    gray("Tritonsort", [52., 416., 832.], 1.014, 58.),
];
