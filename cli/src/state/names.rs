//! Keys of one cluster's objects.

/// Keys of one cluster's objects, all below its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    cluster: String,
}

impl Keys {
    /// Keys of the cluster with that name.
    pub fn of(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
        }
    }

    /// Whose they are.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// A key below the cluster's.
    pub fn below(&self, path: &str) -> String {
        format!("{}/{path}", self.cluster)
    }

    /// What every key of the cluster begins with.
    pub fn all(&self) -> String {
        self.below("")
    }

    /// Everything that `update` looks at sorts after this; addons, assets and backups, of which there may be
    /// many, before it.
    pub fn before_listed(&self) -> String {
        self.below("backups~")
    }

    /// The Cluster object.
    pub fn config(&self) -> String {
        self.below("config")
    }

    /// The Cluster object with every decision written down, as of the last update.
    pub fn completed(&self) -> String {
        self.below("cluster-completed.spec")
    }

    /// What InstanceGroup objects' keys begin with.
    pub fn groups(&self) -> String {
        self.below("instancegroup/")
    }

    /// An InstanceGroup object.
    pub fn group(&self, name: &str) -> String {
        format!("{}{name}", self.groups())
    }

    /// What SSH public keys' keys begin with.
    pub fn ssh_keys(&self) -> String {
        self.below("pki/ssh/public/admin/")
    }

    /// An SSH public key; `fingerprint` is its MD5 in hex, without colons.
    pub fn ssh_key(&self, fingerprint: &str) -> String {
        format!("{}{fingerprint}", self.ssh_keys())
    }

    /// A keyset with its private keys.
    pub fn keyset(&self, name: &str) -> String {
        self.below(&node::pki::keyset_path(name))
    }

    /// A secret of the user's.
    pub fn secret(&self, name: &str) -> String {
        self.below(&node::secret::stored_path(name))
    }

    /// What is public of all keysets, and of which versions of them.
    pub fn public(&self) -> String {
        self.below("pki/public.json")
    }

    /// What an apply is about to create.
    pub fn journal(&self) -> String {
        self.below("journal/creations.json")
    }

    /// Who changes the cluster now.
    pub fn lock(&self) -> String {
        self.below("lock")
    }

    /// What operations' keys begin with.
    pub fn operation_log(&self) -> String {
        self.below("operations/")
    }

    /// What an operation did.
    pub fn operation(&self, name: &str) -> String {
        format!("{}{name}.json", self.operation_log())
    }
}
