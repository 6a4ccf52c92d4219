//! `merganser blast` against makeblastdb and one search, byte by byte: random programs, options, data, forms of output and
//! partitions. `MERGANSER_BLAST_CASES` asks for more cases than a quick run takes.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use merganser_testkit::{has_blast, install_program};

use crate::harness::{
    Chance, Folder, asked, fails, merganser, merganser_itself, prints, sorted_lines, stderr,
};

/// Cases of a quick run.
const QUICK: u64 = 8;
/// Queries with fewer letters are one batch of blastn, whatever it finds.
const ONE_BATCH_LETTERS: usize = 4_000;
/// What docs/near/blast.md says of blastn's batches otherwise.
const BATCH_LETTERS: &str = "100000";

const BASES: &[u8] = b"ACGT";
const RESIDUES: &[u8] = b"AAAARRNNDDCQQEEEGGGHIIILLLLLKKKMFFPPSSSSTTTVVVWYY";

fn letters(chance: &mut Chance, of: &[u8], length: u64) -> Vec<u8> {
    (0..length).map(|_| of[chance.below(of.len() as u64) as usize]).collect()
}

/// A copy with substitutions, insertions and deletions, `rate` of 1000 letters each.
fn mutated(chance: &mut Chance, text: &[u8], of: &[u8], rate: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for letter in text {
        match chance.below(3000) {
            n if n < 2 * rate => out.push(of[chance.below(of.len() as u64) as usize]),
            n if n < 2 * rate + rate / 4 => {}
            n if n < 2 * rate + rate / 2 => {
                out.push(*letter);
                out.push(of[chance.below(of.len() as u64) as usize]);
            }
            _ => out.push(*letter),
        }
    }
    out
}

/// A codon for a residue, one of those that code for it.
fn translated_back(chance: &mut Chance, protein: &[u8]) -> Vec<u8> {
    let codon = |residue: u8, chance: &mut Chance| -> &'static [u8] {
        let codons: &[&'static [u8]] = match residue {
            b'A' => &[b"GCT", b"GCC"],
            b'R' => &[b"CGT", b"AGA"],
            b'N' => &[b"AAT"],
            b'D' => &[b"GAT"],
            b'C' => &[b"TGT"],
            b'Q' => &[b"CAA"],
            b'E' => &[b"GAA", b"GAG"],
            b'G' => &[b"GGT", b"GGC"],
            b'H' => &[b"CAT"],
            b'I' => &[b"ATT"],
            b'L' => &[b"CTT", b"TTA"],
            b'K' => &[b"AAA"],
            b'M' => &[b"ATG"],
            b'F' => &[b"TTT"],
            b'P' => &[b"CCT"],
            b'S' => &[b"TCT", b"AGT"],
            b'T' => &[b"ACT"],
            b'W' => &[b"TGG"],
            b'Y' => &[b"TAT"],
            _ => &[b"GTT", b"GTA"],
        };
        codons[chance.below(codons.len() as u64) as usize]
    };
    protein.iter().flat_map(|residue| codon(*residue, chance)).copied().collect()
}

