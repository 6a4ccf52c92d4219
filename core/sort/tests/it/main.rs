//! The engine from outside: one program for all tests, because each program links the crate again.

mod alike_keys; // keys that begin alike, with more bytes in common than a fence holds
mod consuming; // the caller's side of a sort that consumes its inputs, for the tests
mod contradictions; // runs with right checksums whose records are not those of their index
mod csv_columns; // csv rows that lack the key's column
mod csv_crate; // our csv rows against those of the crate `csv`
mod distribute; // sorts by distribution against a naive model and against the merge
mod distribute_faults; // every operation of a sort by distribution fails in turn
mod faults; // every operation of a small sort fails in turn
mod file_doors; // files in, files and views out: whole or not at all
mod formats; // the bytes of runs and manifests: golden, and damaged one by one
mod gnu_keys; // random lines and options, judged by GNU `sort`
mod header_lines; // lines with a header by its prefix, against a naive model
mod hostile_numbers; // files with right checksums and numbers that no writer wrote
mod legal_values; // values that the types allow, though they make no sense
mod misuse; // what a program may get wrong: each mistake is an error with one clear sentence
mod mixed_views; // views with buckets of both kinds
mod packed; // compressed inputs
mod power_cuts; // the power is cut at every change in turn
mod random_reads; // reads at random offsets of a view of many runs
mod rows; // rows that are pushed and pulled, against a naive model and on disks that fail
mod sequences; // whole sorts of FASTA and FASTQ against a naive model
mod whole_sorts; // whole sorts against a naive model: outputs, budgets, views
