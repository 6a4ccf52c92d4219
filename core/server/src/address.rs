//! Where clients connect.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system, for the user who serves alone.
    Unix(PathBuf),
    /// `HOST:PORT`; port 0 stands for any that is free.
    Tcp(String),
}

impl FromStr for Address {
    type Err = String;

    /// `HOST:PORT`, or a path: anything with a `/`, or without a colon. A name that is surely a host and has no
    /// port is refused.
    fn from_str(typed: &str) -> Result<Self, String> {
        let address = typed.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if typed == "localhost" || address.is_ok() {
            let host = match address {
                Ok(IpAddr::V6(address)) => format!("[{address}]"),
                _ => typed.to_owned(),
            };
            return Err(format!(
                "'{typed}' has no port; give {host}:PORT, or ./{typed} for a socket of this name"
            ));
        }
        match typed.rsplit_once(':') {
            _ if typed.is_empty() => Err("name a socket or HOST:PORT".into()),
            Some((host, port)) if !typed.contains('/') => {
                if host.is_empty() {
                    Err(format!("'{typed}' has no host; try localhost:{port}"))
                } else if port.parse::<u16>().is_err() {
                    Err(format!(
                        "'{port}' is no port: give 0 to 65535, or ./{typed} for a socket of this name"
                    ))
                } else {
                    Ok(Address::Tcp(typed.into()))
                }
            }
            _ => Ok(Address::Unix(typed.into())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(at) => at.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_socket_or_a_port() {
        let parse = |typed: &str| typed.parse::<Address>();
        for path in ["a.sock", "/run/a:1", "./a:10809", "dir/a"] {
            assert_eq!(parse(path), Ok(Address::Unix(path.into())));
        }
        for at in ["localhost:0", "127.0.0.1:10809", "[::1]:65535"] {
            assert_eq!(parse(at), Ok(Address::Tcp(at.into())));
        }
        for (typed, told) in
            [("", "name a socket"), (":1", "no host"), ("a:b", "no port"), ("a:65536", "no port")]
        {
            assert!(parse(typed).expect_err(typed).contains(told), "{typed}");
        }
        for (typed, told) in [
            ("localhost", "give localhost:PORT, or ./localhost for a socket"),
            ("10.0.0.7", "give 10.0.0.7:PORT"),
            ("::1", "give [::1]:PORT"),
            ("[::]", "give [::]:PORT"),
        ] {
            assert!(parse(typed).expect_err(typed).contains(told), "{typed}");
        }
        assert_eq!(parse("./localhost"), Ok(Address::Unix("./localhost".into())));
    }
}
