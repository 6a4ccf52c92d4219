//! `merganser array`.

mod create;
mod facts;
mod file;
mod gather;
mod page;
mod report;
mod salvage;
mod serve;
mod space;

use std::path::Path;

use merganser_array::Volume;
use merganser_shell::failure::{Failure, notice};
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown, standard};
use serde_json::json;

use crate::args::ArrayCheckArgs;
use crate::config::ArrayConfig;
use crate::sentences::told;
use file::{MemberHold, VolumeFile};

/// Does what was asked.
pub(super) fn run(config: ArrayConfig, cancel: &Cancel) -> Result<(), Failure> {
    match config {
        ArrayConfig::Create(config) => create::run(&config, cancel),
        ArrayConfig::Serve(config) => serve::run(config, cancel),
        ArrayConfig::Check(typed, options) => check(&typed, options, cancel),
        ArrayConfig::Salvage(typed) => salvage::run(&typed, cancel),
        ArrayConfig::Info(typed) => report::info(&typed),
        ArrayConfig::Report(typed) => report::report(&typed),
    }
}

/// The error of a volume that stays closed, with the way to its good pages.
fn advised(error: merganser_array::Error, volume: &Path) -> Failure {
    use merganser_array::Error;
    let is_closed = error.is_damage() || matches!(error, Error::Old { .. });
    match told(error) {
        Failure::Error(sentence) if is_closed => Failure::Error(format!(
            "{sentence}; 'merganser array salvage {} -o IMAGE' copies the pages that are good",
            shown::name(volume)
        )),
        other => other,
    }
}

fn check(
    typed: &ArrayCheckArgs,
    options: merganser_array::OpenOptions,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let description = VolumeFile::read(&typed.volume)?;
    let members = description.open(MemberHold::Alone)?;
    // Opening it would make the superblocks equal, and say nothing.
    let advised = |error| advised(error, &typed.volume);
    let mended = Volume::mend(&description.name(), &members).map_err(advised)?;
    let table_checksums =
        Volume::describe(&description.name(), &members).map_err(told)?.table_checksums;
    let volume = Volume::open(&description.name(), &members, options).map_err(advised)?;
    let dropped = volume.space().records_dropped;
    let progress = progress::on_stderr(typed.quiet, cancel);
    let mut done = 0;
    let checked = volume
        .check(&mut |page, pages| {
            if done == 0 {
                progress.phase("checking", Some(4096 * pages));
            }
            progress.advance(4096 * page.saturating_sub(done));
            done = page.max(1);
        })
        .map_err(told)?;
    drop(progress);
    volume.close().map_err(told)?;
    let text = if typed.json {
        let findings: Vec<&str> = checked.findings.iter().map(|finding| &*finding.text).collect();
        let found = json!({
            "problems": checked.problems,
            "findings": findings,
            "pages_mapped": checked.pages_mapped,
            "pages_buffered": checked.pages_buffered,
            "pages_stored": checked.pages_stored,
            "pages_leaked": checked.pages_leaked,
            "index_blocks_damaged": checked.index_blocks_damaged,
            "records_dropped": dropped,
            "copies_mended": mended,
            "table_checksums": table_checksums,
        });
        format!("{found:#}\n")
    } else {
        let mut text: String =
            checked.findings.iter().map(|finding| format!("{}\n", finding.text)).collect();
        text += &format!(
            "problems              {}\npages with content    {}\npages in the buffer   {}\npages stored          {}\npages leaked          {}\nindex blocks damaged  {}\nrecords dropped       {dropped}\ncopies mended         {mended}\ntable checksums       {table_checksums}\n",
            checked.problems,
            checked.pages_mapped,
            checked.pages_buffered,
            checked.pages_stored,
            checked.pages_leaked,
            checked.index_blocks_damaged
        );
        text
    };
    standard::print(text)?;
    if !table_checksums {
        notice(&format!(
            "{}: it was made before tables had checksums, so a map whose last write a disk lost may look right; to be safe, make a new volume and copy this one's content to it",
            description.name()
        ));
    }
    match checked.problems {
        0 => Ok(()),
        problems => {
            let name = description.name();
            Err(Failure::Disorder(Some(format!("{name}: {problems} problems were found"))))
        }
    }
}
