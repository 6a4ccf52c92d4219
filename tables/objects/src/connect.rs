//! Connections to stores, with the settings and credentials that AWS's tools, Google's and Azure's take.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::HttpError;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::ObjectsError;
use crate::address::{ObjectAddress, StoreKind};
use crate::aws_profile::ProfilePlaces;
use crate::sentence::{NO_CREDENTIALS, reason};

/// How often a request is repeated, at most.
const RETRIES_MAX: usize = 10;
/// How long a request is repeated, unless `MERGANSER_RETRY_SECONDS` says otherwise: stores that are busy ask for patience.
const RETRY_SECONDS: u64 = 60;
/// The time in which a connection must come about.
const CONNECT: Duration = Duration::from_secs(10);
/// The time in which bytes must arrive, whatever few.
const READ: Duration = Duration::from_secs(30);
/// The time for sending a part, and for each of its bytes: 1 MiB in a second, at least.
const SEND: Duration = Duration::from_secs(120);
const SENT_BYTES_PER_SECOND: u64 = 1 << 20;

/// A store that takes parts of objects.
pub(crate) trait UploadStore: ObjectStore + MultipartStore {}

impl<S: ObjectStore + MultipartStore> UploadStore for S {}

/// How a store is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreUse {
    /// Ranges are read.
    Read,
    /// Parts are sent.
    Write { part_bytes: u64 },
}

/// The store of an address, to read from.
pub(crate) fn reading(address: &ObjectAddress) -> Result<Arc<dyn ObjectStore>, ObjectsError> {
    let of = StoreUse::Read;
    Ok(match address.kind {
        StoreKind::S3 => Arc::new(failed(address, s3(address, of)?.build())?),
        StoreKind::Google => Arc::new(failed(address, google(address, of).build())?),
        StoreKind::Azure => Arc::new(failed(address, azure(address, of).build())?),
        StoreKind::Http => {
            let server = match &address.query {
                Some(query) => format!("{}/?{query}", address.bucket),
                None => address.bucket.clone(),
            };
            let options = client(of, server.starts_with("http://"));
            let built = HttpBuilder::new().with_url(server).with_client_options(options);
            Arc::new(failed(address, built.with_retry(retries()).build())?)
        }
    })
}

/// The store of an address, to write parts of at most `part_bytes` to.
pub(crate) fn writing(
    address: &ObjectAddress,
    part_bytes: u64,
) -> Result<Arc<dyn UploadStore>, ObjectsError> {
    let of = StoreUse::Write { part_bytes };
    Ok(match address.kind {
        StoreKind::S3 => Arc::new(failed(address, s3(address, of)?.build())?),
        StoreKind::Google => Arc::new(failed(address, google(address, of).build())?),
        StoreKind::Azure => Arc::new(failed(address, azure(address, of).build())?),
        StoreKind::Http => {
            return Err(address.refused("is read only; write to a file or to a bucket"));
        }
    })
}

fn failed<T>(
    address: &ObjectAddress,
    built: Result<T, object_store::Error>,
) -> Result<T, ObjectsError> {
    built.map_err(|error| ObjectsError::Settings { name: address.shown(), why: reason(&error) })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// S3 as the environment says, and else the profile.
fn s3(address: &ObjectAddress, of: StoreUse) -> Result<AmazonS3Builder, ObjectsError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&address.bucket);
    let has = |builder: &AmazonS3Builder, key| {
        builder.get_config_value(&key).is_some_and(|value| !value.is_empty())
    };
    let is_public = variable("AWS_SKIP_SIGNATURE")
        .is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
    let has_keys = has(&builder, AmazonS3ConfigKey::AccessKeyId);
    let home = variable("HOME").map(Into::into);
    let places = ProfilePlaces { variable: &variable, home };
    let profile = places.profile(!has_keys && !is_public)?;
    if let (false, Some(keys)) = (has_keys, &profile.keys) {
        builder = builder.with_access_key_id(&keys.id).with_secret_access_key(&keys.secret);
        if let Some(token) = &keys.token {
            builder = builder.with_token(token);
        }
    } else if !has_keys && !is_public && !has_other_credentials() {
        return Err(ObjectsError::Settings {
            name: address.shown(),
            why: NO_CREDENTIALS.to_owned(),
        });
    }
    if let (false, Some(region)) = (has(&builder, AmazonS3ConfigKey::Region), &profile.region) {
        builder = builder.with_region(region);
    }
    let is_known =
        has(&builder, AmazonS3ConfigKey::Endpoint) || has(&builder, AmazonS3ConfigKey::S3Endpoint);
    if let (false, Some(endpoint)) = (is_known, &profile.endpoint) {
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint);
    let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    Ok(builder.with_client_options(client(of, is_plain)).with_retry(retries()))
}

/// Whether a role gives credentials: one of a container, of a token, or of the machine.
fn has_other_credentials() -> bool {
    const OF_ROLES: [&str; 3] = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    if OF_ROLES.iter().any(|name| variable(name).is_some()) {
        return true;
    }
    if variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    {
        return false;
    }
    // The library would ask for a minute on a machine that isn't Amazon's.
    let metadata = SocketAddr::from(([169, 254, 169, 254], 80));
    variable("AWS_METADATA_ENDPOINT").is_some()
        || TcpStream::connect_timeout(&metadata, Duration::from_secs(1)).is_ok()
}

fn google(address: &ObjectAddress, of: StoreUse) -> GoogleCloudStorageBuilder {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&address.bucket);
    builder.with_client_options(client(of, false)).with_retry(retries())
}

fn azure(address: &ObjectAddress, of: StoreUse) -> MicrosoftAzureBuilder {
    let builder = MicrosoftAzureBuilder::from_env().with_container_name(&address.bucket);
    builder.with_client_options(client(of, false)).with_retry(retries())
}

fn client(of: StoreUse, is_plain: bool) -> ClientOptions {
    let options = ClientOptions::new()
        .with_user_agent(reqwest::header::HeaderValue::from_static(concat!(
            "merganser/",
            env!("CARGO_PKG_VERSION")
        )))
        .with_allow_http(is_plain)
        .with_connect_timeout(CONNECT);
    match of {
        StoreUse::Read => options.with_timeout_disabled().with_read_timeout(READ),
        // The time for reading would run while a part is sent.
        StoreUse::Write { part_bytes } => {
            options.with_timeout(SEND + Duration::from_secs(part_bytes / SENT_BYTES_PER_SECOND))
        }
    }
}

/// How long requests are repeated.
pub(crate) fn patience() -> Duration {
    let typed = variable("MERGANSER_RETRY_SECONDS").and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(typed.unwrap_or(RETRY_SECONDS))
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: patience().min(Duration::from_secs(15)),
            base: 2.0,
        },
        max_retries: RETRIES_MAX,
        retry_timeout: patience(),
    }
}

/// Whether a request that failed so may be repeated.
pub(crate) fn is_transport(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<HttpError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
