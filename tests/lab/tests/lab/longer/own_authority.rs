//! An authority of a company signs for a new cluster, and OpenSSL verifies every certificate that instances have of it.

use super::super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::Lab;
use std::fs;
use std::process::Command;

const NAME: &str = "An authority that was brought";

/// Says of each certificate of an instance whether OpenSSL verifies it under the authority in `$1`: `ok FILE`, or `other FILE ISSUER`.
const VERIFY: &str = r#"
files=$(grep -RlF -e '-----BEGIN CERTIFICATE-----' /srv /etc/kubernetes /var/lib/kubelet/pki /var/lib/kube-proxy 2>/dev/null || true)
for file in $files; do
    openssl verify -x509_strict -CAfile "$1" "$file" >/dev/null 2>&1 && said=ok || said=other
    echo "$said $file $(openssl x509 -in "$file" -noout -issuer)"
done
"#;

/// Certificates that every instance has, and those of the control plane, of the keyset.
const OF_ALL: [&str; 3] = [
    "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "/var/lib/kubelet/pki/kubelet-server-current.pem",
    "/var/lib/kube-proxy/client.crt",
];

/// Before the first update: the cluster's authority is one that OpenSSL has made.
pub fn bring(lab: &Lab) -> Result<()> {
    let folder = lab.place().data_folder();
    let [certificate, key] = ["authority.crt", "authority.key"].map(|file| folder.join(file));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "30"])
        .args(["-pkeyopt", "ec_paramgen_curve:P-256", "-sha256"])
        .args(["-subj", &format!("/O=Example/CN={NAME}")])
        .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .context("openssl")?;
    ensure!(made.status.success(), "{made:?}");
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().context("a path"));
    let (certificate, key) = (certificate?, key?);
    let words = ["create", "keypair", "kubernetes-ca", "--name", CLUSTER];
    let own = ["--cert", certificate, "--key", key, "--primary"];
    lab.run_kctl(&[&words[..], &own].concat()).map(drop)
}

/// On every instance, whatever says that this authority issued it is verified, and the certificates that it must have are among them.
pub fn expect_verified(lab: &mut Lab) -> Result<()> {
    let folder = lab.place().data_folder();
    let authority = fs::read_to_string(folder.join("authority.crt")).context("the authority")?;
    let control_plane = cluster::control_plane(lab, 0)?;
    let found = verified(lab, &control_plane, &authority)?;
    // Of the API server, its clients and the controllers.
    ensure!(found.len() > OF_ALL.len() + 3, "{found:?}");
    for worker in cluster::worker_instances(lab)? {
        verified(lab, &worker, &authority)?;
    }
    Ok(())
}

/// The files of an instance that OpenSSL verifies under the authority.
fn verified(lab: &Lab, instance: &Instance, authority: &str) -> Result<Vec<String>> {
    let script = format!(
        "cat >/run/authority.crt <<'END'\n{authority}END\nset -- /run/authority.crt\n{VERIFY}"
    );
    let said = lab.run_script(&instance.id, &script)?;
    let wrong = said
        .lines()
        .filter(|line| line.starts_with("other ") && line.contains(NAME));
    let wrong: Vec<&str> = wrong.collect();
    ensure!(wrong.is_empty(), "{wrong:#?}");
    let files = said.lines().filter_map(|line| line.strip_prefix("ok "));
    let files = files.filter_map(|line| line.split(' ').next());
    let files: Vec<String> = files.map(str::to_owned).collect();
    for file in OF_ALL {
        ensure!(files.iter().any(|one| one == file), "{file}: {said}");
    }
    eprintln!("       {}: {} certificates", instance.id, files.len());
    Ok(files)
}
