//! Golden bytes of the JSON of sessions: a change of a field shows in review.

use merganser_map::ssdlet::{Combine, SsdletDescription, SsdletOutput, Type};
use merganser_serve::session::request::{OpenRequest, SessionRange};
use merganser_serve::session::wire::{
    FileStatus, GetTicket, KeyRange, PathBody, SessionBody, SessionTicket, SetBody, TextAs,
    Uploaded, ViewTicket, to_json,
};
use merganser_serve::session::{
    BlobStatus, Listing, Offered, OpenedSession, SessionState, SessionStatus,
};
use merganser_sort::record::Format;
use serde::Serialize;

fn line(name: &str, value: &impl Serialize) -> String {
    format!("{name}: {}\n", String::from_utf8(to_json(value)).expect("UTF-8"))
}

#[test]
fn the_json_of_every_message() {
    let session = || "00112233445566778899aabbccddeeff".to_owned();
    let description = || SsdletDescription {
        name: "wordcount".to_owned(),
        input: Format::Lines { delimiter: b'\n' },
        output: SsdletOutput::Keyed { key: Type::Text, value: Type::I64, combine: Combine::Sum },
        worker_bytes: 0,
    };
    let open = OpenRequest {
        ssdlet: Some("wordcount".to_owned()),
        sha256: None,
        args: serde_json::json!({ "words": "letters" }),
        memory: Some(64 << 20),
        threads: Some(2),
        fuel_per_byte: Some(10_000),
        time_limit: Some(0.5),
        guest_memory: Some(1 << 20),
    };
    let guest = OpenRequest { args: "needle".into(), ..OpenRequest::default() };
    let blob = SessionRange { blob: Some("part".to_owned()), ..SessionRange::default() };
    let range =
        SessionRange { start: 10, length: Some(100), ..SessionRange::of_path("logs/a.txt") };
    let status = SessionStatus {
        session: session(),
        state: SessionState::Done,
        run: 1,
        ranges: 2,
        bytes_total: 100,
        bytes_done: 100,
        metered: 100,
        rows: 3,
        output_bytes: 51,
        kept_bytes: 57,
        memory: 64 << 20,
        threads: 2,
        error: None,
        blobs: vec![BlobStatus { name: "part".to_owned(), bytes: 6 }],
    };
    let failed = SessionStatus {
        state: SessionState::Failed,
        error: Some("at byte 7: odd".to_owned()),
        ..status.clone()
    };
    let offered = Offered { name: "wordcount".to_owned(), about: "how often".to_owned() };
    let listing = Listing {
        ssdlets: vec![offered],
        sessions: 1,
        sessions_max: 64,
        memory: 192 << 20,
        threads: 3,
    };
    let opened = OpenedSession {
        session: session(),
        description: description(),
        rows_most: None,
        memory: 64 << 20,
        threads: 2,
    };
    let view = |ticket| GetTicket::View(ViewTicket { view: "a/b.view".to_owned(), ..ticket });
    let keys = KeyRange { from: Some(r"\x00".to_owned()), to: None };
    let tickets = [
        GetTicket::Session(SessionTicket { session: session(), offset: 7, text: TextAs::Binary }),
        view(ViewTicket::default()),
        view(ViewTicket { records: Some((5, Some(10))), ..ViewTicket::default() }),
        view(ViewTicket { bytes: Some((5, None)), ..ViewTicket::default() }),
        view(ViewTicket { keys: Some(keys), ..ViewTicket::default() }),
    ];
    let mut lines = vec![
        line("open", &open),
        line("open of a guest", &guest),
        line("opened", &opened),
        line("set", &SetBody { session: session(), ranges: vec![range, blob], run: true }),
        line("status, cancel, close", &SessionBody { session: session() }),
        line("status answer", &status),
        line("status answer of a failed run", &failed),
        line("stat", &PathBody { path: "logs/a.txt".to_owned() }),
        line("stat answer", &FileStatus { path: "logs/a.txt".to_owned(), bytes: 1234 }),
        line("list answer", &listing),
        line("upload answer", &Uploaded { sha256: "0".repeat(64), description: description() }),
        line("put answer", &BlobStatus { name: "part".to_owned(), bytes: 6 }),
    ];
    for ticket in &tickets {
        lines.push(format!("ticket: {}\n", String::from_utf8(ticket.to_json()).expect("UTF-8")));
    }
    assert_eq!(lines.concat(), include_str!("../golden/session_wire.txt"));
}
