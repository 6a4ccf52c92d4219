//! Any bytes as the body of an action and as a ticket: an error of one line, or something that is read
//! again as it was written, and whose paths are below the data folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use merganser_serve::session::request::RangeSource;
use merganser_serve::session::wire::{ACTIONS, Action, GetTicket};

fuzz_target!(|input: (u8, &[u8])| {
    let (which, body) = input;
    let (name, _) = ACTIONS[usize::from(which) % ACTIONS.len()];
    match Action::parse(name, body) {
        Ok(Action::Set(body)) => {
            for range in &body.ranges {
                if let Ok(RangeSource::Path(path)) = range.source() {
                    assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".."));
                }
                if let Ok(bytes) = range.bytes(1000) {
                    assert!(bytes.start <= bytes.end && bytes.end <= 1000);
                }
            }
        }
        Ok(Action::Open(request)) => drop(request.wanted().is_ok()),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    match GetTicket::parse(body) {
        Ok(ticket) => assert_eq!(GetTicket::parse(&ticket.to_json()).unwrap(), ticket),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
