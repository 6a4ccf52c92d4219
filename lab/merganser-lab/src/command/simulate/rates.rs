//! `merganser simulate rates`: what a few streams get of a device.

use merganser_device::device::Device;
use merganser_device::request::{DeviceRequest, RequestKind, SimTime};
use merganser_device::results::{Collector, DevicePower};
use merganser_device::workload::{SubmissionPace, play};
use merganser_shell::failure::Failure;
use merganser_shell::standard::print;
use serde_json::json;

use super::model::ModelledDevice;
use crate::config::{DeviceChoice, SimulateRates};

/// Plays streams, and prints.
pub(super) fn run(config: &SimulateRates) -> Result<(), Failure> {
    let found = rates(&config.device, config.streams, config.span_bytes)?;
    let name = &config.device.name;
    print(if config.json { found.json(name) } else { found.text(name) })
}

/// Nanoseconds for a byte, and to another stream.
#[derive(Debug, Clone, Copy, PartialEq)]
struct StreamRates {
    read_ns: f64,
    write_ns: f64,
    seek_ns: f64,
}

impl StreamRates {
    fn json(&self, device: &str) -> String {
        let data = json!({
            "device": device,
            "read_ns_per_byte": self.read_ns,
            "write_ns_per_byte": self.write_ns,
            "other_stream_ns": self.seek_ns,
        });
        format!("{data:#}\n")
    }

    fn text(&self, device: &str) -> String {
        let rate = |ns: f64| 1000.0 / ns;
        format!(
            "{device}: reads {:.0} MB/s, writes {:.0} MB/s, {:.2} ms to another stream\n",
            rate(self.read_ns),
            rate(self.write_ns),
            self.seek_ns / 1e6
        )
    }
}

/// What streams get of a modelled device, in virtual time: requests of 1 MiB in order, as many in flight as
/// tasks run; and requests of 128 KiB, one after the other, that take turns between streams which are spread
/// over the bytes in use.
fn rates(choice: &DeviceChoice, streams: u32, used_bytes: u64) -> Result<StreamRates, Failure> {
    const LARGE: u64 = 1 << 20;
    const SMALL: u64 = 128 << 10;
    const REQUESTS: u64 = 1000;
    /// A merge of this many segments.
    const STREAMS: u64 = 4;
    /// Of an SSD only what was written takes time to read, and its places are all alike.
    const FILLED: u64 = 4 << 30;
    let model = ModelledDevice::chosen(choice)?;
    let spread = match model {
        ModelledDevice::Ssd(_) => FILLED,
        ModelledDevice::Hdd(_) => used_bytes.max(FILLED),
    };
    let failed = |error: String| Failure::from(format!("--device {}: {error}", choice.name));
    let played = |filled, requests: &mut dyn Iterator<Item = DeviceRequest>, in_flight| {
        let mut device: Box<dyn Device> = model.device(choice.seed, filled)?;
        let mut collector = Collector::new(&*device);
        let played =
            play(&mut *device, requests.map(Ok), SubmissionPace::Closed(in_flight), &mut collector)
                .map_err(|error| failed(error.to_string()))?;
        let results = collector.finish(&*device, played, &DevicePower::ssd(0.0, "not asked for"));
        Ok::<f64, Failure>(results.seconds())
    };
    let capacity: u64 = model.device(choice.seed, 0)?.capacity_bytes();
    let span_bytes = capacity.min(spread);
    if span_bytes < LARGE {
        return Err(failed(format!(
            "has {capacity} bytes, and streams need {LARGE}; change --set"
        )));
    }
    let request =
        |kind, offset, len| DeviceRequest { arrival: SimTime(0), kind, offset, len, content: None };
    let in_order = |kind, filled| {
        let places = span_bytes / LARGE;
        let mut requests =
            (0..REQUESTS).map(|number| request(kind, number % places * LARGE, LARGE));
        let seconds = played(filled, &mut requests, streams.max(1))?;
        Ok::<f64, Failure>(seconds * 1e9 / (LARGE * REQUESTS) as f64)
    };
    let read_ns = in_order(RequestKind::Read, FILLED)?;
    let write_ns = in_order(RequestKind::Write, 0)?;
    let of_stream = span_bytes / STREAMS / SMALL;
    let mut turns = (0..REQUESTS).map(|number| {
        let place = number % STREAMS * of_stream + number / STREAMS % of_stream;
        request(RequestKind::Read, place * SMALL, SMALL)
    });
    let turn_ns = played(FILLED, &mut turns, 1)? * 1e9 / REQUESTS as f64;
    let seek_ns = (turn_ns - read_ns * SMALL as f64).max(0.0);
    Ok(StreamRates { read_ns, write_ns, seek_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_a_modelled_disk_are_those_of_its_data_sheet() {
        let choice = DeviceChoice { name: "wd5000aakx".into(), settings: Vec::new(), seed: 1 };
        let disk = rates(&choice, 1, 40_000_000_000).expect("a model");
        assert!((1000.0 / disk.read_ns / 126.0 - 1.0).abs() < 0.05, "{disk:?}");
        assert!((5e6..25e6).contains(&disk.seek_ns), "{disk:?}");
    }

    #[test]
    fn a_device_without_room_for_a_request_is_refused() {
        let disk = |sectors: u32| {
            let settings = ["cylinders=2", "zones=1", "heads=1"].map(str::to_owned).to_vec();
            let both = ["outer", "inner"].map(|zone| format!("sectors_{zone}={sectors}"));
            let settings = [settings, both.to_vec()].concat();
            DeviceChoice { name: "barracuda".into(), settings, seed: 1 }
        };
        let refused = rates(&disk(1023), 1, 0).expect_err("too small");
        let said = refused.sentence().expect("a sentence");
        assert!(said.starts_with("--device barracuda: has 1047552 bytes"), "{said}");
        rates(&disk(1024), 3, 0).expect("room for one");
    }
}
