//! Figures 10b and 10c: a map task, and its constant part.

use super::results::{LINE_BYTES, MACHINE_CPU, PairSettings, StudyResults, TASK, TASK_BYTES};
use crate::error::ExperimentError;
use crate::isc::paper::{
    CONSTANT_PART_BASELINE, CONSTANT_PART_ISC, PURE_GAIN, TASK_BASELINE, TASK_GAIN, TASK_ISC,
};
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use crate::statistics::median;
use merganser_pages::Chart;

/// Reads the results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    Ok(outcome(&StudyResults::of(lab, "isc-hadoop-task", "task --calls")?))
}

fn outcome(results: &StudyResults) -> Outcome {
    let of = |bytes| PairSettings::new("wordcount", bytes, 1);
    let task = results.both(&of(TASK_BYTES), TASK);
    let half = results.both(&of(TASK_BYTES / 2), TASK);
    let line = results.both(&of(LINE_BYTES), TASK);
    // Stock's figures first, then the node's.
    let pure = task.zip(line).map(|(task, line)| (task.0 - line.0, task.1 - line.1));
    let fitted = task.zip(half).map(|(task, half)| (2. * half.0 - task.0, 2. * half.1 - task.1));

    let mut gains = OutcomeSection::new("stock's seconds over the node's, wordcount");
    let gain = results.gain(&of(TASK_BYTES), TASK);
    gains.reach("a map task of 128 MB (10b)", Some(TASK_GAIN), TASK_GAIN, gain);
    let pure_gain = pure.map(|pure| pure.0 / pure.1);
    gains.reach("the map without the constant part (10c)", Some(PURE_GAIN), PURE_GAIN, pure_gain);
    gains.told("a map task of 64 MB", results.gain(&of(TASK_BYTES / 2), TASK));
    gains.told("a map task of one line", results.gain(&of(LINE_BYTES), TASK));
    let machine = results.gain(&of(TASK_BYTES), MACHINE_CPU);
    gains.told("processor of the machine, whole job of 128 MB", machine);

    let mut seconds = OutcomeSection::new("seconds of a map task (paper: 64 MB, 10b)");
    match task {
        Some((stock, node)) => {
            seconds.both("128 MB, stock", TASK_BASELINE, stock);
            seconds.both("128 MB, node", TASK_ISC, node);
        }
        None => seconds.medians("128 MB", task),
    }
    seconds.medians("64 MB", half);
    seconds.medians("one line: the constant part", line);
    seconds.medians("the constant part, from 64 and 128 MB", fitted);
    seconds.medians("128 MB without the constant part", pure);

    let mut parts = OutcomeSection::new("constant part of a task, percent (10c)");
    let part = line.zip(task).map(|(line, task)| (100. * line.0 / task.0, 100. * line.1 / task.1));
    let papers = [100. * CONSTANT_PART_BASELINE, 100. * CONSTANT_PART_ISC];
    for ((name, paper), ours) in ["stock", "node"]
        .into_iter()
        .zip(papers)
        .zip([part.map(|part| part.0), part.map(|part| part.1)])
    {
        match ours {
            Some(ours) => parts.both(name, paper, ours),
            None => parts.paper(name, paper),
        }
    }

    let mut calls = OutcomeSection::new("the same program over 128 MB without Hadoop, seconds");
    for call in &results.calls {
        calls.ours(&call.name, median(call.wall_s.clone()));
        let both = call.cpu_s.iter().zip(&call.node_cpu_s).map(|(here, there)| here + there);
        calls.ours(format!("{}: processor", call.name), median(both.collect()));
    }
    if results.calls.is_empty() {
        calls.neither("not measured");
    }

    let mut bars = vec![
        ("the paper's Hadoop, 64 MB".to_owned(), TASK_BASELINE, true),
        ("the paper's device, 64 MB".to_owned(), TASK_ISC, true),
    ];
    for (name, both) in [("128 MB", task), ("one line", line)] {
        let figures = both.map(|(stock, node)| [("stock", stock), ("node", node)]);
        for (who, figure) in figures.into_iter().flatten() {
            bars.push((format!("{who}, {name}"), figure, false));
        }
    }
    let mut differs = results.differs();
    differs.push(
        "A task's time is the job history's, from its start to its end. The constant part is the time of a task whose split \
         is one line: the JVM's start, the mapper's, the commit. As a check, the same by a line through 64 and 128 MB; Java \
         gets faster while it runs, so that line begins higher for stock."
            .into(),
    );
    Outcome {
        sections: vec![gains, seconds, parts, calls],
        differs,
        chart: Chart::Bars { title: "A map task, wordcount".into(), unit: "s".into(), bars },
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;

    #[test]
    fn the_constant_part_is_taken_off_both() {
        let of = |bytes| PairSettings::new("wordcount", bytes, 1);
        // A task takes four times the number.
        let rounds = [(of(TASK_BYTES), 3., 1.), (of(LINE_BYTES), 0.5, 0.5)];
        let json = crate::report::tests::json(outcome(&results(&rounds)));
        let gains = &json["sections"][0]["rows"];
        assert_eq!(gains[0]["ours"], 3.);
        assert_eq!(gains[0]["what"], "a map task of 128 MB (10b); at least 2.5: held");
        assert_eq!(gains[1]["ours"], 5.);
        assert_eq!(json["sections"][2]["rows"][1]["ours"], 50.);
        assert!(gains[2]["ours"].is_null(), "64 MB was not measured");
    }
}
