//! A report as one page: styles and drawings are in it, there is no script, and its policy forbids
//! to fetch or run anything.
//!
//! There is no template engine: about a tenth of the lines here hold tags, and the others compute shapes and
//! numbers. All text passes one function that escapes it, which has tests with hostile names.

pub mod chart;
mod plan;

use std::fmt::Write;

use merganser_pages::frame::{self, REPORT_AS_DATA, document};
use merganser_pages::text::{self, Escaped};
use merganser_sort::activity::{WorkerReport, WorkerState};
use serde_json::Value;

use crate::report::ReportContent;
use chart::{Columns, Curves};

/// Input names shown; there may be thousands.
const NAMES: usize = 3;
/// Workers' roles in the order in which a record meets them.
const ROLES: [&str; 7] = ["read", "split", "sort", "merge", "bucket", "ahead", "write"];
/// From this share of its capacity on, something counts as the limit.
const LIMIT_SHARE: f64 = 0.8;

/// The page's text. It is XML too: every tag is closed.
pub(super) fn page(report: &ReportContent) -> String {
    let columns = Columns::of_activity(&report.activity);
    let mut body = String::new();
    let mut add = |part: &str| body.push_str(part);
    add(&head(report));
    add("<main>\n");
    add(&workers(report, &columns));
    add(&transfers(report, &columns));
    add("<div class=\"pair\">\n");
    add(&bytes(report));
    add(&memory(report));
    add("</div>\n");
    add(&report.plan.as_ref().map_or(String::new(), plan::section));
    add(&efficiency(report));
    add(&details(report));
    add("</main>\n");
    let title = format!("merganser {}: {}", report.command, report.output);
    document(&title, "", &body, REPORT_AS_DATA)
}

/// A plain description of the work, and the figures that readers look for first.
fn head(report: &ReportContent) -> String {
    let done = match report.command {
        "sort" => "Sorted",
        "merge" => "Merged",
        "map" => "Mapped",
        _ => "Copied out",
    };
    let rate = text::rate(report.efficiency.bytes_per_second);
    let seconds = text::seconds(report.seconds);
    let size = report.input_bytes.or(report.output_bytes).map(text::bytes);
    let what = match (size, report.records) {
        (Some(size), Some(records)) => format!("{size} ({} records)", text::count(records)),
        (Some(size), None) => size,
        (None, Some(records)) => format!("{} records", text::count(records)),
        (None, None) => "data".to_owned(),
    };
    let written = report.written_per_input_byte.map_or(String::new(), |bytes| {
        format!(" {} bytes were written to disk for each byte of input.", text::significant(bytes))
    });
    let mut figures = vec![
        ("Time", seconds.clone()),
        ("Throughput", rate.clone()),
        ("Peak memory", text::memory(report.peak_rss_bytes)),
        ("Cores used", text::percent(report.cores.used_share)),
    ];
    if let Some(share) = disk_share(report) {
        figures.push(("Disk busy", text::percent(share)));
    }
    if let Some(bytes) = report.written_per_input_byte {
        figures.push(("Written per input byte", text::significant(bytes)));
    }
    format!(
        "<header>\n<h1>merganser {}</h1>\n<p class=\"lead\">{done} {what} of {} into {} in {seconds}: \
         {rate}.{written}</p>\n<p>{}</p>\n{}</header>\n",
        report.command,
        names(&report.inputs),
        name(&report.output),
        limit(report),
        frame::figures(&figures),
    )
}

/// A name that may be anything, and may run in any direction.
fn name(name: &str) -> String {
    format!("<bdi>{}</bdi>", Escaped(name))
}

