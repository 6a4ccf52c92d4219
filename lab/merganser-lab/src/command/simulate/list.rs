//! `merganser simulate --list`.

use std::fmt::Write;

use merganser_shell::failure::Failure;

use super::model::ModelledDevice;

/// All devices, a line each.
pub(super) fn devices() -> String {
    let mut text = String::new();
    for name in ModelledDevice::names() {
        let model = ModelledDevice::preset(name).expect("a name of the list");
        let _ = writeln!(text, "{name:<12}{}", model.about());
    }
    text.push_str(
        "\nsimulate --list=DEVICE tells every parameter; --set NAME=VALUE changes one.\n\
         Bytes take K, M, G, T (1024), bytes/s the same (1000), times ns, us, ms, s.\n",
    );
    text
}

/// All parameters of a device.
pub(super) fn parameters(name: &str) -> Result<String, Failure> {
    let model = ModelledDevice::preset(name).map_err(|error| format!("--list: {error}"))?;
    let mut text = format!("{name}: {}\n", model.about());
    for line in model.parameters() {
        let super::model::ParameterLine { name, value, unit, range, source, meaning } = line;
        let range = if range.is_empty() { unit } else { format!("{unit}, {range}") };
        let _ =
            write!(text, "\n{name} = {value}   ({range})\n    {meaning}\n    Source: {source}.\n");
    }
    let power = model.power();
    let _ = write!(
        text,
        "\nEnergy is idle {} W and more while parts work ({}).\n",
        power.idle_watts,
        power.sources()
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_tells_every_parameter() {
        for name in ModelledDevice::names() {
            assert!(devices().contains(name));
            let text = parameters(name).unwrap_or_default();
            let model = ModelledDevice::preset(name).expect("a preset");
            for line in model.parameters() {
                assert!(text.contains(&format!("\n{} = {}   (", line.name, line.value)), "{text}");
                assert!(!line.source.is_empty() && !line.meaning.is_empty(), "{name}");
            }
        }
    }
}
