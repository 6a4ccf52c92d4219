//! Time lines and curves as SVG that stretches to any width.

use std::fmt::Write;

use merganser_sort::activity::{ActivityReport, TransferReport, WorkerReport, WorkerState};

/// The most columns of a drawing: as many as a phone can show.
const COLUMNS: usize = 240;
/// Height of a drawing, in its own units; a column is [`WIDTH`] wide.
const HEIGHT: u64 = 1000;
const WIDTH: u64 = 10;

/// The bins of a record, put together into columns.
pub struct Columns {
    /// Bins in a column.
    bins: usize,
    bin_ns: u64,
    end_ns: u64,
}

impl Columns {
    /// Those of a whole record.
    #[must_use]
    pub fn of_activity(activity: &ActivityReport) -> Self {
        let bins = activity.reads.bytes.len().div_ceil(COLUMNS).max(1);
        Columns { bins, bin_ns: activity.bin_ns, end_ns: activity.end_ns.max(1) }
    }

    /// A column for each bin.
    pub fn each(bin_ns: u64, end_ns: u64) -> Self {
        Columns { bins: 1, bin_ns, end_ns: end_ns.max(1) }
    }

    /// Sums, and the nanoseconds of each column that the record covers.
    fn sums(&self, bins: &[u64]) -> Vec<(u64, u64)> {
        let column_ns = self.bins as u64 * self.bin_ns;
        let covered =
            |at: usize| column_ns.min(self.end_ns.saturating_sub(at as u64 * column_ns)).max(1);
        let sums = bins.chunks(self.bins).map(|bins| bins.iter().sum());
        sums.enumerate().map(|(at, sum)| (sum, covered(at))).collect()
    }

    /// The drawing's width: the record's end, not the last column's.
    fn width(&self) -> u64 {
        let column_ns = self.bins as u64 * self.bin_ns;
        (u128::from(self.end_ns) * u128::from(WIDTH) / u128::from(column_ns)).max(1) as u64
    }

    fn open(&self, label: &str) -> String {
        format!(
            r#"<svg viewBox="0 0 {} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">"#,
            self.width()
        )
    }
}

/// One worker's time line: in each column, the states stacked by their share.
pub fn timeline(columns: &Columns, worker: &WorkerReport, label: &str) -> String {
    let mut svg = columns.open(label);
    let mut floor: Vec<u64> = Vec::new();
    for state in WorkerState::ALL {
        let Some(bins) = worker.state_ns.get(&state) else { continue };
        let mut path = String::new();
        // Neighbours of one place and height are one rectangle.
        let mut open: Option<(usize, u64, u64)> = None;
        let mut close = |open: &mut Option<(usize, u64, u64)>, at: usize| {
            if let Some((from, low, high)) = open.take()
                && high > low
            {
                let (x, width) = (from as u64 * WIDTH, (at - from) as u64 * WIDTH);
                let (y, height) = (HEIGHT - high, high - low);
                write!(path, "M{x} {y}h{width}v{height}h-{width}z").expect("a string");
            }
        };
        let sums = columns.sums(bins);
        floor.resize(sums.len(), 0);
        for (at, (ns, covered)) in sums.iter().enumerate() {
            let low = floor[at];
            let high = (low + (ns * HEIGHT + covered / 2) / covered).min(HEIGHT);
            floor[at] = high;
            if open.is_none_or(|(_, l, h)| (l, h) != (low, high)) {
                close(&mut open, at);
                open = Some((at, low, high));
            }
        }
        close(&mut open, sums.len());
        write!(svg, r#"<path class="{}" d="{path}" />"#, class(state)).expect("a string");
    }
    svg.push_str("</svg>");
    svg
}

/// The style of a state.
pub fn class(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Busy => "busy",
        WorkerState::Reading => "reading",
        WorkerState::Writing => "writing",
        WorkerState::Input => "input",
        WorkerState::Output => "output",
        WorkerState::Memory => "memory",
        WorkerState::Turn => "turn",
    }
}

/// A curve of reads and one of writes on a common scale.
pub struct Curves {
    reads: Vec<f64>,
    writes: Vec<f64>,
    /// The top of the scale: 1, 2 or 5 times a power of ten.
    pub top: f64,
}

impl Curves {
    /// Curves of bytes per second.
    pub fn rates(columns: &Columns, activity: &ActivityReport) -> Self {
        Self::of_columns(columns, activity, |transfers| &transfers.bytes, 1e9)
    }

