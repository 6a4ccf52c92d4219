//! Names that are addresses of objects in stores, and no names of files: `s3://bucket/in/a.parquet`.
//!
//! Every program must know such a name, at least to refuse it. Only `tables/objects` knows what is there.

use std::path::Path;

/// What an address begins with.
pub const SCHEMES: [&str; 5] = ["s3", "gs", "az", "http", "https"];

/// Whether a name is the address of an object, or of a folder of objects.
#[must_use]
pub fn is_address(name: &Path) -> bool {
    let bytes = name.as_os_str().as_encoded_bytes();
    SCHEMES.iter().any(|scheme| {
        bytes.strip_prefix(scheme.as_bytes()).is_some_and(|rest| rest.starts_with(b"://"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_no_addresses() {
        for address in ["s3://b/a.parquet", "gs://b", "az://c/", "http://h/x", "https://h/x?y"] {
            assert!(is_address(Path::new(address)), "{address}");
        }
        for file in
            ["", "s3", "s3:/b", "s3:b", "./s3://b", "/s3://b", "S3://b", "ftp://h/x", "in/*"]
        {
            assert!(!is_address(Path::new(file)), "{file}");
        }
    }
}
