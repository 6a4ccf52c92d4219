//! Any bytes as the body of an action and as a ticket: an error of one line, or something that is read
//! again as it was written, and whose paths are below the data folder.

use merganser_serve::session::request::RangeSource;
use merganser_serve::session::wire::{ACTIONS, Action, GetTicket};

/// Tries one input.
pub(crate) fn run(bytes: &[u8]) {
    let Some(input) = crate::value_of::<(u8, &[u8])>(bytes) else { return };
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
}

/// The golden bodies, as those of each action.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let lines = include_str!("../../../near/serve/tests/golden/session_wire.txt").lines();
    let bodies = lines.filter_map(|line| line.split_once(": ")).map(|(_, body)| body);
    let bodies: Vec<&str> = bodies.collect();
    let all = (0..ACTIONS.len()).flat_map(|which| bodies.iter().map(move |body| (which, body)));
    all.map(|(which, body)| [&[which as u8], body.as_bytes()].concat()).collect()
}