fn record(out: &mut Vec<u8>, name: &str, sequence: &[u8], width: usize) {
    out.extend_from_slice(format!(">{name}\n").as_bytes());
    for line in sequence.chunks(width) {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
}

/// Queries and a database with families of copies of parts of them, some of them equal: ties.
fn data(chance: &mut Chance, program: &str) -> (Vec<u8>, Vec<u8>) {
    let protein = program != "blastn";
    let of = if protein { RESIDUES } else { BASES };
    let bases: Vec<Vec<u8>> = (0..1 + chance.below(6))
        .map(|_| {
            let length = if protein { 40 + chance.below(300) } else { 100 + chance.below(1500) };
            letters(chance, of, length)
        })
        .collect();
    let (mut queries, mut database) = (Vec::new(), Vec::new());
    for (at, base) in bases.iter().enumerate() {
        let rate = chance.below(100);
        let query = mutated(chance, base, of, rate);
        let query = if program == "blastx" { translated_back(chance, &query) } else { query };
        record(&mut queries, &format!("q{at} a query"), &query, 60);
    }
    // Queries that can't be searched, and more than a batch of them.
    let unknown = [if protein && program != "blastx" { b'X' } else { b'N' }; 12];
    if chance.once_in(6) {
        record(&mut queries, "unknown", &unknown, 60);
    }
    if chance.once_in(8) {
        record(&mut queries, "short", &unknown[..2], 60);
    }
    if chance.once_in(6) {
        let (count, length) = if program == "blastn" { (3, 40_000) } else { (30, 600) };
        for at in 0..count {
            let query = letters(
                chance,
                if program == "blastp" || program == "tblastn" { RESIDUES } else { BASES },
                length,
            );
            record(&mut queries, &format!("random{at} a query"), &query, 60);
        }
    }
    let mut sequences: Vec<Vec<u8>> = Vec::new();
    for base in &bases {
        for _ in 0..[0, 1, 3, 10, 60][chance.below(5) as usize] {
            let from = chance.below(base.len() as u64 / 2 + 1) as usize;
            let rate = [0, 0, 20, 100, 300][chance.below(5) as usize];
            let middle = mutated(chance, &base[from..], of, rate);
            let (before, behind) = (chance.below(200), chance.below(200));
            let sequence =
                [letters(chance, of, before), middle, letters(chance, of, behind)].concat();
            sequences.push(sequence);
        }
    }
    for _ in 0..5 + chance.below(40) {
        let length = 20 + chance.below(900);
        sequences.push(letters(chance, of, length));
    }
    // Any order, so that families are in all partitions.
    for at in (1..sequences.len()).rev() {
        sequences.swap(at, chance.below(at as u64 + 1) as usize);
    }
    for (at, sequence) in sequences.into_iter().enumerate() {
        let mut sequence = sequence;
        if program == "tblastn" {
            sequence = translated_back(chance, &sequence);
        }
        if !protein && chance.once_in(6) && sequence.len() > 60 {
            let from = chance.below(sequence.len() as u64 - 40) as usize;
            sequence[from..from + 30].fill(*chance.pick(&[&b'N', &b'R', &b'Y']));
        }
        let width = 20 + chance.below(100) as usize;
        record(&mut database, &format!("s{at} subject number {at}"), &sequence, width);
    }
    (queries, database)
}

/// Forms of the output of a program.
fn form(chance: &mut Chance, program: &str) -> &'static str {
    let forms = [
        "0",
        "5",
        "6",
        "7",
        "10",
        "15",
        "6 qseqid sseqid evalue bitscore score stitle slen qcovs qcovus btop sseq qframe sframe",
        "7 qaccver staxids qlen nident positive gaps ppos sstrand",
        "10 qacc sacc qstart qend qseq mismatch",
        "17",
    ];
    let known = if program == "blastn" { forms.len() } else { forms.len() - 1 };
    forms[chance.below(known as u64) as usize]
}

