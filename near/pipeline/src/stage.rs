//! A thread of a pool: runs stages of partitions, one after the other.

use std::path::Path;

use super::error::PipelineError;
use super::folder::OUT_NAME;
use super::names::PlainName;
use super::report::StageRun;
use super::schedule::{DiskWriter, PipelineContext, StageTask};
use super::template::{ResultForm, TemplatePlace};
use super::tries::Tries;

impl PipelineContext<'_> {
    /// Runs the stages of a pool until nothing is left.
    pub(super) fn work(&self, pool: usize, thread: usize) {
        while let Some(task) = self.next_task(pool) {
            let ended = self.run_stage(task, thread);
            self.rest(pool);
            if let Err(error) = ended {
                self.fail(error);
                return;
            }
        }
    }

    fn run_stage(&self, task: StageTask, thread: usize) -> Result<(), PipelineError> {
        let StageTask { k, stage } = task;
        let planned = &self.plan.stages[stage];
        let (name, template) = (&*planned.name, &planned.template);
        let input = match stage.checked_sub(1) {
            None => Some(self.folder.part(k)),
            Some(before) => {
                let before = &self.plan.stages[before];
                let prints = before.template.writes != ResultForm::Dir;
                prints.then(|| self.folder.stage(k, &before.name).join(OUT_NAME))
            }
        };
        let name_of = |place: TemplatePlace, folder: &Path| -> PlainName {
            let of = |stage: usize| self.item_path(k, stage + 1);
            let path = match place {
                TemplatePlace::In => input.clone().expect("a stage without {in} does not name it"),
                TemplatePlace::Out => folder.join(OUT_NAME),
                TemplatePlace::Dir => folder.to_owned(),
                TemplatePlace::Part => self.folder.part(k),
                TemplatePlace::K => return PlainName::new(k.to_string()).expect("a number"),
                TemplatePlace::OutOf(stage) => of(stage).join(OUT_NAME),
                TemplatePlace::DirOf(stage) => of(stage),
            };
            self.names.name(&path)
        };
        let run = |start: f64, failed: bool| StageRun {
            k,
            stage,
            pool: planned.pool,
            thread,
            start_seconds: start,
            end_seconds: self.seconds(),
            processor_seconds: 0.0,
            bytes_out: 0,
            failed,
        };
        let tries = Tries {
            who: format!("the stage '{name}' of partition {k}"),
            folder: self.folder.stage(k, name),
            attempt: &|attempt| self.folder.attempt(k, name, attempt),
            command: &|folder| template.fill(&|place| name_of(place, folder)),
            variables: &|folder| {
                let of = |place| name_of(place, folder).into();
                let mut variables = vec![
                    ("MERGANSER_OUT", of(TemplatePlace::Out)),
                    ("MERGANSER_DIR", of(TemplatePlace::Dir)),
                    ("MERGANSER_K", of(TemplatePlace::K)),
                ];
                if input.is_some() {
                    variables.push(("MERGANSER_IN", of(TemplatePlace::In)));
                }
                if template.reads_part {
                    variables.push(("MERGANSER_PART", of(TemplatePlace::Part)));
                }
                variables
            },
            input: input.as_deref(),
            prints: template.writes == ResultForm::Printed,
            must_write: template.writes == ResultForm::Out,
            said: self.folder.said(k, name),
            writer: DiskWriter::Stage,
            failed: &|start| self.lock().runs.push(run(start, true)),
        };
        let worked = tries.run(self)?;
        let run = StageRun {
            processor_seconds: worked.processor.as_secs_f64(),
            bytes_out: worked.content.bytes,
            ..run(worked.start, false)
        };
        self.stage_ended(task, run, worked.content.crc)
    }
}
