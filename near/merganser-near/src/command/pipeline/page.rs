//! The report of a pipeline as one page that is complete in itself: the time line of its pools, and the model.

use std::fmt::Write;

use merganser_pages::frame::{REPORT_AS_DATA, document};
use merganser_pages::text::Escaped;
use merganser_pages::{frame, text};
use merganser_pipeline::{PipelineReport, PipelineSettings, Predictions, StageRun};

/// Colours of stages, in order; they begin again after the last one.
const COLOURS: [&str; 6] = ["busy", "reading", "writing", "output", "turn", "memory"];
/// Width of a time line, in steps that can be told apart.
const STEPS: f64 = 1000.0;
/// Threads whose time lines are drawn.
const THREADS_SHOWN: usize = 64;

/// The page's text. It is XML too: every tag is closed.
pub(super) fn page(output: &str, settings: &PipelineSettings, report: &PipelineReport) -> String {
    let mut body = head(output, report);
    body.push_str("<main>\n");
    body.push_str(&time_lines(report));
    body.push_str(&stages(settings, report));
    body.push_str(&model(report));
    body.push_str("</main>\n");
    document(&format!("merganser pipeline: {output}"), "", &body, REPORT_AS_DATA)
}

fn head(output: &str, report: &PipelineReport) -> String {
    let continued = match report.continued {
        true => " An earlier command did a part of the work; its times are not here.",
        false => "",
    };
    let figures = [
        ("Time", text::seconds(report.seconds)),
        ("Throughput", text::rate(report.bytes as f64 / report.seconds.max(1e-9))),
        ("Partitions", text::count(report.partitions as u64)),
        ("In flight, at most", text::count(report.in_flight as u64)),
        ("Temporary files, at most", text::bytes(report.temporary_bytes_max)),
        ("After the last stage", text::seconds(report.merge_seconds)),
    ];
    format!(
        "<header>\n<h1>merganser pipeline</h1>\n<p class=\"lead\">{} ({} records) in {} partitions became \
         <bdi>{}</bdi>, {}, in {}.{continued}</p>\n{}</header>\n",
        text::bytes(report.bytes),
        text::count(report.records),
        text::count(report.partitions as u64),
        Escaped(output),
        text::bytes(report.output_bytes),
        text::seconds(report.seconds),
        frame::figures(&figures)
    )
}

fn time_lines(report: &PipelineReport) -> String {
    let end = report.runs.iter().map(|run| run.end_seconds).fold(0.0, f64::max);
    let mut out = "<section>\n<h2>Pools</h2>\n<ul class=\"legend\">\n".to_owned();
    for (stage, totals) in report.stages.iter().enumerate() {
        let (colour, name) = (colour(stage), Escaped(&totals.name));
        let _ = writeln!(out, "<li><i class=\"{colour}\"></i>{name}</li>");
    }
    out.push_str("</ul>\n");
    let mut shown = 0;
    for (at, pool) in report.pools.iter().enumerate() {
        for thread in 0..pool.threads.min(THREADS_SHOWN.saturating_sub(shown)) {
            let runs = report.runs.iter().filter(|run| (run.pool, run.thread) == (at, thread));
            let name = Escaped(&pool.name);
            let _ = write!(
                out,
                "<div class=\"row\"><div class=\"who\">{name}<small>thread {}</small></div>\
                 <svg viewBox=\"0 0 {STEPS} 10\" preserveAspectRatio=\"none\">",
                thread + 1
            );
            bars(&mut out, runs, end);
            out.push_str("</svg></div>\n");
            shown += 1;
        }
    }
    let all: usize = report.pools.iter().map(|pool| pool.threads).sum();
    if all > shown {
        let _ = writeln!(out, "<p class=\"quiet\">{} more threads are not drawn.</p>", all - shown);
    }
    let _ = writeln!(
        out,
        "<div class=\"axis\"><span>0</span><span>{}</span></div>",
        text::seconds(end)
    );
    out.push_str("<table>\n<thead><tr><th>pool</th><th>threads</th><th>busy</th></tr></thead>\n");
    for pool in &report.pools {
        let share = pool.busy_seconds / (end * pool.threads as f64).max(1e-9);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{} ({})</td></tr>",
            Escaped(&pool.name),
            pool.threads,
            text::seconds(pool.busy_seconds),
            text::percent(share.min(1.0))
        );
    }
    out.push_str("</table>\n</section>\n");
    out
}

/// The runs of a thread. Runs that one step can't tell apart are one bar.
fn bars<'a>(out: &mut String, runs: impl Iterator<Item = &'a StageRun>, end: f64) {
    let step = |seconds: f64| seconds / end.max(1e-9) * STEPS;
    let mut bar: Option<(usize, f64, f64)> = None;
    let mut draw = |bar: Option<(usize, f64, f64)>| {
        if let Some((stage, from, to)) = bar {
            let (colour, width) = (colour(stage), (to - from).max(0.2));
            let _ = write!(
                out,
                "<rect class=\"{colour}\" x=\"{from:.2}\" y=\"0\" width=\"{width:.2}\" height=\"10\" />"
            );
        }
    };
    for run in runs {
        let (from, to) = (step(run.start_seconds), step(run.end_seconds));
        match &mut bar {
            Some((stage, _, until))
                if *stage == run.stage && from - *until < 0.2 && to - from < 1.0 =>
            {
                *until = to;
            }
            _ => draw(bar.replace((run.stage, from, to))),
        }
    }
    draw(bar);
}

