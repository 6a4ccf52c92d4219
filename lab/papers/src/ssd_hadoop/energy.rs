//! Table 2: energy of a sort and of a join, the paper's arithmetic, and ours from the energy model.

use std::path::Path;

use super::study::{HDD, MeasuredCell, SAYS, SSD, Study, StudyCell};
use crate::error::ExperimentError;
use crate::lab::Lab;
use crate::outcome::{Outcome, OutcomeSection};
use merganser_pages::Chart;

/// A row of Table 2: watt-hours and seconds on the HDD, then on the SSD.
struct EnergyRow {
    name: &'static str,
    job: &'static str,
    gigabytes: f64,
    hdd: (f64, f64),
    ssd: (f64, f64),
}

const TABLE: [EnergyRow; 2] = [
    EnergyRow { name: "Sort", job: "sort", gigabytes: 10., hdd: (18.49, 1235.), ssd: (9.13, 479.) },
    EnergyRow {
        name: "Join",
        job: "join",
        gigabytes: 15.,
        hdd: (31.85, 1768.),
        ssd: (15.74, 1030.),
    },
];
/// "When 1000 nodes mounted on SSD are more expensive about $ 180 than HDDs, sorting more than 2000 times turn can
/// take on the cost advantages" (4.5).
const NODES: f64 = 1000.;
const DOLLARS: f64 = 180.;
const SORTS: f64 = 2000.;
/// Dollars per kWh, assumed: the paper names no price.
const PRICE: f64 = 0.10;
/// The PC without its disk, in watts, assumed: between the paper's means of 54 and 69 W. It is the same on both devices.
const PC_WATTS: f64 = 55.;

/// Computes the paper's figures, and ours if there are results.
pub fn run(lab: &Lab<'_>) -> Result<Outcome, ExperimentError> {
    let study = lab.setup.results.as_deref().map(Path::new).map(Study::read).transpose()?;
    Ok(outcome(study.as_ref()))
}

fn outcome(study: Option<&Study>) -> Outcome {
    let mut sections = vec![powers(), repaid(), judged()];
    let mut differs = vec![
        format!(
            "{PRICE} dollars per kWh and {PC_WATTS} W for the PC without its disk are assumed."
        ),
        "The text does not say whether 180 dollars are for each node or for all 1,000.".into(),
    ];
    match study {
        Some(study) => {
            sections.push(ours(study));
            differs.extend(study.differs());
            differs.push(
                "Ours is at the paper's size: energy and time of the scaled job, divided by the scale. The start of the job, \
                 which takes some seconds with any amount of data, is divided by it, too. The device's energy is that of the \
                 model's states. The powers of both devices are assumed: wd5000aakx has those of the Seagate Barracuda \
                 7200.12's data sheet, 830 those of its class (simulate --list=DEVICE)."
                    .into(),
            );
        }
        None => differs.push(
            "Ours needs results: --results FILE of study.py. Without them, only the paper's arithmetic is done.".into(),
        ),
    }
    let bars = TABLE.iter().flat_map(|row| {
        [("HDD", row.hdd.0), ("SSD", row.ssd.0)]
            .map(|(of, figure)| (format!("{}, {of}", row.name), figure, true))
    });
    let bars = bars.collect();
    Outcome {
        sections,
        differs,
        chart: Chart::Bars { title: "Energy (Table 2)".into(), unit: "Wh".into(), bars },
    }
}

fn powers() -> OutcomeSection {
    let mut powers = OutcomeSection::new("implied by Table 2");
    for row in &TABLE {
        for ((energy, seconds), of) in [(row.hdd, "HDD"), (row.ssd, "SSD")] {
            powers.paper(format!("{}, {of}: mean power, W", row.name), energy * 3600. / seconds);
        }
        powers.paper(format!("{}: energy, HDD over SSD", row.name), row.hdd.0 / row.ssd.0);
        powers.paper(format!("{}: time, HDD over SSD", row.name), row.hdd.1 / row.ssd.1);
    }
    powers
}

/// Kilowatt-hours that one sort on one node saves.
fn saved_kwh() -> f64 {
    (TABLE[0].hdd.0 - TABLE[0].ssd.0) / 1000.
}

/// Sorts on every node until `dollars` of all nodes together are saved.
fn sorts_to_repay(dollars: f64, price: f64) -> f64 {
    dollars / NODES / (saved_kwh() * price)
}

