//! The kind of a folder of unfinished work, by its files, and the steps that are allowed.
//!
//! ```text
//!   look    the folder as it is    names, journal, note, resume point, journal of a pipeline
//!   facts   what counts of them    plain data, so that the model of `--consume` can make it, too
//!   judge   facts ──► verdict      who may clear the folder; what `recover` may advise
//! ```
//!
//! Two files say whose the folder is: the journal and the note, which are written at different times and
//! never together. Records are removed only if one of them says that they are elsewhere, and none says
//! the opposite. A folder that has records and nothing that speaks for their removal is kept:
//!
//! | journal, resume point | note | with records | verdict |
//! |---|---|---|---|
//! | of a sort that took bytes | any | any | [`Verdict::Sort`]: the same command continues |
//! | of a sort that took none | any | any | [`Verdict::Begun`] |
//! | damaged | any | any | [`Verdict::Orphaned`] |
//! | of a copy | none | any | [`Verdict::Copy`] |
//! | of a copy alone, without the sort's journal | any | any | [`Verdict::Orphaned`] |
//! | none | consuming, or damaged | yes | [`Verdict::Orphaned`]: its journal is lost |
//! | none | inputs stay | yes | [`Verdict::Copies`]: the inputs have all records |
//! | none | none | yes | [`Verdict::Unexplained`] |
//! | none | any | no | [`Verdict::Empty`] |

use merganser_sort::journal::SortPhase;

/// A file of the folder that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Evidence<T> {
    /// It is not there.
    #[default]
    Absent,
    /// It is there, and can't be read.
    Damaged,
    /// What it says.
    Says(T),
}

/// What a journal of a sort says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortFacts {
    /// How far it is.
    pub phase: SortPhase,
    /// Whether no byte was taken, and no input has its hidden name.
    pub untouched: bool,
}

/// What a note says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteFacts {
    /// Whether the inputs lose their bytes.
    pub consumes: bool,
    /// Whether the note names all inputs, and they are there as they were.
    pub inputs_whole: bool,
}

/// What a journal of a pipeline says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineFacts {
    /// Whether all inputs are there as they were. A pipe never is.
    pub inputs_whole: bool,
}

/// What counts of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFacts {
    /// Whether it has a file that no command of this program writes there.
    pub stranger: bool,
    /// Whether it has a file that can hold records.
    pub records: bool,
    /// Whether it has the manifest of a view that has given nothing back.
    pub whole_view: bool,
    /// The journal of a sort that consumes its inputs.
    pub journal: Evidence<SortFacts>,
    /// The note of the work.
    pub note: Evidence<NoteFacts>,
    /// The resume point of a copy: whether it consumes its view.
    pub copy: Evidence<bool>,
    /// The journal of a pipeline.
    pub pipeline: Evidence<PipelineFacts>,
}

/// The kind of a folder of unfinished work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has files of others, and no work of this program.
    Foreign,
    /// It has no records.
    Empty,
    /// A sort that consumes its inputs, and has taken nothing.
    Begun,
    /// A sort that consumes its inputs, as far as this.
    Sort(SortPhase),
    /// A copy of a view.
    Copy {
        /// Whether the view loses its bytes.
        consume: bool,
    },
    /// A pipeline.
    Pipeline {
        /// Whether its inputs have all records.
        inputs_whole: bool,
    },
    /// Work whose inputs keep their bytes.
    Copies {
        /// Whether they are all there as they were.
        inputs_whole: bool,
    },
    /// The file that says where its records belong is lost or damaged. Perhaps they are nowhere else.
    Orphaned {
        /// Whether it is a view that can be read.
        whole_view: bool,
    },
    /// It has records, and nothing says of what.
    Unexplained {
        /// Whether it is a view that can be read.
        whole_view: bool,
    },
}

/// The step that is open to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Repeat the command: it continues, or begins again.
    Repeat,
    /// Remove the folder: nothing in it is nowhere else.
    Remove,
    /// Copy the view in it to a new file.
    CopyOut,
    /// Keep it, and decide by its description.
    Keep,
}

