//! A node for sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use merganser_flight::Token;
use merganser_flight::identity::TlsFault;
use merganser_flight::server::{BATCH_PATIENCE, BindError, FlightServer, FlightServerOptions, Tls};
use merganser_serve::session::{BuiltinOnly, SessionOptions, SsdletOpener};
use merganser_shell::failure::{Failure, notice};
use merganser_shell::serving::Listening;
use merganser_shell::shown;
use merganser_storage::file::FileDirectory;

use super::opener::FolderOpener;
use crate::config::NodeConfig;

/// Begins to listen.
///
/// # Errors
/// When the address can't be listened on, a file can't be read, or the address is too open.
pub(super) fn listen(config: NodeConfig) -> Result<Listening, Failure> {
    let NodeConfig { data, sessions_max, memory_bytes, .. } = config;
    if !data.is_dir() {
        return Err(format!("{}: no such folder; --data names one", data.display()).into());
    }
    let opener: Arc<dyn SsdletOpener> = match config.ssdlets {
        Some(dir) => Arc::new(FolderOpener::new(dir, config.guest_limits)?),
        None => Arc::new(BuiltinOnly),
    };
    let files = config.tls.clone();
    let server = FlightServer::bind(FlightServerOptions {
        listen: config.listen,
        token: config.token_file.as_deref().map(token).transpose()?,
        tls: config.tls.map(|(certificate, key)| tls(&certificate, &key)).transpose()?,
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
    .map_err(|error| sentence(&error, files.as_ref()))?;
    notice(&format!(
        "sessions for clients of {}: at most {sessions_max} at once, in {memory_bytes} bytes",
        server.address()
    ));
    if let (Some(doubt), Some((certificate, _))) = (server.doubt(), &files) {
        notice(&format!("{}: {doubt}", shown::name(certificate)));
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

fn tls(certificate: &Path, key: &Path) -> Result<Tls, Failure> {
    let read = |path: &Path| fs::read(path).map_err(|e| Failure::on(path, &e));
    Ok(Tls { certificate: read(certificate)?, key: read(key)? })
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