fn names(all: &[String]) -> String {
    let mut shown: Vec<String> = all.iter().take(NAMES).map(|one| name(one)).collect();
    match all.len() - shown.len() {
        0 => {}
        1 => shown.push("one more".to_owned()),
        more => shown.push(format!("{} more", text::count(more as u64))),
    }
    match shown.pop() {
        Some(last) if shown.is_empty() => last,
        Some(last) => format!("{} and {last}", shown.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// How long the busiest disk had something to do, 0 to 1.
fn disk_share(report: &ReportContent) -> Option<f64> {
    let busy = report.disks.iter().map(|disk| disk.busy_seconds / report.seconds);
    busy.reduce(f64::max).map(|share| share.min(1.0))
}

/// The resource that limited the work, as far as the used shares show it.
fn limit(report: &ReportContent) -> String {
    let cores = report.cores.used_share;
    let core_words = format!("{} of what the cores could do was used", text::percent(cores));
    let Some(disk) = disk_share(report) else { return format!("{core_words}.") };
    let disk_words = format!("the disk was busy {} of the time", text::percent(disk));
    match (cores >= LIMIT_SHARE, disk >= LIMIT_SHARE) {
        (true, true) => {
            format!("Cores and disk were both the limit: {core_words}, and {disk_words}.")
        }
        (true, false) => format!("The cores were the limit: {core_words}; {disk_words}."),
        (false, true) => format!("The disk was the limit: {disk_words}; {core_words}."),
        (false, false) => format!("Neither was the limit alone: {core_words}, and {disk_words}."),
    }
}

/// The label of a state.
fn words(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Busy => "busy",
        WorkerState::Reading => "waiting for reads",
        WorkerState::Writing => "writing",
        WorkerState::Input => "waiting for input",
        WorkerState::Output => "waiting for its output to be taken",
        WorkerState::Memory => "waiting for memory",
        WorkerState::Turn => "waiting for its turn",
    }
}

fn workers(report: &ReportContent, columns: &Columns) -> String {
    let activity = &report.activity;
    let mut part = "<section>\n<h2>Who worked when</h2>\n\
        <p class=\"quiet\">A row for each worker. Coloured: what it did; pale: what it waited for; blank: it did not exist.</p>\n\
        <ul class=\"legend\">\n"
        .to_owned();
    let occurs =
        |state: &WorkerState| activity.workers.iter().any(|w| w.state_ns.contains_key(state));
    for state in WorkerState::ALL.into_iter().filter(occurs) {
        let class = chart::class(state);
        writeln!(part, "<li><i class=\"{class}\"></i>{}</li>", words(state)).expect("a string");
    }
    part.push_str("</ul>\n");
    part.push_str(&phases(report));
    // Along the way of a record, as far as roles are known.
    let rank = |worker: &&WorkerReport| {
        let role = worker.name.split(' ').next().unwrap_or_default();
        ROLES.iter().position(|known| *known == role).unwrap_or(ROLES.len())
    };
    let mut workers: Vec<&WorkerReport> = activity.workers.iter().collect();
    workers.sort_by_key(rank);
    for worker in &workers {
        let label = shares(worker);
        let drawn = chart::timeline(columns, worker, &format!("{}: {label}", worker.name));
        let (all, busy) = (total_ns(worker), worker.total_ns(WorkerState::Busy));
        let busy = if all == 0 { 0.0 } else { busy as f64 / all as f64 };
        writeln!(
            part,
            "<div class=\"row\"><div class=\"who\">{}<small>{} busy</small></div>{drawn}</div>",
            worker.name,
            text::percent(busy)
        )
        .expect("a string");
    }
    part.push_str(&axis(report));
    part.push_str("<details><summary>The same in numbers</summary>\n<table>\n");
    part.push_str("<thead><tr><th>Worker</th><th>Seconds</th></tr></thead>\n<tbody>\n");
    for worker in &workers {
        writeln!(part, "<tr><th>{}</th><td>{}</td></tr>", worker.name, shares(worker))
            .expect("a string");
    }
    part.push_str("</tbody>\n</table>\n</details>\n</section>\n");
    part
}

fn total_ns(worker: &WorkerReport) -> u64 {
    WorkerState::ALL.iter().map(|state| worker.total_ns(*state)).sum()
}

/// The states of a worker as text: `busy 2.10 s, waiting for reads 0.30 s`.
fn shares(worker: &WorkerReport) -> String {
    let spent = WorkerState::ALL.iter().map(|state| (words(*state), worker.total_ns(*state)));
    let spent = spent.filter(|(_, ns)| *ns > 0);
    let spent = spent.map(|(words, ns)| format!("{words} {}", text::seconds(ns as f64 / 1e9)));
    spent.collect::<Vec<_>>().join(", ")
}

/// A strip that names the parts of the work, over the time lines.
fn phases(report: &ReportContent) -> String {
    let activity = &report.activity;
    let ends = activity.phases.iter().skip(1).map(|phase| phase.start_ns);
    let ends = ends.chain([activity.end_ns]);
    let first = activity.phases.first().map_or(activity.end_ns, |phase| phase.start_ns);
    let mut strip = format!("<span style=\"flex:{first} 1 0;visibility:hidden\"></span>");
    for (phase, end_ns) in activity.phases.iter().zip(ends) {
        let long = end_ns.saturating_sub(phase.start_ns);
        let words = format!("{} {}", phase.name, text::seconds(long as f64 / 1e9));
        write!(strip, "<span style=\"flex:{long} 1 0\" title=\"{words}\">{words}</span>")
            .expect("a string");
    }
    format!(
        "<div class=\"row\"><div class=\"who\"></div><div class=\"phases\">{strip}</div></div>\n"
    )
}

fn axis(report: &ReportContent) -> String {
    let end = report.activity.end_ns as f64 / 1e9;
    let ticks = (0..=4).map(|quarter| match quarter {
        0 => "<span>0</span>".to_owned(),
        _ => format!("<span>{}</span>", text::seconds(end * f64::from(quarter) / 4.0)),
    });
    let ticks: String = ticks.collect();
    format!("<div class=\"row\"><div class=\"who\"></div><div class=\"axis\">{ticks}</div></div>\n")
}

/// Throughput and queue depth over time.
fn transfers(report: &ReportContent, columns: &Columns) -> String {
    let activity = &report.activity;
    let end = activity.end_ns.max(1) as f64;
    let mean = |bins: &[u64], per: f64| bins.iter().sum::<u64>() as f64 * per / end;
    let rate = |bins: &[u64]| text::rate(mean(bins, 1e9));
    let depth = |bins: &[u64]| text::significant(mean(bins, 1.0));
    let (reads, writes) = (&activity.reads, &activity.writes);
    let rates = Curves::rates(columns, activity);
    let depths = Curves::depths(columns, activity);
    let rate_words =
        format!("read {}, written {} on average", rate(&reads.bytes), rate(&writes.bytes));
    let depth_words = format!(
        "reads in flight: {} on average, {} at most; writes: {}, {} at most",
        depth(&reads.in_flight_ns),
        reads.in_flight_max,
        depth(&writes.in_flight_ns),
        writes.in_flight_max
    );
    let mut part = "<section>\n<h2>Throughput and queue depth</h2>\n<ul class=\"legend\">\
        <li><i class=\"reading\"></i>reads</li><li><i class=\"writing\"></i>writes</li></ul>\n"
        .to_owned();
    let curves = [
        ("Throughput", &rates, &rate_words, format!("{} MB/s", text::short(rates.top / 1e6))),
        ("Queue depth", &depths, &depth_words, format!("{} requests", text::short(depths.top))),
    ];
    for (name, curves, words, top) in curves {
        let drawn = curves.draw(columns, &format!("{name} over time: {words}"));
        writeln!(
            part,
            "<div class=\"row curves\"><div class=\"who\">{name}<small>{words}</small></div>\
             <div class=\"scale\" data-top=\"{top}\">{drawn}</div></div>"
        )
        .expect("a string");
    }
    part.push_str(&axis(report));
    part.push_str(
        "<p class=\"quiet\">What was asked of inputs, runs and output; pipes are not counted here.</p>\n</section>\n",
    );
    part
}

/// Bars of one scale, each with its value.
fn bars(rows: &[(String, u64, &str)], show: fn(u64) -> String) -> String {
    let most = rows.iter().map(|(_, value, _)| *value).max().unwrap_or(0).max(1);
    let bar = |(name, value, class): &(String, u64, &str)| {
        let width = *value as f64 * 100.0 / most as f64;
        format!(
            "<li>{name} <span>{}</span><div class=\"bar {class}\" style=\"width:{width:.1}%\"></div></li>\n",
            show(*value)
        )
    };
    let bars: String = rows.iter().map(bar).collect();
    format!("<ul class=\"bars\">\n{bars}</ul>\n")
}

/// Bytes that devices moved, compared with the bytes of the data.
fn bytes(report: &ReportContent) -> String {
    let mut rows = Vec::new();
    rows.extend(report.input_bytes.map(|bytes| ("Input".to_owned(), bytes, "input")));
    rows.push(("Read from the disk".to_owned(), report.device_read_bytes, "reading"));
    rows.push(("Written to the disk".to_owned(), report.device_written_bytes, "writing"));
    rows.extend(report.output_bytes.map(|bytes| ("Result".to_owned(), bytes, "input")));
    let process = &report.process;
    let who = if report.disks.is_empty() {
        "Counted for this process by the system (/proc/self/io), because the files are on no known block device."
            .to_owned()
    } else {
        let disks: Vec<String> = report.disks.iter().map(|disk| name(&disk.name)).collect();
        format!(
            "Counted by the block device {}, other programs' traffic included. This process alone asked for {} read and {} written.",
            disks.join(", "),
            text::bytes(process.read_bytes),
            text::bytes(process.written_bytes)
        )
    };
    let life = report.ssd_life.as_ref().map_or(String::new(), |life| {
        let times = 1.0 / life.spent_share.max(f64::MIN_POSITIVE);
        format!(
            "<p>SSD life spent: {} % of {}. It would last for {} such runs.</p>\n",
            text::significant(life.spent_share * 100.0),
            text::bytes(life.endurance_bytes),
            if life.written_bytes == 0 {
                "any number of".to_owned()
            } else {
                text::count(times as u64)
            }
        )
    });
    format!(
        "<section>\n<h2>Bytes</h2>\n{}{life}<p class=\"quiet\">{who}</p>\n</section>\n",
        bars(&rows, text::bytes)
    )
}

fn memory(report: &ReportContent) -> String {
    let owners = report.memory.iter().filter(|peak| peak.peak_bytes > 0);
    let mut rows: Vec<(String, u64, &str)> =
        owners.map(|peak| (Escaped(peak.owner).to_string(), peak.peak_bytes, "busy")).collect();
    rows.push(("Limit (<code>--memory</code>)".to_owned(), report.memory_limit_bytes, "input"));
    rows.push(("Whole process at its peak".to_owned(), report.peak_rss_bytes, "input"));
    let pages = report.buffer_pages.as_ref();
    let pages = pages.map_or(String::new(), |pages| format!(" Large buffers: {}.", pages.in_words));
    format!(
        "<section>\n<h2>Memory</h2>\n{}<p class=\"quiet\">The most that each owner had reserved; not all at the same time.{pages}</p>\n</section>\n",
        bars(&rows, text::memory)
    )
}

/// Shares of capacity, and throughput per unit of each resource.
fn efficiency(report: &ReportContent) -> String {
    let found = &report.efficiency;
    let cores = &report.cores;
    let physical = if cores.physical > 0 { cores.physical } else { cores.usable };
    let mut rows = vec![(
        "Cores".to_owned(),
        format!(
            "{} used: {} of processor time on {} that can run at once",
            text::percent(cores.used_share),
            text::seconds(report.cpu_seconds),
            match cores.usable {
                1 => "1 thread".to_owned(),
                threads => format!("{threads} threads"),
            }
        ),
    )];
    for disk in &report.disks {
        let share = (disk.busy_seconds / report.seconds).min(1.0);
        let moved = (disk.read_bytes + disk.written_bytes) as f64 / report.seconds;
        let words =
            format!("busy {} of the time, moved {}", text::percent(share), text::rate(moved));
        rows.push((format!("Disk {}", name(&disk.name)), words));
    }
    let mut add = |what: &str, value: Option<String>| {
        rows.extend(value.map(|value| (what.to_owned(), value)));
    };
    add("Sorted per node", Some(text::rate(found.bytes_per_second)));
    let per_core = format!("{} ({physical} physical)", text::rate(found.bytes_per_second_per_core));
    add("Sorted per core", Some(per_core));
    add("Sorted per disk", found.bytes_per_second_per_disk.map(text::rate));
    let dollar = |rate: f64| format!("{} kB/s", text::significant(rate / 1e3));
    add("Sorted per dollar", found.bytes_per_second_per_dollar.map(dollar));
    let energy = found.joules.map(|joules| {
        let of = match found.joules_of {
            Some("processors") => "the processors alone, by their own counters",
            _ => "the whole machine, by the given power",
        };
        format!("{} J ({of})", text::significant(joules))
    });
    add("Energy", energy);
    let records = |count: f64| format!("{} records", text::significant(count));
    add(
        "Sorted per joule",
        found
            .records_per_joule
            .map(records)
            .or_else(|| found.bytes_per_joule.map(|bytes| text::bytes(bytes as u64))),
    );
    let table: String = rows
        .iter()
        .map(|(what, value)| format!("<tr><th>{what}</th><td>{value}</td></tr>\n"))
        .collect();
    let missing: Vec<&str> = [
        (found.bytes_per_second_per_dollar.is_none(), "<code>--price DOLLARS</code>"),
        (found.joules.is_none(), "<code>--power WATTS</code>"),
        (report.ssd_life.is_none(), "<code>--endurance TBW</code>"),
    ]
    .into_iter()
    .filter_map(|(missing, flag)| missing.then_some(flag))
    .collect();
    let hint = if missing.is_empty() {
        String::new()
    } else {
        format!("<p class=\"quiet\">More with {}.</p>\n", missing.join(", "))
    };
    format!(
        "<section>\n<h2>Use of the machine</h2>\n<table>\n<tbody>\n{table}</tbody>\n</table>\n{hint}\
         <p class=\"quiet\">A disk that is busy may still have room: an SSD serves many requests at once.</p>\n</section>\n"
    )
}

/// All else that was counted, under its name in the data.
fn details(report: &ReportContent) -> String {
    let mut rows: Vec<(String, String)> = report
        .io
        .iter()
        .map(|(what, mode)| (format!("How {what} was reached"), Escaped(mode).to_string()))
        .collect();
    if let Some(counted) = report.detail.values().next().and_then(Value::as_object) {
        for (key, value) in counted {
            let words =
                key.trim_end_matches("_bytes").trim_end_matches("_seconds").replace('_', " ");
            let shown = match value {
                Value::Number(n) if key.ends_with("_bytes") => text::bytes(n.as_u64().unwrap_or(0)),
                Value::Number(n) if key.ends_with("_seconds") => {
                    text::seconds(n.as_f64().unwrap_or(0.0))
                }
                Value::Number(n) => n.as_u64().map_or_else(|| n.to_string(), text::count),
                Value::String(text) => Escaped(text).to_string(),
                _ => continue,
            };
            rows.push((Escaped(&words).to_string(), shown));
        }
    }
    let rows: String = rows
        .iter()
        .map(|(what, value)| format!("<tr><th>{what}</th><td>{value}</td></tr>\n"))
        .collect();
    format!(
        "<section>\n<details><summary>Everything else that was counted</summary>\n<table>\n<tbody>\n{rows}</tbody>\n</table>\n</details>\n</section>\n"
    )
}
