//! What users, other projects' bug reports and attacks on this program found, each as a script that shows the fault.
//!
//! A script begins with `prelude` and is run as `reported/NAME.sh PATH_OF_MERGANSER`, by hand, too. It ends with 0 if the
//! command does what is right, with 1 if the fault is there, and with 77 where this machine can't try it. Its name is
//! the report's number: `a` for GNU sort and its users, `b` for csv, `c` for compression, `d` for sequences, `e` for
//! traces, `f` for exports and mounts, `h` for programs near the data, `n` for attacks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::binary;

/// Seconds that a script may take on a busy machine.
const PATIENCE: &str = "180";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/reported")
}

fn script(name: &str) {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", PATIENCE, "bash"]).arg(folder().join(name)).arg(binary());
    // Some need a client of Arrow Flight.
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/.venv/bin/python");
    if python.exists() {
        command.env("PYTHON", python);
    }
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(77) if std::env::var_os("CI").is_none() => eprint!("{said}"),
        code => panic!("{name} ended with {code:?}\n{said}{errors}"),
    }
}

/// A test for each script, and one that there is a test for each script.
macro_rules! reported {
    ($($test:ident $script:literal)*) => {
        $(#[test]
        fn $test() {
            script($script);
        })*

        #[test]
        fn every_script_is_run() {
            let listed = BTreeSet::from([$($script.to_owned()),*]);
            let found = std::fs::read_dir(folder()).expect("the folder").map(|file| file.expect("a file").file_name());
            let found = found.map(|name| name.into_string().expect("a name")).filter(|name| name.ends_with(".sh"));
            assert_eq!(found.collect::<BTreeSet<_>>(), listed);
        }
    };
}