/// Options that are drawn for a program.
fn options(chance: &mut Chance, program: &str, form: &str) -> Vec<String> {
    let mut words: Vec<&str> = Vec::new();
    let mut any = |words: &mut Vec<&'static str>, of: &[&'static [&'static str]]| {
        if let Some(drawn) = of.get(chance.below(of.len() as u64 * 2) as usize) {
            words.extend(*drawn);
        }
    };
    any(&mut words, &[&["-evalue", "1e-5"], &["-evalue", "1000"], &["-evalue", "0.01"]]);
    any(&mut words, &[&["-num_threads", "2"], &["-lcase_masking"]]);
    any(&mut words, &[&["-soft_masking", "true"], &["-soft_masking", "false"]]);
    match form {
        "0" => any(
            &mut words,
            &[
                &["-num_descriptions", "600", "-num_alignments", "3"],
                &["-num_alignments", "600", "-line_length", "37"],
                &["-num_descriptions", "0", "-num_alignments", "700"],
                &["-max_target_seqs", "1000"],
            ],
        ),
        _ => any(&mut words, &[&["-max_target_seqs", "1000"], &["-max_target_seqs", "600"]]),
    }
    let scored: &[&[&str]] = match program {
        "blastn" => {
            any(
                &mut words,
                &[
                    &["-task", "blastn"],
                    &["-task", "megablast"],
                    &["-task", "dc-megablast"],
                    &["-task", "blastn-short"],
                    &["-task", "blastn", "-word_size", "7"],
                ],
            );
            any(&mut words, &[&["-strand", "plus"], &["-strand", "minus"]]);
            any(&mut words, &[&["-dust", "no"], &["-perc_identity", "95"]]);
            &[
                &["-reward", "1", "-penalty", "-3", "-gapopen", "5", "-gapextend", "2"],
                &["-ungapped"],
            ]
        }
        "blastp" => {
            any(&mut words, &[&["-task", "blastp-fast"], &["-task", "blastp-short"]]);
            &[
                &["-matrix", "BLOSUM45"],
                &["-comp_based_stats", "0"],
                &["-comp_based_stats", "1"],
                &["-comp_based_stats", "3"],
                &["-comp_based_stats", "0", "-ungapped"],
                &["-threshold", "14", "-window_size", "20"],
                &["-gapopen", "10", "-gapextend", "1", "-word_size", "2"],
            ]
        }
        "blastx" => {
            any(
                &mut words,
                &[&["-strand", "plus"], &["-query_gencode", "4"], &["-task", "blastx-fast"]],
            );
            &[
                &["-comp_based_stats", "0"],
                &["-matrix", "BLOSUM80"],
                &["-comp_based_stats", "0", "-ungapped"],
            ]
        }
        _ => {
            any(&mut words, &[&["-db_gencode", "4"], &["-task", "tblastn-fast"]]);
            &[
                &["-comp_based_stats", "0"],
                &["-matrix", "PAM70"],
                &["-comp_based_stats", "0", "-ungapped"],
            ]
        }
    };
    any(&mut words, scored);
    if program != "blastn" {
        any(&mut words, &[&["-seg", "yes"], &["-seg", "no"]]);
    }
    // With linked alignments it is refused.
    if ["blastn", "blastp"].contains(&program) && !words.contains(&"-ungapped") {
        any(&mut words, &[&["-max_hsps", "1"], &["-max_hsps", "2"], &["-subject_besthit"]]);
    }
    words.into_iter().map(str::to_owned).collect()
}

fn succeeds(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    output
}

/// The output of makeblastdb and one search, or `None` if BLAST refuses it.
fn in_one_piece(folder: &Folder, program: &str, words: &[String], form: &str) -> Option<Vec<u8>> {
    let dbtype = if ["blastn", "tblastn"].contains(&program) { "nucl" } else { "prot" };
    fs::create_dir_all(folder.at("one")).expect("made");
    let mut format = Command::new("makeblastdb");
    // It guesses the form of a file, and takes one with many sequences without letters for another. A pipe is not guessed.
    format.args(["-in", "-", "-dbtype", dbtype, "-title", "db", "-out", "one/db"]);
    format.stdin(fs::File::open(folder.at("db.fa")).expect("a database"));
    succeeds(format.current_dir(folder.path()));
    let queries = fs::read(folder.at("q.fa")).expect("queries");
    let mut search = Command::new(program);
    search.env_remove("BATCH_SIZE").env("BLAST_USAGE_REPORT", "false");
    if program == "blastn" && queries.len() > ONE_BATCH_LETTERS {
        search.env("BATCH_SIZE", BATCH_LETTERS);
    }
    search.args(["-query", "../q.fa", "-db", "db", "-outfmt", form, "-out", "found"]).args(words);
    let output = search.current_dir(folder.at("one")).output().expect("it starts");
    output.status.success().then(|| fs::read(folder.at("one/found")).expect("found"))
}

fn over_partitions(
    folder: &Folder,
    program: &str,
    words: &[String],
    form: &str,
    n: &str,
) -> Output {
    // Dozens of processes, which take long on a busy machine.
    let mut command = merganser_itself(["blast", "--partitions", n, "--jobs", "2", program]);
    command.args(["-query", "q.fa", "-db", "db.fa", "-outfmt", form, "-out", "found"]).args(words);
    command.current_dir(folder.path()).output().expect("it starts")
}

