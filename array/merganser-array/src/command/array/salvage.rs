//! `merganser array salvage`.

use std::io::Write;
use std::path::Path;

use merganser_array::{Salvage, Trust};
use merganser_results::output::ResultOutput;
use merganser_shell::apart::{Precious, refuse_overwriting};
use merganser_shell::failure::Failure;
use merganser_shell::output;
use merganser_shell::signals::Cancel;
use merganser_shell::{progress, shown, standard};
use serde_json::json;

use super::file::{MemberHold, VolumeFile};
use crate::args::ArraySalvageArgs;
use crate::sentences::told;

const PAGE: u64 = 4096;

/// Pages in turn: the first, and how many.
type PageStretch = (u64, u64);

/// Pages of one kind.
#[derive(Default)]
struct PagesOfKind {
    stretches: Vec<PageStretch>,
    count: u64,
}

impl PagesOfKind {
    fn add(&mut self, page: u64) {
        self.count += 1;
        match self.stretches.last_mut() {
            Some((first, count)) if *first + *count == page => *count += 1,
            _ => self.stretches.push((page, 1)),
        }
    }
}

/// Copies what is good of a volume into an image.
pub(super) fn run(typed: &ArraySalvageArgs, cancel: &Cancel) -> Result<(), Failure> {
    let description = VolumeFile::read(&typed.volume)?;
    let name = description.name();
    description.refuse_as_result("-o", &typed.output)?;
    if let Some(report) = &typed.report {
        description.refuse_as_result("--report", report)?;
        refuse_overwriting("--report", report, [Precious::Result(&typed.output)])?;
    }
    // What another process changed meanwhile would look like damage.
    let members = description.open(MemberHold::Unchanged)?;
    let mut salvage = Salvage::open(&name, &members).map_err(told)?;
    let mut report = typed.report.as_deref().map(|path| output::open(Some(path), cancel));
    let mut report = report.take().transpose()?;
    let mut image = output::open(Some(&typed.output), cancel)?;
    let pages = salvage.size() / PAGE;
    let progress = progress::on_stderr(typed.quiet, cancel);
    progress.phase("copying", Some(salvage.size()));
    let (mut old, mut lost) = (PagesOfKind::default(), PagesOfKind::default());
    let mut bytes = vec![0; PAGE as usize];
    for page in 0..pages {
        if progress.cancelled() {
            return Err(Failure::Cancelled);
        }
        match salvage.read(page, &mut bytes) {
            Trust::Good => {}
            Trust::MayBeOld => old.add(page),
            Trust::Lost => lost.add(page),
        }
        image.write_all(&bytes).map_err(|error| Failure::named(&error))?;
        progress.advance(PAGE);
    }
    drop(progress);
    let (problems, findings) = salvage.findings();
    let good = pages - old.count - lost.count;
    if let Some(report) = &mut report {
        let found = json!({
            "format": "merganser-array-salvage",
            "version": 1,
            "volume": name,
            "bytes": salvage.size(),
            "pages": pages,
            "pages_good": good,
            "pages_may_be_old": old.count,
            "pages_lost": lost.count,
            "may_be_old": old.stretches,
            "lost": lost.stretches,
            "problems": problems,
            "findings": findings,
        });
        let text = format!("{found:#}\n");
        report.write_all(text.as_bytes()).map_err(|error| Failure::named(&error))?;
    }
    image.finish()?;
    report.map_or(Ok(()), ResultOutput::finish)?;
    if typed.output != Path::new("-") {
        standard::print(format!(
            "pages             {pages}\npages good        {good}\npages maybe old   {}\npages lost        {}\nproblems          {problems}\n",
            old.count, lost.count
        ))?;
    }
    if old.count + lost.count == 0 {
        return Ok(());
    }
    let list = match &typed.report {
        Some(path) => format!("{} lists them", shown::name(path)),
        None => "--report FILE.json lists them".to_owned(),
    };
    Err(Failure::Disorder(Some(format!(
        "{name}: the image is partial: of {pages} pages {} are lost and {} may be old; {list}",
        lost.count, old.count
    ))))
}
