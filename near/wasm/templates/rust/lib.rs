//! @NAME@: how often each word occurs.

mod mgs;

mgs::ssdlet!(
    r#"{"abi": 1, "name": "@NAME@", "about": "how often each word occurs",
        "input": "lines", "memory": 8388608,
        "output": {"keyed": {"key": "text", "value": "i64", "combine": "sum"}}}"#
);

/// Called for each chunk, which holds whole lines. A word is handed over as a span: its place and its
/// length. An error ends the run; it names the place of the record that is at fault.
fn chunk(chunk: &[u8], out: &mut mgs::Spans) -> Result<(), mgs::Fault> {
    let mut from = None;
    for (at, byte) in chunk.iter().enumerate() {
        match (byte.is_ascii_whitespace(), from) {
            (false, None) => from = Some(at),
            (true, Some(start)) => {
                out.push(start, at - start);
                from = None;
            }
            _ => {}
        }
    }
    if let Some(start) = from {
        out.push(start, chunk.len() - start);
    }
    Ok(())
}