/// Without the date of the database and the command that SAM names, which docs/near/blast.md excepts.
fn compared(output: &[u8]) -> Vec<u8> {
    let excepted =
        |line: &&[u8]| !line.starts_with(b"    Posted date:  ") && !line.starts_with(b"@PG\t");
    output.split_inclusive(|byte| *byte == b'\n').filter(excepted).flatten().copied().collect()
}

/// The first lines in which two outputs differ.
fn first_difference(whole: &[u8], found: &[u8]) -> String {
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (whole, found) = (lines(whole), lines(found));
    let at =
        whole.iter().zip(&found).position(|(a, b)| a != b).unwrap_or(whole.len().min(found.len()));
    let some =
        |lines: &[String]| lines.iter().skip(at).take(3).cloned().collect::<Vec<_>>().join("\n");
    format!("line {}:\n{}\n---\n{}", at + 1, some(&whole), some(&found))
}

#[test]
fn partitions_give_the_result_of_one_piece() {
    if !has_blast() {
        return;
    }
    let chance = Chance::new();
    let (mut bytes, mut refused, mut unclear, mut failed) = (0, 0, 0, Vec::new());
    let cases = asked("MERGANSER_BLAST_CASES", QUICK);
    for case in 0..cases {
        if case > 0 && case % 25 == 0 {
            eprintln!("{case} cases, {bytes} bytes compared, {} differ", failed.len());
        }
        let mut chance = chance.of_case(case);
        let program = ["blastn", "blastp", "blastx", "tblastn"][(case % 4) as usize];
        let folder = Folder::new();
        let (queries, database) = data(&mut chance, program);
        folder.write("q.fa", &queries);
        folder.write("db.fa", &database);
        let form = form(&mut chance, program);
        let words = options(&mut chance, program, form);
        let n = *chance.pick(&[&"1", &"2", &"3", &"5", &"8", &"20"]);
        let what = format!("case {case}: {program} {words:?} {form} {n}");
        let output = over_partitions(&folder, program, &words, form, n);
        let Some(whole) = in_one_piece(&folder, program, &words, form) else {
            refused += 1;
            assert_eq!(output.status.code(), Some(2), "{what}: BLAST refuses this");
            continue;
        };
        if !output.status.success() {
            failed.push(format!("{what}: {}", stderr(&output)));
            continue;
        }
        assert!(!folder.at(".found.unfinished").exists(), "{what}: left behind");
        let found = fs::read(folder.at("found")).expect("found");
        bytes += whole.len();
        let (whole, found) = (compared(&whole), compared(&found));
        if whole != found {
            // A notice says that BLAST alone knows the order of equal hits: docs/near/blast.md, "Exceptions".
            let is_noted = stderr(&output).contains("hits on both strands with equal scores");
            if is_noted && sorted_lines(&whole) == sorted_lines(&found) {
                unclear += 1;
                continue;
            }
            failed.push(format!("{what}\n{}", first_difference(&whole, &found)));
            eprintln!("differs: {}", failed.last().expect("one"));
        }
    }
    eprintln!(
        "{cases} cases, {bytes} bytes compared, {refused} refused by BLAST, {unclear} unclear, {} differ",
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(bytes > 0 && refused < cases, "no case found anything");
}

/// Two subjects that are found equally well, one on each strand, in two partitions: their order without gaps is BLAST's alone,
/// and that is said. With gaps, both strands have the same parameters.
#[test]
fn equal_hits_on_both_strands_are_noted() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    // As many of each base, so that both strands have the same parameters in all digits.
    let query = b"TTGCCACTCTTGAACGGGAGCTAGAGATTACCGCAAAGGAAGTTGTTTCCCCCCAGGTAT";
    let complement = |base: &u8| BASES[3 - BASES.iter().position(|of| of == base).expect("a base")];
    let reverse: Vec<u8> = query.iter().rev().map(complement).collect();
    let mut database = Vec::new();
    record(&mut database, "plus", query, 70);
    record(&mut database, "minus", &reverse, 70);
    folder.write("db.fa", &database);
    let mut queries = Vec::new();
    record(&mut queries, "q", query, 70);
    folder.write("q.fa", &queries);
    for (words, is_noted) in [(vec!["-ungapped".to_owned()], true), (vec![], false)] {
        let output = over_partitions(&folder, "blastn", &words, "6", "2");
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stderr(&output).contains("1 query has hits on both strands with equal scores");
        assert_eq!(said, is_noted, "{words:?}: {}", stderr(&output));
        assert_eq!(fs::read(folder.at("found")).expect("found").split(|b| *b == b'\n').count(), 3);
    }
}

