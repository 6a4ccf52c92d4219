use std::io::Cursor;

use super::*;

fn filled(form: Form, frame: &str, formatted: &str) -> Result<String, OutputFrameError> {
    let mut out = Vec::new();
    fill(form, &mut frame.as_bytes(), &mut Cursor::new(formatted), "blastn -db a", &mut out)?;
    Ok(String::from_utf8(out).expect("text"))
}

const TABLE_FRAME: &str = "\
# BLASTN 2.12.0+
# Query: bad
# Database: db
# BLASTN 2.12.0+
# Query: q
# Database: db
# 0 hits found
# BLAST processed 2 queries
";
const TABLE_FOUND: &str = "\
# BLASTN 2.12.0+
# Query: bad
# Database: db
# 0 hits found
# BLAST processed 1 queries
# BLASTN 2.12.0+
# Query: q
# Database: db
# Fields: subject title
# 2 hits found
# BLAST processed 9 queries
# BLASTN 2.12.0+
# BLAST processed 1 queries
";

#[test]
fn rows_of_a_table_are_counted_and_may_look_like_comments() {
    let expected = "\
# BLASTN 2.12.0+
# Query: bad
# Database: db
# BLASTN 2.12.0+
# Query: q
# Database: db
# Fields: subject title
# 2 hits found
# BLAST processed 9 queries
# BLASTN 2.12.0+
# BLAST processed 2 queries
";
    assert_eq!(filled(Form::Commented, TABLE_FRAME, TABLE_FOUND).expect("known"), expected);
}

const TEXT_FRAME: &str = "\
BLASTN


Database: db



Query= one

Length=4


***** No hits found *****



Lambda      K        H
    1.33    0.621     1.12

Effective search space used: 12


Query= two

Length=9


***** No hits found *****



Lambda      K        H
    9.99    0.621     1.12

Effective search space used: 34


  Database: db
";
const TEXT_FOUND: &str = "\
BLASTN


Database: db



Query= one

Length=4
List

Lambda      K        H        a subject


>Lambda      K        H
Query= no query
Length=7

Sbjct 1 ACGT



Lambda      K        H
    0.00    0.621     1.12

Effective search space used: 0


  Database: db
BLASTN


Database: db



Query= two

Length=9


***** No hits found *****



Lambda      K        H
    1.33    0.621     1.12

Effective search space used: 0


  Database: db
";

#[test]
fn text_has_the_hits_and_the_statistics_of_its_queries() {
    let made = filled(Form::Pairwise, TEXT_FRAME, TEXT_FOUND).expect("known");
    let hits = &TEXT_FOUND[TEXT_FOUND.find("List").expect("there")..];
    let hits = &hits[..hits.find("\n\n\nLambda").expect("there")];
    let expected = TEXT_FRAME.replacen("\n\n***** No hits found *****\n", hits, 1);
    assert_eq!(made, expected);
}

const XML_FRAME: &str = "\
<BlastOutput>
<Iteration>
  <Iteration_query-ID>Query_1</Iteration_query-ID>
<Iteration_hits>
</Iteration_hits>
  <Iteration_stat>1
  </Iteration_stat>
  <Iteration_message>No hits found</Iteration_message>
</Iteration>
<Iteration>
  <Iteration_query-ID>Query_2</Iteration_query-ID>
<Iteration_hits>
</Iteration_hits>
  <Iteration_stat>2
  </Iteration_stat>
  <Iteration_message>No hits found</Iteration_message>
</Iteration>
</BlastOutput>
";

#[test]
fn xml_loses_the_message_of_queries_with_hits() {
    let found = XML_FRAME.replacen("_hits>\n<", "_hits>\n<Hit>\n<", 1);
    let found = found.replacen("stat>2", "stat>1", 1);
    let message = "  <Iteration_message>No hits found</Iteration_message>\n";
    let expected = XML_FRAME.replacen("_hits>\n<", "_hits>\n<Hit>\n<", 1).replacen(message, "", 1);
    assert_eq!(filled(Form::Xml, XML_FRAME, &found).expect("known"), expected);
    // A warning about a query with hits is not known.
    let warned = XML_FRAME.replacen(">No hits", ">Query_1: strange. No hits", 1);
    assert!(filled(Form::Xml, &warned, &found).is_err());
    assert_eq!(filled(Form::Xml, &warned, XML_FRAME).expect("known"), warned);
}

#[test]
fn json_loses_the_comma_too() {
    let frame = "\
          \"query_id\": \"Query_1\",
          \"hits\": [
          ],
          \"stat\": {
          },
          \"message\": \"No hits found\"
        }
";
    let found = frame.replacen("[\n", "[\n            {\n            }\n", 1);
    let expected = "\
          \"query_id\": \"Query_1\",
          \"hits\": [
            {
            }
          ],
          \"stat\": {
          }
        }
";
    assert_eq!(filled(Form::Json, frame, &found).expect("known"), expected);
    assert_eq!(filled(Form::Json, frame, frame).expect("known"), frame);
}

#[test]
fn sam_has_one_header() {
    let batch = |query: u32| {
        format!(
            "@HD\tVN:1.2\n@SQ\tSN:Query_{query}\n@PG\tID:0\tCL:blast_formatter x \tPN:blastn\nBL_ORD_ID:0\t{query}\n"
        )
    };
    let expected = "@HD\tVN:1.2\n@SQ\tSN:Query_1\n@SQ\tSN:Query_3\n@PG\tID:0\tCL:blastn -db a \tPN:blastn\nBL_ORD_ID:0\t1\nBL_ORD_ID:0\t3\n";
    assert_eq!(filled(Form::Sam, "", &(batch(1) + &batch(3))).expect("known"), expected);
    assert_eq!(filled(Form::Sam, "", "").expect("known"), "");
    assert!(filled(Form::Sam, "", "@HD\tVN:1.2\n").is_err());
}

/// Whatever is cut off or belongs to another query is noticed.
#[test]
fn other_shapes_are_errors() {
    for (form, frame, found) in [
        (Form::Commented, TABLE_FRAME, TABLE_FOUND),
        (Form::Pairwise, TEXT_FRAME, TEXT_FOUND),
        (Form::Xml, XML_FRAME, XML_FRAME),
    ] {
        let whole = filled(form, frame, found).expect("known");
        for (at, _) in found.match_indices('\n') {
            // The part that is cut off either does not matter to the output, or its absence is an error.
            if let Ok(made) = filled(form, frame, &found[..at]) {
                assert_eq!(made, whole, "cut at {at}");
            }
        }
        let twice = found.repeat(2);
        assert!(filled(form, frame, &twice).is_err(), "{form:?}");
        let other = found.replace("Query= two", "Query= t").replace("Query: q", "Query: w");
        let other = other.replace("Query_2", "Query_7");
        assert!(filled(form, frame, &other).is_err(), "{form:?}");
    }
}
