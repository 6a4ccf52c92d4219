//! The library travels inside a jar: without symbols it is a tenth of its size.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--strip-all");
}