fn repaid() -> OutcomeSection {
    let mut repaid = OutcomeSection::new("sorts per node that repay the SSDs (4.5)");
    let each = sorts_to_repay(DOLLARS * NODES, PRICE);
    let all = sorts_to_repay(DOLLARS, PRICE);
    repaid.both("180 dollars per node", SORTS, each);
    repaid.both("180 dollars for all 1,000 nodes", SORTS, all);
    let price = |dollars: f64| dollars / NODES / (saved_kwh() * SORTS);
    repaid.ours("dollars per kWh for which 2,000 follow, 180 per node", price(DOLLARS * NODES));
    repaid.ours("the same, 180 for all nodes", price(DOLLARS));
    repaid.ours("kWh that 2,000 sorts save on 1,000 nodes", saved_kwh() * SORTS * NODES);
    repaid
}

fn judged() -> OutcomeSection {
    let mut says = OutcomeSection::new(SAYS);
    // Within a factor of two of the price that was assumed.
    let follows = |dollars| (0.5..2.).contains(&(sorts_to_repay(dollars, PRICE) / SORTS));
    says.holds("2,000 sorts repay 180 dollars per node", Some(follows(DOLLARS * NODES)));
    says.holds(
        "2,000 sorts repay 180 dollars for all nodes, and not many fewer",
        Some(follows(DOLLARS)),
    );
    let half = TABLE.iter().all(|row| row.ssd.0 * 1.9 < row.hdd.0);
    says.holds("energy is about two times less (1.9)", Some(half));
    says
}

/// Watt-hours at the paper's size.
fn watt_hours(one: &MeasuredCell) -> f64 {
    let device_watts = one.device_joules / one.device_seconds;
    (PC_WATTS + device_watts) * one.elapsed_s / 3600. / one.cell.scale
}

fn ours(study: &Study) -> OutcomeSection {
    let mut energy = OutcomeSection::new("Wh at the paper's size (Table 2)");
    for row in &TABLE {
        let found =
            [(HDD, row.hdd.0, "HDD"), (SSD, row.ssd.0, "SSD")].map(|(device, paper, of)| {
                let cell = StudyCell::stock(row.job, row.gigabytes, device, study.scale);
                let one = study.get(&cell).filter(|one| one.valid);
                if one.is_none() {
                    energy.of_cell(&format!("{}, {of}", row.name), study.get(&cell), watt_hours);
                }
                let ours = one.map(watt_hours);
                energy.gain(&format!("{}, {of}", row.name), Some(paper), ours);
                ours
            });
        let [hdd, ssd] = found;
        let ratio = hdd.zip(ssd).map(|(hdd, ssd)| hdd / ssd);
        energy.gain(&format!("{}: HDD over SSD", row.name), Some(row.hdd.0 / row.ssd.0), ratio);
    }
    energy
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{late, measured, study};
    use super::*;

    #[test]
    fn two_thousand_follow_from_neither_reading() {
        // 9.36 Wh a sort: 18.72 kWh in 2,000 sorts of a node, 1.87 dollars.
        assert!((sorts_to_repay(DOLLARS * NODES, PRICE) - 192_308.).abs() < 1.);
        assert!((sorts_to_repay(DOLLARS, PRICE) - 192.3).abs() < 0.1);
        let json = crate::report::tests::json(outcome(None));
        assert_eq!(json["sections"].as_array().map(Vec::len), Some(3));
        let says = &json["sections"][2]["rows"];
        assert_eq!((&says[0]["ours"], &says[1]["ours"]), (&0.0.into(), &0.0.into()));
        let watts = json["sections"][0]["rows"][0]["paper"].as_f64().expect("a power");
        assert!((watts - 53.9).abs() < 0.01, "{watts}");
        assert!(
            (json["sections"][1]["rows"][4]["ours"].as_f64().expect("kWh") - 18_720.).abs() < 1.
        );
    }

    #[test]
    fn ours_is_at_the_papers_size_and_never_that_of_a_late_cell() {
        let cell = |device| StudyCell::stock("sort", 10., device, 0.1);
        // 5 W of the device: 60 W for 60 s are 1 Wh, 10 at the paper's size.
        let cells = vec![measured(cell(HDD), 60.), late(cell(SSD), 10.)];
        let json = crate::report::tests::json(outcome(Some(&study(cells))));
        let rows = json["sections"][3]["rows"].as_array().expect("rows");
        let ours: Vec<_> = rows.iter().map(|row| (&row["what"], row["ours"].as_f64())).collect();
        assert_eq!(ours[0].1, Some(10.));
        assert_eq!(ours[1].0, "Sort, SSD: not valid, 2.5 % late");
        assert_eq!((ours[2].1, ours[3].1), (None, None));
    }
}
