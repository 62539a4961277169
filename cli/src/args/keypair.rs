//! `kctl create|promote|trust|distrust keypair`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `kctl create keypair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl create keypair service-account                      a new key, which is trusted and does not sign yet
  kctl create keypair all                                  one in each keyset of an authority, and in service-account
  kctl create keypair kubernetes-ca --cert ca.crt --key ca.key
  kctl update --yes                                        then gives it to the instances that are launched

The stages of a rotation: docs/operations/rotate-keys.md")]
pub struct CreateKeypair {
    /// The keyset, such as kubernetes-ca; `all`: each of them
    #[arg(value_name = "KEYSET")]
    pub keyset: String,
    /// The certificate of an own authority, PEM; without --key it is trusted and can never sign
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Its private key, PEM; without --cert a certificate is made for it
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Let it sign at once; refused while an instance does not trust it
    #[arg(long)]
    pub primary: bool,
    /// With --primary: also if instances do not trust it yet and are cut off
    #[arg(long, requires = "primary")]
    pub force: bool,
}

/// `kctl promote`.
#[derive(Debug, Args)]
pub struct Promote {
    /// What to promote.
    #[command(subcommand)]
    pub what: PromoteWhat,
}

/// What `kctl promote` promotes.
#[derive(Debug, Subcommand)]
pub enum PromoteWhat {
    /// Let a key of a keyset sign; refused while an instance does not trust it
    Keypair(PromoteKeypair),
}

/// `kctl promote keypair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl promote keypair kubernetes-ca                                the newest one
  kctl promote keypair service-account 6977545226837259959403993899
  kctl promote keypair all
  kctl update --yes                                                 then makes launched instances use it

The stages of a rotation: docs/operations/rotate-keys.md")]
pub struct PromoteKeypair {
    /// The keyset; `all`: each that has a newer key than the one that signs
    #[arg(value_name = "KEYSET")]
    pub keyset: String,
    /// The key; default the newest one, if it is newer than the one that signs
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Also if instances do not trust it yet and are cut off
    #[arg(long)]
    pub force: bool,
}

/// `kctl trust`.
#[derive(Debug, Args)]
pub struct Trust {
    /// What to trust.
    #[command(subcommand)]
    pub what: TrustWhat,
}

/// What `kctl trust` trusts.
#[derive(Debug, Subcommand)]
pub enum TrustWhat {
    /// Trust a key of a keyset again
    Keypair(TrustKeypair),
}

/// `kctl trust keypair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl get keypairs kubernetes-ca --distrusted
  kctl trust keypair kubernetes-ca 6977545226837259959403993899
  kctl update --yes")]
pub struct TrustKeypair {
    /// The keyset
    #[arg(value_name = "KEYSET")]
    pub keyset: String,
    /// The keys
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
}

/// `kctl distrust`.
#[derive(Debug, Args)]
pub struct Distrust {
    /// What to distrust.
    #[command(subcommand)]
    pub what: DistrustWhat,
}

/// What `kctl distrust` distrusts.
#[derive(Debug, Subcommand)]
pub enum DistrustWhat {
    /// Take keys of a keyset out of all trust bundles; refused while an instance uses what they sign
    Keypair(DistrustKeypair),
}

/// `kctl distrust keypair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl get keypairs kubernetes-ca --instances                       which instances still use which key
  kctl distrust keypair kubernetes-ca                               all keys older than the one that signs
  kctl distrust keypair service-account 6977545226837259959403993899
  kctl distrust keypair all
  kctl update --yes                                                 then takes them from launched instances

The stages of a rotation: docs/operations/rotate-keys.md")]
pub struct DistrustKeypair {
    /// The keyset; `all`: each of them
    #[arg(value_name = "KEYSET")]
    pub keyset: String,
    /// The keys; default all that are older than the one that signs
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Also if instances still use what they sign and are cut off
    #[arg(long)]
    pub force: bool,
}
