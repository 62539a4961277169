//! Keysets and certificates, looked at with another library and with openssl.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use node::pki::*;
use std::io::Write;
use std::process::{Command, Stdio};
use time::macros::datetime;
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::X509Certificate;

const NOW: OffsetDateTime = datetime!(2026-11-21 12:00 UTC);

fn key_algorithms() -> SystemKeys {
    SystemKeys::issuing_at(NOW)
}

fn issue_administrator(validity: Duration) -> Leaf {
    Leaf {
        common_name: "kubecfg-alice".into(),
        organization: Some("system:masters".into()),
        usage: Usage::Client,
        names: Vec::new(),
        validity,
    }
}

/// Parses a PEM certificate and hands it to `look`.
fn parse_certificate<T>(pem: &str, look: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    look(&pem.parse_x509().unwrap())
}

/// Runs openssl on standard input.
fn run_openssl(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("openssl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl, of tests/requirements");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let all = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(all).unwrap();
    assert!(output.status.success(), "openssl {arguments:?}: {text}");
    text
}

#[test]
fn an_authority_is_what_kops_makes() {
    for algorithm in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::Rsa2048] {
        let keyset = mint_keyset(KUBERNETES_CA, algorithm, &mut key_algorithms()).unwrap();
        parse_certificate(&keyset.items[0].certificate, |certificate| {
            assert_eq!(certificate.subject().to_string(), "CN=kubernetes-ca");
            assert_eq!(certificate.issuer(), certificate.subject());
            let validity = certificate.validity();
            assert_eq!(validity.not_before.to_datetime(), NOW - Duration::hours(48));
            assert_eq!(validity.not_after.to_datetime(), NOW + Duration::days(3650));
            let constraints = certificate.basic_constraints().unwrap().unwrap();
            assert!(constraints.critical && constraints.value.ca);
            assert_eq!(constraints.value.path_len_constraint, None);
            let usage = certificate.key_usage().unwrap().unwrap();
            assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
            assert!(!usage.value.digital_signature());
            let serial = certificate.serial.to_string();
            assert_eq!(serial, keyset.primary);
            let time = serial.parse::<u128>().unwrap() >> 32;
            assert_eq!(i128::try_from(time).unwrap(), NOW.unix_timestamp_nanos());
            certificate.verify_signature(None).unwrap();
        });
    }
}

#[test]
fn keys_are_p256_and_where_asked_for_rsa_of_2048_bits() {
    let bits = |algorithm| {
        let keyset = mint_keyset("service-account", algorithm, &mut key_algorithms()).unwrap();
        parse_certificate(&keyset.items[0].certificate, |certificate| {
            certificate.public_key().parsed().unwrap().key_size()
        })
    };
    assert_eq!(bits(KeyAlgorithm::Rsa2048), 2048);
    assert_eq!(bits(KeyAlgorithm::default()), 256);
}

#[test]
fn a_stored_keyset_reads_back_as_it_was_and_still_signs() {
    for algorithm in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::Rsa2048] {
        let keyset = mint_keyset(KUBERNETES_CA, algorithm, &mut key_algorithms()).unwrap();
        let file = write_keyset(&keyset).unwrap();
        let read = read_keyset(KUBERNETES_CA, file.reveal()).unwrap();
        assert_eq!(read, keyset);
        let issued = issue_certificate(
            &read,
            &issue_administrator(Duration::hours(18)),
            &mut key_algorithms(),
        )
        .unwrap();
        parse_certificate(&keyset.items[0].certificate, |authority| {
            parse_certificate(&issued.certificate, |leaf| {
                leaf.verify_signature(Some(authority.public_key())).unwrap();
                assert_eq!(
                    leaf.tbs_certificate.issuer.as_raw(),
                    authority.tbs_certificate.subject.as_raw()
                );
                assert_eq!(
                    leaf.subject().to_string(),
                    "CN=kubecfg-alice, O=system:masters"
                );
                assert_eq!(
                    leaf.validity().not_after.to_datetime(),
                    NOW + Duration::hours(18)
                );
                let usage = leaf.extended_key_usage().unwrap().unwrap().value;
                assert!(usage.client_auth && !usage.server_auth);
            });
        });
    }
}

