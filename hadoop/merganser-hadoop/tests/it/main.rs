//! The program by itself. Tests of all programs together are in `quality/product-tests`, which finds this one where
//! this test had it built.

#[test]
fn it_does_what_every_program_does() {
    merganser_testkit::check_program(env!("CARGO_BIN_EXE_merganser-hadoop"), &["hadoop"]);
}