/// With more subjects than were asked for, the result is the beginning of a list without a limit.
#[test]
fn the_best_subjects_are_kept() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    let mut chance = Chance::new();
    let base = letters(&mut chance, BASES, 600);
    let mut database = Vec::new();
    for at in 0..90 {
        let copy = mutated(&mut chance, &base, BASES, at);
        record(&mut database, &format!("s{at}"), &copy, 70);
    }
    let mut query = Vec::new();
    record(&mut query, "q", &base, 70);
    folder.write("q.fa", &query);
    folder.write("db.fa", &database);
    let limit = |n: &str| {
        vec!["-max_target_seqs".to_owned(), n.to_owned(), "-max_hsps".to_owned(), "1".to_owned()]
    };
    let all = in_one_piece(&folder, "blastn", &limit("1000"), "6").expect("BLAST does it");
    for most in [1, 5, 20] {
        let best: Vec<_> =
            all.split_inclusive(|byte| *byte == b'\n').take(most).flatten().copied().collect();
        let output = over_partitions(&folder, "blastn", &limit(&most.to_string()), "6", "4");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(fs::read(folder.at("found")).expect("found") == best, "{most}");
        let said = format!("1 query has more than {most} subjects; the output has the best {most}");
        assert!(stderr(&output).contains(&said), "{}", stderr(&output));
        assert!(!stderr(&output).contains("in one partition"), "{}", stderr(&output));
    }
    let output = over_partitions(&folder, "blastn", &limit("20"), "6", "1");
    assert!(
        stderr(&output).contains("has 50 subjects or more in one partition"),
        "{}",
        stderr(&output)
    );
}

/// Several files, some compressed, are one database.
#[test]
fn files_and_patterns_are_one_database() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    let mut chance = Chance::new().of_case(1);
    let (queries, database) = data(&mut chance, "blastn");
    let middle = database.len() / 2;
    let cut = middle + database[middle..].iter().position(|byte| *byte == b'>').unwrap_or(0);
    folder.write("q.fa", &queries);
    // A pipeline would replace `{k}` in a command.
    folder.write("q{k}.fa", &queries);
    folder.write("db.fa", &database);
    fs::create_dir(folder.at("parts")).expect("made");
    folder.write("parts/db.1.fa", &database[..cut]);
    folder.write("parts/db.2.fa", &database[cut..]);
    prints(Command::new("gzip").arg(folder.at("parts/db.2.fa")));
    let whole = in_one_piece(&folder, "blastn", &[], "7").expect("BLAST does it");
    let mut command = merganser([
        "blast",
        "--memory",
        "64M",
        "blastn",
        "-query",
        "q{k}.fa",
        "-db",
        "parts/*.fa*",
        "-outfmt",
        "7",
        "-out",
        "found",
    ]);
    prints(command.current_dir(folder.path()));
    assert!(fs::read(folder.at("found")).expect("found") == whole);
}

#[test]
fn a_machine_without_blast_is_told_what_to_install() {
    let folder = Folder::new();
    folder.write("q.fa", b">q\nACGT\n");
    let words =
        ["blast", "blastn", "-query", "q.fa", "-db", "q.fa", "-outfmt", "6", "-out", "found"];
    let mut command = merganser_itself(words);
    let empty = folder.at("empty");
    fs::create_dir(&empty).expect("made");
    let sentence = fails(command.env("PATH", &empty).current_dir(folder.path()));
    assert!(sentence.contains("ncbi-blast+"), "{sentence}");
}