/// Decides what a folder is.
pub fn judge(facts: &WorkFacts) -> Verdict {
    use Evidence::{Absent, Damaged, Says};
    let whole_view = facts.whole_view;
    match (&facts.journal, &facts.copy, &facts.pipeline) {
        (Says(sort), ..) if !sort.untouched => return Verdict::Sort(sort.phase),
        (Damaged, ..) | (_, Damaged, _) | (.., Damaged) => {
            return Verdict::Orphaned { whole_view };
        }
        // No sort of this program leaves both.
        (Says(_), Says(_), _) | (Says(_), _, Says(_)) => return Verdict::Orphaned { whole_view },
        // A copy has no note: this is the last part of a sort that has lost its journal.
        (Absent, Says(_), _) if facts.note != Absent => return Verdict::Orphaned { whole_view },
        (Absent, Says(consume), _) => return Verdict::Copy { consume: *consume },
        (Absent, Absent, Says(pipeline)) => {
            return Verdict::Pipeline { inputs_whole: pipeline.inputs_whole };
        }
        _ => {}
    }
    if facts.stranger {
        return Verdict::Foreign;
    }
    match (&facts.journal, &facts.note) {
        (Says(_), _) => Verdict::Begun,
        _ if !facts.records => Verdict::Empty,
        (_, Says(note)) if !note.consumes => Verdict::Copies { inputs_whole: note.inputs_whole },
        (_, Says(_) | Damaged) => Verdict::Orphaned { whole_view },
        (_, Absent) => Verdict::Unexplained { whole_view },
    }
}

impl Verdict {
    /// Whether a command that wants the folder for other work may remove what is in it.
    pub fn may_clear(self) -> bool {
        matches!(
            self,
            Verdict::Empty
                | Verdict::Begun
                | Verdict::Copies { .. }
                | Verdict::Copy { consume: false }
        )
    }

    /// Whether it has, or may have, records that are nowhere else.
    pub fn may_be_only_copy(self) -> bool {
        match self {
            Verdict::Sort(phase) => phase != SortPhase::Delivered,
            Verdict::Copy { consume } => consume,
            Verdict::Pipeline { inputs_whole } | Verdict::Copies { inputs_whole } => !inputs_whole,
            Verdict::Orphaned { .. } | Verdict::Unexplained { .. } | Verdict::Foreign => true,
            Verdict::Empty | Verdict::Begun => false,
        }
    }

    /// The advice on it. It is followed literally, so it must never cost a record.
    pub fn next_step(self) -> NextStep {
        match self {
            Verdict::Begun | Verdict::Sort(_) | Verdict::Copy { .. } => NextStep::Repeat,
            Verdict::Empty | Verdict::Copies { inputs_whole: true } => NextStep::Remove,
            Verdict::Orphaned { whole_view: true } | Verdict::Unexplained { whole_view: true } => {
                NextStep::CopyOut
            }
            _ => NextStep::Keep,
        }
    }
}

impl<T> Evidence<T> {
    pub(super) fn as_ref(&self) -> Evidence<&T> {
        match self {
            Evidence::Absent => Evidence::Absent,
            Evidence::Damaged => Evidence::Damaged,
            Evidence::Says(said) => Evidence::Says(said),
        }
    }

    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Evidence<U> {
        match self {
            Evidence::Absent => Evidence::Absent,
            Evidence::Damaged => Evidence::Damaged,
            Evidence::Says(said) => Evidence::Says(change(said)),
        }
    }