reported! {
    a02_crlf_blank_lines "a02-crlf-blank-lines.sh"
    a04_merge_long_lines "a04-merge-long-lines.sh"
    a06_h_r_q "a06-h-R-Q.sh"
    a07_hu "a07-hu.sh"
    a09_t_comma_k3n "a09-t-comma-k3n.sh"
    a10_u_dash "a10-u-dash.sh"
    a11_proc_files "a11-proc-files.sh"
    a13_o_symlink "a13-o-symlink.sh"
    a14_o_mode_kept "a14-o-mode-kept.sh"
    a15_o_special "a15-o-special.sh"
    a18_dev_full "a18-dev-full.sh"
    a21_g_forms "a21-g-forms.sh"
    a23_many_files_ulimit "a23-many-files-ulimit.sh"
    a24_same_dir_parallel "a24-same-dir-parallel.sh"
    a25_disk_full_exit "a25-disk-full-exit.sh"
    a26_yes_bounded "a26-yes-bounded.sh"
    a27_one_long_line "a27-one-long-line.sh"
    a28_growing_log "a28-growing-log.sh"
    a30_long_common_prefix "a30-long-common-prefix.sh"
    a32_files0_from "a32-files0-from.sh"
    a33_numeric_sort_u_files "a33-numeric-sort-u-files.sh"
    a34_readonly_output_dir "a34-readonly-output-dir.sh"
    a36_t_missing_unused "a36-T-missing-unused.sh"
    a39_missing_input_keeps_out "a39-missing-input-keeps-out.sh"
    b01_nan_in_numbers "b01-nan-in-numbers.sh"
    b02_negative_quoted "b02-negative-quoted.sh"
    b04_first_row_lost "b04-first-row-lost.sh"
    b05_numeric_ids "b05-numeric-ids.sh"
    b07_quotes_kept "b07-quotes-kept.sh"
    b09_bom_no_header "b09-bom-no-header.sh"
    b10_duplicate_header "b10-duplicate-header.sh"
    b11_name_with_colon "b11-name-with-colon.sh"
    b13_ragged_and_empty_rows "b13-ragged-and-empty-rows.sh"
    b14_utf16 "b14-utf16.sh"
    b15_separators "b15-separators.sh"
    b16_thousands_hex "b16-thousands-hex.sh"
    b17_stray_quote "b17-stray-quote.sh"
    b18_backslash_quote "b18-backslash-quote.sh"
    b19_cr_only "b19-cr-only.sh"
    b20_unterminated_quote "b20-unterminated-quote.sh"
    b21_last_row_crlf "b21-last-row-crlf.sh"
    b23_header_only_and_empty "b23-header-only-and-empty.sh"
    b25_dates "b25-dates.sh"
    b26_xsv_props "b26-xsv-props.sh"
    b29_nul_in_csv "b29-nul-in-csv.sh"
    b30_filter_same_rows "b30-filter-same-rows.sh"
    b32_quoted_header_in_one_input "b32-quoted-header-in-one-input.sh"
    b33_stray_quote_odd "b33-stray-quote-odd.sh"
    b35_sep_line "b35-sep-line.sh"
    c01_concat_gzip "c01-concat-gzip.sh"
    c04_gzip_garbage "c04-gzip-garbage.sh"
    c06_gzip_truncated "c06-gzip-truncated.sh"
    c07_zstd_skippable_first "c07-zstd-skippable-first.sh"
    c09_zstd_long_piped "c09-zstd-long-piped.sh"
    c11_zstd_garbage_behind "c11-zstd-garbage-behind.sh"
    c12_zstd_truncated "c12-zstd-truncated.sh"
    c13_xz_bz2_lz4_z "c13-xz-bz2-lz4-Z.sh"
    c14_gz_through_fifo "c14-gz-through-fifo.sh"
    c16_empty_gz "c16-empty-gz.sh"
    c17_zstd_dictionary "c17-zstd-dictionary.sh"
    c18_gz_corrupt_crc "c18-gz-corrupt-crc.sh"
    c20_verify_views_compressed "c20-verify-views-compressed.sh"
    d01_empty_record "d01-empty-record.sh"
    d02_natural "d02-natural.sh"
    d03_gz_two_sequences "d03-gz-two-sequences.sh"
    d04_crlf_ids "d04-crlf-ids.sh"
    d07_fastq_trailing_blank "d07-fastq-trailing-blank.sh"
    d08_fastq_mismatch "d08-fastq-mismatch.sh"
    d09_semicolon_comments "d09-semicolon-comments.sh"
    d10_bom_fasta "d10-bom-fasta.sh"
    d13_huge_line "d13-huge-line.sh"
    d14_leading_blank_lines "d14-leading-blank-lines.sh"
    e01_msr_crlf "e01-msr-crlf.sh"
    e03_mqsim_format "e03-mqsim-format.sh"
    e04_spc "e04-spc.sh"
    e06_fiu "e06-fiu.sh"
    e09_unsorted_trace "e09-unsorted-trace.sh"
    e11_alibaba_tencent "e11-alibaba-tencent.sh"
    f02_qemu_size_multiple "f02-qemu-size-multiple.sh"
    f04_mount_killed "f04-mount-killed.sh"
    h01_filter_stray_quote "h01-filter-stray-quote.sh"
    h03_verify_checksum "h03-verify-checksum.sh"
    h04_filter_64_bit_ids "h04-filter-64-bit-ids.sh"
    h07_keys_file_bom "h07-keys-file-bom.sh"
    h08_histogram_64_bit_ids "h08-histogram-64-bit-ids.sh"
    h09_histogram_width "h09-histogram-width.sh"
    n01_recover_advises_rm "n01-recover-advises-rm.sh"
    n01_recover_piped_pipeline "n01-recover-piped-pipeline.sh"
    n02_recover_hostile_command "n02-recover-hostile-command.sh"
    n03_map_on_endless_answer "n03-map-on-endless-answer.sh"
    n04_guest_compile_memory "n04-guest-compile-memory.sh"
    n05_serve_silent_connections "n05-serve-silent-connections.sh"
    n06_array_lost_write "n06-array-lost-write.sh"
    n07_serve_match_memory "n07-serve-match-memory.sh"
    n08_serve_two_slow_readers "n08-serve-two-slow-readers.sh"
    n09_pipeline_damaged_partition "n09-pipeline-damaged-partition.sh"
    n10_pipeline_name_injection "n10-pipeline-name-injection.sh"
    n11_nbd_open_to_all "n11-nbd-open-to-all.sh"
    n12_emulate_restart_after_kill "n12-emulate-restart-after-kill.sh"
}
