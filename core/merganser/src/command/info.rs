//! `merganser info`.

use std::fmt::Write as _;
use std::path::Path;

use merganser_shell::config::order_flags;
use merganser_shell::failure::Failure;
use merganser_shell::{shown, standard};
use merganser_sort::Budget;
use merganser_sort::record::Format;
use merganser_sort::run::Run;
use merganser_sort::run::format::{FOOTER_MAGIC, HEADER_MAGIC};
use merganser_sort::run::magic::{self, ContentKind, HEAD_BYTES};
use merganser_sort::view::View;
use merganser_storage::file::FileStorage;
use merganser_storage::{Storage, StorageExt};
use serde_json::{Value, json};

use super::result;
use crate::config::InfoConfig;

/// Prints the facts about a view or a run.
pub(super) fn run(config: &InfoConfig) -> Result<(), Failure> {
    let facts = if config.is_view { view(config)? } else { run_file(config)? };
    let text = if config.json { format!("{:#}\n", Value::Object(facts)) } else { table(&facts) };
    standard::print(text)
}

type InfoFacts = serde_json::Map<String, Value>;

fn view(config: &InfoConfig) -> Result<InfoFacts, Failure> {
    if let Some(result) = result::open(&config.path, config.memory_bytes, 1)? {
        let mut facts = facts_of(result.view(), config)?;
        let of = result.description();
        facts.extend(self::facts([
            ("ssdlet", json!(of.ssdlet)),
            ("key", json!(of.key)),
            ("value", json!(of.value)),
            ("combine", json!(of.combine)),
            ("reduced", json!(result.is_reduced())),
            ("rows", json!(result.rows_count())),
        ]));
        return Ok(facts);
    }
    let view = merganser_shell::opened::open_view_of_any(&config.path, config.memory_bytes, 1)?;
    facts_of(&view, config)
}

fn facts_of(view: &View, config: &InfoConfig) -> Result<InfoFacts, Failure> {
    let manifest = view.manifest();
    if config.verify {
        view.verify_all(|_| Ok(()))?;
    }
    let run_bytes: u64 = view.storages().iter().map(|storage| storage.size()).sum();
    Ok(facts([
        ("kind", json!("view")),
        ("name", json!(manifest.name)),
        ("format", json!(format_name(manifest.order.format))),
        ("order", json!(order_flags(&manifest.order))),
        ("records", json!(manifest.records)),
        ("bytes", json!(manifest.size_bytes)),
        ("runs", json!(view.storages().len())),
        ("buckets", json!(view.buckets())),
        ("run_bytes", json!(run_bytes)),
        ("made_unix_ns", json!(manifest.made_unix_ns)),
        ("verified", json!(config.verify)),
    ]))
}

fn run_file(config: &InfoConfig) -> Result<InfoFacts, Failure> {
    let run = open_run(&config.path, config.memory_bytes)?;
    if config.verify {
        run.verify_all(|_| Ok(()))?;
    }
    let order: Value = serde_json::from_str(run.spec()).unwrap_or_default();
    Ok(facts([
        ("kind", json!("run")),
        ("order", order),
        ("records", json!(run.records())),
        ("bytes", json!(run.data_bytes())),
        ("run_bytes", json!(run.storage().size())),
        ("blocks", json!(run.footer().blocks)),
        ("block_bytes", json!(run.block_bytes())),
        ("compression", json!(run.footer().compression)),
        ("verified", json!(config.verify)),
    ]))
}

fn open_run(path: &Path, memory_bytes: u64) -> Result<Run, Failure> {
    let storage = FileStorage::open_path(path, false).map_err(|error| Failure::named(&error))?;
    refuse_other(path, &storage)?;
    Ok(Run::open_within(storage, &Budget::new(memory_bytes))?)
}

/// Refuses a file that neither begins nor ends as a run does. For a run that is damaged at one end, the engine has the better
/// sentence.
fn refuse_other(path: &Path, storage: &FileStorage) -> Result<(), Failure> {
    let mut head = [0; HEAD_BYTES];
    let read = storage.read_at(0, &mut head).map_err(|error| Failure::named(&error))?;
    let mut end = FOOTER_MAGIC;
    let end_at = storage.size().saturating_sub(end.len() as u64);
    storage.read_at(end_at, &mut end).map_err(|error| Failure::named(&error))?;
    if head.starts_with(&HEADER_MAGIC) || (end == FOOTER_MAGIC && read >= end.len()) {
        return Ok(());
    }
    let is = magic::of_head(&head[..read], ContentKind::Text)
        .map_or_else(|| "is".to_owned(), |magic| format!("is {}, and", magic.what));
    let name = shown::name(path);
    Err(format!("{name}: {is} no run or view; name the folder of a view, or a run in it").into())
}

fn facts<const N: usize>(pairs: [(&str, Value); N]) -> InfoFacts {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn format_name(format: Format) -> String {
    match format {
        Format::Lines { delimiter: 0 } => "lines, ended by NUL".to_owned(),
        Format::Csv { header: true, .. } => "csv with a header".to_owned(),
        other => other.typed(),
    }
}

fn table(facts: &InfoFacts) -> String {
    facts.iter().fold(String::new(), |mut text, (name, value)| {
        let value =
            value.as_str().map_or_else(|| value.to_string(), |text| shown::escaped(text, &[]));
        writeln!(text, "{name:<14}{value}").expect("a string takes all");
        text
    })
}
