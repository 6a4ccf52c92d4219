//! Access: token, TLS, and addresses.

use merganser_flight::Token;
use merganser_flight::client::{NodeAddress, NodeClient};
use merganser_flight::farm::SessionFarm;
use merganser_flight::identity::TlsFault;
use merganser_flight::server::{BindError, FlightServer, Tls};
use merganser_flight::wire::SetBody;
use merganser_serve::session::request::SessionRange;

use crate::harness::{begin, node, node_with, of_ssdlet, options, rows, rows_of, tls};

fn told(known: &NodeAddress) -> String {
    let listed = NodeClient::connect(known).and_then(|mut client| client.list());
    listed.expect_err("refused").to_string()
}

#[test]
fn nobody_comes_in_without_the_token() {
    let node = node();
    let none = NodeAddress { token: None, ..node.known.clone() };
    assert!(told(&none).contains("wants its token"));
    let wrong = Token::new("0123456789abcdef0123456789abcdeF").expect("a token");
    assert!(
        told(&NodeAddress { token: Some(wrong), ..node.known.clone() })
            .contains("is not that of this server")
    );
    node.client().list().expect("with the token");
}

#[test]
fn with_tls_plain_clients_and_other_authorities_are_refused() {
    let node = node_with(|options| options.tls = Some(tls()));
    node.write("a", "x y x\n");
    let mut client = node.client();
    let session = begin(&mut client, "wordcount", &["a"]).expect("begun");
    assert_eq!(rows(&mut client, rows_of(&session, 0)).expect("done").len(), 2);
    told(&NodeAddress { ca: None, ..node.known.clone() });
    let plain = [NodeAddress { ca: None, ..node.known.clone() }];
    let refused = SessionFarm::open(&plain, &of_ssdlet("copy"), None, &|| false)
        .map(drop)
        .expect_err("plain");
    assert!(refused.to_string().ends_with("the node speaks TLS alone"), "{refused}");
    let other = tls().certificate;
    assert!(
        told(&NodeAddress { ca: Some(other), ..node.known.clone() })
            .contains("not signed by the authority")
    );
    node.client().list().expect("it still answers");
}

/// Sessions and connections stay; each later request shows the new token, and each new connection sees the new certificate.
#[test]
fn token_and_certificate_are_replaced_while_it_runs() {
    let node = node_with(|options| options.tls = Some(tls()));
    node.write("a", "x y x\n");
    let mut old = node.client();
    let session = begin(&mut old, "wordcount", &["a"]).expect("begun");
    let fresh = || Token::new("fedcba9876543210fedcba9876543210").expect("a token");
    let (new, other) = (tls(), tls());

    // Files that can't be used change nothing.
    let mixed = Tls { certificate: new.certificate.clone(), key: other.key };
    let refused = node.changer.replace(Some(fresh()), Some(&mixed)).expect_err("refused");
    assert!(matches!(refused, BindError::Tls(TlsFault::OtherKey)), "{refused}");
    for (token, tls) in [(None, Some(&new)), (Some(fresh()), None)] {
        let refused = node.changer.replace(token, tls).expect_err("refused");
        assert!(matches!(refused, BindError::OtherProtection), "{refused}");
    }
    node.client().list().expect("as before");

    assert_eq!(node.changer.replace(Some(fresh()), Some(&new)).expect("taken"), None);
    let refused = old.list().expect_err("its token is old").to_string();
    assert!(refused.contains("is not that of this server"), "{refused}");
    assert!(told(&node.known).contains("not signed by the authority"));
    let known =
        NodeAddress { token: Some(fresh()), ca: Some(new.certificate), ..node.known.clone() };
    let mut client = NodeClient::connect(&known).expect("it answers");
    assert_eq!(rows(&mut client, rows_of(&session, 0)).expect("it stayed").len(), 2);
}

/// The certificate that `openssl req -x509` makes is that of an authority, and no node can show it.
#[test]
fn the_certificate_that_is_wrong_is_said() {
    let made = |change: &dyn Fn(&mut rcgen::CertificateParams)| {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        change(&mut params);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("signed").pem().into_bytes();
        Tls { certificate, key: key.serialize_pem().into_bytes() }
    };
    let refused = |tls: Tls| {
        let node = node_with(|options| options.tls = Some(tls));
        told(&node.known)
    };
    let authority = made(&|params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    assert!(refused(authority).contains("that of an authority"));
    let over = made(&|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    assert!(refused(over).contains("has expired"));
    let early = made(&|params| params.not_before = rcgen::date_time_ymd(2999, 1, 1));
    assert!(refused(early).contains("not valid yet"));
    let other = made(&|params| {
        let names = vec!["elsewhere.example".to_owned()];
        params.subject_alt_names =
            rcgen::CertificateParams::new(names).expect("a name").subject_alt_names;
    });
    assert!(refused(other).contains("not for the name"));
}

#[test]
fn other_machines_need_token_and_tls() {
    let dir = tempfile::tempdir().expect("a folder");
    let bind = |listen: &str, token: bool, encrypted: bool, insecure: bool| {
        let mut options = options(dir.path());
        options.listen = listen.to_owned();
        options.token = options.token.filter(|_| token);
        options.tls = encrypted.then(tls);
        options.insecure = insecure;
        FlightServer::bind(options)
    };
    for listen in ["0.0.0.0:0", "[::]:0"] {
        for (token, encrypted) in [(false, false), (true, false), (false, true)] {
            assert!(
                matches!(bind(listen, token, encrypted, false), Err(BindError::Open { .. })),
                "{listen}"
            );
        }
    }
    bind("0.0.0.0:0", true, true, false).expect("both");
    bind("0.0.0.0:0", false, false, true).expect("as asked for");
    for listen in ["127.0.0.1:0", "localhost:0"] {
        bind(listen, false, false, false).expect("this machine only");
    }
    assert!(matches!(bind("nonsense", true, true, false), Err(BindError::Listen { .. })));
}

#[test]
fn a_broken_certificate_is_an_error_at_the_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let good = tls();
    for (certificate, key, expected) in [
        (b"nonsense".to_vec(), good.key.clone(), TlsFault::NoCertificate),
        (good.certificate.clone(), b"nonsense".to_vec(), TlsFault::NoKey),
        (good.certificate, tls().key, TlsFault::OtherKey),
    ] {
        let mut options = options(dir.path());
        options.tls = Some(Tls { certificate, key });
        let refused = FlightServer::bind(options).err();
        assert!(
            matches!(refused, Some(BindError::Tls(fault)) if fault == expected),
            "{expected:?}: {refused:?}"
        );
    }
}

#[test]
fn paths_stay_below_the_data_folder() {
    let node = node();
    std::fs::write(node.dir.path().join("secret"), "secret").expect("written");
    std::os::unix::fs::symlink("../secret", node.dir.path().join("data/link")).expect("made");
    let absolute = node.dir.path().join("secret").display().to_string();
    let mut client = node.client();
    for path in ["../secret", &absolute, "x/../../secret", "./secret", ""] {
        let session = client.open(&of_ssdlet("copy")).expect("opened").session;
        let body = SetBody { session, ranges: vec![SessionRange::of_path(path)], run: true };
        client.set(&body).expect_err(path);
    }
    let session = begin(&mut client, "copy", &["link"]).expect("looked at later");
    let refused = rows(&mut client, rows_of(&session, 0)).expect_err("a link").to_string();
    assert!(refused.contains("link: on the way to it is a link"), "{refused}");
}
