//! `merganser ssdlet list`: the built-in SSDlets, or the ones of a folder.

use std::path::Path;

use merganser_map::ssdlet::builtin;
use merganser_shell::failure::Failure;
use merganser_shell::standard;
use serde_json::{Value, json};

/// Prints the list.
pub(super) fn run(dir: Option<&Path>, json: bool) -> Result<(), Failure> {
    let all = match dir {
        None => built_in(),
        Some(dir) => files(dir)?,
    };
    if json {
        return standard::print(format!("{:#}\n", Value::Array(all)));
    }
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mut text = String::new();
    for one in &all {
        text += &format!("{:<16}{}\n", word(one, "name"), word(one, "about"));
        for (name, meaning) in one["arguments"].as_object().into_iter().flatten() {
            let meaning = meaning.as_str().unwrap_or_default();
            text += &format!("  {name:<14}{meaning}\n");
        }
        for (part, of) in [("arguments", "arguments"), ("file", "file"), ("error", "refused")] {
            if let Some(said) = one[part].as_str().filter(|said| !said.is_empty()) {
                let said = merganser_shell::shown::escaped(said, &[]);
                text += &format!("  {of:<14}{said}\n");
            }
        }
    }
    standard::print(text)
}

fn built_in() -> Vec<Value> {
    let one = |builtin: &builtin::Builtin| {
        let meaning = |argument: &builtin::Argument| match argument.default {
            "" => json!(argument.meaning),
            default => json!(format!("{} [default: {default}]", argument.meaning)),
        };
        let arguments = builtin.arguments.iter().map(|one| (one.name.to_owned(), meaning(one)));
        let arguments: serde_json::Map<_, _> = arguments.collect();
        json!({ "name": builtin.name, "about": builtin.about, "arguments": arguments })
    };
    builtin::ALL.iter().map(one).collect()
}

/// The WebAssembly files of a folder, by name. A bad one is listed with the reason.
fn files(dir: &Path) -> Result<Vec<Value>, Failure> {
    use merganser_wasm::{Declared, WasmLimits};

    let refused = |error: std::io::Error| Failure::on(dir, &error);
    let entries = std::fs::read_dir(dir).map_err(refused)?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(refused)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "wasm") && path.is_file());
    paths.sort();
    let one = |path: &std::path::PathBuf| {
        let file = path.file_name().map(|name| merganser_shell::shown::name(Path::new(name)));
        // Nothing is compiled for a list; `check` does that.
        let declared = super::read(path, WasmLimits::default().module_bytes)
            .and_then(|module| Ok(Declared::of_module(&module).map_err(|e| e.to_string())?));
        match declared {
            Ok(declared) => json!({
                "name": declared.name,
                "about": declared.about,
                "arguments": declared.arguments,
                "file": file,
                "input": declared.input,
                "output": declared.output,
                "memory_bytes": declared.memory_bytes,
            }),
            Err(failure) => json!({ "name": "?", "file": file, "error": failure.sentence() }),
        }
    };
    Ok(paths.iter().map(one).collect())
}
