//! How fast one stream carries a view: `flight_speed [MEGABYTES [PAIRS]]`.
//!
//! Makes a view of records of 100 bytes, serves it in this process, and reads it with our client, in
//! turns plain and with TLS. Server and client share the processors, as they do in a test.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use merganser_flight::client::{NodeAddress, NodeClient};
use merganser_flight::server::{BATCH_PATIENCE, FlightServer, FlightServerOptions, Tls};
use merganser_flight::wire::{GetTicket, ViewTicket};
use merganser_serve::session::{BuiltinOnly, SessionOptions};
use merganser_sort::key::OrderSpec;
use merganser_sort::record::Format;
use merganser_sort::run::SortInput;
use merganser_sort::{Silent, SortOptions, SortOutput, Strategy, sort};
use merganser_storage::Directory;
use merganser_storage::file::{FileDirectory, FileStorage};

type Failure = Box<dyn std::error::Error>;

const RECORD_BYTES: usize = 100;

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let megabytes: usize = words.next().map_or(Ok(1000), |word| word.parse())?;
    let pairs: usize = words.next().map_or(Ok(5), |word| word.parse())?;
    let place = tempfile::tempdir()?;
    let (data, input) = (place.path().join("data"), place.path().join("input"));
    std::fs::create_dir_all(data.join("speed.view"))?;
    std::fs::write(&input, records(megabytes * 1_000_000 / RECORD_BYTES))?;
    make_view(&input, &data.join("speed.view"))?;
    let (mut plain, mut encrypted) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        plain.push(rate(&data, place.path(), None)?);
        encrypted.push(rate(&data, place.path(), Some(certificate()?))?);
    }
    for (name, rates) in [("plain", &mut plain), ("TLS", &mut encrypted)] {
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        println!("{name:5}  median {median:6.0} MB/s of {rates:.0?}");
    }
    Ok(())
}

/// Records with random keys.
fn records(count: usize) -> Vec<u8> {
    let mut bytes = vec![b'.'; count * RECORD_BYTES];
    let mut state = 1_u64;
    for record in bytes.chunks_mut(RECORD_BYTES) {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        record[..16].copy_from_slice(format!("{state:016x}").as_bytes());
        record[RECORD_BYTES - 1] = b'\n';
    }
    bytes
}

fn make_view(input: &std::path::Path, folder: &std::path::Path) -> Result<(), Failure> {
    let folder: Arc<dyn Directory> = FileDirectory::open(folder)?;
    let options = SortOptions::new(OrderSpec::new(Format::Lines { delimiter: b'\n' }))
        .memory(256 << 20)
        .threads(2)
        .temp(vec![Arc::clone(&folder)])
        .strategy(Strategy::Merge);
    let output = SortOutput::View { folder, name: "speed".to_owned() };
    sort(
        vec![SortInput::Storage(FileStorage::open_path(input, false)?)],
        output,
        &options,
        &Silent,
    )?;
    Ok(())
}

fn certificate() -> Result<Tls, Failure> {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
    Ok(Tls {
        certificate: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    })
}

/// Megabytes per second of one stream.
fn rate(data: &std::path::Path, temp: &std::path::Path, tls: Option<Tls>) -> Result<f64, Failure> {
    let ca = tls.as_ref().map(|tls| tls.certificate.clone());
    let server = FlightServer::bind(FlightServerOptions {
        listen: "127.0.0.1:0".to_owned(),
        token: None,
        tls,
        insecure: false,
        allow_upload: false,
        batch_patience: BATCH_PATIENCE,
        sessions: SessionOptions {
            data: data.to_owned(),
            temp: FileDirectory::open(temp)?,
            memory_bytes: 1 << 30,
            threads: 2,
            sessions_max: 1,
            idle: Duration::from_secs(600),
            scratch_bytes: 0,
            opener: Arc::new(BuiltinOnly),
        },
    })?;
    let node = NodeAddress { address: server.address().to_string(), token: None, ca };
    let stopper = server.stopper();
    let serving = thread::spawn(move || server.run());
    let mut client = NodeClient::connect(&node)?;
    let view = ViewTicket { view: "speed.view".to_owned(), ..ViewTicket::default() };
    let begun = Instant::now();
    let mut rows = client.rows(GetTicket::View(view));
    let mut bytes = 0;
    while let Some(batch) = rows.batch()? {
        bytes += batch.num_rows() * RECORD_BYTES;
    }
    let seconds = begun.elapsed().as_secs_f64();
    drop(client);
    stopper.stop();
    serving.join().expect("no panic")?;
    Ok(bytes as f64 / 1e6 / seconds)
}
