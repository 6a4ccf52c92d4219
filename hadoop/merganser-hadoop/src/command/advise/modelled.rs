//! The speed of a modelled disk, which `merganser simulate rates` tells. The models are in a program of their own.

use std::process::{Command, Stdio};

use merganser_shell::failure::Failure;
use merganser_shell::program;
use serde::Deserialize;

use super::passes::DiskRates;
use crate::config::ModelChoice;

/// What the program prints.
#[derive(Deserialize)]
struct ToldRates {
    read_ns_per_byte: f64,
    write_ns_per_byte: f64,
    other_stream_ns: f64,
}

/// The rates of `streams` on a modelled device whose first `job_bytes` are theirs.
///
/// # Errors
/// The sentence of the program, or that it can't be run.
pub(super) fn modelled(
    choice: &ModelChoice,
    streams: u32,
    job_bytes: u64,
) -> Result<DiskRates, Failure> {
    let core = program::core().map_err(|error| Failure::named(&error))?;
    let mut command = Command::new(&core);
    command.args(["simulate", "rates", "--json", "--device", &choice.name]);
    for setting in &choice.settings {
        command.args(["--set", setting]);
    }
    command.args(["--streams", &streams.to_string(), "--span", &job_bytes.to_string()]);
    let said = command.stdin(Stdio::null()).output().map_err(|error| Failure::on(&core, &error))?;
    if !said.status.success() {
        return Err(refusal(&String::from_utf8_lossy(&said.stderr)));
    }
    let told: ToldRates = serde_json::from_slice(&said.stdout)
        .map_err(|error| format!("--device: merganser simulate rates: {error}"))?;
    Ok(DiskRates {
        read_ns: told.read_ns_per_byte,
        write_ns: told.write_ns_per_byte,
        seek_ns: told.other_stream_ns,
    })
}

/// The sentence that the program said, as one of this command.
fn refusal(said: &str) -> Failure {
    let line = said.lines().last().unwrap_or("it was ended, and said nothing");
    let sentence = line.strip_prefix("merganser: ").unwrap_or(line);
    let named = if sentence.starts_with("--") { "" } else { "--device: " };
    format!("{named}{sentence}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_models_is_one_of_this_command() {
        let told = |said| refusal(said).sentence().expect("a sentence").to_owned();
        assert_eq!(told("merganser: --device: unknown\n"), "--device: unknown");
        let missing = "merganser: simulate: needs the program merganser-lab";
        assert_eq!(told(missing), "--device: simulate: needs the program merganser-lab");
        assert_eq!(told(""), "--device: it was ended, and said nothing");
    }
}
