//! Addresses of objects, as they are typed.

use std::path::PathBuf;

use merganser_storage::address::is_address;

use crate::ObjectsError;

/// Kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StoreKind {
    /// Amazon's S3, and stores that speak like it.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure's Blob Storage.
    Azure,
    /// A server of files, which are only read.
    Http,
}

/// Where an object or a folder of objects is. The query of a web address may be a secret, so no text has it but the requests.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ObjectAddress {
    pub(crate) kind: StoreKind,
    /// The bucket, or the server as `https://host:port`.
    pub(crate) bucket: String,
    /// The name in the bucket; of a web address as it is typed, with its escapes.
    pub(crate) key: String,
    /// What follows the question mark of a web address.
    pub(crate) query: Option<String>,
}

impl ObjectAddress {
    /// # Errors
    /// A text that isn't an address; an address with a password.
    pub(crate) fn parse(typed: &str) -> Result<ObjectAddress, ObjectsError> {
        // Perhaps a password is in it.
        let hidden =
            |why| ObjectsError::Address { shown: "an address of an object".to_owned(), why };
        let (scheme, rest) = typed.split_once("://").unwrap_or_default();
        if !is_address(typed.as_ref()) {
            return Err(hidden("begins with s3://, gs://, az://, http:// or https://"));
        }
        let kind = match scheme {
            "s3" => StoreKind::S3,
            "gs" => StoreKind::Google,
            "az" => StoreKind::Azure,
            _ => StoreKind::Http,
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if kind == StoreKind::Http => (rest, Some(query.to_owned())),
            _ => (rest, None),
        };
        // The rest behind a number sign is never sent.
        let rest =
            if kind == StoreKind::Http { rest.split('#').next().unwrap_or_default() } else { rest };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.contains('@') {
            return Err(hidden(
                "has a name and a password before its @, and neither is taken here",
            ));
        }
        let address = ObjectAddress {
            kind,
            bucket: if kind == StoreKind::Http {
                format!("{scheme}://{bucket}")
            } else {
                bucket.to_owned()
            },
            key: key.to_owned(),
            query,
        };
        if bucket.is_empty() {
            return Err(address.refused("names no bucket and no server"));
        }
        let inner = key.strip_suffix('/').unwrap_or(key);
        if !inner.is_empty() && inner.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err(address
                .refused("has an empty name, . or .. between slashes, which is not read here"));
        }
        Ok(address)
    }

    /// How sentences call it. A folder has a slash at its end.
    pub(crate) fn shown(&self) -> String {
        let scheme = match self.kind {
            StoreKind::S3 => "s3://",
            StoreKind::Google => "gs://",
            StoreKind::Azure => "az://",
            StoreKind::Http => "",
        };
        format!("{scheme}{}/{}", self.bucket, self.key)
    }

    /// The same as a path, whose folders may name columns.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(self.shown())
    }

    /// Another object of the same bucket.
    pub(crate) fn with_key(&self, key: &str) -> ObjectAddress {
        ObjectAddress { key: key.to_owned(), ..self.clone() }
    }

    /// Whether it can only be a folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    pub(crate) fn refused(&self, why: &'static str) -> ObjectsError {
        ObjectsError::Address { shown: self.shown(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(typed: &str) -> Result<(StoreKind, String, String), String> {
        let found = ObjectAddress::parse(typed).map_err(|error| error.to_string())?;
        assert_eq!(found.shown(), typed.split(['?', '#']).next().unwrap_or_default());
        Ok((found.kind, found.bucket, found.key))
    }

    #[test]
    fn addresses_have_a_bucket_and_a_key() {
        let is = |kind, bucket: &str, key: &str| Ok((kind, bucket.to_owned(), key.to_owned()));
        assert_eq!(parsed("s3://b/in/a b%20.parquet"), is(StoreKind::S3, "b", "in/a b%20.parquet"));
        assert_eq!(parsed("gs://b/in/"), is(StoreKind::Google, "b", "in/"));
        assert_eq!(parsed("az://c/"), is(StoreKind::Azure, "c", ""));
        let web = "https://h:80/a/x.parquet";
        assert_eq!(parsed(web), is(StoreKind::Http, "https://h:80", "a/x.parquet"));
        assert_eq!(parsed(&format!("{web}?secret=1#x")), parsed(web));
        let query = ObjectAddress::parse("http://h/x?a=b?c").expect("an address").query;
        assert_eq!(query.as_deref(), Some("a=b?c"));
    }

    #[test]
    fn secrets_are_in_no_sentence() {
        for typed in ["https://name:word@h/x", "s3://key:word@b/x", "http://word@h"] {
            let told = parsed(typed).expect_err("refused");
            assert!(!told.contains("word@") && !told.contains(":word"), "{told}");
        }
        let signed = ObjectAddress::parse("https://h/x?X-Amz-Signature=abc").expect("an address");
        assert!(!signed.shown().contains("abc"));
    }

    #[test]
    fn names_that_are_no_keys_are_refused() {
        for typed in
            ["s3://", "s3:///a", "s3://b//a", "s3://b/a/../c", "s3://b/./c", "ftp://h/x", "x"]
        {
            assert!(ObjectAddress::parse(typed).is_err(), "{typed}");
        }
    }
}
