//! The certificate and the key of a server, looked at before it begins: what is wrong with them is said by the server,
//! and not by each client.

use std::sync::Arc;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig};

/// The protocol that a client must speak: HTTP/2.
const PROTOCOL: &[u8] = b"h2";

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Tls {
    /// The certificate, and those of the authorities between it and the root.
    pub certificate: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

/// Why a server can't use a certificate and a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsFault {
    /// The file of the certificate has none.
    #[error("there is no certificate in PEM in it")]
    NoCertificate,
    /// A certificate is cut short, or no certificate.
    #[error("its certificate is damaged")]
    DamagedCertificate,
    /// The file of the key has none.
    #[error("there is no private key in PEM in it")]
    NoKey,
    /// The key is cut short, or of a kind that TLS does not take.
    #[error("its private key is damaged, or is no RSA, ECDSA or Ed25519 key")]
    DamagedKey,
    /// The certificate is for another key.
    #[error("its certificate belongs to another private key")]
    OtherKey,
}

impl TlsFault {
    /// Whether it is in the file of the key; the others are in that of the certificate.
    #[must_use]
    pub fn is_of_key(self) -> bool {
        matches!(self, TlsFault::NoKey | TlsFault::DamagedKey)
    }
}

/// Why clients may refuse a certificate that a server can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsDoubt {
    /// Its time is over.
    #[error("its certificate has expired, so clients refuse it; make a new one")]
    Expired,
    /// Its time has not begun.
    #[error("its certificate is not valid yet, so clients refuse it; is the clock right?")]
    NotYetValid,
    /// It says that it signs other certificates, as that of `openssl req -x509` does without other options.
    #[error(
        "its certificate is that of an authority (CA:TRUE), which many clients refuse for a server; \
         make one with basicConstraints=CA:FALSE"
    )]
    IsAuthority,
}

/// Looks at a certificate and its key.
///
/// # Errors
/// When no server can use them.
pub fn look(tls: &Tls) -> Result<Option<TlsDoubt>, TlsFault> {
    let (chain, key) = parsed(tls)?;
    let first = chain.first().ok_or(TlsFault::NoCertificate)?.clone();
    let key = ring::sign::any_supported_type(&key).map_err(|_| TlsFault::DamagedKey)?;
    match CertifiedKey::new(chain.clone(), key).keys_match() {
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
        Err(Error::InconsistentKeys(_)) => return Err(TlsFault::OtherKey),
        Err(_) => return Err(TlsFault::DamagedCertificate),
    }
    let parsed = ParsedCertificate::try_from(&first).map_err(|_| TlsFault::DamagedCertificate)?;
    // Whoever signed it is for clients to know; its time and its use are looked at before.
    let (nobody, algorithms) =
        (RootCertStore::empty(), ring::default_provider().signature_verification_algorithms.all);
    let judged = verify_server_cert_signed_by_trust_anchor(
        &parsed,
        &nobody,
        &chain[1..],
        UnixTime::now(),
        algorithms,
    );
    Ok(match judged {
        Err(Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some(TlsDoubt::Expired)
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some(TlsDoubt::NotYetValid)
            }
            // The cause has no other form here than its name.
            CertificateError::Other(cause) if cause.to_string() == "CaUsedAsEndEntity" => {
                Some(TlsDoubt::IsAuthority)
            }
            _ => None,
        },
        _ => None,
    })
}

/// The certificates and the key.
pub(crate) fn parsed(
    tls: &Tls,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsFault> {
    let chain = CertificateDer::pem_slice_iter(&tls.certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| TlsFault::DamagedCertificate)?;
    if chain.is_empty() {
        return Err(TlsFault::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsFault::NoKey,
        _ => TlsFault::DamagedKey,
    })?;
    Ok((chain, key))
}

/// The settings of a server with this certificate and key.
pub(crate) fn settings(tls: &Tls) -> Result<Result<Arc<ServerConfig>, Error>, TlsFault> {
    let (chain, key) = parsed(tls)?;
    let made = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    Ok(made.map(|mut made| {
        made.alpn_protocols.push(PROTOCOL.to_vec());
        Arc::new(made)
    }))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate that signs itself, and its key.
    fn made(change: impl FnOnce(&mut CertificateParams)) -> Tls {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Tls { certificate: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }

    #[test]
    fn good_ones_are_good() {
        assert_eq!(look(&made(|_| ())), Ok(None));
    }

    #[test]
    fn what_no_server_can_use_is_named() {
        let good = || made(|_| ());
        let nothing = || b"nothing".to_vec();
        let cut = |pem: Vec<u8>| pem[..pem.len() / 2].to_vec();
        let with = |certificate: Vec<u8>, key: Vec<u8>| look(&Tls { certificate, key });
        assert_eq!(with(nothing(), good().key), Err(TlsFault::NoCertificate));
        assert_eq!(with(good().key, good().key), Err(TlsFault::NoCertificate));
        assert_eq!(with(cut(good().certificate), good().key), Err(TlsFault::DamagedCertificate));
        assert_eq!(with(good().certificate, nothing()), Err(TlsFault::NoKey));
        assert_eq!(with(good().certificate, good().certificate), Err(TlsFault::NoKey));
        assert_eq!(with(good().certificate, cut(good().key)), Err(TlsFault::DamagedKey));
        assert_eq!(with(good().certificate, good().key), Err(TlsFault::OtherKey));
    }

    #[test]
    fn what_clients_refuse_is_a_doubt() {
        let of_time = |from: i32, to: i32| {
            look(&made(|params| {
                params.not_before = date_time_ymd(from, 1, 1);
                params.not_after = date_time_ymd(to, 1, 1);
            }))
        };
        assert_eq!(of_time(2001, 2002), Ok(Some(TlsDoubt::Expired)));
        assert_eq!(of_time(3001, 3002), Ok(Some(TlsDoubt::NotYetValid)));
        let authority = made(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        assert_eq!(look(&authority), Ok(Some(TlsDoubt::IsAuthority)));
    }
}
