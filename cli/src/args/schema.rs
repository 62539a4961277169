//! `kctl schema`.

use clap::{Args, ValueEnum};

/// `kctl schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kctl schema > kctl.schema.json
  kctl schema --kind InstanceGroup > instancegroup.schema.json")]
pub struct Schema {
    /// Only objects of this kind; default: of all kinds that a spec file may hold
    #[arg(long, value_name = "KIND", ignore_case = true)]
    pub kind: Option<SchemaKind>,
}

/// Kinds of objects that users write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaKind {
    #[value(name = "Cluster")]
    Cluster,
    #[value(name = "InstanceGroup")]
    InstanceGroup,
    #[value(name = "SSHCredential")]
    SshCredential,
}

impl SchemaKind {
    /// The kind as objects have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::InstanceGroup => "InstanceGroup",
            Self::SshCredential => "SSHCredential",
        }
    }
}