#[test]
fn what_is_not_exact_is_refused() {
    let folder = Folder::new();
    folder.write("q.fa", b">q\nACGT\n");
    let refused = |words: &[&str]| {
        let mut command = merganser(["blast", "blastn", "-query", "q.fa", "-out", "found"]);
        fails(command.args(words).current_dir(folder.path()))
    };
    for (words, sentence) in [
        (
            &["-db", "q.fa", "-culling_limit", "2"][..],
            "-culling_limit: it compares hits of different",
        ),
        (&["-db", "q.fa", "-best_hit_overhang", "0.1"], "-best_hit_overhang: it compares hits"),
        (&["-db", "q.fa", "-best_hit_score_edge", "0.1"], "-best_hit_score_edge: it compares hits"),
        (
            &["-db", "q.fa", "-qcov_hsp_perc", "9"],
            "-qcov_hsp_perc: it orders subjects by alignments",
        ),
        (&["-db", "q.fa", "-ungapped", "-max_hsps", "1"], "-max_hsps: with blastx, tblastn and"),
        (&["-db", "q.fa", "-task", "rmblastn"], "-task rmblastn: no test has shown"),
        (&["-db", "q.fa", "-outfmt", "11"], "-outfmt 11: only 0, 5, 6, 7, 10, 15 and 17"),
        (&["-db", "q.fa", "-max_target_seqs", "0"], "-max_target_seqs: a number of at least 1"),
        (&["-db", "."], ".: is no regular file"),
        (&["-db", "*.none"], "-db: no file fits *.none"),
        (&["-db", "-"], "-: No such file or directory"),
    ] {
        let said = refused(words);
        assert!(said.contains(sentence), "{said}");
        assert!(!folder.at("found").exists());
    }
    let words = ["blast", "blastn", "-query", "q.fa", "-db", "q.fa", "-out", "q.fa"];
    let said = fails(merganser(words).current_dir(folder.path()));
    assert!(said.contains("-query, -out: both name the same file"), "{said}");
}

/// Before any program of BLAST is run, or looked for.
#[test]
fn an_output_that_can_not_be_made_is_refused() {
    let folder = Folder::new();
    folder.write("q.fa", b">q\nACGT\n");
    folder.write("db.fa", b">a\nACGT\n");
    fs::create_dir(folder.at("folder")).expect("made");
    for (out, sentence) in [
        ("none/found", "none"),
        ("folder", "folder: is a directory"),
        ("a:b", "has a ':', and BLAST can't open"),
        ("db.fa", "-db, -out: both name the same file"),
    ] {
        let mut command = merganser_itself(["blast", "blastn", "-query", "q.fa", "-db", "db.fa"]);
        let command = command.args(["-outfmt", "6", "-out", out]).current_dir(folder.path());
        let said = fails(command.env("PATH", folder.at("folder")));
        assert!(said.contains(sentence) && !said.contains("is not installed"), "{said}");
        assert_eq!(folder.names(), ["db.fa", "folder", "q.fa"]);
    }
}

/// makeblastdb leaves them out, and the results are those of a database without them.
#[test]
fn sequences_without_letters_are_left_out() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    let letters = b"GATTACAGGCATGCCAATTGCAGTCAGTCATGCAAGCTGACTGACGTAC";
    folder.write("q.fa", &[b">q\n", &letters[..], b"\n"].concat());
    let subject =
        |name: &str, from: usize| [b">", name.as_bytes(), b"\n", &letters[from..], b"\n"].concat();
    let without = b">n1\n>n2\n\n>n3\n\r\n".to_vec();
    let database = [
        subject("a", 0),
        without.clone(),
        subject("b", 3),
        // Partitions of nothing else.
        without.repeat(40),
        subject("c", 6),
        b">last".to_vec(),
    ];
    folder.write("db.fa", &database.concat());
    for form in ["6", "0", "5", "7"] {
        let whole = in_one_piece(&folder, "blastn", &[], form).expect("it searches");
        for partitions in ["1", "3", "12"] {
            let output = over_partitions(&folder, "blastn", &[], form, partitions);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert!(
                said.contains("-db: 124 of 127 sequences have no letters and are left out"),
                "{said}"
            );
            let found = fs::read(folder.at("found")).expect("there");
            assert!(
                compared(&found) == compared(&whole),
                "{form} {partitions}: {}",
                first_difference(&whole, &found)
            );
        }
    }
    fs::remove_dir_all(folder.at("one")).expect("there");
    fs::remove_file(folder.at("found")).expect("there");
    folder.write("db.fa", &without);
    let words =
        ["blast", "blastn", "-query", "q.fa", "-db", "db.fa", "-outfmt", "6", "-out", "found"];
    let said = fails(merganser(words).current_dir(folder.path()));
    assert_eq!(said, "-db: no sequence of the files has letters");
    assert_eq!(folder.names(), ["db.fa", "q.fa"]);
}