    pub(super) fn said(self) -> Option<T> {
        match self {
            Evidence::Says(said) => Some(said),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that a killed `sort --view` left: runs, and a note that says that the inputs stay.
    const OF_VIEW: WorkFacts = WorkFacts {
        stranger: false,
        records: true,
        whole_view: false,
        journal: Evidence::Absent,
        note: Evidence::Says(NoteFacts { consumes: false, inputs_whole: true }),
        copy: Evidence::Absent,
        pipeline: Evidence::Absent,
    };

    #[test]
    fn only_a_note_of_whole_inputs_lets_records_go() {
        assert_eq!(judge(&OF_VIEW).next_step(), NextStep::Remove);
        assert!(judge(&OF_VIEW).may_clear());
        let note = |consumes, inputs_whole| WorkFacts {
            note: Evidence::Says(NoteFacts { consumes, inputs_whole }),
            ..OF_VIEW
        };
        assert_eq!(judge(&note(false, false)).next_step(), NextStep::Keep);
        for lost in [
            note(true, true),
            WorkFacts { note: Evidence::Damaged, ..OF_VIEW },
            WorkFacts { note: Evidence::Absent, ..OF_VIEW },
            WorkFacts { journal: Evidence::Damaged, ..OF_VIEW },
            WorkFacts { copy: Evidence::Damaged, ..OF_VIEW },
            WorkFacts { pipeline: Evidence::Damaged, ..OF_VIEW },
            WorkFacts { stranger: true, ..OF_VIEW },
        ] {
            let verdict = judge(&lost);
            assert!(!verdict.may_clear() && verdict.may_be_only_copy(), "{lost:?}");
            assert_eq!(verdict.next_step(), NextStep::Keep, "{lost:?}");
        }
    }

    /// Every folder there can be: what has records is removed only if a note or a resume point says that
    /// they are elsewhere, and nothing says the opposite.
    #[test]
    fn no_combination_of_files_lets_the_only_copy_go() {
        let flags = [false, true];
        let journals = [Evidence::Absent, Evidence::Damaged].into_iter().chain(
            [SortPhase::Sorting, SortPhase::Sorted, SortPhase::Removed, SortPhase::Delivered]
                .into_iter()
                .flat_map(|phase| {
                    flags.map(|untouched| Evidence::Says(SortFacts { phase, untouched }))
                }),
        );
        let notes: Vec<_> = [Evidence::Absent, Evidence::Damaged]
            .into_iter()
            .chain(flags.into_iter().flat_map(|consumes| {
                flags.map(|inputs_whole| Evidence::Says(NoteFacts { consumes, inputs_whole }))
            }))
            .collect();
        let copies =
            [Evidence::Absent, Evidence::Damaged, Evidence::Says(false), Evidence::Says(true)];
        let pipelines = [
            Evidence::Absent,
            Evidence::Damaged,
            Evidence::Says(PipelineFacts { inputs_whole: false }),
            Evidence::Says(PipelineFacts { inputs_whole: true }),
        ];
        let mut seen = 0;
        for journal in journals {
            for (note, copy) in notes.iter().flat_map(|note| copies.map(|copy| (*note, copy))) {
                for pipeline in pipelines {
                    for bits in 0..8 {
                        let (stranger, records) = (bits & 1 > 0, bits & 2 > 0);
                        let whole_view = bits & 4 > 0 && records;
                        let facts = WorkFacts {
                            stranger,
                            records,
                            whole_view,
                            journal,
                            note,
                            copy,
                            pipeline,
                        };
                        check(&facts);
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 5_000, "{seen}");
    }

    fn check(facts: &WorkFacts) {
        let verdict = judge(facts);
        let says_elsewhere = match facts {
            WorkFacts { journal: Evidence::Says(sort), .. } => sort.untouched,
            WorkFacts { copy: Evidence::Says(consume), .. } => !consume,
            WorkFacts { note: Evidence::Says(note), .. } => !note.consumes,
            _ => !facts.records,
        };
        let damaged = facts.journal == Evidence::Damaged
            || facts.copy == Evidence::Damaged
            || facts.pipeline == Evidence::Damaged;
        if verdict.may_clear() || verdict.next_step() == NextStep::Remove {
            assert!(says_elsewhere || !facts.records, "{facts:?} {verdict:?}");
            assert!(!damaged, "{facts:?} {verdict:?}");
            assert!(!verdict.may_be_only_copy() || verdict.may_clear(), "{facts:?} {verdict:?}");
        }
        if verdict.next_step() == NextStep::Remove {
            assert!(!facts.stranger && !verdict.may_be_only_copy(), "{facts:?} {verdict:?}");
        }
        if verdict.next_step() == NextStep::CopyOut {
            assert!(facts.whole_view, "{facts:?} {verdict:?}");
        }
    }
}