#[test]
fn keys_in_the_forms_that_kops_and_openssl_write_can_sign() {
    let subject = [
        "-x509",
        "-nodes",
        "-days",
        "9",
        "-subj",
        "/CN=kubernetes-ca",
        "-keyout",
        "-",
    ];
    let made = |kind: &[&str]| {
        let text = run_openssl(&[&["req"], &subject[..], &["-newkey"], kind].concat(), "");
        let certificate = text.find("-----BEGIN CERTIFICATE").unwrap();
        let key = text.find("-----BEGIN PRIVATE").unwrap();
        (
            text[certificate..].to_owned(),
            text[key..certificate].to_owned(),
        )
    };
    let rsa = made(&["rsa:2048"]);
    let ec = made(&["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    let pkcs1 = run_openssl(&["rsa", "-traditional"], &rsa.1);
    let sec1 = run_openssl(&["ec"], &ec.1);
    for (form, certificate, key) in [
        ("BEGIN PRIVATE KEY", &rsa.0, &rsa.1),
        (
            "BEGIN RSA PRIVATE KEY",
            &rsa.0,
            &pkcs1[pkcs1.find("-----BEGIN").unwrap()..].to_owned(),
        ),
        ("BEGIN PRIVATE KEY", &ec.0, &ec.1),
        (
            "BEGIN EC PRIVATE KEY",
            &ec.0,
            &sec1[sec1.find("-----BEGIN EC").unwrap()..].to_owned(),
        ),
    ] {
        assert!(key.contains(form), "{key}");
        let yaml = format!(
            "apiVersion: kops.k8s.io/v1alpha2\nkind: Keyset\nmetadata:\n  creationTimestamp: null\n  \
             name: kubernetes-ca\nspec:\n  keys:\n  - id: \"7\"\n    privateMaterial: {}\n    publicMaterial: {}\n  \
             primaryId: \"7\"\n  type: Keypair\n",
            STANDARD.encode(key),
            STANDARD.encode(certificate)
        );
        let keyset = read_keyset(KUBERNETES_CA, &yaml).unwrap();
        // Before kOps 1.15 the group had another name.
        let older = yaml.replace("kops.k8s.io/", "kops/");
        assert_eq!(read_keyset(KUBERNETES_CA, &older).unwrap().items.len(), 1);
        let issued = issue_certificate(
            &keyset,
            &issue_administrator(Duration::hours(1)),
            &mut key_algorithms(),
        )
        .unwrap();
        parse_certificate(certificate, |authority| {
            parse_certificate(&issued.certificate, |leaf| {
                leaf.verify_signature(Some(authority.public_key())).unwrap();
            });
        });
    }
}

#[test]
fn openssl_trusts_a_server_certificate_under_every_name_it_was_issued_for() {
    let keyset = mint_keyset(
        KUBERNETES_CA,
        KeyAlgorithm::EcdsaP256,
        &mut SystemKeys::issuing_at(OffsetDateTime::now_utc()),
    )
    .unwrap();
    let leaf = Leaf {
        common_name: "kubernetes-master".into(),
        organization: None,
        usage: Usage::Server,
        names: vec![
            "api.a.example.com".into(),
            "100.64.0.1".into(),
            "fd00::1".into(),
        ],
        validity: Duration::days(1),
    };
    let issued = issue_certificate(
        &keyset,
        &leaf,
        &mut SystemKeys::issuing_at(OffsetDateTime::now_utc()),
    )
    .unwrap();
    let folder = std::env::temp_dir().join(format!("pki-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let authority = folder.join("ca.crt");
    std::fs::write(&authority, trust_bundle(&keyset)).unwrap();
    let authority = authority.to_str().unwrap();
    let verify = |check: &[&str]| {
        run_openssl(
            &[
                &["verify", "-purpose", "sslserver", "-CAfile", authority],
                check,
            ]
            .concat(),
            &issued.certificate,
        );
    };
    verify(&["-verify_hostname", "api.a.example.com"]);
    verify(&["-verify_ip", "100.64.0.1"]);
    verify(&["-verify_ip", "fd00::1"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn no_certificate_outlives_its_authority() {
    let keyset = mint_keyset(
        KUBERNETES_CA,
        KeyAlgorithm::EcdsaP256,
        &mut key_algorithms(),
    )
    .unwrap();
    let issued = issue_certificate(
        &keyset,
        &issue_administrator(Duration::days(36500)),
        &mut key_algorithms(),
    )
    .unwrap();
    parse_certificate(&issued.certificate, |leaf| {
        assert_eq!(
            leaf.validity().not_after.to_datetime(),
            NOW + Duration::days(3650)
        );
    });
}

#[test]
fn distrusted_certificates_are_not_in_the_bundle_and_the_newest_trusted_key_signs() {
    let minted: Vec<Keyset> = (0..3)
        .map(|day| {
            let time = NOW + Duration::days(day);
            mint_keyset(
                KUBERNETES_CA,
                KeyAlgorithm::EcdsaP256,
                &mut SystemKeys::issuing_at(time),
            )
            .unwrap()
        })
        .collect();
    let mut items: Vec<KeysetItem> = minted
        .iter()
        .map(|keyset| keyset.items[0].clone())
        .collect();
    items[0].distrusted = Some("2026-11-22T00:00:00Z".into());
    items[2].key = None;
    items.reverse();
    let keyset = Keyset {
        name: KUBERNETES_CA.into(),
        primary: items[1].id.clone(),
        items: items.clone(),
    };
    let file = write_keyset(&keyset).unwrap();
    let unsaid: String = file
        .reveal()
        .lines()
        .filter(|line| !line.contains("primaryId"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let read = read_keyset(KUBERNETES_CA, &unsaid).unwrap();
    assert!(
        read.items
            .is_sorted_by_key(|item| item.id.parse::<u128>().unwrap()),
        "oldest first"
    );
    assert_eq!(read.primary, items[1].id);
    let bundle = trust_bundle(&read);
    assert_eq!(
        bundle,
        format!("{}{}", items[1].certificate, items[0].certificate)
    );
}

#[test]
fn what_is_no_keyset_is_refused_without_showing_it() {
    let secret = STANDARD.encode("-----BEGIN PRIVATE KEY-----\nc3dvcmRmaXNo\n");
    let envelope = "apiVersion: kops.k8s.io/v1alpha2\nkind: Keyset\nmetadata: {name: a}\nspec:\n";
    for body in [
        format!("  primaryId: \"1\"\n  keys:\n  - id: \"1\"\n    privateMaterial: [{secret}]\n"),
        format!(
            "  primaryId: \"1\"\n  keys:\n  - id: \"1\"\n    privateMaterial: {secret}\n    extra: {secret}\n"
        ),
        format!(
            "  primaryId: \"1\"\n  keys:\n  - id: \"1\"\n    privateMaterial: {secret}\n    publicMaterial: {}\n",
            "AAAA"
        ),
        "  primaryId: \"2\"\n  keys: []\n".to_owned(),
        "  keys: []\n".to_owned(),
    ] {
        let error = whole_text(&read_keyset("a", &format!("{envelope}{body}")).unwrap_err());
        assert!(
            !error.contains(&secret) && !error.contains("swordfish"),
            "{error}"
        );
    }
    let mut keyset = mint_keyset("a", KeyAlgorithm::EcdsaP256, &mut key_algorithms()).unwrap();
    keyset.items[0].key = None;
    let refused = issue_certificate(
        &keyset,
        &issue_administrator(Duration::hours(1)),
        &mut key_algorithms(),
    );
    assert!(matches!(refused, Err(Error::NoPrivateKey(_))));
}

/// An error with all its sources, and as `Debug` shows it.
fn whole_text(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause} {cause:?}");
        source = cause.source();
    }
    text
}

#[test]
fn names_that_cannot_stand_in_a_certificate_are_refused() {
    let keyset = mint_keyset(
        KUBERNETES_CA,
        KeyAlgorithm::EcdsaP256,
        &mut key_algorithms(),
    )
    .unwrap();
    for name in ["", "a b", "ü.example.com"] {
        let leaf = Leaf {
            names: vec![name.into()],
            ..issue_administrator(Duration::hours(1))
        };
        assert!(
            matches!(
                issue_certificate(&keyset, &leaf, &mut key_algorithms()),
                Err(Error::BadName(_))
            ),
            "{name:?}"
        );
    }
}

#[test]
fn private_keys_show_in_no_debug_output() {
    let keyset = mint_keyset(
        KUBERNETES_CA,
        KeyAlgorithm::EcdsaP256,
        &mut key_algorithms(),
    )
    .unwrap();
    let issued = issue_certificate(
        &keyset,
        &issue_administrator(Duration::hours(1)),
        &mut key_algorithms(),
    )
    .unwrap();
    let file = write_keyset(&keyset).unwrap();
    let shown = format!("{keyset:?} {issued:?} {file:?}");
    for key in [keyset.items[0].key.clone().unwrap(), issued.key] {
        let line = key.reveal().lines().nth(1).unwrap().to_owned();
        assert!(!shown.contains(&line));
    }
    assert!(!shown.contains("PRIVATE"));
}

#[test]
fn a_kubeconfig_holds_what_kubectl_needs() {
    let keyset = mint_keyset(
        KUBERNETES_CA,
        KeyAlgorithm::EcdsaP256,
        &mut key_algorithms(),
    )
    .unwrap();
    let issued = issue_certificate(
        &keyset,
        &issue_administrator(Duration::hours(18)),
        &mut key_algorithms(),
    )
    .unwrap();
    let config = Kubeconfig {
        name: "a.example.com".into(),
        server: "https://api.a.example.com".into(),
        tls_server_name: Some("api.internal.a.example.com".into()),
        trust_bundle: Some(trust_bundle(&keyset)),
        credentials: Some(ClientCredentials::Inside {
            certificate: issued.certificate.clone(),
            key: issued.key.clone(),
        }),
    };
    let file = render_kubeconfig(&config).unwrap();
    let read: serde_json::Value = serde_saphyr::from_str(file.reveal()).unwrap();
    let decoded = |pointer: &str| {
        let text = read.pointer(pointer).unwrap().as_str().unwrap();
        String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
    };
    assert_eq!(read["current-context"], read["contexts"][0]["name"]);
    assert_eq!(
        read["contexts"][0]["context"]["user"],
        read["users"][0]["name"]
    );
    assert_eq!(
        read["contexts"][0]["context"]["cluster"],
        read["clusters"][0]["name"]
    );
    assert_eq!(
        read["clusters"][0]["cluster"]["server"],
        "https://api.a.example.com"
    );
    assert_eq!(
        read["clusters"][0]["cluster"]["tls-server-name"],
        "api.internal.a.example.com"
    );
    assert_eq!(
        decoded("/clusters/0/cluster/certificate-authority-data"),
        trust_bundle(&keyset)
    );
    assert_eq!(
        decoded("/users/0/user/client-certificate-data"),
        issued.certificate
    );
    assert_eq!(
        decoded("/users/0/user/client-key-data"),
        issued.key.reveal()
    );
}

#[test]
fn every_authority_of_a_cluster_has_a_keyset() {
    assert_eq!(
        keyset_names(["main", "events"]),
        [
            "apiserver-aggregator-ca",
            "etcd-clients-ca",
            "etcd-manager-ca-events",
            "etcd-manager-ca-main",
            "etcd-peers-ca-events",
            "etcd-peers-ca-main",
            "kubernetes-ca",
            "service-account",
        ]
    );
    assert_eq!(
        keyset_path(KUBERNETES_CA),
        "pki/private/kubernetes-ca/keyset.yaml"
    );
}