/// Plain BLAST warns, and writes nothing.
#[test]
fn a_file_without_queries_gives_an_empty_output() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    folder.write("db.fa", b"\n\n>b\nACGTACGTACGTACGTACGTACGTACGTACGT\n");
    for query in [&b""[..], b"\n", b"\r\n \n\n"] {
        folder.write("q.fa", query);
        let words =
            ["blast", "blastn", "-query", "q.fa", "-db", "db.fa", "-outfmt", "6", "-out", "found"];
        let output = merganser(words).current_dir(folder.path()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("has no query"), "{}", stderr(&output));
        assert_eq!(fs::read(folder.at("found")).expect("there"), b"");
        assert_eq!(folder.names(), ["db.fa", "found", "q.fa"]);
        fs::remove_file(folder.at("found")).expect("there");
    }
}

/// BLAST asks www.ncbi.nlm.nih.gov for accessions, and waits.
#[test]
fn names_instead_of_queries_never_reach_the_network() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    folder.write("db.fa", b">b\nACGTACGTACGTACGTACGTACGTACGTACGT\n");
    let words =
        ["blast", "blastn", "-query", "q.fa", "-db", "db.fa", "-outfmt", "6", "-out", "found"];
    for query in [&b"12345\n"[..], b"\n\nNM_000546.6\n", b"gi|1234|\n"] {
        folder.write("q.fa", query);
        let said = fails(merganser(words).current_dir(folder.path()));
        assert!(said.starts_with("-query: ") && said.contains("not looked up"), "{said}");
        assert_eq!(folder.names(), ["db.fa", "q.fa"]);
    }
    folder.write("q.fa", b"\x1f\x8b\x08\0\0");
    let said = fails(merganser(words).current_dir(folder.path()));
    assert!(said.contains("is a gzip file, which BLAST does not read"), "{said}");
    // Behind other lines, BLAST itself meets the name, and has nothing that would look it up.
    folder.write("q.fa", b"# queries\nNM_000546\n");
    let said = fails(merganser(words).current_dir(folder.path()));
    assert!(said.starts_with("blastn "), "{said}");
    assert_eq!(folder.names(), ["db.fa", "q.fa"]);
    // Letters alone are a query, as they are for BLAST.
    folder.write("q.fa", b"\nACGTACGTACGTACGTACGTACGTACGTACGT\n");
    let plain = merganser(words).current_dir(folder.path()).output().expect("it starts");
    assert_eq!(plain.status.code(), Some(0), "{}", stderr(&plain));
}

