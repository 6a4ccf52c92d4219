//! A sort that consumes its input ends at any look for the end, and the same job continues.

use std::fs;

use merganser_results::consume::ConsumeError;
use merganser_results::unfinished::claimed_path;
use merganser_sort::{Error, Silent};

use crate::place::{EndsAt, Place, sorted};

#[test]
fn no_record_is_lost_wherever_the_end_is_asked_for() {
    let place = Place::new();
    let records = place.many_records();
    let wanted = sorted(&records);
    let (mut begun, mut untouched) = (0, 0);
    for look in 0.. {
        let input = place.file("in", &records);
        let ended = place.consume("in", "out", false, &EndsAt::look(look));
        match ended {
            Ok(report) => {
                assert!(report.runs > 2, "{report:?}");
                break;
            }
            Err(ConsumeError::Begun { folder, .. }) => {
                begun += 1;
                assert_eq!(folder, fs::canonicalize(place.work("out")).expect("there"));
            }
            Err(ConsumeError::Results(error)) => {
                untouched += 1;
                assert!(error.to_string().contains(&Error::Cancelled.to_string()), "{error}");
                assert!(fs::read(&input).expect("whole") == records, "{look}");
                assert!(!claimed_path(&input).exists() && !place.work("out").exists(), "{look}");
            }
            Err(other) => panic!("{look}: {other}"),
        }
        place.consume("in", "out", false, &Silent).unwrap_or_else(|e| panic!("{look}: {e}"));
        assert!(fs::read(place.at("out")).expect("there") == wanted, "{look}");
        assert_eq!(place.names(), ["out"], "{look}");
        fs::remove_file(place.at("out")).expect("removed");
    }
    assert!(begun > 2 && untouched > 0, "{begun} had begun, {untouched} had not");
}
