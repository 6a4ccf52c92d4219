//! Why a node's certificate is not accepted.

/// The fault of a node's certificate, or of the authority's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// The node shows the certificate of an authority as its own.
    #[error(
        "the node's certificate is that of an authority (CA:TRUE); a node needs one of its own, which the authority signs"
    )]
    IsAuthority,
    /// Another authority signed it, or no authority.
    #[error("the node's certificate is not signed by the authority that was given")]
    OtherAuthority,
    /// It is for other names.
    #[error("the node's certificate is not for the name or address that was given")]
    OtherName,
    /// It is over.
    #[error("the node's certificate has expired")]
    Expired,
    /// It is not valid yet.
    #[error("the node's certificate is not valid yet; compare the clocks")]
    NotYetValid,
    /// Anything else.
    #[error("the node's certificate is not accepted")]
    Other,
}

impl CertificateFault {
    /// The fault in a sentence of rustls, which has no other form that passes through the layers above it.
    pub(super) fn of_text(told: &str) -> Option<Self> {
        let fault = told.strip_prefix("invalid peer certificate: ")?;
        let known = [
            ("CaUsedAsEndEntity", CertificateFault::IsAuthority),
            ("UnknownIssuer", CertificateFault::OtherAuthority),
            ("BadSignature", CertificateFault::OtherAuthority),
            ("not valid for name", CertificateFault::OtherName),
            ("NotValidForName", CertificateFault::OtherName),
            ("not valid yet", CertificateFault::NotYetValid),
            ("NotValidYet", CertificateFault::NotYetValid),
            ("expired", CertificateFault::Expired),
            ("Expired", CertificateFault::Expired),
        ];
        let found = known.into_iter().find(|(text, _)| fault.contains(text));
        Some(found.map_or(CertificateFault::Other, |(_, fault)| fault))
    }
}