/// They are found before anything is made that the corrected command would meet.
#[test]
fn options_that_blast_refuses_leave_nothing() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    folder.write("q.fa", b">q\nACGTACGTACGTACGTACGTACGTACGTACGT\n");
    for words in [
        &["-evalue", "abc"][..],
        &["-gapopen", "1", "-gapextend", "7", "-reward", "1", "-penalty", "-5"],
        &["-word_size", "2"],
    ] {
        let command = ["blast", "blastn", "-query", "q.fa", "-db", "q.fa", "-out", "found"];
        let said = fails(merganser(command).args(words).current_dir(folder.path()));
        assert!(said.starts_with("blastn ended with status "), "{said}");
        let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

/// Killed at any moment, also while results are merged and formatted, then continued: the same result.
#[test]
fn a_killed_search_continues_where_it_was() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    let mut chance = Chance::new();
    let (queries, database) = loop {
        let (queries, database) = data(&mut chance, "blastn");
        if database.len() > 40_000 {
            break (queries, database);
        }
    };
    folder.write("q.fa", &queries);
    folder.write("db.fa", &database);
    let command = || {
        let mut command = merganser_itself(["blast", "--partitions", "6", "--jobs", "2", "blastn"]);
        command.args(["-query", "q.fa", "-db", "db.fa", "-outfmt", "0", "-out", "found"]);
        command.current_dir(folder.path()).stderr(Stdio::piped());
        command
    };
    let whole = compared(&in_one_piece(&folder, "blastn", &[], "0").expect("BLAST does it"));
    let started = Instant::now();
    succeeds(&mut command());
    let time = started.elapsed().as_micros() as u64;
    let (rounds, mut kills) = (asked("MERGANSER_CRASHES", 10).div_ceil(3), 0);
    for _ in 0..rounds {
        fs::remove_file(folder.at("found")).expect("made before");
        let mut killed = 0;
        while killed < 6 {
            let child = command().spawn().expect("it starts");
            std::thread::sleep(Duration::from_micros(chance.below(time)));
            let pid = libc::pid_t::try_from(child.id()).expect("a pid");
            // SAFETY: the child was not waited for, so its number is not another process's.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            let output = child.wait_with_output().expect("it ends");
            let is_killed = output.status.signal() == Some(libc::SIGKILL);
            assert!(is_killed || output.status.success(), "{}", stderr(&output));
            if !is_killed || folder.at("found").exists() {
                break;
            }
            killed += 1;
        }
        kills += killed;
        if !folder.at("found").exists() || folder.at(".found.unfinished").exists() {
            succeeds(&mut command());
        }
        assert!(compared(&fs::read(folder.at("found")).expect("found")) == whole, "{killed} kills");
        assert!(!folder.at(".found.unfinished").exists(), "left behind");
    }
    eprintln!("{kills} kills");
}

/// What a killed search left belongs to its queries only, and `recover` names it.
#[test]
fn a_search_of_other_queries_is_not_continued() {
    if !has_blast() {
        return;
    }
    let folder = Folder::new();
    folder.write("q.fa", b">q\nACGTTGCAGGCATCAGACTACGACTGACTACGACTACGACATCAGCATCA\n");
    folder.write("db.fa", b">a\nACGTTGCAGGCATCAGACTACGACTGACTACGACTACGACATCAGCATCA\n>b\nGGTT\n");
    // This blastn fails once there is a database.
    let programs = folder.at("programs");
    fs::create_dir(&programs).expect("made");
    let script = b"#!/bin/sh\ncase \" $* \" in *' -db '*) echo broken >&2; exit 3;; esac\nPATH=${PATH#*:}; exec blastn \"$@\"\n";
    install_program(folder.write("programs/text", script), &programs.join("blastn"));
    let path =
        format!("{}:{}", programs.display(), std::env::var("PATH").expect("programs are found"));
    let search = || {
        let mut command = merganser(["blast", "--partitions", "2", "blastn", "-query", "q.fa"]);
        command.args(["-db", "db.fa", "-outfmt", "6", "-out", "found"]);
        command.env("PATH", &path).current_dir(folder.path());
        fails(&mut command)
    };
    let said = search();
    assert!(said.contains("the stage 'search' of partition "), "{said}");
    let recovered = prints(merganser(["recover", "."]).current_dir(folder.path()));
    let recovered = String::from_utf8_lossy(&recovered).into_owned();
    assert!(recovered.contains("a BLAST search into"), "{recovered}");
    assert!(recovered.contains("repeat its command to continue"), "{recovered}");
    folder.write("q.fa", b">q\nACGTTGCAGGCATCAGACTACGACTGACTACGACTACGACATCAGCATGG\n");
    let said = search();
    assert!(said.contains("the stage 'search' was"), "{said}");
}