    /// Of requests in flight.
    pub fn depths(columns: &Columns, activity: &ActivityReport) -> Self {
        Self::of_columns(columns, activity, |transfers| &transfers.in_flight_ns, 1.0)
    }

    fn of_columns(
        columns: &Columns,
        activity: &ActivityReport,
        bins: impl Fn(&TransferReport) -> &[u64],
        per: f64,
    ) -> Self {
        let curve = |transfers: &TransferReport| -> Vec<f64> {
            let sums = columns.sums(bins(transfers)).into_iter();
            sums.map(|(sum, covered_ns)| sum as f64 * per / covered_ns as f64).collect()
        };
        Self::of_values(curve(&activity.reads), curve(&activity.writes))
    }

    /// Of values, one for each column.
    pub fn of_values(reads: Vec<f64>, writes: Vec<f64>) -> Self {
        let peak = reads.iter().chain(&writes).fold(0.0, |a: f64, b| a.max(*b));
        Curves { reads, writes, top: round_up(peak) }
    }

    /// Drawn.
    pub fn draw(&self, columns: &Columns, label: &str) -> String {
        let mut svg = columns.open(label);
        for (curve, class) in [(&self.reads, "reading"), (&self.writes, "writing")] {
            let mut path = format!("M0 {HEIGHT}");
            let mut last = None;
            for (at, value) in curve.iter().enumerate() {
                let y = HEIGHT - (value / self.top * HEIGHT as f64).round() as u64;
                if last != Some(y) {
                    write!(path, "H{}V{y}", at as u64 * WIDTH).expect("a string");
                    last = Some(y);
                }
            }
            write!(path, "H{}V{HEIGHT}z", columns.width()).expect("a string");
            write!(svg, r#"<path class="curve {class}" d="{path}" />"#).expect("a string");
        }
        svg.push_str("</svg>");
        svg
    }
}

fn round_up(peak: f64) -> f64 {
    if peak <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(peak.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= peak * 0.999);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(end_ns: u64, bins: usize) -> ActivityReport {
        let transfers = TransferReport {
            count: 0,
            in_flight_max: 0,
            bytes: vec![0; bins],
            in_flight_ns: vec![0; bins],
        };
        ActivityReport {
            end_ns,
            bin_ns: 100,
            phases: Vec::new(),
            workers: Vec::new(),
            reads: transfers.clone(),
            writes: transfers,
        }
    }

    #[test]
    fn states_are_stacked_and_equal_neighbours_are_one() {
        let activity = activity(250, 3);
        let columns = Columns::of_activity(&activity);
        let worker = WorkerReport {
            name: "sort".to_owned(),
            state_ns: [
                (WorkerState::Busy, vec![50, 50, 50]),
                (WorkerState::Memory, vec![50, 0, 0]),
            ]
            .into(),
        };
        let svg = timeline(&columns, &worker, "sort");
        assert!(svg.starts_with(r#"<svg viewBox="0 0 25 1000" "#), "{svg}");
        assert!(svg.contains(r#"class="busy" d="M0 500h20v500h-20zM20 0h10v1000h-10z""#), "{svg}");
        assert!(svg.contains(r#"class="memory" d="M0 0h10v500h-10z""#), "{svg}");
    }

    #[test]
    fn curves_are_rates_over_the_time_that_is_covered() {
        let mut activity = activity(250, 3);
        activity.reads.bytes = vec![100, 0, 50];
        let columns = Columns::of_activity(&activity);
        let curves = Curves::rates(&columns, &activity);
        assert_eq!((curves.reads.clone(), curves.top), (vec![1e9, 0.0, 1e9], 1e9));
        let svg = curves.draw(&columns, "rates");
        assert!(svg.contains(r#"d="M0 1000H0V0H10V1000H20V0H25V1000z""#), "{svg}");
    }

    #[test]
    fn many_bins_are_few_columns() {
        let activity = activity(51_150, 512);
        let columns = Columns::of_activity(&activity);
        let sums = columns.sums(&[1; 512]);
        assert_eq!((sums.len(), sums[0], sums[170]), (171, (3, 300), (2, 150)));
    }

    #[test]
    fn scales_end_at_round_numbers() {
        let tops = [0.0, 0.7, 1.0, 1.1, 2.2, 5.1, 99.0, 1234.0].map(round_up);
        assert_eq!(tops, [1.0, 1.0, 1.0, 2.0, 5.0, 10.0, 100.0, 2000.0]);
    }
}
