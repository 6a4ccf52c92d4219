//! The token that clients show and the certificate that they see. Both can be replaced while the server runs.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;

use crate::bind_error::BindError;
use crate::identity::{self, Tls, TlsDoubt};
use crate::token::Token;

/// Token and certificate of a running server.
pub(crate) struct Credentials(RwLock<CredentialsState>);

struct CredentialsState {
    token: Option<Token>,
    tls: Option<Arc<ServerConfig>>,
}

impl Credentials {
    /// Takes them if a server can use them; says why clients may refuse the certificate.
    pub(crate) fn new(
        token: Option<Token>,
        tls: Option<&Tls>,
    ) -> Result<(Self, Option<TlsDoubt>), BindError> {
        let (state, doubt) = CredentialsState::new(token, tls)?;
        Ok((Credentials(RwLock::new(state)), doubt))
    }

    /// Whether a client that sends `header` may come in.
    pub(crate) fn let_in(&self, header: Option<&[u8]>) -> bool {
        self.0.read().token.as_ref().is_none_or(|token| token.is_shown_by(header))
    }

    /// The settings of the next handshake; `None` without TLS.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.0.read().tls.clone()
    }
}

impl CredentialsState {
    fn new(token: Option<Token>, tls: Option<&Tls>) -> Result<(Self, Option<TlsDoubt>), BindError> {
        let Some(tls) = tls else { return Ok((CredentialsState { token, tls: None }, None)) };
        let doubt = identity::look(tls)?;
        let settings = identity::settings(tls)?;
        let settings = settings.map_err(|error| BindError::TlsSetup(error.to_string()))?;
        Ok((CredentialsState { token, tls: Some(settings) }, doubt))
    }
}

/// Replaces token and certificate of a server from any thread.
#[derive(Clone)]
pub struct CredentialsChanger(Arc<Credentials>);

impl CredentialsChanger {
    pub(crate) fn new(credentials: &Arc<Credentials>) -> Self {
        CredentialsChanger(Arc::clone(credentials))
    }

    /// From now on, each request must show `token`, and each new connection sees the certificate of `tls`. Connections stay.
    /// Returns why clients may refuse the certificate.
    ///
    /// # Errors
    /// When they can't be used, or the server would lose its token or its TLS; the server then keeps what it has.
    pub fn replace(
        &self,
        token: Option<Token>,
        tls: Option<&Tls>,
    ) -> Result<Option<TlsDoubt>, BindError> {
        let (state, doubt) = CredentialsState::new(token, tls)?;
        let mut kept = self.0.0.write();
        if kept.token.is_some() != state.token.is_some()
            || kept.tls.is_some() != state.tls.is_some()
        {
            return Err(BindError::OtherProtection);
        }
        *kept = state;
        Ok(doubt)
    }
}
