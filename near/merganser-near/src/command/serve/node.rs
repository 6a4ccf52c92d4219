//! A node for sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_flight::Token;
use merganser_flight::credentials::CredentialsChanger;
use merganser_flight::identity::{TlsDoubt, TlsFault};
use merganser_flight::server::{BATCH_PATIENCE, BindError, FlightServer, FlightServerOptions, Tls};
use merganser_serve::session::{BuiltinOnly, SessionOptions, SsdletOpener};
use merganser_shell::failure::{Failure, notice};
use merganser_shell::serving::Listening;
use merganser_shell::shown;
use merganser_shell::signals::Cancel;
use merganser_storage::file::FileDirectory;
use merganser_storage::thread::spawn;

use super::opener::FolderOpener;
use crate::config::NodeConfig;

/// Begins to listen.
///
/// # Errors
/// When the address can't be listened on, a file can't be read, or the address is too open.
pub(super) fn listen(config: NodeConfig, cancel: &Cancel) -> Result<Listening, Failure> {
    let NodeConfig { data, sessions_max, memory_bytes, .. } = config;
    if !data.is_dir() {
        return Err(format!("{}: no such folder; --data names one", data.display()).into());
    }
    let opener: Arc<dyn SsdletOpener> = match config.ssdlets {
        Some(dir) => Arc::new(FolderOpener::new(dir, config.guest_limits)?),
        None => Arc::new(BuiltinOnly),
    };
    let files = CredentialFiles { token: config.token_file, tls: config.tls };
    // Before anybody can know that it listens: a SIGHUP from then on must not end it.
    let hangups = files.is_any().then(|| cancel.take_hangups());
    let (token, tls) = files.read()?;
    let server = FlightServer::bind(FlightServerOptions {
        listen: config.listen,
        token,
        tls,
        insecure: config.insecure,
        allow_upload: config.allow_upload,
        batch_patience: BATCH_PATIENCE,
        sessions: SessionOptions {
            data,
            temp: FileDirectory::open(&config.temp_dir).map_err(|e| Failure::named(&e))?,
            memory_bytes,
            threads: config.threads,
            sessions_max,
            idle: config.idle,
            scratch_bytes: config.scratch_bytes,
            opener,
        },
    })
    .map_err(|error| sentence(&error, files.tls.as_ref()))?;
    notice(&format!(
        "sessions for clients of {}: at most {sessions_max} at once, in {memory_bytes} bytes",
        server.address()
    ));
    files.tell_doubt(server.doubt());
    if let Some(hangups) = hangups {
        let changer = server.changer();
        let reload = move || hangups.iter().for_each(|()| files.reload(&changer));
        spawn("reload", reload).map_err(|error| Failure::named(&error))?;
    }
    let stopper = server.stopper();
    let run = move || server.run().map_err(|error| Failure::named(&error));
    Ok(Listening { run: Box::new(run), stop: Box::new(move || stopper.stop()) })
}

/// The token in the file at `path`.
pub(in crate::command) fn token(path: &Path) -> Result<Token, Failure> {
    let failed = |e| Failure::on(path, &e);
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        notice(&format!("{}: other users may read this token; chmod 600 it", path.display()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Token::new(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The files of the token, and of the certificate and its key.
struct CredentialFiles {
    token: Option<PathBuf>,
    tls: Option<(PathBuf, PathBuf)>,
}

impl CredentialFiles {
    fn is_any(&self) -> bool {
        self.token.is_some() || self.tls.is_some()
    }

    fn read(&self) -> Result<(Option<Token>, Option<Tls>), Failure> {
        let read = |path: &Path| fs::read(path).map_err(|e| Failure::on(path, &e));
        let tls = |(certificate, key): &(PathBuf, PathBuf)| -> Result<Tls, Failure> {
            Ok(Tls { certificate: read(certificate)?, key: read(key)? })
        };
        Ok((self.token.as_deref().map(token).transpose()?, self.tls.as_ref().map(tls).transpose()?))
    }

    fn tell_doubt(&self, doubt: Option<TlsDoubt>) {
        if let (Some(doubt), Some((certificate, _))) = (doubt, &self.tls) {
            notice(&format!("{}: {doubt}", shown::name(certificate)));
        }
    }

    /// Reads the files again. If one of them can't be used, the server keeps all that it has.
    fn reload(&self, changer: &CredentialsChanger) {
        let taken = self.read().and_then(|(token, tls)| {
            let replaced = changer.replace(token, tls.as_ref());
            replaced.map_err(|error| sentence(&error, self.tls.as_ref()).into())
        });
        match taken {
            Ok(doubt) => {
                let what = match (&self.token, &self.tls) {
                    (Some(_), Some(_)) => "token, certificate and key",
                    (Some(_), None) => "token",
                    (None, _) => "certificate and key",
                };
                notice(&format!("SIGHUP: {what} read again, and used from now on"));
                self.tell_doubt(doubt);
            }
            Err(failure) => {
                let why = failure.sentence().unwrap_or_default();
                notice(&format!("SIGHUP: {why}; the server keeps the files that it read before"));
            }
        }
    }
}

/// The fault, with the certificate and the key as they were named.
fn sentence(error: &BindError, files: Option<&(PathBuf, PathBuf)>) -> String {
    match (error, files) {
        (BindError::Open { .. }, _) => {
            format!("{error}: give --token-file, --tls-cert and --tls-key, or --insecure")
        }
        (BindError::Tls(fault), Some((certificate, key))) => {
            let (flag, file) =
                if fault.is_of_key() { ("--tls-key", key) } else { ("--tls-cert", certificate) };
            let other = match fault {
                TlsFault::OtherKey => format!(" than that of {}", shown::name(key)),
                _ => String::new(),
            };
            format!("{}: {fault}{other}; {flag} names it", shown::name(file))
        }
        (BindError::TlsSetup(why), _) => format!("--tls-cert, --tls-key: {why}"),
        (error, _) => error.to_string(),
    }
}
