//! The reasons for which stores fail, in words, without what a store repeats of a request: that may be a secret.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

/// What to do where the network or the store failed.
const TRY_AGAIN: &str = "look at the network and the address, then repeat the command";

/// The reason of an error, and what to do.
pub(crate) fn reason(error: &object_store::Error) -> String {
    use object_store::Error;
    let text = error.to_string();
    if text.contains("/latest/api/token") || text.contains("/latest/meta-data") {
        return NO_CREDENTIALS.to_owned();
    }
    if text.contains("without LOCATION") {
        return "the bucket is in another region; set AWS_REGION".to_owned();
    }
    if text.contains("non-partial response") {
        return "the server does not send parts of a file, which are read here; copy the file to this machine first".to_owned();
    }
    if text.contains("Content-Range")
        || text.contains("CONTENT_RANGE")
        || text.contains("Requested ") && text.contains(", got ")
    {
        return format!(
            "the server sends another part of the file than was asked for; {TRY_AGAIN}"
        );
    }
    let said = said_by_store(&text);
    let said = said.as_deref().map(|said| format!(" ({said})")).unwrap_or_default();
    match error {
        Error::NotFound { .. } => format!("is not there{said}; look at the address"),
        Error::PermissionDenied { .. } => {
            format!("the store refuses it{said}; look at the credentials and what they may do")
        }
        Error::Unauthenticated { .. } => {
            format!("the store does not know the credentials{said}; set those of this store")
        }
        _ => match (status_of(&text), transport_of(error)) {
            (Some(status), _) => format!("the store answers {status}{said}; {}", after(&status)),
            (None, Some(kind)) => format!("{}; {TRY_AGAIN}", of_transport(kind, error)),
            (None, None) => format!("{}; {TRY_AGAIN}", innermost(error)),
        },
    }
}

/// The reason where no credentials are found.
pub(crate) const NO_CREDENTIALS: &str = "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or AWS_SKIP_SIGNATURE=true for a bucket that is public";

/// What to do after an answer with this status.
fn after(status: &str) -> &'static str {
    match status.as_bytes().first() {
        Some(b'5') => "it may be busy, so repeat the command later",
        _ if status.starts_with("429") => "it may be busy, so repeat the command later",
        _ => "look at the address and the settings of the store",
    }
}

/// The status of an answer, as `503 Service Unavailable`.
fn status_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("status code: ")?;
    let status = rest.split([':', '\n']).next()?.trim();
    status.starts_with(|first: char| first.is_ascii_digit()).then(|| status.to_owned())
}

/// The code and the message of an error of S3. Other elements repeat the request, with its signature.
fn said_by_store(text: &str) -> Option<String> {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let (inner, _) = rest.split_once(&format!("</{name}>"))?;
        (!inner.contains('<') && inner.len() <= 300).then(|| inner.trim().to_owned())
    };
    let code = element("Code")?;
    // These messages have keys, tokens or the text that was signed.
    let is_quiet = ["SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken", "ExpiredToken"];
    let message = element("Message").filter(|_| !is_quiet.contains(&&code[..]));
    Some(match message {
        Some(message) => format!("{code}: {}", message.trim_end_matches('.')),
        None => code,
    })
}

fn transport_of(error: &(dyn StdError + 'static)) -> Option<HttpErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<HttpError>() {
            return Some(found.kind());
        }
        cause = error.source();
    }
    None
}

fn of_transport(kind: HttpErrorKind, error: &(dyn StdError + 'static)) -> String {
    match kind {
        HttpErrorKind::Connect => format!("can't be reached: {}", innermost(error)),
        HttpErrorKind::Timeout => "does not answer in time".to_owned(),
        HttpErrorKind::Request | HttpErrorKind::Interrupted => {
            "the connection was cut before all was sent".to_owned()
        }
        _ => innermost(error),
    }
}

/// The cause of all: the system's own error, or the library's.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    // Errors of the system have their numbers at the end.
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn answers_of_stores_are_words_without_what_they_repeat() {
        let denied = "Error performing GET http://h/b/k in 1ms - Server returned non-2xx status code: 400 Bad Request: <Error><Code>SignatureDoesNotMatch</Code><Message>of AKSECRET</Message><AWSAccessKeyId>AKSECRET</AWSAccessKeyId></Error>";
        assert_eq!(
            reason(&generic(denied)),
            "the store answers 400 Bad Request (SignatureDoesNotMatch); look at the address and the settings of the store"
        );
        let busy = "x - Server returned non-2xx status code: 503 Service Unavailable: <Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
        assert_eq!(
            reason(&generic(busy)),
            "the store answers 503 Service Unavailable (SlowDown: Please reduce your request rate); it may be busy, so repeat the command later"
        );
    }
}