fn colour(stage: usize) -> &'static str {
    COLOURS[stage % COLOURS.len()]
}

fn stages(settings: &PipelineSettings, report: &PipelineReport) -> String {
    let mut out = "<section>\n<h2>Stages</h2>\n<table>\n<thead><tr><th>stage</th><th>command</th>\
                   <th>pool</th><th>partitions</th><th>failed tries</th><th>time per partition</th>\
                   <th>processor time</th><th>bytes in</th><th>bytes out</th></tr></thead>\n"
        .to_owned();
    for (totals, stage) in report.stages.iter().zip(&settings.stages) {
        let runs = totals.runs.max(1) as f64;
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td>{}</td></tr>",
            Escaped(&totals.name),
            Escaped(&stage.command),
            Escaped(&totals.pool),
            text::count(totals.runs),
            text::count(totals.failed),
            text::seconds(totals.seconds / runs),
            text::seconds(totals.processor_seconds / runs),
            text::bytes(totals.bytes_in),
            text::bytes(totals.bytes_out)
        );
    }
    let _ = write!(
        out,
        "</table>\n<p class=\"quiet\">Cutting {} partitions took {}; counting bytes before it took {}.</p>\n</section>\n",
        text::count(report.cuts as u64),
        text::seconds(report.cut_seconds),
        text::seconds(report.count_seconds)
    );
    out
}

fn model(report: &PipelineReport) -> String {
    let Some(model) = &report.model else {
        let why = match report.continued {
            true => {
                "An earlier command did a part of the work, so the times of all partitions are not known."
            }
            false => "There is no partition.",
        };
        return format!("<section>\n<h2>Predicted and measured</h2>\n<p>{why}</p>\n</section>\n");
    };
    let mut out = "<section>\n<h2>Predicted and measured</h2>\n<table>\n".to_owned();
    for (name, value) in rows(model) {
        let _ = writeln!(out, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    out.push_str(
        "</table>\n<p class=\"quiet\">The equations are those of chapter 4 of the dissertation, with mean times. \
         A pool takes the place of a stage where several stages or threads share one. Equation 4.8 is printed with \
         s_u, the unformatted size; its text has s_f, the formatted size, which is used here. Bandwidths in 4.7 and \
         4.8 are those of cutting: reading, writing and syncing.</p>\n</section>\n",
    );
    out
}

fn rows(model: &Predictions) -> Vec<(&'static str, String)> {
    let compared = |seconds: f64| {
        let share = seconds / model.measured_seconds.max(1e-9);
        format!("{} ({:.3} of the measured time)", text::seconds(seconds), share)
    };
    let or_unknown = |seconds: Option<f64>| seconds.map_or("not known".to_owned(), text::seconds);
    let each = |seconds: &[f64]| {
        seconds.iter().map(|seconds| text::seconds(*seconds)).collect::<Vec<_>>().join(", ")
    };
    let mut rows = vec![
        ("Measured: start to end of the last stage", text::seconds(model.measured_seconds)),
        ("Recurrence over all partitions", compared(model.recurrence_seconds)),
        (
            "The same, predicted after two partitions",
            match model.ahead_seconds {
                Some(seconds) => compared(seconds),
                None => "not known: the number of partitions was not known then".to_owned(),
            },
        ),
        ("T1, T2, ...: mean time of each stage", each(&model.stage_seconds)),
        ("Time of a partition in each pool", each(&model.pool_seconds)),
        ("4.1: response time", text::seconds(model.response_seconds)),
        (
            "4.2: throughput",
            format!("{} partitions per second", text::significant(model.throughput_per_second)),
        ),
        ("4.3, 4.6: speedup", text::significant(model.speedup)),
        ("4.4: not pipelined", text::seconds(model.unpipelined_seconds)),
        ("4.5: pipelined", compared(model.pipelined_seconds)),
        ("4.7: T1 by bytes and processor time", or_unknown(model.first_stage_seconds)),
        ("4.8: T2, with s_f", or_unknown(model.second_stage_seconds)),
        ("4.8 as printed, with s_u", or_unknown(model.second_stage_as_printed_seconds)),
    ];
    if let Some(best) = model.best_partitions {
        rows.push(("Best number of partitions", text::significant(best)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stage: usize, start_seconds: f64, end_seconds: f64) -> StageRun {
        StageRun {
            k: 0,
            stage,
            pool: 0,
            thread: 0,
            start_seconds,
            end_seconds,
            processor_seconds: 0.0,
            bytes_out: 0,
            failed: false,
        }
    }

    #[test]
    fn short_runs_share_a_bar() {
        let many: Vec<_> = (0..100_000)
            .map(|at| run(0, f64::from(at) * 0.01, f64::from(at) * 0.01 + 0.01))
            .collect();
        let mut out = String::new();
        bars(&mut out, many.iter(), 1000.0);
        assert_eq!(out.matches("<rect").count(), 1, "{}", out.len());
        let mut out = String::new();
        bars(&mut out, [run(0, 0.0, 400.0), run(1, 400.0, 1000.0)].iter(), 1000.0);
        assert_eq!(
            out,
            "<rect class=\"busy\" x=\"0.00\" y=\"0\" width=\"400.00\" height=\"10\" />\
             <rect class=\"reading\" x=\"400.00\" y=\"0\" width=\"600.00\" height=\"10\" />"
        );
    }
}
